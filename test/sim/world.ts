// One seed, one order of everything: virtual time, a queue of moments, and chance.
//
// Must stay true:
//   - Nothing here or above it reads a real clock or waits for a real timer, so a seed gives the same story again.
//   - Between two moments all promises have settled that can: a process dies between two steps, never inside of one.

import { Chance } from '../support/chance.ts'

/** Something that a moment belongs to, and that may be dead or asleep when the moment comes. */
export interface Owner {
  readonly isDead: boolean
  readonly asleepUntil: number
}

interface Moment {
  readonly time: number
  readonly order: number
  readonly run: () => void
  readonly owner: Owner | null
  isCancelled: boolean
}

/** What is counted of a story: in how many seeds it happened. */
export const HAPPENINGS = [
  'run',
  'delegation',
  'crash',
  'crash at work',
  'sleep',
  'cut',
  'lost request',
  'lost answer',
  'doubled',
  'refused',
  'recovery',
  'late result',
  'uncertain',
  'approval',
  'cancel',
  'deadline',
  'retry',
  'reader',
] as const
export type Happening = (typeof HAPPENINGS)[number]

export class World {
  now = 1_800_000_000_000
  readonly chance: Chance
  /** True for a first play, in which code is still being loaded from disk. */
  private readonly isLoading: boolean
  /** What broke a law: the first one counts. */
  broken: string | undefined
  moments = 0
  readonly happened: Set<Happening> = new Set()
  /** Called before each moment, with its owner. */
  entered: (owner: Owner | null) => void = nothing
  private readonly queue: Moment[] = []
  private order = 0

  constructor(seed: number, isLoading = false) {
    this.isLoading = isLoading
    this.chance = new Chance(seed)
  }

  /** Runs something later; a dead owner never does it, a sleeping one does it when it wakes. Gives a function that cancels it. */
  at(time: number, owner: Owner | null, run: () => void): () => void {
    if (time === Number.POSITIVE_INFINITY) return nothing
    const moment: Moment = { time: Math.max(time, this.now), order: this.order++, run, owner, isCancelled: false }
    this.push(moment)
    return () => {
      moment.isCancelled = true
    }
  }

  sleep(ms: number, owner: Owner | null): Promise<void> {
    return new Promise((resolve) => this.at(this.now + ms, owner, resolve))
  }

  fail(law: string): void {
    this.broken ??= `${law} (at ${this.now - START} ms)`
  }

  /** Tells this story from others: all that it did took chances and time. */
  mark(): number {
    return Math.imul(this.chance.below(2 ** 32) ^ this.moments, (this.now - START) | 1) >>> 0
  }

  /** Lets time pass until it is over, or until nothing is to be waited for. */
  async pass(ms: number, isDone: () => boolean = () => false): Promise<void> {
    const end = this.now + ms
    await this.settled()
    while (this.broken === undefined && !isDone()) {
      const next = this.queue[0]
      if (next === undefined || next.time > end) break
      this.pop()
      if (next.isCancelled || next.owner?.isDead === true) continue
      this.now = Math.max(this.now, next.time)
      if (next.owner !== null && next.owner.asleepUntil > this.now) {
        this.at(next.owner.asleepUntil, next.owner, next.run)
        continue
      }
      this.moments++
      this.entered(next.owner)
      next.run()
      await this.settled()
    }
    if (!isDone()) this.now = Math.max(this.now, end)
  }

  /** Resolves when no promise can settle any more: Node runs a tick only after all microtasks. */
  private settled(): Promise<void> {
    return new Promise((resolve) => {
      if (this.isLoading) setTimeout(resolve, 1)
      else process.nextTick(resolve)
    })
  }

  private push(moment: Moment): void {
    const { queue } = this
    let at = queue.push(moment) - 1
    while (at > 0) {
      const above = (at - 1) >> 1
      if (isBefore(queue[above] as Moment, moment)) break
      queue[at] = queue[above] as Moment
      at = above
    }
    queue[at] = moment
  }

  private pop(): void {
    const { queue } = this
    const last = queue.pop() as Moment
    if (queue.length === 0) return
    let at = 0
    for (;;) {
      let below = 2 * at + 1
      if (below >= queue.length) break
      if (below + 1 < queue.length && isBefore(queue[below + 1] as Moment, queue[below] as Moment)) below++
      if (isBefore(last, queue[below] as Moment)) break
      queue[at] = queue[below] as Moment
      at = below
    }
    queue[at] = last
  }
}

/** How long a process waits for an answer about a commit. */
export const PATIENCE_MS = 5_000
const START = 1_800_000_000_000

function nothing(): void {}

function isBefore(a: Moment, b: Moment): boolean {
  return a.time < b.time || (a.time === b.time && a.order < b.order)
}
