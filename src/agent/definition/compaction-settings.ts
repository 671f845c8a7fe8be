import { DefinitionError } from '../../base/error.ts'
import { int, number, readOptions } from '../../base/options.ts'

/** When contexts are summed up by themselves. */
export interface CompactionSettings {
  /** The share of the model's window at which it is done. */
  readonly at: number
  /** The share that stays as it was, at least: the newest of it. */
  readonly keep: number
  /** How many tokens models can read; null: what is known of each. */
  readonly windowTokens: number | null
}

/** What a model that nobody knows can read, in tokens. */
export const DEFAULT_WINDOW = 128_000

/** How contexts are kept within what a model can read. Left out: as here. */
export interface CompactionOptions {
  /** The share of the model's window at which the oldest part is summed up, from 0.1 to 1. Default 0.8. */
  readonly at?: number
  /** The share that stays as it was, the newest of it, at least 0.05 and less than `at`. Default 0.3. */
  readonly keep?: number
  /** How many tokens models can read. Left out: what `modelInfo` knows of each; where it knows nothing, 128,000. */
  readonly windowTokens?: number
}

export function readCompaction(given: CompactionOptions | false | undefined): CompactionSettings | null {
  if (given === false) return null
  const { at = 0.8, keep = Math.min(0.3, at / 2), windowTokens } = readOptions(WHERE, given ?? {}, OPTIONS)
  readOptions(WHERE, { keep }, { keep: number(0.05, at) })
  if (keep === at) throw new DefinitionError('definition', `${WHERE}: keep must be less than at.`)
  return { at, keep, windowTokens: windowTokens ?? null }
}

const WHERE = 'createRuntime({ compaction })'
const OPTIONS = { at: number(0.1, 1), keep: number(0.05, 1), windowTokens: int(1) }
