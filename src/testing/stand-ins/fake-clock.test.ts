import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { watchWork } from '../../../test/support/pace.ts'
import { runProgram, skipUnlessBuilt } from '../../../test/support/program.ts'
import { tempFolder } from '../../../test/support/temp-folder.ts'
import { memoryStore } from '../../core/store/memory/index.ts'
import { agent, createRuntime } from '../../index.ts'
import { sqliteStore } from '../../stores/sqlite/index.ts'
import { fakeClock } from './fake-clock.ts'

test('stands still until it is told to move, and rings in order', async () => {
  const clock = fakeClock(1_000)
  const rung: string[] = []
  clock.at(1_020, () => rung.push(`late ${clock.now()}`))
  clock.at(1_010, () => rung.push(`early ${clock.now()}`))
  clock.at(Number.POSITIVE_INFINITY, () => rung.push('never'))

  await sleep(30)
  expect(rung).toEqual([])
  await clock.advance(10)
  expect(rung).toEqual(['early 1010'])
  await clock.advance(1_000_000)
  expect(rung).toEqual(['early 1010', 'late 1020'])
  expect(clock.now()).toBe(1_001_010)
})

test('what an alarm sets within the same time rings too', async () => {
  const clock = fakeClock(0)
  const run = vi.fn()
  clock.at(5, () => clock.at(7, run))

  await clock.advance(10)

  expect(run).toHaveBeenCalledTimes(1)
})

test('what an alarm leads to in later rounds of the event loop has happened, and its alarms ring in order', async () => {
  const clock = fakeClock(0)
  const rung: number[] = []
  const sweep = () => {
    rung.push(clock.now())
    // On a busy machine a real timer is due before the second round.
    const later = (rounds: number): void => {
      for (const start = performance.now(); performance.now() - start < 5; );
      if (rounds > 0) setImmediate(later, rounds - 1)
      else clock.at(clock.now() + 10, sweep)
    }
    later(3)
  }
  clock.at(10, sweep)

  await clock.advance(45)

  expect(rung).toEqual([10, 20, 30, 40])
})

test.each([0, -5, 999, 1_000, Number.NaN, Number.NEGATIVE_INFINITY])(
  'what is due already needs no time: %s',
  async (time) => {
    const clock = fakeClock(1_000)
    const run = vi.fn()
    clock.at(time, run)

    expect(run).not.toHaveBeenCalled()
    await sleep(5)
    expect(run).toHaveBeenCalledTimes(1)
    await clock.advance(1)

    expect(run).toHaveBeenCalledTimes(1)
  },
)

test('a cancelled alarm never rings, due or not', async () => {
  const clock = fakeClock(1_000)
  const run = vi.fn()
  const cancels = [clock.at(900, run), clock.at(1_100, run)]

  for (const cancel of [...cancels, ...cancels]) cancel()
  await clock.advance(1_000)

  expect(run).not.toHaveBeenCalled()
})

test('what follows has happened when `advance` is done, also in a process that has loaded little', async (context) => {
  skipUnlessBuilt(context)
  const printed = await runProgram(`
    import { agent, createRuntime } from 'legate'
    import { fakeClock, scriptedModel } from 'legate/testing'

    const busy = Object.assign(new Error('busy'), { statusCode: 429 })
    const model = scriptedModel([{ error: busy }, 'Now it works.'])
    const clock = fakeClock()
    const runtime = createRuntime({ clock })
    const run = runtime.run(agent({ name: 'clerk', instructions: '', model }), 'Are you there?')
    for await (const event of run) {
      if (event.type !== 'retry') continue
      await clock.advance(30_000)
      console.log(model.requests.length)
    }
    await runtime.close()`)

  expect(printed).toBe('2\n')
})

test.each([
  ['memory', () => memoryStore()],
  ['SQLite', () => sqliteStore(join(tempFolder(), 'store.db'))],
] as const)('a month passes in a moment on %s, and what is due in it happens at its time', async (_name, create) => {
  const clock = fakeClock()
  const DAY = 24 * 3_600_000
  const asking = agent({
    name: 'clerk',
    effect: 'pure',
    reply: async (_, { ask }) => `${await ask('Which?')} at ${clock.now()}`,
  })
  const store = create()
  const first = createRuntime({ store, clock })
  const second = createRuntime({ store, clock })
  onTestFinished(async () => {
    await Promise.allSettled([second.close(), first.close()])
  })
  await second.resume()
  const start = clock.now()
  const run = first.run(asking, 'go')
  await vi.waitFor(async () => expect(await first.questions()).toHaveLength(1))
  const [question] = await first.questions()
  const expiresAt = question?.expiresAt ?? 0
  const began = performance.now()

  await clock.advance(30 * DAY)

  expect(performance.now() - began).toBeLessThan(5_000)
  expect(expiresAt).toBeGreaterThan(start)
  expect(await run.result).toMatchObject({ status: 'completed', text: `null at ${expiresAt}` })
  expect((await first.processes()).filter(({ isAlive }) => isAlive)).toHaveLength(2)
})

test('a month in which nothing is due takes less than a second', async () => {
  const clock = fakeClock()
  const runtime = createRuntime({ store: memoryStore(), clock })
  onTestFinished(() => runtime.close())
  await runtime.resume()
  await clock.advance(0)
  const workMs = watchWork()

  await clock.advance(30 * 24 * 3_600_000)

  expect(workMs()).toBeLessThan(1_000)
})
