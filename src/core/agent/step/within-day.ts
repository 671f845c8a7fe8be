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
import { isStored, storedBytes } from '../../rules/settle/charges.ts'
import type { Store } from '../../store/store.ts'

/** The day's budget of an owner is used up: nothing was called or started. */
export class DayOver extends Error {
  /** The limit, by its name in `perDay`. */
  readonly limit: DayDimension
  /** Whose limit it is. */
  readonly owner: string
  private readonly now: number

  constructor({ limit, why }: UsedUp, owner: string, now: number) {
    super(`${why} The day ends at midnight UTC.`)
    this.limit = limit
    this.owner = owner
    this.now = now
  }

  /** The limits of the day for a caller. */
  toError(): DeniedError {
    const { limit, owner, now } = this
    const until = nextDay(now)
    const details = { limit: `perDay.${limit}`, owner, until, retryAfter: Math.ceil((until - now) / 1_000) }
    return new DeniedError('over_quota', this.message, { details })
  }
}

type DayDimension = Exclude<keyof DayLimit, 'owner'>

/** A limit that is used up, and the sentence that says so. */
interface UsedUp {
  readonly limit: DayDimension
  readonly why: string
}

interface DaySum {
  readonly runs: number
  readonly tokens: number
  readonly usd: number
  readonly bytes: number
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

/** The thing asked for: one more run at the root, one more model call, or a message that nobody answers. */
export type DayRequest = 'run' | 'call' | 'message'

/** Throws `DayOver` where a day's budget is used up. */
export async function requireWithinDay(
  { store, clock }: { readonly store: Store; readonly clock: Clock },
  days: readonly DayLimit[],
  request: DayRequest,
): Promise<void> {
  for (const limit of days) {
    const now = clock.now()
    const sum = await readSum(store, limit.owner, now)
    const over = overOf(limit, sum, request)
    if (over !== undefined) throw new DayOver(over, limit.owner, now)
  }
}

function overOf(limit: DayLimit, sum: DaySum, request: DayRequest): UsedUp | undefined {
  const { owner, usd, tokens, runs, bytes } = limit
  if (bytes !== undefined && sum.bytes >= bytes) {
    return { limit: 'bytes', why: `${owner} has stored its ${bytes} bytes of today.` }
  }
  if (request === 'message') return undefined
  if (request === 'run' && runs !== undefined && sum.runs >= runs) {
    return { limit: 'runs', why: `${owner} has had its ${runs} runs of today.` }
  }
  if (tokens !== undefined && sum.tokens >= tokens) {
    return { limit: 'tokens', why: `${owner} has used its ${tokens} tokens of today.` }
  }
  if (usd === undefined) return undefined
  if (sum.unpriced !== null) {
    const why = `The price of ${sum.unpriced} is not known, so perDay.usd cannot be kept. Put it into the config file (prices), or use perDay.tokens.`
    return { limit: 'usd', why }
  }
  return sum.usd >= usd ? { limit: 'usd', why: `${owner} has used its ${usd} US dollars of today.` } : undefined
}

async function readSum(store: Store, owner: string, now: number): Promise<DaySum> {
  const day = new Date(now).toISOString().slice(0, 10)
  let [runs, tokens, usd, bytes] = [0, 0, 0, 0]
  let unpriced: string | null = null
  for (const { model, usage, ...spent } of await store.usage({ owner, from: day, to: day })) {
    bytes += storedBytes(model, usage)
    if (isStored(model)) continue
    runs += spent.runs
    tokens += usage.inputTokens + usage.outputTokens
    const cost = model === '' ? 0 : costOfCalls(usage, spent.modelCalls, model)
    if (cost === null) unpriced = model
    usd += cost ?? 0
  }
  return { runs, tokens, usd, bytes, unpriced }
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
  request: DayRequest = 'run',
): Promise<void> {
  const days = dayLimitsOf(readCeiling(ceiling))
  const [first] = days
  if (first !== undefined && owner === null && request !== 'message') {
    const message = `${first.owner} has a budget of the day, so it begins no run in a conversation that nobody owns.`
    throw new DeniedError('denied', message, { details: { limit: 'perDay' } })
  }
  try {
    await requireWithinDay(ledger, days, request)
  } catch (error) {
    if (!(error instanceof DayOver)) throw error
    throw error.toError()
  }
}
