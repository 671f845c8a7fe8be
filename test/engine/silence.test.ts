import { agent } from 'legate'
import type { Model, Part } from 'legate/models'
import { fakeClock } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { useWorld } from '../support/agents.ts'
import { until } from '../support/process.ts'
import { lasting } from '../support/stores.ts'

const MINUTE_MS = 60_000
const engine = { sweepMs: MINUTE_MS, leaseMs: 10 * MINUTE_MS }
const finish: Part = {
  type: 'finish',
  reason: 'stop',
  usage: { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 },
}

/** Says `first`, is silent for so long by the clock, and then says the rest. From the second call on it answers at once. */
function thinker(clock: ReturnType<typeof fakeClock>, { first = '', silentMs }: { first?: string; silentMs: number }) {
  const asked: number[] = []
  const model: Model = {
    id: 'slow/thinker',
    async *stream(_request, { signal }) {
      asked.push(clock.now())
      if (asked.length === 1) {
        if (first !== '') yield { type: 'text-delta', text: first }
        await new Promise<void>((resolve, reject) => {
          clock.at(clock.now() + silentMs, resolve)
          signal.addEventListener('abort', () => reject(signal.reason))
        })
      }
      yield { type: 'text-delta', text: 'done' }
      yield finish
    },
  }
  return { asked, who: agent({ name: 'who', instructions: '', model }) }
}

describe.each(lasting)('a model that is silent, on %s', (_, create) => {
  const world = useWorld(create)

  test('may think for 30 minutes before its first word', async () => {
    const clock = fakeClock()
    const { asked, who } = thinker(clock, { silentMs: 29 * MINUTE_MS })
    const run = world.start({ clock, engine }).runtime.run(who, 'go')
    await until('the call', () => asked.length === 1)

    await clock.advance(29.5 * MINUTE_MS)

    expect(await run.result).toMatchObject({ status: 'completed', text: 'done' })
    expect(asked).toHaveLength(1)
  })

  test('is asked again when its first word does not come, and the message says so', async () => {
    const clock = fakeClock()
    const { asked, who } = thinker(clock, { silentMs: 60 * MINUTE_MS })
    const { runtime } = world.start({ clock, engine })
    const run = runtime.run(who, 'go')
    await until('the call', () => asked.length === 1)

    await clock.advance(33 * MINUTE_MS)

    expect(await run.result).toMatchObject({ status: 'completed', text: 'done' })
    expect(asked).toHaveLength(2)
    const retries = []
    for await (const event of run.events()) if (event.type === 'retry') retries.push(event)
    expect(JSON.stringify(retries)).toContain('was silent for too long before the first word of its answer')
  })

  test('is asked again after 5 minutes in the middle of its answer', async () => {
    const clock = fakeClock()
    const { asked, who } = thinker(clock, { first: 'half ', silentMs: 60 * MINUTE_MS })
    const { runtime } = world.start({ clock, engine })
    const run = runtime.run(who, 'go')
    await until('the call', () => asked.length === 1)

    await clock.advance(8 * MINUTE_MS)

    expect(await run.result).toMatchObject({ status: 'completed', text: 'done' })
    expect(asked).toHaveLength(2)
    const retries = []
    for await (const event of run.events()) if (event.type === 'retry') retries.push(event)
    expect(JSON.stringify(retries)).toContain('was silent for too long in the middle of its answer')
  })
})
