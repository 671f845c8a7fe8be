import { agent, type Grant, type SubagentConfig, tool } from 'legate'
import { memoryStore } from 'legate/store/memory'
import { scriptedModel } from 'legate/testing'
import { fileTools, memoryFiles } from 'legate/tools'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { openRuntime, resultIn, resultsIn, toolNamesIn } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'

const Topic = z.object({ topic: z.string() })
const ask = { name: 'ask', input: { topic: 'QUIC' } }
const named = (text: string) =>
  tool({ description: text, input: { type: 'object' }, effect: 'pure', execute: () => text })

/** A child that calls each of these tools once and says what came back. */
const callsOf = (...names: readonly string[]) =>
  scriptedModel((request) => {
    const results = resultsIn(request)
    if (results.length === 0 && names.length > 0) return { calls: names.map((name) => ({ name, input: {} })) }
    return results.map(({ content }) => String(content)).join('\n') || 'ok'
  })

function hostOf(config: SubagentConfig, grant?: Grant) {
  const model = scriptedModel([{ calls: [ask] }, 'done'])
  const extra = grant === undefined ? {} : { grant }
  return { model, host: agent({ name: 'host', instructions: '', model, subagents: { ask: config }, ...extra }) }
}

async function delegate(config: SubagentConfig, grant?: Grant) {
  const { model, host } = hostOf(config, grant)
  const runtime = openRuntime({ files: memoryFiles() })
  const run = runtime.run(host, 'go')
  const outcome = await run.result
  const [link] = localStore(runtime).linksOf(run.id)
  return { outcome, model, runtime, run, link, result: () => resultIn(model.requests[1]) }
}

describe('`tools` of a setting', () => {
  const childModel = () => callsOf()
  const wide = (model = childModel()) =>
    agent({ name: 'expert', instructions: '', model, input: Topic, tools: { one: named('1'), two: named('2') } })

  test('are all that the child has: they replace its own, and its host’s are not copied', async () => {
    const model = childModel()

    await delegate({ agent: wide(model), tools: { two: named('other two') } })

    expect(toolNamesIn(model.requests[0])).toEqual(['two'])
    expect(model.requests[0]?.tools[0]?.description).toBe('other two')
  })

  test('may be none', async () => {
    const model = childModel()
    await delegate({ agent: wide(model), tools: {} })
    expect(toolNamesIn(model.requests[0])).toEqual([])
  })

  test('leave the agent itself as it is, and the same agent under another setting', async () => {
    const model = callsOf()
    const expert = wide(model)
    const hostModel = scriptedModel([{ calls: [ask, { name: 'plain', input: { topic: 'x' } }] }, 'done'])
    const subagents = { ask: { agent: expert, tools: { two: named('2') } }, plain: expert }

    await openRuntime({ engine: { workers: 1 } }).run(
      agent({ name: 'host', instructions: '', model: hostModel, subagents }),
      'go',
    ).result

    expect(model.requests.map(toolNamesIn)).toEqual([['two'], ['one', 'two']])
    expect([...expert.tools.keys()]).toEqual(['one', 'two'])
  })

  test('can leave out file tools or narrow what they reach: a child that only reads, of a host that writes', async () => {
    const { read_text_file, write_file } = fileTools()
    const model = scriptedModel((request) => {
      const results = resultsIn(request)
      if (results.length > 0) return results.map(({ content }) => String(content)).join('\n')
      const path = '/workspace/a.md'
      return {
        calls: [
          { name: 'write_file', input: { path, content: 'changed' } },
          { name: 'read_text_file', input: { path, with_header: false, with_line_numbers: false } },
        ],
      }
    })
    const grant = { use: ['tool:*', 'file.*:**'] }
    const expert = agent({ name: 'expert', instructions: '', model, input: Topic, tools: fileTools(), grant })
    const host = (config: Omit<SubagentConfig, 'agent'>) =>
      agent({
        name: 'host',
        instructions: '',
        grant: { use: ['tool:*', 'agent:*', 'file.*:/workspace/**'] },
        model: scriptedModel([{ calls: [ask] }, 'done']),
        subagents: { ask: { ...config, agent: expert } },
      })
    const files = memoryFiles()
    await files.open({ use: ['file.*:**'] }).write('/workspace/a.md', 'as it was')
    const runtime = openRuntime({ files })
    const tried = async (config: Omit<SubagentConfig, 'agent'>) => {
      const run = runtime.run(host(config), 'go')
      await run.result
      const task = localStore(runtime)
        .nodesOf(run.id)
        .find(({ kind }) => kind === 'task')
      return String(task?.output.content)
    }

    const byTools = await tried({ tools: { read_text_file } })
    const byGrant = await tried({ tools: { read_text_file, write_file }, grant: { use: ['tool:*', 'file.read:**'] } })

    expect(byTools).toMatch(/There is no tool "write_file".*\nas it was/s)
    expect(byGrant).toMatch(/no rule of host, ask allows file\.write:\/workspace\/a\.md.*\nas it was/s)
  })

  test('tools that are named like its own subagents are refused when the host is defined', () => {
    const below = agent({ name: 'below', instructions: '' })
    const expert = agent({ name: 'expert', instructions: '', subagents: { below } })

    expect(() => hostOf({ agent: expert, tools: { below: named('x') } })).toThrow(/"below" is a tool and a subagent/)
  })
})

describe('the model of a child', () => {
  const expertWith = (model?: ReturnType<typeof scriptedModel>) =>
    agent({ name: 'expert', instructions: '', input: Topic, ...(model && { model }) })

  test('is the one its host pins, whatever its own; the host and the agent keep theirs', async () => {
    const [own, pinned] = [callsOf(), callsOf()]
    const expert = expertWith(own)

    const { model, outcome } = await delegate({ agent: expert, model: pinned })

    expect(outcome.status).toBe('completed')
    expect([own.requests.length, pinned.requests.length, model.requests.length]).toEqual([0, 1, 2])
    expect(expert.model).toBe(own)
  })

  test('is its host’s at the time of the call: a host with another model gives that one', async () => {
    const expert = expertWith()
    const subagents = { ask: { agent: expert, memory: 'session' as const } }
    const said = (name: string) =>
      scriptedModel((request) => {
        if (request.path.length > 1) return `by ${name}`
        return resultsIn(request).some(({ content }) => content === `by ${name}`) ? 'done' : { calls: [ask] }
      }, name)
    const [first, second] = [said('model/one'), said('model/two')]
    const store = { ...memoryStore(), close: async () => undefined }
    const hostWith = (model: typeof first) => agent({ name: 'host', instructions: '', model, subagents })
    const before = await openRuntime({ store }).run(hostWith(first), 'go').result
    const { conversationId } = before

    const after = await openRuntime({ store }).run(hostWith(second), 'go', { conversationId }).result

    expect([before.status, after.status]).toEqual(['completed', 'completed'])
    expect(first.requests.filter(({ path }) => path.length > 1)).toHaveLength(1)
    expect(second.requests.filter(({ path }) => path.length > 1)).toHaveLength(1)
  })

  test('a value that is not a model is refused where it is given', () => {
    expect(() => hostOf({ agent: expertWith(), model: 7 as never })).toThrow(/subagents\.ask\.model is not a model/)
  })
})

describe('a grant of a setting', () => {
  const expert = (extra: object = {}) =>
    agent({ name: 'expert', instructions: '', model: callsOf('safe', 'risky'), input: Topic, tools: both, ...extra })
  const both = { safe: named('safe'), risky: named('risky') }

  test('I1: binds the child, whatever its own grant says, and shows it no more', async () => {
    const child = expert({ grant: { use: ['tool:*'] } })

    const { result, runtime, link } = await delegate({ agent: child, grant: { use: ['tool:safe'] } })

    expect(result()).toBe('safe\nrisky is not allowed here: no rule of host, ask allows tool:risky.')
    expect(await runtime.explain(link?.id ?? '', 'tool:risky')).toMatchObject({ verdict: 'deny' })
  })

  test('I1: binds all below it too', async () => {
    const leaf = agent({ name: 'leaf', instructions: '', model: callsOf('safe', 'risky'), input: Topic, tools: both })
    const middleModel = scriptedModel((request) =>
      resultsIn(request).length === 0 ? { calls: [ask] } : resultIn(request),
    )
    const middle = agent({
      name: 'middle',
      instructions: '',
      model: middleModel,
      input: Topic,
      subagents: { ask: leaf },
    })

    const { result } = await delegate({ agent: middle, grant: { deny: ['tool:risky'] } })

    expect(result()).toMatch(/^safe\nrisky is not allowed here: .*tool:risky/)
  })

  test('I1: never widens: what the host may not pass on stays denied', async () => {
    const grant = { use: ['agent:*', 'tool:*'], delegate: ['tool:safe', 'model:*'] }

    const { result } = await delegate({ agent: expert(), grant: { use: ['tool:*'] } }, grant)

    expect(result()).toMatch(/^safe\nrisky is not allowed here: no rule of host allows/)
  })

  test.each([
    [{ delegate: ['tool:*'] }, /it has no "delegate"/],
    [{ use: ['tols:x'] }, /must start with one of/],
    [7, /a grant is an object/],
  ])('%j is refused where it is given', (grant, message) => {
    expect(() => hostOf({ agent: expert(), grant: grant as never })).toThrow(message)
  })
})

describe('the name of a setting', () => {
  test('is what the child is called in grants, paths, links and results', async () => {
    const model = callsOf()
    const expert = agent({ name: 'expert', instructions: '', model, input: Topic })

    const { runtime, run, link } = await delegate(
      { agent: expert, name: 'scout', toolName: 'ask' },
      { use: ['agent:scout', 'model:*'] },
    )

    expect(link).toMatchObject({ agentName: 'scout', toolName: 'ask' })
    expect(model.requests[0]?.path).toEqual(['host', 'scout'])
    const task = localStore(runtime)
      .nodesOf(run.id)
      .find(({ kind }) => kind === 'task')
    expect(task?.output.metadata).toMatchObject({ subagent: 'scout' })
  })

  test('toolName is what the host’s model calls it by, instead of the key', async () => {
    const expert = agent({ name: 'expert', instructions: '', model: callsOf(), input: Topic })
    const model = scriptedModel([{ calls: [ask] }, 'done'])
    const subagents = { whatever: { agent: expert, toolName: 'ask' } }

    const outcome = await openRuntime().run(agent({ name: 'host', instructions: '', model, subagents }), 'go').result

    expect(toolNamesIn(model.requests[0])).toEqual(['ask'])
    expect(outcome.children).toBe(1)
    const twice = { a: { agent: expert, toolName: 'ask' }, ask: expert }
    expect(() => agent({ name: 'host', instructions: '', subagents: twice })).toThrow(/two tools named "ask"/)
  })
})

test.each([
  ['breifing', 'none'],
  ['permissions', {}],
  ['instructions', 'x'],
])('an unknown setting is refused by its name: %s', (key, value) => {
  const expert = agent({ name: 'expert', instructions: '' })
  const define = () => hostOf({ agent: expert, [key]: value } as SubagentConfig)

  expect(define).toThrow(
    new RegExp(`subagents.ask has no option "${key}"\\. (It has agent, name,|Did you mean "(briefing|grant)")`),
  )
})

test.each([
  ['memory', 'forever'],
  ['hooks', 'mine'],
  ['onParentClose', 'leave'],
  ['group', 7],
  ['toolName', 'no name!'],
  ['description', 7],
  ['tools', [1]],
  ['presets', []],
  ['budget', { turn: 1 }],
])('a setting that cannot work is refused where it is given: %s: %j', (key, value) => {
  const expert = agent({ name: 'expert', instructions: '' })

  expect(() => hostOf({ agent: expert, [key]: value } as SubagentConfig)).toThrow(/agent "host"/)
})

describe('what is offered is one thing', () => {
  const expert = agent({ name: 'expert', instructions: '' })

  test.each<[string, object]>([
    ['no kind of thing', { subagents: { ask: { description: 'x' } } }],
    ['a tool under subagents', { subagents: { ask: named('x') } }],
    ['an agent under tools', { tools: { ask: expert } }],
    ['a tool and a subagent of one name', { tools: { ask: named('x') }, subagents: { ask: expert } }],
  ])('%s is refused', (_name, definition) => {
    expect(() => agent({ name: 'host', instructions: '', ...definition })).toThrow(/ask/)
  })
})

describe('a limit that was set for a child holds, and its host is told which', () => {
  const step = named('step')
  const loops = () =>
    scriptedModel(({ tools }, call) =>
      tools.length === 0 ? 'So far.' : { text: `${call}`, calls: [{ name: 'step', input: { call } }] },
    )
  const hangs = () => scriptedModel(() => ({ text: 'never', delayMs: 60_000 }))

  test.each<[string, SubagentConfig['budget'], () => ReturnType<typeof scriptedModel>, RegExp]>([
    ['turns', { modelCalls: 3 }, loops, /^\[max_turns\] The limit of 3 model calls was reached\.\n\nSo far\.$/],
    ['toolCalls', { toolCalls: 2 }, loops, /^\[over_budget\] The limit of 2 tool calls was reached\.\n\nSo far\.$/],
    ['tokens', { tokens: 20 }, loops, /^\[over_budget\] The budget of expert, 20 tokens, has no room/],
    ['wallMs', { wallMs: 60 }, hangs, /^\[timed_out\] The deadline passed/],
  ])('%s', async (_name, budget = {}, model, words) => {
    const expert = agent({ name: 'expert', instructions: '', model: model(), input: Topic, tools: { step } })

    const { result, runtime, run, outcome } = await delegate({ agent: expert, budget })

    expect(outcome.status).toBe('completed')
    expect(result()).toMatch(words)
    const metadata = localStore(runtime)
      .nodesOf(run.id)
      .find(({ kind }) => kind === 'task')?.output.metadata
    expect(metadata).toMatchObject({ unavailable: true })
    expect(metadata).toMatchObject({ outcome: { retryable: expect.any(Boolean), advice: expect.any(String) } })
  })
})
