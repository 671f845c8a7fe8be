import type { Clock } from '../base/clock.ts'

export interface FakeClock extends Clock {
  /** Moves time on and rings what became due, in order. */
  advance(ms: number): Promise<void>
}

/** A clock that stands still until it is told to move. */
export function fakeClock(start = Date.UTC(2030, 0, 1)): FakeClock {
  let now = start
  let alarms: { at: number; run: () => void }[] = []
  const due = (until: number) => alarms.filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0]
  return {
    now: () => now,
    at: (at, run) => {
      const alarm = { at, run }
      alarms.push(alarm)
      return () => {
        alarms = alarms.filter((other) => other !== alarm)
      }
    },
    advance: async (ms) => {
      const until = now + ms
      for (let alarm = due(until); alarm !== undefined; alarm = due(until)) {
        const ringing = alarm
        alarms = alarms.filter((other) => other !== ringing)
        now = Math.max(now, ringing.at)
        ringing.run()
        await settled()
      }
      now = until
      await settled()
    },
  }
}

/** Lets everything that can happen without time passing happen. */
function settled(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0))
}
