/** Numbers from a seed: the same seed gives the same test again. */
export class Chance {
  private state: number

  constructor(seed: number) {
    this.state = seed >>> 0
  }

  /** From 0 to just below 1. */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0
    let mixed = this.state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }

  /** A whole number from 0 to below `end`. */
  below(end: number): number {
    return Math.floor(this.next() * end)
  }

  is(probability: number): boolean {
    return this.next() < probability
  }

  pick<T>(from: readonly T[]): T {
    const found = from[this.below(from.length)]
    if (found === undefined) throw new Error('there is nothing to pick from')
    return found
  }

  /** Up to `most` of them, with repeats. */
  some<T>(from: readonly T[], most: number): T[] {
    return Array.from({ length: this.below(most + 1) }, () => this.pick(from))
  }

  shuffled<T>(values: readonly T[]): T[] {
    const all = [...values]
    for (let at = all.length - 1; at > 0; at--) {
      const other = this.below(at + 1)
      const [a, b] = [all[at], all[other]] as [T, T]
      all[at] = b
      all[other] = a
    }
    return all
  }
}
