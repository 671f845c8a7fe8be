import { agent, type ToolContext, tool } from 'legate'
import type { ChildCall, Hooks } from 'legate/hooks'
import { type Script, scriptedModel } from 'legate/testing'
import { memoryFiles } from 'legate/tools'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { useWorld } from '../support/agents.ts'
import { makeGate } from '../support/gate.ts'
import { eventsOf, openRuntime, resultIn, resultsIn } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'
import { lasting } from '../support/stores.ts'

const Topic = z.object({ topic: z.string() })
const ask = { name: 'ask', input: { topic: 'QUIC' } }

const echo = tool({
  description: 'Echo',
  input: z.object({ text: z.string() }),
  effect: 'pure',
  execute: ({ text }) => `heard ${text}`,
})

const echoes = () =>
  scriptedModel((request) =>
    resultsIn(request).length === 0 ? { calls: [{ name: 'echo', input: { text: 'hi' } }] } : resultIn(request),
  )

const passesOn = () =>
  scriptedModel((request) => (resultsIn(request).length === 0 ? { calls: [ask] } : resultIn(request)))

interface Family {
  readonly host?: Hooks
  readonly middle?: Hooks
  readonly leaf?: Hooks
  readonly toMiddle?: 'inherit' | 'private'
  readonly toLeaf?: 'inherit' | 'private'
  readonly logger?: { warn(text: string): void }
}

/** A host, a middle and a leaf that echoes; gives what the host says in the end. */
async function family({ host = {}, middle = {}, leaf = {}, toMiddle, toLeaf, logger }: Family): Promise<string> {
  const leafAgent = agent({
    name: 'leaf',
    instructions: '',
    model: echoes(),
    input: Topic,
    tools: { echo },
    hooks: leaf,
  })
  const middleAgent = agent({
    name: 'middle',
    instructions: '',
    model: passesOn(),
    input: Topic,
    hooks: middle,
    subagents: { ask: { agent: leafAgent, ...(toLeaf && { hooks: toLeaf }) } },
  })
  const root = agent({
    name: 'host',
    instructions: '',
    model: passesOn(),
    hooks: host,
    subagents: { ask: { agent: middleAgent, ...(toMiddle && { hooks: toMiddle }) } },
  })
  const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
  const outcome = await openRuntime({ logger: { ...quiet, ...logger } }).run(root, 'go').result
  return outcome.text
}

describe('the hooks of a child', () => {
  test('run for its own calls; its host’s do not see them and do not run for them', async () => {
    const seen: string[] = []
    const tells = (name: string) => (call: { readonly tool: string }) => {
      seen.push(`${name}: ${call.tool}`)
      return undefined
    }

    await family({
      host: { beforeTool: tells('host') },
      middle: { beforeTool: tells('middle') },
      leaf: { beforeTool: tells('leaf') },
    })

    expect(seen).toEqual(['host: ask', 'middle: ask', 'leaf: echo'])
  })

  test('a host sees the calls of all below it, as they run, and changes nothing', async () => {
    const seen: ChildCall[] = []
    const watch = (call: ChildCall) => {
      seen.push(JSON.parse(JSON.stringify(call)) as ChildCall)
      Object.assign(call.input as object, { text: 'CHANGED' })
      ;(call.path as string[]).push('CHANGED')
      return { input: { text: 'CHANGED' }, refuse: 'no' }
    }

    const text = await family({
      host: { onChildTool: watch },
      leaf: { beforeTool: () => ({ input: { text: 'by the leaf' } }) },
    })

    expect(text).toBe('heard by the leaf')
    expect(seen.map(({ tool: name, input, path }) => [name, input, path])).toEqual([
      ['ask', { topic: 'QUIC' }, ['host', 'middle']],
      ['echo', { text: 'by the leaf' }, ['host', 'middle', 'leaf']],
    ])
    expect(seen[0]).toMatchObject({ nodeId: expect.any(String), runId: expect.any(String) })
  })

  test.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('broken')
      },
    ],
    ['rejects', () => Promise.reject(new Error('broken'))],
    ['never ends', () => new Promise(() => undefined)],
  ])('a hook that only sees and %s makes no difference', async (name, onChildTool) => {
    const warnings: string[] = []

    const text = await family({ host: { onChildTool }, logger: { warn: (text) => warnings.push(text) } })

    expect(text).toBe('heard hi')
    if (name !== 'never ends') expect(warnings[0]).toMatch(/onChildTool failed: broken/)
  })

  test('a call that was refused is not shown as one that goes ahead', async () => {
    const seen: string[] = []

    await family({
      host: { onChildTool: (call) => seen.push(call.tool) },
      leaf: { beforeTool: ({ tool: name }) => (name === 'echo' ? { refuse: 'not now' } : undefined) },
    })

    expect(seen).toEqual(['ask'])
  })

  test('inherit: the host’s hook decides after the child’s own, on what that one made of it', async () => {
    const hook = (name: string): Hooks => ({
      beforeTool: ({ tool: called, input }) =>
        called === 'echo' ? { input: { text: `${(input as { text: string }).text}, ${name}` } } : undefined,
    })

    const text = await family({
      host: hook('host'),
      middle: hook('middle'),
      leaf: hook('leaf'),
      toMiddle: 'inherit',
      toLeaf: 'inherit',
    })

    expect(text).toBe('heard hi, leaf, middle, host')
  })

  test('inherit: a host can refuse; what it gave to its child decides for all below that child', async () => {
    const refuse: Hooks = { beforeTool: ({ tool: name }) => (name === 'echo' ? { refuse: 'not here' } : undefined) }

    expect(await family({ host: refuse, toMiddle: 'inherit', toLeaf: 'inherit' })).toBe('Refused: not here')
    expect(await family({ middle: refuse, toLeaf: 'inherit' })).toBe('Refused: not here')
    expect(await family({ host: refuse, toLeaf: 'inherit' })).toBe('heard hi')
    expect(await family({ host: refuse, toMiddle: 'inherit' })).toBe('Refused: not here')
  })
})

describe.each(lasting)('hooks that a grandchild inherits, on %s', (_, create) => {
  const world = useWorld(create)

  test('decide in the process that goes on with it too', async () => {
    const entered = makeGate()
    const three = (model: ReturnType<typeof scriptedModel>) => {
      const hooks: Hooks = { beforeTool: ({ tool: name }) => (name === 'echo' ? { refuse: 'not here' } : undefined) }
      const leaf = agent({ name: 'leaf', instructions: '', model, input: Topic, tools: { echo } })
      const base = { instructions: '', input: Topic, subagents: { ask: leaf } }
      const middle = agent({ ...base, name: 'middle', model: passesOn() })
      const subagents = { ask: { agent: middle, hooks: 'inherit' as const } }
      return agent({ name: 'host', instructions: '', model: passesOn(), hooks, subagents })
    }
    const never: Script = () => {
      entered.open()
      return makeGate().opened.then(() => 'never')
    }
    const first = world.start()
    const run = first.runtime.run(three(scriptedModel(never)), 'go')
    await entered.opened
    const runtime = await world.restart(first, [three(echoes())])

    expect((await (await runtime.attach(run.id)).result).text).toBe('Refused: not here')
  })
})

describe('what the application hands to its tools', () => {
  test('are the very same objects in a host, its child, and what a tool starts', async () => {
    const contexts: ToolContext[] = []
    const look = tool({
      description: 'Look',
      input: { type: 'object' },
      effect: 'pure',
      execute: async (_input, context) => {
        contexts.push(context)
        if (context.path.length === 1) await context.delegate(inner, { topic: 'x' })
        return 'seen'
      },
    })
    const looks = () =>
      scriptedModel((request) => (resultsIn(request).length === 0 ? { calls: [{ name: 'look', input: {} }] } : 'ok'))
    const inner = agent({ name: 'inner', instructions: '', model: looks(), input: Topic, tools: { look } })
    const child = agent({ name: 'child', instructions: '', model: looks(), input: Topic, tools: { look } })
    const model = scriptedModel((request) => {
      if (resultsIn(request).length > 0) return 'done'
      return { calls: [{ name: 'look', input: {} }, ask] }
    })
    const host = agent({ name: 'host', instructions: '', model, tools: { look }, subagents: { ask: child } })
    const tracer = { spans: [] }
    const longTermMemory = new Map()
    const files = memoryFiles()
    const logger = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
    const runtime = openRuntime({ tracer, longTermMemory, files, logger })

    await runtime.run(host, 'go', { owner: 'ada' }).result

    expect(contexts.map(({ path }) => path.join('/')).sort()).toEqual(['host', 'host/child', 'host/inner'])
    for (const context of contexts) {
      expect(context.tracer).toBe(tracer)
      expect(context.longTermMemory).toBe(longTermMemory)
      expect(context.logger).toBe(logger)
      expect(context.files.allowedDirectories()).toEqual([])
    }
  })

  test('for whom a run is, and who led to it, is known in every child', async () => {
    const contexts: ToolContext[] = []
    const look = tool({
      description: 'Look',
      input: { type: 'object' },
      effect: 'pure',
      execute: (_input, context) => contexts.push(context),
    })
    const looks = scriptedModel((request) =>
      resultsIn(request).length === 0 ? { calls: [{ name: 'look', input: {} }] } : 'ok',
    )
    const typed = agent({ name: 'typed', instructions: '', model: looks, input: Topic, tools: { look } })
    const plain = agent({ name: 'plain', instructions: '', model: looks, tools: { look } })
    const calls = [ask, { name: 'say', input: { message: 'hi' } }]
    const model = scriptedModel([{ calls }, 'done'])
    const host = agent({ name: 'host', instructions: '', model, subagents: { ask: typed, say: plain } })
    const runtime = openRuntime()

    const run = runtime.run(host, 'go', { owner: 'ada' })
    await run.result

    expect(contexts.map(({ owner, path }) => [owner, path.join('/')]).sort()).toEqual([
      ['ada', 'host/plain'],
      ['ada', 'host/typed'],
    ])
    for (const link of localStore(runtime).linksOf(run.id)) {
      expect(localStore(runtime).conversation(link.childConversationId)).toMatchObject({
        rootId: run.conversationId,
        parentTurnId: run.id,
        owner: 'ada',
      })
    }
  })

  test('details are null if there are none, and refused if they are not objects', () => {
    expect(() => openRuntime({ tracer: 'otel' as never })).toThrow(/createRuntime\(\{ tracer \}\) must be an object/)
    expect(() => openRuntime({ longTermMemory: null as never })).toThrow(/longTermMemory \}\) must be an object/)
  })
})

describe('silence', () => {
  const written: string[] = []

  beforeEach(() => {
    written.length = 0
    for (const stream of [process.stdout, process.stderr]) {
      vi.spyOn(stream, 'write').mockImplementation((chunk) => {
        written.push(String(chunk))
        return true
      })
    }
    for (const level of ['log', 'info', 'warn', 'error', 'debug'] as const) {
      vi.spyOn(console, level).mockImplementation((...words) => {
        written.push(words.join(' '))
      })
    }
  })
  afterEach(() => {
    vi.restoreAllMocks()
  })

  test('a child prints nothing, nor does any that it starts, by whatever way', async () => {
    const starts = tool({
      description: 'Starts another',
      input: { type: 'object' },
      execute: async () => (await leaf.generate({ topic: 'x' })).text,
    })
    const leaf = agent({ name: 'leaf', instructions: '', model: scriptedModel(() => 'quiet'), input: Topic })
    const middleModel = scriptedModel((request) =>
      resultsIn(request).length === 0 ? { calls: [{ name: 'starts', input: {} }, ask] } : 'ok',
    )
    const middle = agent({
      name: 'middle',
      instructions: '',
      model: middleModel,
      input: Topic,
      tools: { starts },
      subagents: { ask: leaf },
    })
    const model = scriptedModel([{ calls: [ask] }, 'done'])
    const runtime = openRuntime()

    const run = runtime.run(agent({ name: 'host', instructions: '', model, subagents: { ask: middle } }), 'go')
    const events = await eventsOf(run)

    expect(written).toEqual([])
    expect((await run.result).status).toBe('completed')
    const own = events.filter(({ path }) => path.length === 1)
    expect(JSON.stringify(own)).not.toContain('quiet')
  })
})
