// Problems: the answer to everything that goes wrong, in the form of RFC 9457.
//
// Owns:      how an error becomes an answer: its code, its status, and what its caller is told.
// Called by: everything that refuses a request; `service` and `stream/reader` for errors that were thrown.
// Must stay true:
// - What belongs to another owner and what does not exist give the same bytes: a 404 tells nothing about its id.
// - Of an error that is not ours nothing is told but that there was one.

import { toJson } from '../../../core/base/json.ts'
import { isLegateError, type Json, type LegateError } from '../../../index.ts'
import { ADVICE, type ProblemCode, STATUS, TITLES } from './codes.ts'

/** Problem details as they are sent: `application/problem+json`. */
export interface ProblemDetails {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly code: ProblemCode
  /** Advice: how you can get further. */
  readonly advice?: string
  /** More about the problem, such as who answered first. */
  readonly details?: Json
}

/** A problem of HTTP: thrown by whoever refuses a request. */
export class Problem extends Error {
  readonly details: ProblemDetails
  readonly headers: Readonly<Record<string, string>>

  constructor(code: ProblemCode, detail: string, headers: Readonly<Record<string, string>> = {}) {
    super(detail)
    this.details = problem(code, detail)
    this.headers = headers
  }
}

/** The problem of a caller who is nobody. Only who has the secret of a token hears more. */
export function unauthenticated(detail = 'This needs a valid token.'): Problem {
  return new Problem('unauthenticated', detail, { 'www-authenticate': 'Bearer realm="legate"' })
}

/** The fault of a part that the operator gave, such as `authenticate`: he hears of it, and the caller hears nothing of it. */
export function faultOf(cause: unknown): Problem {
  return withCause(new Problem('internal', INTERNAL), cause)
}

/** A part of the server elsewhere does not answer: the caller may come back, and the operator hears why. */
export function unavailable(detail: string, cause: unknown): Problem {
  return withCause(new Problem('unavailable', detail, { 'retry-after': '5' }), cause)
}

function withCause(problem: Problem, cause: unknown): Problem {
  return Object.assign(problem, { cause: cause ?? new Error('It threw nothing that could be shown.') })
}

const INTERNAL = 'Something went wrong inside the server. Its log says more.'

/** Makes problem details; `details` only where there are some. */
function problem(code: ProblemCode, detail: string, details?: Json): ProblemDetails {
  const status = STATUS[code]
  const advice = ADVICE[code]
  return {
    type: `urn:legate:problem:${code}`,
    title: TITLES[status] ?? 'Error',
    status,
    detail,
    code,
    ...(advice === undefined ? {} : { advice }),
    ...(details === undefined ? {} : { details }),
  }
}

/** One object for all that is unknown or foreign. */
export const NOT_FOUND: ProblemDetails = problem('not_found', 'There is nothing here that you may see.')

/** Says what a thrown value means to the caller. `report` gets what only the operator may know. */
export function problemOf(error: unknown, report: (error: unknown) => void): Problem {
  if (error instanceof Problem) {
    if (error.cause !== undefined) report(error.cause)
    return error
  }
  if (!isLegateError(error)) {
    report(error)
    return new Problem('internal', INTERNAL)
  }
  if (error.code === 'not_found') return withDetails(NOT_FOUND)
  if (STATUS[error.code] >= 500) report(error)
  return withDetails(
    problem(error.code, shownMessage(error.code, error.message), detailsOf(error.details)),
    retryHeaders(error),
  )
}

/** When another try may succeed, where the error says it. */
function retryHeaders({ code, details }: LegateError): Readonly<Record<string, string>> {
  if (code === 'store_busy') return { 'retry-after': '1' }
  return code === 'over_quota' ? { 'retry-after': String(details['retryAfter']) } : {}
}

function withDetails(details: ProblemDetails, headers: Readonly<Record<string, string>> = {}): Problem {
  const made = new Problem(details.code, details.detail, headers)
  return Object.assign(made, { details })
}

/** Faults of the inside may name files of the server. */
function shownMessage(code: ProblemCode, message: string): string {
  return STATUS[code] === 500 || code.startsWith('store') ? (HIDDEN[code] ?? 'The store cannot be used now.') : message
}

const HIDDEN: Readonly<Partial<Record<ProblemCode, string>>> = {
  internal: INTERNAL,
  tampered: 'The record of this was changed from outside. The log of the server says more.',
  store_busy: 'The store is busy.',
  store_full: 'The store is full.',
}

function detailsOf(details: Readonly<Record<string, unknown>>): Json | undefined {
  if (Object.keys(details).length === 0) return undefined
  const plain = toJson(details)
  return plain.ok ? plain.value : undefined
}
