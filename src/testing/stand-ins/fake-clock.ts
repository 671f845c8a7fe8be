import type { Clock, IdleHint } from '../../core/base/clock.ts'
import { number, readOptions } from '../../core/base/options.ts'

export interface FakeClock extends Clock {
  /**
   * Moves time forward and fires due timers in order. Everything that follows from them without further waiting has
   * then happened.
   */
  advance(ms: number): Promise<void>
}

interface Alarm {
  readonly time: number
  readonly run: () => void
  readonly idle?: IdleHint | undefined
}

/** How many idle checks in a row run as on a real clock, enough for every lease to expire. Then the clock jumps. */
const LOOKS = 60

/** Makes a clock that stands still until you move it. */
export function fakeClock(start = Date.UTC(2030, 0, 1)): FakeClock {
  readOptions('fakeClock()', { start }, { start: number() })
  let now = start
  const alarms = new Set<Alarm>()
  const next = (until: number) => [...alarms].filter(({ time }) => time <= until).sort((a, b) => a.time - b.time)[0]
  const nextDue = async () =>
    Math.min(...(await Promise.all([...alarms].map(({ time, idle }) => idle?.until(now) ?? time))))
  const ring = (alarm: Alarm) => {
    if (alarms.delete(alarm)) alarm.run()
  }
  return {
    now: () => now,
    at: (time, run, { idle } = {}) => {
      const alarm = { time: Number.isNaN(time) ? now : time, run, idle }
      alarms.add(alarm)
      if (alarm.time <= now) setTimeout(ring, 0, alarm)
      return () => {
        alarms.delete(alarm)
      }
    },
    advance: async (ms) => {
      readOptions('advance()', { ms }, { ms: number(0) })
      // Loads the sweep now: an engine would load it when a timer fires, and finish after `advance`.
      await import('../../core/engine/sweep.ts')
      const until = now + ms
      let looks = 0
      for (let alarm = next(until); alarm !== undefined; alarm = next(until)) {
        const due = looks < LOOKS ? alarm.time : Math.min(until, await nextDue())
        looks = alarm.idle === undefined || due > alarm.time ? 0 : looks + 1
        now = Math.max(now, alarm.time, due)
        if (due > alarm.time) await Promise.all([...alarms].map(({ idle }) => idle?.renew()))
        ring(alarm)
        await settled()
      }
      now = until
      await settled()
    },
  }
}

/** A sweep may write several commits, and a store may answer each in a later round of the event loop. */
const ROUNDS = 16

/** Lets everything happen that can happen without time passing. */
async function settled(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 0))
  for (let round = 0; round < ROUNDS; round++) await new Promise((resolve) => setImmediate(resolve))
}
