import { agent, createRuntime } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/core/base/clock.ts'
import { useWorld } from '../support/agents.ts'
import { until } from '../support/process.ts'
import { localStore } from '../support/rows.ts'
import { lasting, stores } from '../support/stores.ts'

const HOUR = 3_600_000
const OVERLOADED = Object.assign(new Error('overloaded'), { statusCode: 503, retryAfterMs: 300 })

/** The computer's clock, which can be set. Its alarms ring after their time has passed, whatever it is set to. */
function settableClock() {
  let ahead = 0
  return {
    set: (by: number) => {
      ahead += by
    },
    clock: {
      now: () => systemClock.now() + ahead,
      at: (time: number, run: () => void, options?: { readonly ref?: boolean }) =>
        systemClock.at(time - ahead, run, options),
    },
  }
}

function flaky(...script: Parameters<typeof scriptedModel>) {
  return agent({ name: 'flaky', instructions: '', model: scriptedModel(...script) })
}

describe.each(stores)('a clock that is set back an hour, on %s', (_, create) => {
  const world = useWorld(create)

  test('holds up no retry', async () => {
    const { clock, set } = settableClock()
    const { runtime } = world.start({ clock })
    const run = runtime.run(flaky([{ error: OVERLOADED }, 'fine']), 'go')
    await until('the retry', () => world.store.nodesOf(run.id).find(({ wakeAt }) => wakeAt !== null))
    set(-HOUR)

    expect(await run.result).toMatchObject({ status: 'completed', text: 'fine' })
  })

  test('gives no run a duration below nothing', async () => {
    const { clock, set } = settableClock()
    const { runtime } = world.start({ clock })
    const model = scriptedModel(() => {
      set(-HOUR)
      return 'fine'
    })

    const outcome = await runtime.run(agent({ name: 'slow', instructions: '', model }), 'go').result

    expect(outcome.durationMs).toBe(0)
  })
})

describe.each(lasting)('a clock that is set back between two processes, on %s', (_, create) => {
  const world = useWorld(create)

  test('holds up no retry that the first of them wrote', async () => {
    const { clock, set } = settableClock()
    const first = world.start({ clock })
    const run = first.runtime.run(flaky([{ error: OVERLOADED }]), 'go')
    await until('the retry', () => first.store.nodesOf(run.id).find(({ wakeAt }) => wakeAt !== null))
    run.result.catch(() => undefined)
    await first.runtime.close()
    set(-HOUR)

    const next = world.start({ clock, agents: [flaky(['fine'])] })
    await next.runtime.resume()

    expect(await (await next.runtime.attach(run.id)).result).toMatchObject({ status: 'completed', text: 'fine' })
  })
})

test('a clock that is set forward an hour makes a retry come at once, and ends no run before its day is over', async () => {
  const { clock, set } = settableClock()
  const runtime = createRuntime({ clock, engine: { sweepMs: 20 } })
  const slow = Object.assign(new Error('slow down'), { statusCode: 429, retryAfterMs: 50_000 })
  const run = runtime.run(flaky([{ error: slow }, 'fine']), 'go')
  await until('the retry', () =>
    localStore(runtime)
      .nodesOf(run.id)
      .find(({ wakeAt }) => wakeAt !== null),
  )
  set(HOUR)

  expect(await run.result).toMatchObject({ status: 'completed', text: 'fine' })
  await runtime.close()
})
