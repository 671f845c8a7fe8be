import { int, type OptionRules, text } from '../base/options.ts'
import type { Link } from '../graph/rows.ts'

/** The limits on the attempts of a delegation. */
export interface Attempts {
  /** How long one try may take; budgets may allow less. */
  readonly timeoutMs?: number | undefined
  /** How often to try again after a failure that may pass and left nothing uncertain. Default 0. */
  readonly retries?: number | undefined
  /** The pause before the second try; each further pause is twice as long, at most 30 s. Default 1 s. */
  readonly retryDelayMs?: number | undefined
}

/** The options of one call of `delegate`. */
export interface DelegateOptions extends Attempts {
  /**
   * The name of the call when the code runs again, instead of its agent and input. Give keys to equal calls that feed
   * different work. One key is one call: a second one gets the same child, and asks for the same.
   */
  readonly key?: string | undefined
}

const RETRY_DELAY_MS = 1_000

export interface AttemptLimits {
  readonly timeoutMs: number | null
  readonly retry: Link['retry']
}

/** Takes each number from the first layer that sets it: the call, the host's settings, the agent, the runtime. */
export function attemptLimits(layers: readonly (Attempts | undefined)[]): AttemptLimits {
  const most = first(layers, 'retries') ?? 0
  const delayMs = first(layers, 'retryDelayMs') ?? RETRY_DELAY_MS
  return { timeoutMs: first(layers, 'timeoutMs') ?? null, retry: most === 0 ? null : { most, delayMs } }
}

/** The option rules, alone or among other settings. */
export const ATTEMPTS: OptionRules<Attempts> = { timeoutMs: int(1), retries: int(0), retryDelayMs: int(0) }

export const DELEGATE_OPTIONS: OptionRules<DelegateOptions> = { ...ATTEMPTS, key: text }

function first(layers: readonly (Attempts | undefined)[], key: keyof Attempts): number | undefined {
  for (const layer of layers) {
    const said = layer?.[key]
    if (said !== undefined) return said
  }
  return undefined
}
