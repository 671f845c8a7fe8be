import { DefinitionError } from '../../base/error.ts'
import { int, number, readOptions } from '../../base/options.ts'

/** When contexts are summarised automatically. */
export interface CompactionSettings {
  /** The share of the model's window that triggers it. */
  readonly at: number
  /** The share that stays unchanged, at least: its newest part. */
  readonly keep: number
  /** How many tokens models can read; null: the known window of each. */
  readonly windowTokens: number | null
}

/** The assumed window of an unknown model, in tokens. */
export const DEFAULT_WINDOW = 128_000

/** How contexts stay within a model's window. Default: the settings below. */
export interface CompactionOptions {
  /** The share of the model's window that triggers a summary of the oldest part, from 0.1 to 1. Default 0.8. */
  readonly at?: number
  /** The share that stays unchanged, its newest part, at least 0.05 and less than `at`. Default 0.3. */
  readonly keep?: number
  /** How many tokens models can read. Default: the window that `modelInfo` knows, else 128,000. */
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
