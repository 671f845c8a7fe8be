import type { Json } from '../../core/base/json.ts'
import { readJson } from './read-json.ts'

/** A request that the server refused, or that did not reach it. */
export class ClientError extends Error {
  override readonly name: string = 'ClientError'
  /** The status of HTTP; 0 where no server answered. */
  readonly status: number
  /** One of the library's error codes, such as `not_found`, or one of HTTP, such as `unauthenticated`. */
  readonly code: string
  /** Advice how to get further; null where the server gives none. */
  readonly advice: string | null
  /** More about it, such as who answered an approval first. */
  readonly details: Json
  /** How long the server asks you to wait before the next try; null where it does not say. */
  readonly retryAfterMs: number | null

  constructor(message: string, facts: ErrorFacts, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.status = facts.status
    this.code = facts.code
    this.advice = facts.advice ?? null
    this.details = facts.details ?? null
    this.retryAfterMs = facts.retryAfterMs ?? null
  }
}

interface ErrorFacts {
  readonly status: number
  readonly code: string
  readonly advice?: string | null
  readonly details?: Json
  readonly retryAfterMs?: number | null
}

const MOST_PROBLEM = 100_000

/** The error that an answer other than a success stands for: its problem details, or its status where it has none. */
export async function errorOf(response: Response): Promise<ClientError> {
  const text = (await response.text().catch(() => '')).slice(0, MOST_PROBLEM)
  const problem = problemIn(text)
  const { status } = response
  const retryAfterMs = retryAfterOf(response)
  const detail = textOf(problem['detail']) ?? textOf(problem['title']) ?? `The server answered ${status}.`
  return new ClientError(detail, {
    status,
    code: textOf(problem['code']) ?? `http_${status}`,
    advice: textOf(problem['advice']) ?? null,
    details: (problem['details'] ?? null) as Json,
    retryAfterMs,
  })
}

function problemIn(text: string): { readonly [key: string]: unknown } {
  const value = readJson(text)
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

/** `Retry-After` in seconds, or as a date. */
function retryAfterOf({ headers }: Response): number | null {
  const text = headers.get('retry-after')
  if (text === null) return null
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now()
  return Number.isNaN(ms) ? null : Math.max(0, ms)
}
