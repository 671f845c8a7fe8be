/** Numbers from a seed: the same seed gives the same test again. */
export declare class Chance {
  private state
  constructor(seed: number)
  /** From 0 to just below 1. */
  next(): number
  /** A whole number from 0 to below `end`. */
  below(end: number): number
  is(probability: number): boolean
  pick<T>(from: readonly T[]): T
  /** Up to `most` of them, with repeats. */
  some<T>(from: readonly T[], most: number): T[]
  shuffled<T>(values: readonly T[]): T[]
}
