// Time: the clock that a runtime goes by, its alarms, turns of the event loop, and rate limits.
//
// Owns:      the ports `Clock` and `Scheduler`, those of the computer, and `Allowance`.
// Called by: engine, ledger and waits set alarms and read the time; tests put a clock that they move by hand in its place, and
//            simulations a scheduler that a seed drives.
// Must stay true:
//   - Only `systemClock` reads the computer's clock, so a test can move all time of a runtime.
//   - Durations that matter are stored as moments, and survive a restart.

import { randomWord } from './id.ts'
import type { Later } from './maybe.ts'

/** Wall time in milliseconds, and one-shot alarms by it. Durations that matter are stored as points of this time. */
export interface Clock {
  /** The time now, in milliseconds. */
  now(): number
  /**
   * Runs `run` once, later, never before `time`; a past time means as soon as possible, Infinity never. If the computer's clock
   * is set back meanwhile, the alarm still fires after the original delay. Returns a cancel function, which may be called any
   * number of times. `run` must not throw. With `ref: false` the alarm does not keep the process alive.
   */
  at(time: number, run: () => void, options?: AlarmOptions): () => void
  /** Goes by this time from now on: the time of a store that several machines share. Missing: it goes by its own. */
  follow?(now: number): void
}

export interface AlarmOptions {
  readonly ref?: boolean
  /** Marks an alarm that only polls: it looks again and again whether there is work. */
  readonly idle?: IdleHint
}

/** Lets a clock that tests move by hand skip the time in which nothing is due. */
export interface IdleHint {
  /** The next moment at which there may be work; `now` or less where there may be work at any time. */
  until(now: number): Later<number>
  /** Renews the lease, so that other processes see this one alive. */
  renew(): Promise<void>
}

/** Turns of the event loop and chance, as a runtime uses them. A simulation gives its own, driven by a seed. */
export interface Scheduler {
  /** Runs `run` in a later turn of the event loop, so that waiting work gets its turn first. */
  defer(run: () => void): void
  /** Resolves after about so many milliseconds, between two tries at something. Does not keep the process alive. */
  pause(ms: number): Promise<void>
  /** A random whole number below 2 ** 32, for ids and for the length of pauses. */
  random(): number
}

export const systemScheduler: Scheduler = {
  defer: (run) => {
    setImmediate(run)
  },
  pause: (ms) => new Promise((resolve) => arm(ms, resolve, UNREFERENCED)),
  random: randomWord,
}

const UNREFERENCED: AlarmOptions = { ref: false }

/** The computer's clock. No other place reads it. */
export const systemClock: Clock = {
  now: () => Date.now(),
  at: setAlarm,
}

/** The time since this process began, as wall time: nobody can set it. */
const steadyClock: Clock = {
  now: () => Math.floor(performance.timeOrigin + performance.now()),
  at: (time, run, options = {}) => {
    if (time === Number.POSITIVE_INFINITY) return () => {}
    let timer = arm(time - steadyClock.now(), ring, options)
    function ring(): void {
      const ms = time - steadyClock.now()
      if (ms > 0) timer = arm(ms, ring, options)
      else run()
    }
    return () => clearTimeout(timer)
  },
}

/** A clock that goes by the time of a store, once it was told. So machines agree whatever their own clocks say. */
export function followingClock(own: Clock = steadyClock): Clock {
  let ahead = 0
  return {
    now: () => own.now() + ahead,
    at: (time, run, options) => own.at(time - ahead, run, options),
    follow: (now) => {
      ahead = Math.round(now) - own.now()
    },
  }
}

/** setTimeout fires at once for anything longer. */
const maxDelayMs = 2 ** 31 - 1

function setAlarm(time: number, run: () => void, options: AlarmOptions = {}): () => void {
  if (time === Number.POSITIVE_INFINITY) return () => {}
  const latest = performance.now() + time - Date.now()
  const left = () => Math.min(time - Date.now(), latest - performance.now())
  let timer = arm(left(), ring, options)
  function ring(): void {
    const ms = left()
    if (ms > 0) timer = arm(ms, ring, options)
    else run()
  }
  return () => clearTimeout(timer)
}

function arm(ms: number, ring: () => void, options: AlarmOptions): ReturnType<typeof setTimeout> {
  const timer = setTimeout(ring, Math.min(Math.max(Math.ceil(ms), 0), maxDelayMs))
  if (options.ref === false) timer.unref()
  return timer
}

/** A rate limit: a fixed amount at once, and a further amount each second. */
export class Allowance {
  private readonly burst: number
  private readonly perSecond: number
  private left: number
  private since: number | undefined

  constructor(burst: number, perSecond: number) {
    this.burst = burst
    this.perSecond = perSecond
    this.left = burst
  }

  /** Takes the amount if enough is left at this time. A clock that goes back refills nothing. */
  take(amount: number, now: number): boolean {
    const passed = Math.max(0, now - (this.since ?? now)) / 1_000
    this.left = Math.min(this.burst, this.left + passed * this.perSecond)
    this.since = now
    if (amount > this.left) return false
    this.left -= amount
    return true
  }
}

/** How long a piece of a long walk may hold the event loop. */
const SLICE_MS = 10

/** Cuts a long walk into slices: other work gets its turn between two slices. */
export class Slices {
  private end = performance.now() + SLICE_MS

  /** Goes on at once while the slice lasts, else in the next turn of the event loop. */
  next(): Promise<void> | undefined {
    return performance.now() < this.end ? undefined : this.turn()
  }

  private async turn(): Promise<void> {
    await new Promise(setImmediate)
    this.end = performance.now() + SLICE_MS
  }
}
