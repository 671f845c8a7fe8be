import { DefinitionError } from '../base/error.ts'

/** When contexts are summed up by themselves. */
export interface CompactionSettings {
  /** The share of the model's window at which it is done. */
  readonly at: number
  /** The share that stays as it was, at least: the newest of it. */
  readonly keep: number
  /** How many tokens a model can read, where that is not known of it. */
  readonly windowTokens: number | null
}

/** How contexts are kept within what a model can read. Left out: as here. */
export interface CompactionOptions {
  /** The share of the model's window at which the oldest part is summed up, from 0.1 to 1. Default 0.8. */
  readonly at?: number
  /** The share that stays as it was, the newest of it, at least 0.05 and less than `at`. Default 0.3. */
  readonly keep?: number
  /** How many tokens models can read. Left out: what `modelInfo` knows of each; where it knows nothing, nothing is done. */
  readonly windowTokens?: number
}

export function readCompaction(given: CompactionOptions | false | undefined): CompactionSettings | null {
  if (given === false) return null
  const { at = 0.8, keep = Math.min(0.3, at / 2), windowTokens = null } = given ?? {}
  const isRight = isShare(at, 0.1, 1) && isShare(keep, 0.05, at) && keep < at
  if (!isRight) {
    throw new DefinitionError(
      'definition',
      'createRuntime({ compaction }): at is from 0.1 to 1, keep from 0.05 and less than at.',
    )
  }
  if (windowTokens !== null && !(Number.isInteger(windowTokens) && windowTokens > 0)) {
    throw new DefinitionError(
      'definition',
      'createRuntime({ compaction }): windowTokens is a whole number of at least 1.',
    )
  }
  return { at, keep, windowTokens }
}

function isShare(value: unknown, least: number, most: number): boolean {
  return typeof value === 'number' && value >= least && value <= most
}
