import path from 'node:path'
import { agent, createRuntime, type Json, tool } from 'legate'
import { sqliteStore } from 'legate/store/sqlite'
import { type Script, scriptedModel } from 'legate/testing'
import { toolkit } from 'legate/tools'
import { beforeEach, describe, expect, test } from 'vitest'
import { openRuntime, resultsIn } from '../support/reading.ts'
import { tempFolder } from '../support/temp-folder.ts'

const none = { type: 'object' } as const

function named(name: string) {
  return tool({ description: `Does ${name}.`, input: none, execute: () => `did ${name}` })
}

const web = {
  description: 'Reading the web',
  active: false,
  notes: 'Fetch before you read.',
  tools: { fetch: named('fetch') },
}
const code = { description: 'Working with code', active: true, tools: { grep: named('grep') } }

function grouped(script: Script, options: Partial<Parameters<typeof toolkit>[0]> = {}) {
  const model = scriptedModel(script)
  const kit = toolkit({ groups: { web, code }, ...options })
  return {
    agent: agent({ name: 'host', instructions: '', model, tools: { base: named('base') }, toolkit: kit }),
    model,
  }
}

function offered(model: ReturnType<typeof scriptedModel>, at: number): string[] {
  return model.requests[at]?.tools.map(({ name }) => name) ?? []
}

/** Makes these calls, one after the other, then answers with the last result. */
function calls(...list: { name: string; input?: Json }[]): Script {
  return (request) => {
    const results = resultsIn(request)
    const next = list[results.length]
    return next === undefined
      ? String(results.at(-1)?.content)
      : { calls: [{ name: next.name, input: next.input ?? {} }] }
  }
}

describe('tool groups', () => {
  test('a tool of an inactive group is not offered, a call of it by name says how to get it', async () => {
    const { agent: host, model } = grouped(calls({ name: 'fetch' }))

    const { text } = await openRuntime().run(host, 'go').result

    expect(offered(model, 0)).toEqual(['base', 'grep', 'reset_equipped_tools'])
    expect(text).toBe(
      "FunctionInactiveError: The function 'fetch' is in the inactive group 'web'. Activate the tool group by calling 'reset_equipped_tools' first to use this tool.",
    )
  })

  test('absolute: what is named is on, everything else is off; notes and tools come back', async () => {
    const { agent: host, model } = grouped(
      calls({ name: 'reset_equipped_tools', input: { web: true } }, { name: 'fetch' }, { name: 'grep' }),
    )

    const { text } = await openRuntime().run(host, 'go').result

    expect(String(resultsIn(model.requests[1] ?? fail())[0]?.content)).toBe(
      "Group 'web' is on:\n- fetch: Does fetch.\nFetch before you read.",
    )
    expect(offered(model, 1)).toEqual(['base', 'fetch', 'reset_equipped_tools'])
    expect(String(resultsIn(model.requests[2] ?? fail())[1]?.content)).toBe('did fetch')
    expect(text).toContain("inactive group 'code'")
  })

  test('additive: it only switches on', async () => {
    const { agent: host, model } = grouped(
      calls({ name: 'reset_equipped_tools', input: { to_activate: ['web'] } }, { name: 'grep' }),
      { meta: 'additive' },
    )

    const { text } = await openRuntime().run(host, 'go').result

    expect(offered(model, 1)).toEqual(['base', 'fetch', 'grep', 'reset_equipped_tools'])
    expect(text).toBe('did grep')
  })

  test('a group that does not exist, and a state that is no boolean, are answered and change nothing', async () => {
    const { agent: host, model } = grouped(
      calls(
        { name: 'reset_equipped_tools', input: { nothing: true } },
        { name: 'reset_equipped_tools', input: { web: 'yes' } },
        { name: 'reset_equipped_tools', input: { __proto__: true, constructor: true } },
      ),
    )

    await openRuntime().run(host, 'go').result

    expect(offered(model, 2)).toEqual(['base', 'grep', 'reset_equipped_tools'])
  })

  test('a tool in two groups is there while either is on; without one of them it is in the other', async () => {
    const shared = named('shared')
    const kit = toolkit({
      groups: {
        one: { description: 'One', active: true, tools: { shared, only: named('only') } },
        two: { description: 'Two', active: false, tools: { shared } },
      },
    })
    const make = (which: typeof kit) => {
      const model = scriptedModel(() => 'ok')
      return { model, host: agent({ name: 'host', instructions: '', model, toolkit: which }) }
    }
    const runtime = openRuntime()
    const whole = make(kit)
    const { conversationId } = await runtime.run(whole.host, 'go').result
    const talk = await runtime.conversation(conversationId)

    await talk.deactivate('one')
    await runtime.run(whole.host, 'again', { conversationId }).result
    await talk.activate('two')
    await runtime.run(whole.host, 'again', { conversationId }).result
    const without = make(kit.remove('one'))
    await runtime.run(without.host, 'go').result

    expect([0, 1, 2].map((at) => offered(whole.model, at))).toEqual([
      ['shared', 'only', 'reset_equipped_tools'],
      ['reset_equipped_tools'],
      ['shared', 'reset_equipped_tools'],
    ])
    expect(offered(without.model, 0)).toEqual(['reset_equipped_tools'])
  })

  test('switching grants nothing: a denied tool of an active group stays hidden and refused', async () => {
    const model = scriptedModel(
      calls({ name: 'reset_equipped_tools', input: { web: true, code: true } }, { name: 'fetch' }),
    )
    const kit = toolkit({ groups: { web, code } })
    const host = agent({ name: 'host', instructions: '', model, toolkit: kit, grant: { deny: ['tool:fetch'] } })

    const { text } = await openRuntime().run(host, 'go').result

    expect(offered(model, 1)).toEqual(['grep', 'reset_equipped_tools'])
    expect(text).toMatch(/^fetch is not allowed here/)
  })

  test('tools and subagents of the agent itself are there whatever is switched', async () => {
    const expert = agent({ name: 'expert', description: 'x', instructions: '', model: scriptedModel(() => 'known') })
    const model = scriptedModel(
      calls(
        { name: 'reset_equipped_tools', input: {} },
        { name: 'base' },
        { name: 'call_expert', input: { message: 'x' } },
      ),
    )
    const tools = { base: named('base') }
    const kit = toolkit({ groups: { web, code } })
    const host = agent({ name: 'host', instructions: '', model, tools, subagents: [expert], toolkit: kit })

    const { text } = await openRuntime().run(host, 'go').result

    expect(offered(model, 0).sort()).toEqual(['base', 'call_expert', 'grep', 'reset_equipped_tools'])
    expect(offered(model, 1).sort()).toEqual(['base', 'call_expert', 'reset_equipped_tools'])
    expect(String(resultsIn(model.requests[2] ?? fail())[1]?.content)).toBe('did base')
    expect(text).toMatch(/known$/)
  })

  test('subagents of a group are offered and started only while it is on', async () => {
    const expert = agent({
      name: 'expert',
      description: 'Knows',
      instructions: '',
      model: scriptedModel(() => 'known'),
    })
    const model = scriptedModel(
      calls(
        { name: 'call_expert', input: { message: 'x' } },
        { name: 'reset_equipped_tools', input: { experts: true } },
        { name: 'call_expert', input: { message: 'x' } },
      ),
    )
    const kit = toolkit({ groups: { experts: { description: 'People who know', active: false, subagents: [expert] } } })
    const host = agent({ name: 'host', instructions: '', model, toolkit: kit })

    const { text, children } = await openRuntime().run(host, 'go').result

    expect(offered(model, 0)).toEqual(['reset_equipped_tools'])
    expect(String(resultsIn(model.requests[1] ?? fail())[0]?.content)).toContain("inactive group 'experts'")
    expect(text).toMatch(/^session_id: \S+\n\nknown$/)
    expect(children).toBe(1)
  })
})

describe('which groups are on belongs to the conversation', () => {
  let dir = ''
  beforeEach(() => {
    dir = tempFolder()
  })

  test('a restart gives back what was on and what was off', async () => {
    const file = path.join(dir, 'legate.db')
    const first = grouped(calls({ name: 'reset_equipped_tools', input: { web: true } }))
    const before = createRuntime({ store: sqliteStore(file) })
    const { conversationId } = await before.run(first.agent, 'go').result
    await before.close()

    const second = grouped(() => 'ok')
    await using after = createRuntime({ store: sqliteStore(file), agents: [second.agent] })
    const talk = await after.conversation(conversationId)
    expect(await talk.groups()).toEqual({ web: true, code: false })
    await after.run(second.agent, 'again', { conversationId }).result

    expect(offered(second.model, 0)).toEqual(['base', 'fetch', 'reset_equipped_tools'])
  })

  test('two conversations do not share what is on', async () => {
    const { agent: host, model } = grouped(() => 'ok')
    const runtime = openRuntime()
    const one = await runtime.run(host, 'one').result
    await (await runtime.conversation(one.conversationId)).activate('web')

    await runtime.run(host, 'two').result
    await runtime.run(host, 'one', { conversationId: one.conversationId }).result

    expect(offered(model, 1)).not.toContain('fetch')
    expect(offered(model, 2)).toContain('fetch')
  })

  test('a group nobody defined is refused', async () => {
    const { agent: host } = grouped(() => 'ok')
    const runtime = openRuntime()
    const { conversationId } = await runtime.run(host, 'go').result
    const talk = await runtime.conversation(conversationId)

    await expect(talk.activate('nothing')).rejects.toThrow("Tool group 'nothing' does not exist.")
  })
})

describe('toolkit(): what cannot work is refused', () => {
  test.each([
    [
      'a second group of the name',
      () => toolkit({ groups: { web } }).create('web', web),
      /there is a group "web" already/,
    ],
    [
      'removing what is not there',
      () => toolkit({ groups: { web } }).remove('x'),
      /no group "x" to remove. There are web/,
    ],
    ['basic', () => toolkit({ groups: { basic: web } }), /always on/],
    ['a bad name', () => toolkit({ groups: { 'a b': web } }), /is not a name for a group/],
    ['no description', () => toolkit({ groups: { web: { description: ' ', active: true } } }), /needs a description/],
    [
      'active unsaid',
      () => toolkit({ groups: { web: { description: 'x' } as never } }),
      /active must be true or false/,
    ],
    ['an unknown key', () => toolkit({ groups: { web: { ...web, tool: {} } as never } }), /has no option "tool"/],
    ['an unknown meta', () => toolkit({ groups: { web }, meta: 'both' as never }), /meta must be one of "absolute"/],
  ])('%s', (_, make, message) => {
    expect(make).toThrow(message)
  })

  test('a toolkit never changes: create and remove give another one', () => {
    const kit = toolkit({ groups: { web } })
    const more = kit.create('code', code)

    expect([kit, more, more.remove('web')].map(({ groups }) => [...groups.keys()])).toEqual([
      ['web'],
      ['web', 'code'],
      ['code'],
    ])
  })

  test('two tools of one name, in groups or beside them, are refused', () => {
    const host = (groups: Parameters<typeof toolkit>[0]['groups'], tools = {}) =>
      agent({ name: 'host', instructions: '', tools, toolkit: toolkit({ groups }) })
    const other = { description: 'Other', active: true, tools: { fetch: named('fetch') } }

    expect(() => host({ web, other })).toThrow(/another tool "fetch"/)
    expect(() => host({ web }, { fetch: named('fetch') })).toThrow(/another tool "fetch"/)
    expect(() => agent({ name: 'host', instructions: '', toolkit: { groups: {} } as never })).toThrow(
      /toolkit\({ groups }\)/,
    )
  })
})

function fail(): never {
  throw new Error('there was no such request')
}
