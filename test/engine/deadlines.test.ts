import { agent } from 'legate'
import { fakeClock, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { callsThenSays, simpleTool, useWorld } from '../support/agents.ts'
import { makeGate } from '../support/gate.ts'
import { PROMPTLY_MS } from '../support/pace.ts'
import { until } from '../support/process.ts'
import { tasksOf } from '../support/rows.ts'
import { stores } from '../support/stores.ts'

const HOUR_MS = 3_600_000

describe.each(stores)('deadlines on %s', (_, create) => {
  const world = useWorld(create)
  const { start } = world

  test('a run that passes its wall time is timed out, with what it had said', async () => {
    const model = scriptedModel([
      { text: 'So far so good.', calls: [{ name: 'work', input: {} }] },
      { text: 'never', delayMs: 60_000 },
    ])
    const work = simpleTool(() => 'worked')
    const slow = agent({ name: 'slow', instructions: '', model, tools: { work }, budget: { wallMs: 60 } })
    const { runtime } = start()

    const outcome = await runtime.run(slow, 'go').result

    expect(outcome).toMatchObject({
      status: 'timed_out',
      error: { code: 'timed_out', message: 'The deadline passed.' },
      text: 'So far so good.',
    })
    expect(outcome.durationMs).toBeGreaterThanOrEqual(60)
    expect(outcome.durationMs).toBeLessThan(PROMPTLY_MS)
  })

  test('a deadline that passes while no process runs is kept promptly by the next one', async () => {
    const clock = fakeClock()
    const entered = makeGate()
    const model = scriptedModel(() => {
      entered.open()
      return { text: 'never', delayMs: 60_000 }
    })
    const slow = agent({ name: 'slow', instructions: '', model, budget: { wallMs: HOUR_MS } })
    const first = start({ clock, engine: { graceMs: 10 } })
    const run = first.runtime.run(slow, 'go')
    await entered.opened
    await first.runtime.close()

    await clock.advance(2 * HOUR_MS)
    const unused = scriptedModel([])
    const second = start({ clock, agents: [agent({ name: 'slow', instructions: '', model: unused })] })
    const [resumed] = await second.runtime.resume()

    expect(await resumed?.result).toMatchObject({ status: 'timed_out', runId: run.id, modelCalls: 0 })
    expect(unused.requests).toEqual([])
  })

  test('a child never has longer than its host', async () => {
    const clock = fakeClock()
    const child = agent({
      name: 'child',
      instructions: '',
      model: scriptedModel(() => ({ text: 'never', delayMs: 60_000 })),
      budget: { wallMs: HOUR_MS },
    })
    const gate = makeGate()
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel(async () => {
        await gate.opened
        return { calls: [{ name: 'ask', input: { message: 'x' } }] }
      }),
      subagents: { ask: child },
      budget: { wallMs: 60_000 },
    })
    const { runtime } = start({ clock, engine: { sweepMs: 10_000 } })
    const run = runtime.run(host, 'go')
    await until('the host', () => world.store.turn(run.id))
    await clock.advance(10_000)
    gate.open()
    const link = await until('the child', () => world.store.linksOf(run.id)[0])
    expect(world.store.turn(link.id)?.deadline).toBe(world.store.turn(run.id)?.deadline)

    await clock.advance(51_000)

    expect(await run.result).toMatchObject({ status: 'timed_out' })
    expect(world.store.link(link.id)?.outcome?.status).toMatch(/timed_out|cancelled/)
  })

  test('a child that passes its own deadline is timed out alone, and the host reads the limit first', async () => {
    const child = agent({
      name: 'child',
      instructions: '',
      model: scriptedModel(() => ({ text: 'never', delayMs: 60_000 })),
      budget: { wallMs: 40 },
    })
    const model = scriptedModel(({ messages }) => {
      const result = messages.find(({ role }) => role === 'tool')
      return result ? String(result.content) : { calls: [{ name: 'ask', input: { message: 'x' } }] }
    })
    const host = agent({ name: 'host', instructions: '', model, subagents: { ask: child } })
    const { runtime } = start()
    const run = runtime.run(host, 'go')

    const outcome = await run.result

    expect(outcome.status).toBe('completed')
    expect(outcome.text).toMatch(/^session_id: \S+\n\n\[timed_out\] The deadline passed\./)
    expect(tasksOf(world.store, run.id)[0]).toMatchObject({ state: 'finished', output: { isError: true } })
  })

  test('a run that waits for its turn has its wall time before it', async () => {
    const clock = fakeClock()
    const gate = makeGate()
    const model = scriptedModel(async () => {
      await gate.opened
      return 'done'
    })
    const { runtime } = start({ clock, engine: { sweepMs: 10_000 } })
    const first = runtime.run(agent({ name: 'a', instructions: '', model, budget: { wallMs: HOUR_MS } }), 'one')
    const second = agent({ name: 'a', instructions: '', model, budget: { wallMs: 1_000 } })
    await until('the first', () => world.store.turn(first.id))
    const queued = runtime.run(second, 'two', { conversationId: first.conversationId })
    await until('the second', () => world.store.turn(queued.id)?.state === 'queued')

    await clock.advance(60_000)
    gate.open()

    expect(await queued.result).toMatchObject({ status: 'completed' })
    expect(world.store.turn(queued.id)?.deadline).toBe((world.store.turn(queued.id)?.startedAt ?? 0) + 1_000)
  })

  test('a tool that takes longer than it may is stopped, and the run goes on', async () => {
    const slow = simpleTool(() => makeGate().opened, { effect: 'pure', timeoutMs: 40 })
    const host = agent({ name: 'host', instructions: '', model: scriptedModel(callsThenSays('slow')), tools: { slow } })
    const { runtime } = start()

    const outcome = await runtime.run(host, 'go').result

    expect(outcome).toMatchObject({ status: 'completed', text: expect.stringMatching(/longer than 40 ms/) })
  })
})
