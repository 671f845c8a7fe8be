import { int, type OptionRules } from '../base/options.ts'
import type { Link } from '../graph/rows.ts'

/** How a delegation is tried. */
export interface Attempts {
  /** How long one try may take; budgets may say less. */
  readonly timeoutMs?: number | undefined
  /** How often it is tried again when it ended in a way that may pass, with nothing uncertain in it. Default 0. */
  readonly retries?: number | undefined
  /** How long after the first failure it is tried again: twice as long each time, at most 30 s. Default 1 s. */
  readonly retryDelayMs?: number | undefined
}

const RETRY_DELAY_MS = 1_000

export interface AttemptLimits {
  readonly timeoutMs: number | null
  readonly retry: Link['retry']
}

/** Each number as the first says it that says anything of it: the call, the host's settings, the agent, the runtime. */
export function attemptLimits(layers: readonly (Attempts | undefined)[]): AttemptLimits {
  const most = first(layers, 'retries') ?? 0
  const delayMs = first(layers, 'retryDelayMs') ?? RETRY_DELAY_MS
  return { timeoutMs: first(layers, 'timeoutMs') ?? null, retry: most === 0 ? null : { most, delayMs } }
}

/** For wherever they stand: alone, or among other settings. */
export const ATTEMPTS: OptionRules<Attempts> = { timeoutMs: int(1), retries: int(0), retryDelayMs: int(0) }

function first(layers: readonly (Attempts | undefined)[], key: keyof Attempts): number | undefined {
  for (const layer of layers) {
    const said = layer?.[key]
    if (said !== undefined) return said
  }
  return undefined
}
