import { agent, ModelError, type RunEvent } from 'legate'
import { fakeClock, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { useWorld } from '../support/agents.ts'
import { until } from '../support/process.ts'
import { eventsOfType } from '../support/rows.ts'
import { stores } from '../support/stores.ts'

const OVERLOADED = Object.assign(new Error('overloaded'), { statusCode: 503 })

describe.each(stores)('a model that fails, on %s', (_, create) => {
  const world = useWorld(create)
  const { start } = world

  test('is tried again later, as a row: the node is pending until its time and holds no worker', async () => {
    const clock = fakeClock()
    const model = scriptedModel([{ error: OVERLOADED }, 'fine'])
    const other = scriptedModel(['meanwhile'])
    const { runtime } = start({ clock, engine: { workers: 1, sweepMs: 10_000 } })
    const run = runtime.run(agent({ name: 'flaky', instructions: '', model }), 'go')

    const node = await until('the retry', () => world.store.nodesOf(run.id).find(({ wakeAt }) => wakeAt !== null))
    expect(node).toMatchObject({ state: 'pending', engineId: null, attempt: 2, blockers: 0 })
    expect(node.wakeAt).toBeGreaterThanOrEqual(clock.now() + 1_000)
    const meanwhile = await runtime.run(agent({ name: 'other', instructions: '', model: other }), 'go').result
    expect(meanwhile.text).toBe('meanwhile')
    await clock.advance(999)
    expect(model.requests).toHaveLength(1)

    await clock.advance(1_000)
    expect(await run.result).toMatchObject({ status: 'completed', text: 'fine', modelCalls: 1 })
  })

  test('is tried four times, further and further apart, with a retry and a reset each, and then the run failed', async () => {
    const clock = fakeClock()
    const model = scriptedModel(() => ({ chunks: ['Half ', 'of '], error: OVERLOADED }))
    const { runtime } = start({ clock, engine: { sweepMs: 10_000 } })
    const run = runtime.run(agent({ name: 'flaky', instructions: '', model }), 'go')
    const seen: RunEvent[] = []
    const reading = (async () => {
      for await (const event of run) seen.push(event)
    })()

    for (let attempt = 2; attempt <= 4; attempt++) {
      const retry = await until(`retry ${attempt}`, () =>
        eventsOfType(world.store, run.conversationId, 'retry').find((event) => event.attempt === attempt),
      )
      await clock.advance(retry.wakeAt - clock.now())
    }
    const outcome = await run.result
    await reading

    expect(outcome).toMatchObject({ status: 'failed', error: { message: 'overloaded' }, text: 'Half of ' })
    expect(model.requests).toHaveLength(4)
    const retries = eventsOfType(world.store, run.conversationId, 'retry')
    expect(retries.map(({ attempt }) => attempt)).toEqual([2, 3, 4])
    const delays = retries.map(({ wakeAt, at }) => wakeAt - at)
    expect(delays[0]).toBeGreaterThanOrEqual(1_000)
    expect(delays[1]).toBeGreaterThanOrEqual(2_000)
    expect(delays[2]).toBeGreaterThanOrEqual(4_000)
    const resets = seen.flatMap((event) => (event.type === 'reset' ? [event.attempt] : []))
    expect(resets).toEqual([2, 3, 4])
    const afterLast = seen.slice(seen.findLastIndex(({ type }) => type === 'reset'))
    expect(afterLast.flatMap((event) => (event.type === 'text-delta' ? [event.text] : []))).toEqual(['Half ', 'of '])
  })

  test('waits as long as the provider asks it to', async () => {
    const clock = fakeClock()
    const busy = Object.assign(new Error('slow down'), { statusCode: 429, retryAfterMs: 7_000 })
    const model = scriptedModel([{ error: busy }, 'fine'])
    const { runtime } = start({ clock, engine: { sweepMs: 10_000 } })
    const run = runtime.run(agent({ name: 'flaky', instructions: '', model }), 'go')
    const [retry] = await until('the retry', () => {
      const retries = eventsOfType(world.store, run.conversationId, 'retry')
      return retries.length > 0 && retries
    })

    expect((retry?.wakeAt ?? 0) - (retry?.at ?? 0)).toBe(7_000)
    await clock.advance(7_000)
    expect(await run.result).toMatchObject({ text: 'fine' })
  })

  test.each<[string, unknown]>([
    ['a 400', Object.assign(new Error('bad request'), { statusCode: 400 })],
    ['a 401', Object.assign(new Error('no key'), { status: 401 })],
    ['an error that says so', new ModelError('model', 'no such model', { isRetryable: false })],
    ['an unknown error', new Error('what')],
  ])('is not tried again for %s', async (_, error) => {
    const model = scriptedModel([{ error }])
    const { runtime } = start()
    const run = runtime.run(agent({ name: 'wrong', instructions: '', model }), 'go')

    expect(await run.result).toMatchObject({ status: 'failed' })

    expect(model.requests).toHaveLength(1)
    expect(eventsOfType(world.store, run.conversationId, 'retry')).toEqual([])
  })

  test.each<[string, { error?: unknown; cut?: boolean; text?: string }]>([
    ['a 408', { error: Object.assign(new Error('timeout'), { statusCode: 408 }) }],
    ['a 409', { error: Object.assign(new Error('conflict'), { statusCode: 409 }) }],
    ['a 429', { error: Object.assign(new Error('limit'), { statusCode: 429 }) }],
    ['a 500', { error: Object.assign(new Error('fault'), { statusCode: 500 }) }],
    ['a network error', { error: Object.assign(new Error('reset'), { cause: { code: 'ECONNRESET' } }) }],
    ['a stream that was cut', { text: 'Half', cut: true }],
  ])('is tried again for %s', async (_, failure) => {
    const clock = fakeClock()
    const model = scriptedModel([failure, 'fine'])
    const { runtime } = start({ clock, engine: { sweepMs: 10_000 } })
    const run = runtime.run(agent({ name: 'flaky', instructions: '', model }), 'go')
    await until('the retry', () => eventsOfType(world.store, run.conversationId, 'retry').length === 1)

    await clock.advance(2_000)

    expect(await run.result).toMatchObject({ status: 'completed', text: 'fine' })
  })

  test('is tried again by another process when the first is gone meanwhile', async () => {
    const clock = fakeClock()
    const first = start({ clock, engine: { sweepMs: 10_000 } })
    const failing = scriptedModel([{ error: OVERLOADED }])
    const run = first.runtime.run(agent({ name: 'flaky', instructions: '', model: failing }), 'go')
    await until('the retry', () => eventsOfType(world.store, run.conversationId, 'retry').length === 1)
    await first.runtime.close()
    const model = scriptedModel(['fine'])
    const second = start({
      clock,
      agents: [agent({ name: 'flaky', instructions: '', model })],
      engine: { sweepMs: 10_000 },
    })
    const [resumed] = await second.runtime.resume()
    await clock.advance(500)
    expect(model.requests).toHaveLength(0)

    await clock.advance(2_000)

    expect(await resumed?.result).toMatchObject({ status: 'completed', text: 'fine' })
  })
})
