import { agent } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { type Scheduler, systemScheduler } from '../../src/core/base/clock.ts'
import { simpleTool, useWorld } from '../support/agents.ts'
import { makeGate } from '../support/gate.ts'
import { localStore } from '../support/rows.ts'
import { stores } from '../support/stores.ts'

const MANY = 150
const ALL = Array.from({ length: MANY }, (_, at) => at)

describe.each(stores)('a message with many calls on %s', (_, create) => {
  const world = useWorld(create)
  const { start } = world

  test('lets others have their turn while its calls are begun', async () => {
    const begun: number[] = []
    let others = 0
    const { runtime } = start({ engine: { workers: MANY } })
    const busy = caller(({ at }) => {
      begun.push(at)
      if (at === 0) setImmediate(() => (others = begun.length))
      return 'done'
    })
    // The first call of all loads what runs tools.
    await runtime.run(busy, 'go').result
    begun.length = 0

    const outcome = await runtime.run(busy, 'go').result

    expect(outcome).toMatchObject({ status: 'completed', toolCalls: MANY })
    expect(begun.toSorted((a, b) => a - b)).toEqual(ALL)
    expect(others).toBeGreaterThan(0)
    expect(others).toBeLessThan(MANY)
  })

  test('a message that is cancelled meanwhile begins no more of them, and ends', async () => {
    const begun: number[] = []
    const cancelled = makeGate()
    // The turns of the event loop between two lots take until it is cancelled.
    const scheduler: Scheduler = { ...systemScheduler, defer: (run) => void cancelled.opened.then(run) }
    const { runtime } = start({ engine: { workers: MANY }, scheduler })
    const busy = caller(({ at }) => {
      begun.push(at)
      if (at === 0) run.cancel('enough').then(cancelled.open, cancelled.open)
      return cancelled.opened
    })
    const run = runtime.run(busy, 'go')

    const outcome = await run.result

    expect(outcome.status).toBe('cancelled')
    expect(begun.length).toBeLessThan(MANY)
    expect(localStore(runtime).openNodes(run.id)).toEqual([])
  })

  test('whose process closes meanwhile is gone on with by another', async () => {
    const begun: number[] = []
    const { runtime } = start({ engine: { workers: MANY } })
    const busy = caller(({ at }) => {
      begun.push(at)
      if (at === 0) closing = new Promise((resolve) => setImmediate(() => resolve(runtime.close())))
      return 'done'
    })
    let closing: Promise<void> | undefined
    const run = runtime.run(busy, 'go')
    await run.result.catch(() => undefined)
    await closing

    const { runtime: next } = start({ agents: [busy], engine: { workers: MANY } })
    await next.resume()
    const outcome = await (await next.attach(run.id)).result

    expect(outcome).toMatchObject({ status: 'completed', toolCalls: MANY })
    // What had begun and could not say its end any more is begun again: it has no effect.
    expect([...new Set(begun)].toSorted((a, b) => a - b)).toEqual(ALL)
  })
})

function caller(work: (input: { at: number }) => unknown) {
  return agent({
    name: 'caller',
    instructions: 'Call.',
    model: scriptedModel((request) =>
      request.messages.at(-1)?.role === 'tool'
        ? 'all done'
        : { calls: ALL.map((at) => ({ name: 'work', input: { at } })) },
    ),
    tools: { work: simpleTool((input) => work(input as { at: number }), { effect: 'pure' }) },
    budget: { toolCalls: MANY },
  })
}
