/** Wall time in milliseconds, and one-shot alarms by it. Durations that matter are stored as points of this time. */
export interface Clock {
  now(): number
  /**
   * Runs `run` once, later, never before `time`; a past time means as soon as possible, Infinity never. Where the computer's
   * clock is set back meanwhile, it is run after as long as it would have been.
   * Returns a cancel function, which may be called any number of times. `run` must not throw.
   * With `ref: false` the alarm does not keep the process alive.
   */
  at(time: number, run: () => void, options?: AlarmOptions): () => void
}

export interface AlarmOptions {
  readonly ref?: boolean
  /** Of an alarm that looks again and again whether there is something to do. */
  readonly idle?: Idle
}

/** What a clock that is moved by hand needs in order to pass over the time in which nothing is due. */
export interface Idle {
  /** When there will be something to do; `now` or less where that may be at any time. */
  until(now: number): number
  /** Says that it still lives, before anybody looks. */
  renew(): Promise<void>
}

/** The computer's clock. No other place reads it. */
export const systemClock: Clock = {
  now: () => Date.now(),
  at: setAlarm,
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

/** How much of something there may be: so much at once, and so much more with each second. */
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

  /** True where there is enough left at this time, which is then used. A clock that goes back gives nothing. */
  take(amount: number, now: number): boolean {
    const passed = Math.max(0, now - (this.since ?? now)) / 1_000
    this.left = Math.min(this.burst, this.left + passed * this.perSecond)
    this.since = now
    if (amount > this.left) return false
    this.left -= amount
    return true
  }
}
