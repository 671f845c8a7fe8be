import { type AnyAgent, agent, DefinitionError, SubAgentUnavailable, tool } from 'legate'
import { makeSubagentTool } from 'legate/compat'
import { scriptedModel } from 'legate/testing'
import { toolkit } from 'legate/tools'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { openRuntime, resultIn, taskOf, toolNamesIn } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'

const Topic = z.object({ topic: z.string(), depth: z.number().default(2), tags: z.array(z.string()).optional() })
const search = tool({ description: 'Search', input: { type: 'object' }, effect: 'pure', execute: () => 'found' })

function expertOf(childModel = scriptedModel(() => 'ok')) {
  return agent({ name: 'expert', description: 'Knows.', instructions: '', model: childModel, input: Topic })
}

const hostModel = () => scriptedModel([{ calls: [{ name: 'research_tool', input: { topic: 'QUIC' } }] }, 'done'])

describe('a tool made of an agent', () => {
  test('is named after its spec, described, in an active group, and shows the fields of the input', () => {
    const { register } = makeSubagentTool(expertOf(), { name: 'research' }, { host: { name: 'host' } })

    expect(register).toMatchObject({ name: 'research_tool', description: 'Knows.', presets: {}, group: 'subagents' })
    expect(Object.keys(register.inputSchema['properties'] as object).sort()).toEqual(['depth', 'tags', 'topic'])
    expect(register.inputSchema['required']).toEqual(['topic'])
    expect(JSON.stringify(register.inputSchema)).not.toMatch(/title|\$schema/)
  })

  test('is called by its host’s model and delegates like any subagent', async () => {
    const childModel = scriptedModel(['It is fast.'])
    const model = hostModel()
    const { tool: research, register } = makeSubagentTool(
      expertOf(childModel),
      { name: 'research' },
      { host: { name: 'host', model } },
    )
    const host = agent({ name: 'host', instructions: '', model, tools: { search, [register.name]: research } })
    const runtime = openRuntime()

    const run = runtime.run(host, 'go')

    expect(await run.result).toMatchObject({ status: 'completed', children: 1 })
    expect(toolNamesIn(model.requests[0])).toEqual(['search', 'research_tool'])
    expect(resultIn(model.requests[1])).toBe('It is fast.')
    expect(taskOf(runtime, run).output.metadata).toMatchObject({ subagent: 'research', supervisor: 'host' })
    const [link] = localStore(runtime).linksOf(run.id)
    expect(link).toMatchObject({ contract: 'typed', toolName: 'research_tool', agentName: 'research' })
    const talk = await runtime.conversation(run.conversationId)
    expect(await talk.groups()).toEqual({ subagents: true })
  })

  test('has the name it is given, else that of its spec; the key it is put under wins', async () => {
    const options = { host: { name: 'host' }, toolName: 'look_up' }
    const { tool: made, register } = makeSubagentTool(expertOf(), { name: 'research' }, options)
    const model = scriptedModel([{ calls: [{ name: 'other', input: { topic: 'x' } }] }, 'done'])

    const outcome = await openRuntime().run(
      agent({ name: 'host', instructions: '', model, tools: { other: made } }),
      'go',
    ).result

    expect(register.name).toBe('look_up')
    expect(outcome).toMatchObject({ status: 'completed', children: 1 })
  })

  test('goes on in one conversation when its memory is kept', async () => {
    const childModel = scriptedModel(['first', 'second'])
    const model = scriptedModel([
      { calls: [{ name: 'research_tool', input: { topic: 'a' } }] },
      { calls: [{ name: 'research_tool', input: { topic: 'b' } }] },
      'done',
    ])
    const made = makeSubagentTool(
      expertOf(childModel),
      { name: 'research', briefing: 'none' },
      { host: { name: 'host', model }, ephemeralMemory: false },
    )
    const tools = { [made.register.name]: made.tool }

    await openRuntime().run(agent({ name: 'host', instructions: '', model, tools }), 'go').result

    expect(childModel.requests[1]?.messages.map(({ content }) => content)).toEqual([
      '{"topic":"a","depth":2}',
      'first',
      '{"topic":"b","depth":2}',
    ])
    expect(JSON.stringify(made.register.inputSchema)).not.toContain('session')
  })

  test('hides its presets, and they win', async () => {
    const childModel = scriptedModel(['ok'])
    const spec = { name: 'research', presets: { depth: 9 } }
    const { register, tool: made } = makeSubagentTool(expertOf(childModel), spec, { host: { name: 'host' } })
    const call = { name: 'research_tool', input: { topic: 'x', depth: 1 } }
    const model = scriptedModel([{ calls: [call] }, 'done'])

    await openRuntime().run(agent({ name: 'host', instructions: '', model, tools: { research_tool: made } }), 'go')
      .result

    expect(register.presets).toEqual({ depth: 9 })
    expect(Object.keys(register.inputSchema['properties'] as object)).not.toContain('depth')
    expect(childModel.requests[0]?.messages.at(-1)?.content).toBe('{"topic":"x","depth":9}')
  })

  test('can be put into any group there is, and no other', async () => {
    const { tool: made } = makeSubagentTool(expertOf(), { name: 'research' }, { host: { name: 'host' } })
    const groups = { experts: { description: 'Experts', active: false, tools: { research_tool: made } } }
    const host = agent({ name: 'host', instructions: '', model: hostModel(), toolkit: toolkit({ groups }) })
    const runtime = openRuntime()
    const run = runtime.run(host, 'go')
    await run.result

    expect(await (await runtime.conversation(run.conversationId)).groups()).toEqual({ experts: false })
    expect(String(taskOf(runtime, run).output.content)).toMatch(/in the inactive group 'experts'/)
    const { tool: lost } = makeSubagentTool(expertOf(), { name: 'research', group: 'lost' }, { host: { name: 'host' } })
    expect(() => agent({ name: 'host', instructions: '', tools: { lost } })).toThrow(SubAgentUnavailable)
    expect(() => agent({ name: 'host', instructions: '', tools: { lost } })).toThrow(/group "lost", which there is not/)
  })

  test('a subagent of `subagents` can name its group', async () => {
    const groups = { experts: { description: 'Experts', active: true } }
    const model = hostModel()
    const host = agent({
      name: 'host',
      instructions: '',
      model,
      toolkit: toolkit({ groups }),
      subagents: { research_tool: { agent: expertOf(), group: 'experts' } },
    })
    const runtime = openRuntime()
    const run = runtime.run(host, 'go')
    expect((await run.result).children).toBe(1)

    await (await runtime.conversation(run.conversationId)).deactivate('experts')
    const next = runtime.run(host, 'again', { conversationId: run.conversationId })
    await next.result.catch(() => undefined)

    expect(toolNamesIn(model.requests[2])).not.toContain('research_tool')
  })
})

describe('what cannot work is refused, with the reason, before anything runs', () => {
  const plain = agent({ name: 'plain', instructions: '', model: scriptedModel(['hi']) })
  const host = { name: 'host', model: scriptedModel(['x']) }
  const typed = (input: object) => agent({ name: 'typed', instructions: '', input: input as never })
  const throwing = (): AnyAgent => {
    throw new Error('no licence')
  }

  test.each<[string, () => unknown, RegExp]>([
    ['an agent without input', () => makeSubagentTool(plain, { name: 'x' }, { host }), /"x" must set `input`/],
    [
      'no model anywhere',
      () => makeSubagentTool(typed({ type: 'object' }), { name: 'x' }, { host: { name: 'host' } }),
      /Neither "x" nor its host "host" has a model/,
    ],
    [
      'a name that is taken by a tool',
      () => makeSubagentTool(expertOf(), { name: 'x' }, { host: { ...host, tools: { x_tool: search } } }),
      /A function with name 'x_tool' is already registered/,
    ],
    [
      'a name that the host itself has',
      () => {
        const taken = agent({ name: 'host', instructions: '', subagents: { x_tool: expertOf() } })
        return makeSubagentTool(expertOf(), { name: 'x' }, { host: taken })
      },
      /already registered/,
    ],
    ['a provider that throws', () => makeSubagentTool(throwing, { name: 'x' }, { host }), /failed: no licence/],
    [
      'a schema with an unknown type',
      () =>
        makeSubagentTool(
          typed(described({ type: 'object', properties: { a: { type: 'text' } } })),
          { name: 'x' },
          { host },
        ),
      /says type "text" at a/,
    ],
  ])('%s', (_name, make, message) => {
    expect(make).toThrow(SubAgentUnavailable)
    expect(make).toThrow(message)
  })

  test.each<[string, object, RegExp]>([
    [
      'a wrong type',
      typed(described({ type: 'object', properties: { a: { type: ['string', 'dict'] } } })),
      /says type "dict" at a/,
    ],
    ['a wrong required', typed(described({ type: 'object', required: 'topic' })), /"required" that is not a list/],
  ])('also where it is a subagent: an input of %s refuses its host', (_name, wrong, message) => {
    const define = () => agent({ name: 'host', instructions: '', subagents: { ask: wrong as AnyAgent } })

    expect(define).toThrow(SubAgentUnavailable)
    expect(define).toThrow(message)
  })

  test('a setting that there is not is refused by its name, here and under subagents', () => {
    const wrong = { name: 'x', brief: 'none' } as never
    expect(() => makeSubagentTool(expertOf(), wrong, { host })).toThrow(/has no option "brief"\. It has .*briefing/)
    expect(() => makeSubagentTool(expertOf(), { name: 'a/b' }, { host })).toThrow(DefinitionError)
    expect(() => makeSubagentTool(expertOf(), { name: 'Ein Name' }, { host })).toThrow(/not a name for a tool/)
  })

  test('nothing of the agent runs, and nothing is made of a made-up input', () => {
    const seen: unknown[] = []
    const childModel = scriptedModel(() => {
      seen.push('model')
      return 'ok'
    })
    const input = { ...Topic, '~standard': { ...Topic['~standard'], validate: (value: unknown) => seen.push(value) } }
    const noisy = agent({
      name: 'noisy',
      instructions: '',
      model: childModel,
      input: input as unknown as typeof Topic,
      briefing: () => {
        seen.push('briefing')
        return {}
      },
      hooks: { beforeTool: () => seen.push('hook') as unknown as undefined },
    })
    const { tool: made } = makeSubagentTool(noisy, { name: 'x' }, { host })

    openRuntime({ agents: [agent({ name: 'host', instructions: '', tools: { made }, subagents: { noisy } })] })

    expect(seen).toEqual([])
  })
})

describe('a provider that tells its name and description', () => {
  test('is not run when its host is defined or made known, and once per delegation', async () => {
    let made = 0
    const provider = () => {
      made++
      return expertOf()
    }
    const call = { name: 'ask', input: { topic: 'x' } }
    const model = scriptedModel([{ calls: [call, call] }, 'done'])
    const subagents = { ask: { agent: provider, name: 'expert', description: 'Knows.' } }
    const host = agent({ name: 'host', instructions: '', model, subagents })
    const runtime = openRuntime({ agents: [host] })
    expect(made).toBe(0)

    expect(await runtime.run(host, 'go').result).toMatchObject({ status: 'completed', children: 2 })

    expect(made).toBe(2)
  })

  test('and throws when it is needed fails the run with the reason, and is asked again by the next', async () => {
    let made = 0
    const provider = () => {
      if (++made === 1) throw new Error('no licence')
      return expertOf()
    }
    const model = scriptedModel(() => 'done')
    const subagents = { ask: { agent: provider, name: 'expert', description: 'Knows.' } }
    const host = agent({ name: 'host', instructions: '', model, subagents })
    const errors: string[] = []
    const logger = { debug: () => 0, info: () => 0, warn: () => 0, error: (text: string) => errors.push(text) } as never
    const runtime = openRuntime({ logger })

    const first = await runtime.run(host, 'go').result
    const second = await runtime.run(host, 'go').result

    expect(first).toMatchObject({ status: 'failed', error: { message: expect.stringContaining('no licence') } })
    expect(second.status).toBe('completed')
  })
})

test('a tool made of an agent does nothing by itself', () => {
  const { tool: made } = makeSubagentTool(expertOf(), { name: 'x' }, { host: { name: 'host' } })

  expect(() => made.execute({}, {} as never)).toThrow(/give it to an agent, in its tools/)
})

test('a tool made without a name or a host says what is missing', () => {
  const make = makeSubagentTool as (...given: unknown[]) => unknown

  expect(() => make(expertOf())).toThrow(/the spec needs a name/)
  expect(() => make(expertOf(), { name: 'x' })).toThrow(/the host is missing/)
  expect(() => make(expertOf(), { name: 'x' }, {})).toThrow(SubAgentUnavailable)
  expect(() => toolkit({} as never)).toThrow(/it needs groups/)
})

/** A schema of a library that describes itself so. A plain JSON Schema with such a mistake is refused where it is defined. */
function described(input: object) {
  const jsonSchema = { input: () => input, output: () => input }
  return { '~standard': { version: 1 as const, vendor: 'own', validate: (value: unknown) => ({ value }), jsonSchema } }
}
