import { type AnyAgent, agent, DefinitionError, SubAgentUnavailable, tool } from 'legate'
import type { NameClash } from 'legate/background'
import { makeSubagentTool } from 'legate/compat'
import { scriptedModel } from 'legate/testing'
import { toolkit } from 'legate/tools'
import { describe, expect, test } from 'vitest'
import { openRuntime, resultIn, toolNamesIn } from '../support/reading.ts'

const input = { type: 'object', properties: { topic: { type: 'string' } }, required: ['topic'] } as const

/** Says its own name. */
function named(name: string): AnyAgent {
  return agent({ name, instructions: '', input, model: scriptedModel(() => name) })
}

const own = tool({ description: 'Own', input: { type: 'object' }, effect: 'pure', execute: () => 'the tool' })

/** What the host's model is offered, and what answers when it calls `look`. */
async function lookedAt(parts: object) {
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'tool' ? 'done' : { calls: [{ name: 'look', input: { topic: 'x' } }] },
  )
  await openRuntime().run(agent({ name: 'host', instructions: '', model, ...parts }), 'go').result
  return { offered: toolNamesIn(model.requests[0]), answer: resultIn(model.requests[1]) }
}

const RENAMED = /^look_[0-9a-f]{5}$/

describe('a subagent whose name is taken', () => {
  test.each<[NameClash | undefined]>([[undefined], ['raise']])('is refused with %s', (onNameClash) => {
    const subagents = { look: { agent: named('second'), ...(onNameClash && { onNameClash }) } }
    const define = () => agent({ name: 'host', instructions: '', tools: { look: own }, subagents })

    expect(define).toThrow(SubAgentUnavailable)
    expect(define).toThrow(/"look" is a tool and a subagent/)
  })

  test.each<[NameClash, string, number]>([
    ['override', 'second', 1],
    ['skip', 'the tool', 1],
    ['rename', 'the tool', 2],
  ])('by a tool: %s has %j answer', async (onNameClash, answer, count) => {
    const subagents = { look: { agent: named('second'), onNameClash } }
    const found = await lookedAt({ tools: { look: own }, subagents })

    expect(found.answer).toBe(answer)
    expect(found.offered).toHaveLength(count)
    if (count === 2) expect(found.offered).toEqual(['look', expect.stringMatching(RENAMED)])
  })

  test.each<[NameClash, string, number]>([
    ['override', 'second', 1],
    ['skip', 'first', 1],
    ['rename', 'first', 2],
  ])('by another of a list: %s has %j answer', async (onNameClash, answer, count) => {
    const list = [
      { agent: named('first'), toolName: 'look' },
      { agent: named('second'), toolName: 'look', onNameClash },
    ]
    const found = await lookedAt({ subagents: list })

    expect([found.answer, found.offered.length]).toEqual([answer, count])
  })

  test('is called by its new name, which is the same in every process', async () => {
    const define = () =>
      agent({
        name: 'host',
        instructions: '',
        tools: { look: own },
        subagents: { look: { agent: named('second'), onNameClash: 'rename' } },
      })
    const [renamed = ''] = define().subagents.keys()
    const model = scriptedModel([{ calls: [{ name: renamed, input: { topic: 'x' } }] }, 'done'])
    const host = agent({ ...parts(), model })

    await openRuntime().run(host, 'go').result

    expect([...define().subagents.keys()]).toEqual([renamed])
    expect(define().identity.ref.hash).toBe(define().identity.ref.hash)
    expect(resultIn(model.requests[1])).toBe('second')
  })

  test('a name that is as long as names may be still gets one', () => {
    const look = 'l'.repeat(64)
    const many = Array.from({ length: 20 }, (_, at) => ({
      agent: named(`a${at}`),
      toolName: look,
      onNameClash: 'rename' as const,
    }))
    const { subagents } = agent({ name: 'host', instructions: '', subagents: many })

    expect(subagents.size).toBe(20)
    for (const name of subagents.keys()) expect(name).toMatch(/^[a-z0-9_]{64}$/)
  })

  test('an unknown word is refused where it was written', () => {
    const onNameClash = 'replace' as never
    const subagents = { look: { agent: named('x'), onNameClash } }
    const groups = { g: { description: 'G', active: true, onNameClash } }

    expect(() => agent({ name: 'host', instructions: '', subagents })).toThrow(
      /subagents.look: onNameClash must be one of "raise"/,
    )
    expect(() => toolkit({ groups })).toThrow(DefinitionError)
    expect(() => toolkit({ groups })).toThrow(
      /groups.g: onNameClash must be one of "raise", "override", "skip", "rename"/,
    )
  })

  function parts() {
    const subagents = { look: { agent: named('second'), onNameClash: 'rename' as const } }
    return { name: 'host', instructions: '', tools: { look: own }, subagents }
  }
})

describe('a group', () => {
  test.each<[NameClash, string]>([
    ['override', 'of the group'],
    ['skip', 'the tool'],
    ['rename', 'the tool'],
  ])('says it for what is in it: %s has %j answer', async (onNameClash, answer) => {
    const look = tool({ description: 'L', input: { type: 'object' }, execute: () => 'of the group' })
    const groups = { g: { description: 'G', active: true, onNameClash, tools: { look } } }

    expect((await lookedAt({ tools: { look: own }, toolkit: toolkit({ groups, meta: 'none' }) })).answer).toBe(answer)
  })
})

describe('a tool made by hand', () => {
  const host = { name: 'host', model: scriptedModel(() => 'x'), tools: { look: own } }
  const make = (onNameClash?: NameClash) =>
    makeSubagentTool(
      named('second'),
      { name: 'second', ...(onNameClash && { onNameClash }) },
      { host, toolName: 'look' },
    )

  test('is refused when its name is taken', () => {
    expect(() => make()).toThrow(/A function with name 'look' is already registered in the toolkit of "host"/)
    expect(() => make('raise')).toThrow(SubAgentUnavailable)
  })

  test.each<[NameClash, string, number]>([
    ['override', 'second', 1],
    ['skip', 'the tool', 1],
    ['rename', 'the tool', 2],
  ])('%s has %j answer when it is put among the others', async (onNameClash, answer, count) => {
    const { tool: made, register } = make(onNameClash)
    const found = await lookedAt({ tools: { ...host.tools, [register.name]: made } })

    expect([found.answer, found.offered.length]).toEqual([answer, count])
    if (count === 2) expect(register.name).toMatch(RENAMED)
  })

  test.each<[NameClash, string]>([
    ['override', 'second'],
    ['skip', 'first'],
    ['rename', 'first'],
  ])('%s has %j answer where a subagent has the name', async (onNameClash, answer) => {
    const subagents = { look: named('first') }
    const spec = { name: 'second', onNameClash }
    const options = { host: { name: 'host', model: scriptedModel(() => 'x'), subagents }, toolName: 'look' }
    const { tool: made, register } = makeSubagentTool(named('second'), spec, options)

    expect((await lookedAt({ subagents, tools: { [register.name]: made } })).answer).toBe(answer)
  })
})
