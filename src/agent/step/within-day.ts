// Day budgets: the sums of what counts today for the id of a principal, compared with what that principal may use.
//
// Owns:      the comparison.
// Called by: `agent/step/call` before each model call, `runtime/start-run` before a run of a principal is recorded.
// Must stay true:
//   - Sums are those of the store, as it has them now: every process counts.
//   - Calls that are under way are not counted yet, so a day may be exceeded by them. SECURITY.md says so.

import type { Clock } from '../../base/clock.ts'
import { DeniedError } from '../../base/error.ts'
import type { Json } from '../../base/json.ts'
import { readCeiling } from '../../grant/ceiling.ts'
import type { DayLimit, Layer } from '../../grant/grant.ts'
import { costOfCalls } from '../../model/named/prices.ts'
import type { Store } from '../../store/store.ts'

/** The day's budget of an owner is used up: nothing was called or started. */
export class DayOver extends Error {
  /** When the next day begins. */
  readonly until: number

  constructor(until: number, why: string) {
    super(why)
    this.until = until
  }
}

interface DaySum {
  readonly runs: number
  readonly tokens: number
  readonly usd: number
  /** A model whose price is not known; null where all are. */
  readonly unpriced: string | null
}

/** The limits of a day among the layers that bind a run. */
export function dayLimitsOf(layers: readonly Layer[]): readonly DayLimit[] {
  const known = LIMITS.get(layers)
  if (known !== undefined) return known
  // The turn and its conversation may have the same one.
  const found = new Map(
    layers.flatMap(({ perDay }) => (perDay === undefined ? [] : [[JSON.stringify(perDay), perDay]])),
  )
  const limits = found.size === 0 ? NO_DAYS : [...found.values()]
  LIMITS.set(layers, limits)
  return limits
}

/** Mostly the next call has the very same layers. */
const LIMITS: WeakMap<readonly Layer[], readonly DayLimit[]> = new WeakMap()

export const NO_DAYS: readonly DayLimit[] = []

/** The thing asked for: one more run at the root, or one more model call. */
export type DayRequest = 'run' | 'call'

/** Throws `DayOver` where a day's budget is used up. */
export async function requireWithinDay(
  { store, clock }: { readonly store: Store; readonly clock: Clock },
  days: readonly DayLimit[],
  request: DayRequest,
): Promise<void> {
  for (const limit of days) {
    const now = clock.now()
    const sum = await readSum(store, limit.owner, now)
    const why = overOf(limit, sum, request)
    if (why !== undefined) throw new DayOver(nextDay(now), `${why} The day ends at midnight UTC.`)
  }
}

function overOf(limit: DayLimit, sum: DaySum, request: DayRequest): string | undefined {
  const { owner, usd, tokens, runs } = limit
  if (request === 'run' && runs !== undefined && sum.runs >= runs) return `${owner} has had its ${runs} runs of today.`
  if (tokens !== undefined && sum.tokens >= tokens) return `${owner} has used its ${tokens} tokens of today.`
  if (usd === undefined) return undefined
  if (sum.unpriced !== null) {
    return `The price of ${sum.unpriced} is not known, so perDay.usd cannot be kept. Put it into the config file (prices), or use perDay.tokens.`
  }
  return sum.usd >= usd ? `${owner} has used its ${usd} US dollars of today.` : undefined
}

async function readSum(store: Store, owner: string, now: number): Promise<DaySum> {
  const day = new Date(now).toISOString().slice(0, 10)
  let [runs, tokens, usd] = [0, 0, 0]
  let unpriced: string | null = null
  for (const { model, usage, ...spent } of await store.usage({ owner, from: day, to: day })) {
    runs += spent.runs
    tokens += usage.inputTokens + usage.outputTokens
    const cost = model === '' ? 0 : costOfCalls(usage, spent.modelCalls, model)
    if (cost === null) unpriced = model
    usd += cost ?? 0
  }
  return { runs, tokens, usd, unpriced }
}

const DAY_MS = 86_400_000

function nextDay(now: number): number {
  return (Math.floor(now / DAY_MS) + 1) * DAY_MS
}

/**
 * Throws a DeniedError where a day's budget among these layers is used up. Usage is counted by owner, so whoever has such a budget
 * begins no run in a conversation that nobody owns.
 */
export async function requireDay(
  ledger: { readonly store: Store; readonly clock: Clock },
  ceiling: readonly Json[],
  owner: string | null,
): Promise<void> {
  const days = dayLimitsOf(readCeiling(ceiling))
  const [first] = days
  if (first !== undefined && owner === null) {
    const message = `${first.owner} has a budget of the day, so it begins no run in a conversation that nobody owns.`
    throw new DeniedError('denied', message, { details: { limit: 'perDay' } })
  }
  try {
    await requireWithinDay(ledger, days, 'run')
  } catch (error) {
    if (!(error instanceof DayOver)) throw error
    throw new DeniedError('denied', error.message, { details: { limit: 'perDay', until: error.until } })
  }
}
