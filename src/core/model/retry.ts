import { LegateError } from '../base/error.ts'
import { randomWord } from '../base/id.ts'

export const MODEL_ATTEMPTS = 4
const FIRST_DELAY_MS = 1_000
/** The longest pause that a run waits for. A provider that wants a longer one is not asked again. */
export const LONGEST_ASKED_MS = 60_000
/** These also have the status 429, but only money helps. */
const OUT_OF_QUOTA: ReadonlySet<unknown> = new Set(['insufficient_quota', 'billing_hard_limit_reached'])
const NETWORK_CODES: ReadonlySet<string> = new Set([
  'ECONNRESET',
  'ECONNREFUSED',
  'ECONNABORTED',
  'ETIMEDOUT',
  'EPIPE',
  'EAI_AGAIN',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_SOCKET',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
])

/** How long to wait before attempt `next`; undefined when another try cannot help or all are used. */
export function retryDelay(error: unknown, next: number, random: () => number = randomWord): number | undefined {
  if (next > MODEL_ATTEMPTS || !isPassing(error) || isOutOfQuota(error)) return undefined
  const asked = pauseAsked(error)
  if (asked !== undefined) return asked > LONGEST_ASKED_MS ? undefined : asked
  const backoff = FIRST_DELAY_MS * 2 ** (next - 2)
  return backoff * (1 + random() / 2 ** 34)
}

/** The pause that a provider asked for, in milliseconds: `Retry-After`. */
export function pauseAsked(error: unknown): number | undefined {
  const asked = field(error, 'retryAfterMs')
  return typeof asked === 'number' && asked >= 0 ? asked : undefined
}

/**
 * True for errors that may pass by themselves: timeouts, conflicts, rate limits, server faults, the network and cut
 * streams.
 */
function isPassing(error: unknown, depth = 0): boolean {
  if (error === null || typeof error !== 'object' || depth > 4) return false
  if (LegateError.isInstance(error)) return error.isRetryable
  const status = field(error, 'statusCode') ?? field(error, 'status')
  if (typeof status === 'number') return [408, 409, 429].includes(status) || status >= 500
  const code = field(error, 'code')
  if (typeof code === 'string' && NETWORK_CODES.has(code)) return true
  if (field(error, 'isRetryable') === true) return true
  return isPassing(field(error, 'cause'), depth + 1)
}

/** True where the provider refused the request, the key or the model: it refuses the same call again. */
export function isRefused(error: unknown): boolean {
  const details = LegateError.isInstance(error) ? error.details : error
  return REFUSALS.has(field(details, 'statusCode') ?? field(details, 'status'))
}

const REFUSALS: ReadonlySet<unknown> = new Set([400, 401, 403, 404])

/** True when the error itself, or the answer it carries, reports an exhausted quota. */
export function isOutOfQuota(error: unknown): boolean {
  const data = field(error, 'data')
  const places = [error, field(error, 'error'), data, field(data, 'error')]
  return places.some((place) => OUT_OF_QUOTA.has(field(place, 'code')) || OUT_OF_QUOTA.has(field(place, 'type')))
}

function field(error: unknown, key: string): unknown {
  try {
    return (error as Record<string, unknown>)[key]
  } catch {
    return undefined
  }
}
