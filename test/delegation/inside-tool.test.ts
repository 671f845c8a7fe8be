import {
  type AnyAgent,
  agent,
  DefinitionError,
  type Outcome,
  RunError,
  type Runtime,
  type ToolContext,
  tool,
} from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { makeGate } from '../support/gate.ts'
import { PROMPTLY_MS } from '../support/pace.ts'
import { eventsOf, only, openRuntime, resultIn, resultsIn, taskOf } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'

const Topic = z.object({ topic: z.string().min(3) })

function expertWith(model = scriptedModel(() => ({ text: 'It is fast.', usage: { inputTokens: 5 } }))) {
  return agent({ name: 'expert', instructions: '', model, input: Topic, output: undefined })
}

/** A host whose tool `work` runs `execute`, and then answers. */
function hostWith(execute: (context: ToolContext) => unknown, extra: object = {}) {
  const model = scriptedModel([
    { calls: [{ name: 'work', input: {} }], usage: { inputTokens: 1 } },
    { text: 'done', usage: { inputTokens: 1 } },
  ])
  const work = tool({
    description: 'Work',
    input: { type: 'object' },
    execute: (_input, context) => execute(context),
    ...extra,
  })
  return { agent: agent({ name: 'host', instructions: '', model, tools: { work } }), model }
}

test("run() inside a tool takes no conversation, owner or title: a delegation is its host's", async () => {
  const expert = expertWith()
  const runtime = openRuntime()
  const { agent: host, model } = hostWith(() => runtime.run(expert, { topic: 'QUIC' }, { title: 'mine' }).result)

  await runtime.run(host, 'go').result

  expect(resultIn(model.requests.at(-1))).toMatch(/\{ title \}.*inside a tool this is a delegation/)
})

type Way = (expert: ReturnType<typeof expertWith>, runtime: Runtime, context: ToolContext) => Promise<string>

const ways: [string, Way][] = [
  ['agent.generate', async (expert) => (await expert.generate({ topic: 'QUIC' })).text],
  ['agent.stream', async (expert) => (await expert.stream({ topic: 'QUIC' }).result).text],
  ['runtime.run', async (expert, runtime) => (await runtime.run(expert, { topic: 'QUIC' }).result).text],
  [
    'context.delegate',
    async (expert, _runtime, { delegate }) => ((await delegate(expert, { topic: 'QUIC' })) as Outcome).text,
  ],
]

describe.each(ways)('an agent started inside a tool by %s is a child of the running call', (_name, start) => {
  test('linked, counted, in its host’s tree, its usage rolled up once', async () => {
    const expert = expertWith()
    const runtime = openRuntime()
    const host = hostWith((context) => start(expert, runtime, context))

    const run = runtime.run(host.agent, 'go')
    const events = await eventsOf(run)
    const outcome = await run.result

    expect(resultIn(host.model.requests[1])).toBe('It is fast.')
    expect(outcome).toMatchObject({ status: 'completed', children: 1, usage: { inputTokens: 7 } })
    const [link] = localStore(runtime).linksOf(run.id)
    const task = taskOf(runtime, run)
    expect(link).toMatchObject({ taskId: task.id, mode: 'called', depth: 1, agentName: 'expert', deliveredTo: task.id })
    expect(localStore(runtime).conversation(link?.childConversationId ?? '')).toMatchObject({
      parentConversationId: run.conversationId,
      rootId: run.conversationId,
      path: ['host', 'expert'],
    })
    expect(only(events, 'delegation-start')).toHaveLength(1)
    expect(only(events, 'delegation-end')).toMatchObject([{ status: 'completed', childRunId: link?.id }])
    expect(only(events, 'run-end').map(({ path }) => path.join('/'))).toEqual(['host/expert', 'host'])
    expect(localStore(runtime).roots({ limit: 10 })).toHaveLength(1)
  })

  test('with one worker it does not wait for itself', async () => {
    const expert = expertWith()
    const runtime = openRuntime({ engine: { workers: 1, sweepMs: 20_000 } })
    const started = Date.now()

    const { status } = await runtime.run(hostWith((context) => start(expert, runtime, context)).agent, 'go').result

    expect(status).toBe('completed')
    // No sweep has helped.
    expect(Date.now() - started).toBeLessThan(PROMPTLY_MS)
  })

  test('cancelled with its host', async () => {
    const entered = makeGate()
    const model = scriptedModel(async () => {
      entered.open()
      return { text: 'late', delayMs: 5_000 }
    })
    const runtime = openRuntime()
    const run = runtime.run(hostWith((context) => start(expertWith(model), runtime, context)).agent, 'go')
    await entered.opened

    await run.cancel('enough')

    expect(await run.result).toMatchObject({ status: 'cancelled', error: { message: 'enough' } })
    const [link] = localStore(runtime).linksOf(run.id)
    expect(link?.outcome?.status).toBe('cancelled')
    expect(localStore(runtime).openNodes(link?.id ?? '')).toEqual([])
  })

  test('cancelled when its tool ends without awaiting it, before the host goes on to its end', async () => {
    const entered = makeGate()
    const model = scriptedModel(async () => {
      entered.open()
      return { text: 'late', delayMs: 5_000 }
    })
    const runtime = openRuntime()
    const host = hostWith(async (context) => {
      start(expertWith(model), runtime, context).catch(() => undefined)
      await entered.opened
      return 'did not wait'
    })
    const started = Date.now()

    const run = runtime.run(host.agent, 'go')
    const outcome = await run.result

    expect(outcome).toMatchObject({ status: 'completed', text: 'done' })
    expect(resultIn(host.model.requests[1])).toBe('did not wait')
    expect(localStore(runtime).linksOf(run.id)[0]?.outcome).toMatchObject({
      status: 'cancelled',
      error: { message: expect.stringMatching(/started it has ended/) },
    })
    expect(Date.now() - started).toBeLessThan(PROMPTLY_MS)
  })

  test('refused at the limit of depth and of children, in words', async () => {
    const childModel = scriptedModel([])
    const runtime = openRuntime({ budget: { children: 0 } })
    const host = hostWith((context) => start(expertWith(childModel), runtime, context).catch((error: unknown) => error))

    const outcome = await runtime.run(host.agent, 'go').result

    expect(outcome).toMatchObject({ status: 'completed', children: 0 })
    expect(childModel.requests).toHaveLength(0)
  })

  test('bound by what its host may delegate (I1)', async () => {
    const rm = tool({ description: 'Remove', input: { type: 'object' }, execute: () => 'removed' })
    const childModel = scriptedModel([{ calls: [{ name: 'rm', input: {} }] }, 'ok'])
    const expert = agent({ name: 'expert', instructions: '', model: childModel, input: Topic, tools: { rm } })
    const runtime = openRuntime()
    const work = tool({
      description: 'Work',
      input: { type: 'object' },
      execute: (_input, context) => start(expert as never, runtime, context),
    })
    const model = scriptedModel([{ calls: [{ name: 'work', input: {} }] }, 'done'])
    const host = agent({ name: 'host', instructions: '', model, tools: { work }, grant: { deny: ['tool:rm'] } })

    await runtime.run(host, 'go').result

    expect(childModel.requests[0]?.tools).toEqual([])
    expect(resultIn(childModel.requests[1])).toBe('rm is not allowed here: host denies tool:rm.')
  })
})

describe('code inside a tool', () => {
  test('may start many at once; they run at the same time and keep apart', async () => {
    const model = scriptedModel(async ({ messages }) => {
      await new Promise((resolve) => setTimeout(resolve, 20))
      return `about ${JSON.parse(String(messages.at(-1)?.content)).topic}`
    })
    const expert = expertWith(model as never)
    const runtime = openRuntime()
    const topics = ['one', 'two', 'three', 'four']
    const host = hostWith(async () => {
      const outcomes = await Promise.all(topics.map((topic) => expert.generate({ topic })))
      return outcomes.map(({ text }) => text).join()
    })

    const outcome = await runtime.run(host.agent, 'go').result

    expect(outcome.children).toBe(4)
    expect(resultIn(host.model.requests[1])).toBe('about one,about two,about three,about four')
  })

  test('with one worker lends that one worker, not one for each child', async () => {
    let inside = 0
    let most = 0
    const model = scriptedModel(async () => {
      most = Math.max(most, ++inside)
      await new Promise((resolve) => setTimeout(resolve, 10))
      inside--
      return 'ok'
    })
    const expert = expertWith(model as never)
    const runtime = openRuntime({ engine: { workers: 1 } })
    const host = hostWith(() =>
      Promise.all(Array.from({ length: 4 }, () => expert.generate({ topic: 'QUIC' }))).then(() => 'ok'),
    )

    const outcome = await runtime.run(host.agent, 'go').result

    expect(outcome).toMatchObject({ status: 'completed', children: 4 })
    expect(most).toBe(1)
  })

  test('code that forgets a generate it started does not bring the process down when the child is cancelled', async () => {
    const unhandled: unknown[] = []
    const note = (error: unknown) => unhandled.push(error)
    process.on('unhandledRejection', note)
    const entered = makeGate()
    const model = scriptedModel(async () => {
      entered.open()
      return { text: 'late', delayMs: 5_000 }
    })
    const forgotten: unknown[] = []
    const host = hostWith(async () => {
      forgotten.push(expertWith(model as never).generate({ topic: 'QUIC' }))
      await entered.opened
      return 'forgot'
    })

    const outcome = await openRuntime().run(host.agent, 'go').result
    await new Promise((resolve) => setTimeout(resolve, 20))

    process.off('unhandledRejection', note)
    expect(outcome.status).toBe('completed')
    expect(unhandled).toEqual([])
  })

  test('gets a RunError from generate and the outcome from delegate when a child does not complete', async () => {
    const failing = () => expertWith(scriptedModel([{ error: new Error('no quota') }]) as never)
    const host = hostWith(async ({ delegate }) => {
      const error = await failing()
        .generate({ topic: 'QUIC' })
        .catch((thrown: unknown) => thrown)
      const outcome = (await delegate(failing(), { topic: 'QUIC' })) as Outcome
      return `${error instanceof RunError}, ${(error as RunError<Outcome>).outcome.status}, ${outcome.status}`
    })

    await openRuntime().run(host.agent, 'go').result

    expect(resultIn(host.model.requests[1])).toBe('true, failed, failed')
  })

  test('is told of an input that is wrong by the outcome: no child is made', async () => {
    const childModel = scriptedModel([])
    const runtime = openRuntime()
    const host = hostWith(async ({ delegate }) => {
      const outcome = (await delegate(expertWith(childModel as never), { topic: 'x' })) as Outcome
      return `${outcome.status}: ${outcome.error?.message}`
    })

    const run = runtime.run(host.agent, 'go')
    await run.result

    expect(resultIn(host.model.requests[1])).toMatch(/^invalid_input: topic: /)
    expect(localStore(runtime).linksOf(run.id)).toEqual([])
  })

  test('code that delegates to something else than an agent gets a DefinitionError', async () => {
    const errors: unknown[] = []
    const host = hostWith(async ({ delegate }) => {
      await Promise.resolve()
        .then(() => delegate({ name: 'fake' } as never, 'x'))
        .catch((error: unknown) => errors.push(error))
      return 'ok'
    })

    await openRuntime().run(host.agent, 'go').result

    expect(errors[0]).toBeInstanceOf(DefinitionError)
  })

  test('may cancel a child by an abortSignal of its own, and goes on', async () => {
    const entered = makeGate()
    const model = scriptedModel(async () => {
      entered.open()
      return { text: 'late', delayMs: 5_000 }
    })
    const expert = expertWith(model as never)
    const host = hostWith(async () => {
      const controller = new AbortController()
      const run = expert.stream({ topic: 'QUIC' }, { abortSignal: controller.signal })
      await entered.opened
      controller.abort(new Error('found it elsewhere'))
      const { status, error } = await run.result
      return `${status}: ${error?.message}`
    })

    const outcome = await openRuntime().run(host.agent, 'go').result

    expect(outcome.status).toBe('completed')
    expect(resultIn(host.model.requests[1])).toBe('cancelled: found it elsewhere')
  })

  test('may read the events of its child while it runs', async () => {
    const expert = expertWith(scriptedModel([{ chunks: ['It ', 'is ', 'fast.'] }]) as never)
    const host = hostWith(async () => {
      const run = expert.stream({ topic: 'QUIC' })
      const events = await eventsOf(run)
      return only(events, 'text-delta').map(({ text }) => text)
    })

    await openRuntime().run(host.agent, 'go').result

    expect(resultIn(host.model.requests[1])).toBe('["It ","is ","fast."]')
  })

  test('code that goes on after its tool has ended can start nothing more, and is told so', async () => {
    const ended = makeGate()
    const late = makeGate<unknown>()
    const childModel = scriptedModel([])
    const host = hostWith(({ delegate }) => {
      ended.opened.then(() => delegate(expertWith(childModel as never), { topic: 'QUIC' })).then(late.open, late.open)
      return 'ended'
    })
    const runtime = openRuntime()

    const run = runtime.run(host.agent, 'go')
    await run.result
    ended.open()

    expect(await late.opened).toMatchObject({ code: 'aborted' })
    expect(localStore(runtime).linksOf(run.id)).toEqual([])
    expect(childModel.requests).toHaveLength(0)
  })

  test('starts children that may start children: depth is counted through both ways', async () => {
    const seen: string[] = []
    const nest = (level: number): AnyAgent => {
      const dig = tool({
        description: 'Dig',
        input: { type: 'object' },
        execute: async (_input, { delegate }) => {
          const outcome = (await delegate(nest(level + 1), 'deeper')) as Outcome
          seen.push(`${level}: ${outcome.status}`)
          return outcome.error?.message ?? outcome.text
        },
      })
      const model = scriptedModel((request) => {
        const [result] = resultsIn(request)
        return result === undefined ? { calls: [{ name: 'dig', input: {} }] } : String(result.content)
      })
      return agent({ name: `level${level}`, instructions: '', model, tools: { dig } })
    }

    const outcome = await openRuntime({ budget: { depth: 2 } }).run(nest(0), 'go' as never).result

    expect(seen).toEqual(['2: unavailable', '1: completed', '0: completed'])
    expect(outcome.text).toBe(
      'Subagents cannot create other subagents: delegation is 3 deep and the limit is 2. Do this work yourself.',
    )
  })

  test('outside of any tool starts a run of its own', async () => {
    const runtime = openRuntime()
    const host = hostWith(() => 'nothing')

    await runtime.run(host.agent, 'go').result
    await runtime.run(expertWith(), { topic: 'QUIC' }).result

    expect(localStore(runtime).roots({ limit: 10 })).toHaveLength(2)
  })
})
