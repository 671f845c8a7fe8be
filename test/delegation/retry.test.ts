import { type AnyAgent, agent, type Runtime, type RuntimeOptions, type SubagentConfig, tool } from 'legate'
import { type ScriptedAnswer, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { simpleTool, useWorld } from '../support/agents.ts'
import { makeGate } from '../support/gate.ts'
import { until } from '../support/process.ts'
import { eventsOf, only, openRuntime, resultIn, taskOf } from '../support/reading.ts'
import { eventsOfType, localStore, turnsOfTree } from '../support/rows.ts'
import { stores } from '../support/stores.ts'

const Input = z.object({ n: z.number() })
const usage = { inputTokens: 10, outputTokens: 5 }
const ask = { calls: [{ name: 'ask', input: { n: 1 } }], usage }
const FAILED = { error: new Error('The model is broken.') }
const soon = { retryDelayMs: 0 } as const

/** A child that answers with these, one per try. */
function child(...answers: readonly (ScriptedAnswer | string)[]) {
  const model = scriptedModel([...answers])
  return { model, worker: agent({ name: 'worker', instructions: '', input: Input, model }) }
}

function hostOf(config: SubagentConfig) {
  const model = scriptedModel([ask, { text: 'done', usage }])
  return { model, host: agent({ name: 'host', instructions: '', model, subagents: { ask: config } }) }
}

function triesOf(runtime: Pick<Runtime, 'store'>, run: { readonly id: string }) {
  return localStore(runtime)
    .linksOf(run.id)
    .map(({ attempt, outcome }) => [attempt, outcome?.status])
}

describe('a delegation that failed in a way that may pass', () => {
  test('is tried again as often as was said; its result is that of the last try', async () => {
    const { worker, model } = child(FAILED, FAILED, 'third time lucky')
    const { host, model: seen } = hostOf({ agent: worker, retries: 2, ...soon })
    const runtime = openRuntime()

    const run = runtime.run(host, 'go')
    const [outcome, events] = await Promise.all([run.result, eventsOf(run)])

    expect(outcome).toMatchObject({ status: 'completed', text: 'done', children: 3 })
    expect(resultIn(seen.requests[1])).toBe('third time lucky')
    expect(triesOf(runtime, run)).toEqual([
      [1, 'failed'],
      [2, 'failed'],
      [3, 'completed'],
    ])
    expect(only(events, 'retry').map(({ attempt, nodeId, error }) => [attempt, nodeId, error])).toEqual([
      [2, taskOf(runtime, run).id, 'The model is broken.'],
      [3, taskOf(runtime, run).id, 'The model is broken.'],
    ])
    expect(model.requests).toHaveLength(3)
    expect(only(events, 'delegation-start')).toHaveLength(3)
    expect(only(events, 'delegation-end')).toHaveLength(3)
  })

  test('and does so for ever ends as its last try did', async () => {
    const { worker } = child(FAILED, FAILED)
    const { host, model } = hostOf({ agent: worker, retries: 1, ...soon })

    const outcome = await openRuntime().run(host, 'go').result

    expect(outcome).toMatchObject({ status: 'completed', children: 2 })
    expect(resultIn(model.requests[1])).toBe('Subagent execution unavailable. The model is broken.')
  })

  test('is not tried again after its provider refused the call', async () => {
    const refused = { error: Object.assign(new Error('No such model.'), { statusCode: 404 }) }
    const { worker, model } = child(refused, 'never said')
    const { host, model: seen } = hostOf({ agent: worker, retries: 3, ...soon })

    expect(await openRuntime().run(host, 'go').result).toMatchObject({ status: 'completed', children: 1 })
    expect(model.requests).toHaveLength(1)
    expect(resultIn(seen.requests[1])).toContain('No such model.')
  })

  test('has a child of its own for each try, which is told what the first was told and no more', async () => {
    const { worker, model } = child(FAILED, 'ok')
    const { host } = hostOf({ agent: worker, retries: 1, briefing: () => ({ hint: 'be short' }), ...soon })
    const runtime = openRuntime()

    const run = runtime.run(host, 'go')
    await run.result

    const [first, second] = localStore(runtime).linksOf(run.id)
    expect(second?.childConversationId).not.toBe(first?.childConversationId)
    expect(model.requests[1]?.messages).toEqual(model.requests[0]?.messages)
    const seeds = localStore(runtime)
      .nodesOf(second?.id ?? '')
      .map(({ kind }) => kind)
    expect(seeds).toEqual(['developer_message', 'user_message', 'agent_message'])
    expect(model.requests[1]?.messages.map(({ role }) => role)).toEqual(['user', 'user'])
    expect(taskOf(runtime, run)).toMatchObject({
      output: { subagent: { child_conversation_id: second?.childConversationId } },
      metadata: { subagent: { child_conversation_id: second?.childConversationId } },
    })
    expect(first?.deliveredTo).toBe(taskOf(runtime, run).id)
  })

  test('I7: costs what all its tries cost, once', async () => {
    const broken = { text: 'not JSON', usage }
    const model = scriptedModel([broken, broken, { text: '{"a":1}', usage }])
    const worker = agent({ name: 'worker', instructions: '', input: Input, output: z.object({ a: z.number() }), model })
    const { host } = hostOf({ agent: worker, retries: 1, ...soon })
    const runtime = openRuntime()

    const run = runtime.run(host, 'go')
    const outcome = await run.result

    expect(triesOf(runtime, run)).toEqual([
      [1, 'invalid_output'],
      [2, 'completed'],
    ])
    expect(outcome.usage).toMatchObject({ inputTokens: 50, outputTokens: 25 })
  })

  test('is tried again after a while that doubles, and costs nothing meanwhile', async () => {
    const { worker } = child(FAILED, FAILED, 'ok')
    const { host } = hostOf({ agent: worker, retries: 2, retryDelayMs: 60 })
    const runtime = openRuntime({ engine: { sweepMs: 10_000 } })

    const run = runtime.run(host, 'go')
    await run.result

    const starts = eventsOfType(localStore(runtime), run.conversationId, 'retry').map(({ at, wakeAt }) => wakeAt - at)
    expect(starts).toEqual([60, 120])
    const began = localStore(runtime)
      .linksOf(run.id)
      .map(({ id }) => localStore(runtime).turn(id)?.endedAt ?? 0)
    expect((began[2] ?? 0) - (began[0] ?? 0)).toBeGreaterThanOrEqual(170)
  })

  test('by the message contract goes on in its session', async () => {
    const model = scriptedModel([FAILED, 'here again'])
    const worker = agent({ name: 'worker', instructions: '', model })
    const seen = scriptedModel([{ calls: [{ name: 'ask', input: { message: 'hello' } }] }, 'done'])
    const subagents = { ask: { agent: worker, retries: 1, ...soon } }
    const runtime = openRuntime()

    const run = runtime.run(agent({ name: 'host', instructions: '', model: seen, subagents }), 'go')
    await run.result

    const [first, second] = localStore(runtime).linksOf(run.id)
    expect(second?.childConversationId).toBe(first?.childConversationId)
    expect(resultIn(seen.requests[1])).toBe(`session_id: ${first?.childConversationId}\n\nhere again`)
    expect(model.requests[1]?.messages.filter(({ role }) => role === 'user')).toHaveLength(2)
  })

  test('of a subagent that keeps its memory goes on in its conversation', async () => {
    const { worker } = child(FAILED, 'ok')
    const { host } = hostOf({ agent: worker, retries: 1, memory: 'session', ...soon })
    const runtime = openRuntime()

    const run = runtime.run(host, 'go')
    await run.result

    expect(
      new Set(
        localStore(runtime)
          .linksOf(run.id)
          .map(({ childConversationId }) => childConversationId),
      ).size,
    ).toBe(1)
  })

  test('from inside a tool gives the code the outcome of the last try', async () => {
    const { worker } = child(FAILED, FAILED, 'ok')
    const work = simpleTool(async (_, { delegate }) => {
      const outcome = await delegate(worker as AnyAgent as never, { n: 1 } as never, { retries: 2, ...soon })
      return outcome.text
    })
    const model = scriptedModel([{ calls: [{ name: 'work', input: {} }] }, 'done'])
    const runtime = openRuntime()

    const run = runtime.run(agent({ name: 'host', instructions: '', model, tools: { work } }), 'go')
    await run.result

    expect(resultIn(model.requests[1])).toBe('ok')
    expect(
      localStore(runtime)
        .linksOf(run.id)
        .map(({ attempt, deliveredTo }) => [attempt, deliveredTo]),
    ).toEqual([
      [1, taskOf(runtime, run).id],
      [2, taskOf(runtime, run).id],
      [3, taskOf(runtime, run).id],
    ])
  })
})

describe('a delegation is not tried again', () => {
  test('when it completed, or was never begun', async () => {
    const { worker, model } = child('fine')
    const { host } = hostOf({ agent: worker, retries: 5, ...soon })
    const runtime = openRuntime()
    const run = runtime.run(host, 'go')
    await run.result
    expect(model.requests).toHaveLength(1)

    const asked = scriptedModel([{ calls: [{ name: 'ask', input: { n: 'x' } }] }, 'done'])
    const subagents = { ask: { agent: worker, retries: 5, ...soon } }
    const wrong = runtime.run(agent({ name: 'host', instructions: '', model: asked, subagents }), 'go')
    await wrong.result
    expect(localStore(runtime).linksOf(wrong.id)).toEqual([])
  })

  test('when a person has cancelled it', async () => {
    const entered = makeGate()
    const model = scriptedModel(() => {
      entered.open()
      return { text: 'never', delayMs: 60_000 }
    })
    const { host } = hostOf({
      agent: agent({ name: 'worker', instructions: '', input: Input, model }),
      retries: 3,
      ...soon,
    })
    const runtime = openRuntime()
    const run = runtime.run(host, 'go')
    await entered.opened

    await runtime.cancel(localStore(runtime).linksOf(run.id)[0]?.id ?? '')

    expect(await run.result).toMatchObject({ status: 'completed' })
    expect(triesOf(runtime, run)).toEqual([[1, 'cancelled']])
  })

  test('I4: when something in it may have had an effect', async () => {
    let paid = 0
    const pay = tool({
      description: 'Pays',
      input: { type: 'object' },
      execute: () => {
        paid++
        return new Promise(() => undefined)
      },
    })
    const model = scriptedModel([{ calls: [{ name: 'pay', input: {} }] }])
    const worker = agent({ name: 'worker', instructions: '', input: Input, model, tools: { pay } })
    const { host } = hostOf({ agent: worker, retries: 3, timeoutMs: 50, ...soon })
    const runtime = openRuntime()

    const run = runtime.run(host, 'go')

    expect(await run.result).toMatchObject({ status: 'completed', uncertain: [expect.any(String)] })
    expect(triesOf(runtime, run)).toEqual([[1, 'timed_out']])
    expect(paid).toBe(1)
  })

  test('when its host may start no more children', async () => {
    const { worker } = child(FAILED, FAILED)
    const model = scriptedModel([ask, 'done'])
    const subagents = { ask: { agent: worker, retries: 5, ...soon } }
    const host = agent({ name: 'host', instructions: '', model, subagents, budget: { children: 2 } })
    const runtime = openRuntime()

    const run = runtime.run(host, 'go')

    expect(await run.result).toMatchObject({ status: 'completed', children: 2 })
  })

  test('when its host has no time left for it', async () => {
    const { worker } = child(FAILED)
    const model = scriptedModel([ask, 'done'])
    const subagents = { ask: { agent: worker, retries: 5, retryDelayMs: 60_000 } }
    const host = agent({ name: 'host', instructions: '', model, subagents, budget: { wallMs: 20_000 } })
    const runtime = openRuntime()

    const run = runtime.run(host, 'go')

    expect(await run.result).toMatchObject({ status: 'completed', children: 1 })
  })

  test('when its host was cancelled while it waited to be', async () => {
    const { worker, model } = child(FAILED)
    const { host } = hostOf({ agent: worker, retries: 5, retryDelayMs: 20_000 })
    const runtime = openRuntime()
    const run = runtime.run(host, 'go')
    await until('the second try', () => localStore(runtime).linksOf(run.id).length === 2)

    await run.cancel()

    expect(await run.result).toMatchObject({ status: 'cancelled' })
    expect(triesOf(runtime, run)).toEqual([
      [1, 'failed'],
      [2, 'cancelled'],
    ])
    expect(model.requests).toHaveLength(1)
  })
})

describe('a child that takes too long, and is tried again', () => {
  test('has stopped before the second starts, and does nothing afterwards', async () => {
    const log: string[] = []
    let tries = 0
    const slow = tool({
      description: 'Takes its time',
      input: { type: 'object' },
      effect: 'idempotent',
      execute: async (_, { signal }) => {
        log.push('tool begins')
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        await new Promise((resolve) => setTimeout(resolve, 30))
        log.push('tool has stopped')
      },
    })
    const model = scriptedModel(() => {
      log.push(`try ${++tries}`)
      return tries === 1 ? { text: 'So far.', calls: [{ name: 'slow', input: {} }] } : 'in time'
    })
    const worker = agent({ name: 'worker', instructions: '', input: Input, model, tools: { slow } })
    const { host, model: seen } = hostOf({ agent: worker, timeoutMs: 60, retries: 1, ...soon })
    const runtime = openRuntime()

    const run = runtime.run(host, 'go')
    await run.result
    await new Promise((resolve) => setTimeout(resolve, 60))

    expect(log).toEqual(['try 1', 'tool begins', 'tool has stopped', 'try 2'])
    expect(triesOf(runtime, run)).toEqual([
      [1, 'timed_out'],
      [2, 'completed'],
    ])
    expect(resultIn(seen.requests[1])).toBe('in time')
    const [first, second] = localStore(runtime)
      .linksOf(run.id)
      .map(({ id }) => localStore(runtime).turn(id))
    expect(first?.endedAt).toBeLessThanOrEqual(second?.startedAt ?? 0)
  })

  test('is timed out with what it had when no try is left', async () => {
    const model = scriptedModel([{ text: 'Half of it.', calls: [{ name: 'wait', input: {} }] }])
    const wait = simpleTool(() => new Promise(() => undefined), { effect: 'pure' })
    const worker = agent({ name: 'worker', instructions: '', input: Input, model, tools: { wait } })
    const { host, model: seen } = hostOf({ agent: worker, timeoutMs: 40 })

    await openRuntime().run(host, 'go').result

    expect(resultIn(seen.requests[1])).toBe('[timed_out] The deadline passed.\n\nHalf of it.')
  })

  test('has all its time in each try: waiting for the next does not count', async () => {
    const { worker } = child({ text: 'never', delayMs: 60_000 }, { text: 'ok', delayMs: 30 })
    const { host, model } = hostOf({ agent: worker, timeoutMs: 300, retries: 1, retryDelayMs: 350 })

    await openRuntime().run(host, 'go').result

    expect(resultIn(model.requests[1])).toBe('ok')
  })
})

describe('who says how a delegation is tried', () => {
  type Said = { readonly timeoutMs?: number; readonly retries?: number; readonly retryDelayMs?: number }

  async function frozen(by: { call?: Said; config?: Said; agent?: Said; runtime?: Said }) {
    const options: RuntimeOptions = by.runtime === undefined ? {} : { delegation: by.runtime }
    const runtime = openRuntime(options)
    const worker = agent({
      name: 'worker',
      instructions: '',
      input: Input,
      model: scriptedModel(['ok']),
      ...(by.agent && { delegation: by.agent }),
    })
    const work = simpleTool((_, { delegate }) => delegate(worker, { n: 1 }, by.call))
    const model = scriptedModel([{ calls: [{ name: by.call ? 'work' : 'ask', input: { n: 1 } }] }, 'done'])
    const subagents = { ask: { agent: worker, ...by.config } }
    const run = runtime.run(agent({ name: 'host', instructions: '', model, tools: { work }, subagents }), 'go')
    await run.result
    const [link] = localStore(runtime).linksOf(run.id)
    return { wallMs: localStore(runtime).turn(link?.id ?? '')?.limits.wallMs, retry: link?.retry }
  }

  const HOUR = 3_600_000

  test.each([
    [{}, { wallMs: HOUR, retry: null }],
    [{ runtime: { timeoutMs: 9_000, retries: 9 } }, { wallMs: 9_000, retry: { most: 9, delayMs: 1_000 } }],
    [
      { runtime: { timeoutMs: 9_000, retries: 9, retryDelayMs: 7 }, agent: { retries: 1 } },
      { wallMs: 9_000, retry: { most: 1, delayMs: 7 } },
    ],
    [
      { runtime: { timeoutMs: 9_000 }, agent: { timeoutMs: 8_000, retries: 2 }, config: { timeoutMs: 12_000 } },
      { wallMs: 12_000, retry: { most: 2, delayMs: 1_000 } },
    ],
    [
      { agent: { retries: 2 }, config: { retries: 0 } },
      { wallMs: HOUR, retry: null },
    ],
    [
      { agent: { retries: 2, timeoutMs: 5_000 }, call: { timeoutMs: 7_000, retryDelayMs: 3 } },
      { wallMs: 7_000, retry: { most: 2, delayMs: 3 } },
    ],
  ] as const)('each number is that of the nearest who says it: %j', async (by, expected) => {
    expect(await frozen(by)).toEqual(expected)
  })

  test('but never more time than a budget allows', async () => {
    const worker = agent({
      name: 'worker',
      instructions: '',
      input: Input,
      model: scriptedModel(['ok']),
      budget: { wallMs: 5_000 },
    })
    const { host } = hostOf({ agent: worker, timeoutMs: 900_000 })
    const runtime = openRuntime()
    const run = runtime.run(host, 'go')
    await run.result
    expect(localStore(runtime).turn(localStore(runtime).linksOf(run.id)[0]?.id ?? '')?.limits.wallMs).toBe(5_000)
  })

  test.each([
    [{ retries: -1 }, /retries must be a whole number of at least 0, not -1/],
    [{ timeoutMs: 0 }, /timeoutMs must be a whole number of at least 1, not 0/],
    [{ retryDelayMs: Number.NaN }, /retryDelayMs must be a whole number of at least 0, not NaN/],
    [{ retries: '3' }, /retries must be a whole number of at least 0, not "3"/],
  ])('what makes no sense is refused wherever it is said: %j', async (said, message) => {
    const wrong = said as Said
    const worker = agent({ name: 'worker', instructions: '', input: Input, model: scriptedModel(['ok']) })
    expect(() => hostOf({ agent: worker, ...wrong })).toThrow(message)
    expect(() => agent({ name: 'a', instructions: '', delegation: wrong })).toThrow(message)
    expect(() => openRuntime({ delegation: wrong })).toThrow(message)
    await expect(frozen({ call: wrong })).resolves.toEqual({ wallMs: undefined, retry: undefined })
  })

  test('a misspelt one is told', () => {
    const define = () => agent({ name: 'a', instructions: '', delegation: { retrys: 2 } as never })
    expect(define).toThrow('agent "a", delegation has no option "retrys". Did you mean "retries"?')
  })
})

describe.each(stores)('tries on %s', (_, create) => {
  const world = useWorld(create)

  test('are rows: another process goes on with the one that the first has only planned', async () => {
    const broken = child(FAILED).worker
    const { host } = hostOf({ agent: broken, retries: 1, retryDelayMs: 80 })
    const first = world.start()
    const run = first.runtime.run(host, 'go')
    await until('the second try', () => world.store.linksOf(run.id).length === 2)
    await first.kill()

    const healed = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel(() => 'done'),
      subagents: { ask: child('ok').worker },
    })
    const second = world.start({ agents: [healed] })
    await second.runtime.resume()

    expect(await (await second.runtime.attach(run.id)).result).toMatchObject({ status: 'completed', children: 2 })
    expect(triesOf(world, run)).toEqual([
      [1, 'failed'],
      [2, 'completed'],
    ])
    expect(turnsOfTree(world.store, run.id)).toHaveLength(3)
  })

  test('wait their turn like any other delegation', async () => {
    const order: string[] = []
    let failed = false
    const model = scriptedModel(({ messages }) => {
      const asked = String(messages.findLast(({ role }) => role === 'user')?.content)
      order.push(asked)
      if (failed) return 'ok'
      failed = true
      return FAILED
    })
    const worker = agent({ name: 'worker', instructions: '', input: Input, model })
    const asks = scriptedModel([{ calls: [1, 2].map((n) => ({ name: 'ask', input: { n } })) }, 'done'])
    const subagents = { ask: { agent: worker, retries: 1, concurrency: 1, ...soon } }
    const { runtime } = world.start()

    const run = runtime.run(agent({ name: 'host', instructions: '', model: asks, subagents }), 'go')

    expect(await run.result).toMatchObject({ status: 'completed', children: 3 })
    expect(order.toSorted()).toEqual(['{"n":1}', '{"n":1}', '{"n":2}'])
    expect(world.store.conversation(run.conversationId)?.places).toBeNull()
  })
})
