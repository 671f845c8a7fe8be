// Errors: the classes that users catch, their codes, and the text for people about any thrown value.
//
// Owns:      the list of codes, one class per kind of failure, and `messageOf`.
// Called by: every room throws these classes; users tell them apart with `isInstance` or `isLegateError(error, code)`.
// Must stay true:
//   - Codes are stable API. Messages are for people: one line with the cause and a remedy.
//   - Recognition works across copies of the package (a symbol, not `instanceof`), and nothing here throws on hostile values.
//   - An expected failure of a run is an outcome, not an error; errors are for callers.

/// <reference lib="es2024.string" />

/** Every error code. Codes are stable API; messages are for people and may change. */
export const ERROR_CODES = Object.freeze([
  'definition',
  'subagent_unavailable',
  'invalid_input',
  'not_found',
  'deleted',
  'denied',
  'over_quota',
  'files_undecided',
  'programs_untrusted',
  'conflict',
  'store',
  'store_busy',
  'store_foreign_file',
  'store_newer_schema',
  'store_readonly',
  'store_full',
  'store_closed',
  'store_gone',
  'tampered',
  'model',
  'tool',
  'run',
  'field',
  'recipe',
  'unserialisable',
  'aborted',
  'internal',
] as const)

export type ErrorCode = (typeof ERROR_CODES)[number]

export interface LegateErrorOptions {
  readonly details?: Readonly<Record<string, unknown>>
  readonly cause?: unknown
  /** Left out: only `store_busy` is worth another try. */
  readonly isRetryable?: boolean
}

/** Symbol.for, so that an error from another copy of the package is still recognised. */
const marker = Symbol.for('legate.error')

const noDetails: Readonly<Record<string, unknown>> = Object.freeze({})

export class LegateError extends Error {
  /** The class's own name, written out because a bundler may rename the class. */
  static readonly kind: string = 'LegateError'

  readonly code: ErrorCode
  readonly details: Readonly<Record<string, unknown>>
  readonly isRetryable: boolean
  declare readonly [marker]: readonly string[]

  constructor(code: ErrorCode, message: string, options: LegateErrorOptions = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.code = code
    this.details = options.details ?? noDetails
    this.isRetryable = options.isRetryable ?? code === 'store_busy'
    Object.defineProperty(this, 'name', { value: new.target.kind, configurable: true, writable: true })
    Object.defineProperty(this, marker, { value: kindsOf(new.target) })
  }

  /** Like `instanceof`, but also true for the same class of another copy of the package. Never throws. */
  static isInstance<T>(this: ErrorClass<T>, value: unknown): value is T {
    // biome-ignore lint/complexity/noThisInStatic: every subclass asks for itself
    return isOfClass(this, value)
  }
}

export class DefinitionError extends LegateError {
  static override readonly kind: string = 'DefinitionError'
}

export class SubAgentUnavailable extends DefinitionError {
  static override readonly kind: string = 'SubAgentUnavailable'
}

export class InputError extends LegateError {
  static override readonly kind: string = 'InputError'
}

export class NotFoundError extends LegateError {
  static override readonly kind: string = 'NotFoundError'
}

export class DeniedError extends LegateError {
  static override readonly kind: string = 'DeniedError'
}

export class ConflictError extends LegateError {
  static override readonly kind: string = 'ConflictError'
}

export class StoreError extends LegateError {
  static override readonly kind: string = 'StoreError'
}

export class ModelError extends LegateError {
  static override readonly kind: string = 'ModelError'
}

export class ToolError extends LegateError {
  static override readonly kind: string = 'ToolError'
}

export class RecipeError extends LegateError {
  static override readonly kind: string = 'RecipeError'
}

/** A field of a run's answer that did not arrive; `reason` tells why. */
export class FieldError extends LegateError {
  static override readonly kind: string = 'FieldError'

  readonly reason: FieldFailure
  /** The part of the value that had arrived; undefined when nothing had. */
  readonly partial: unknown

  constructor(message: string, options: LegateErrorOptions & { readonly details: FieldErrorDetails }) {
    super('field', message, options)
    this.reason = options.details.reason
    this.partial = options.details.partial
  }
}

/**
 * `absent`: the answer has no such field; `truncated`: it ended before the field was complete; `invalid`: it does not fit
 * the schema; `aborted`: the run was stopped first; `timeout`: it has not come yet.
 */
export type FieldFailure = 'absent' | 'truncated' | 'invalid' | 'aborted' | 'timeout'

interface FieldErrorDetails extends Readonly<Record<string, unknown>> {
  readonly reason: FieldFailure
  readonly partial: unknown
}

/** A run that did not complete; `outcome` tells how it ended. */
export class RunError<Outcome = unknown> extends LegateError {
  static override readonly kind: string = 'RunError'

  readonly outcome: Outcome

  constructor(
    code: ErrorCode,
    message: string,
    options: LegateErrorOptions & { readonly details: { readonly outcome: Outcome } },
  ) {
    super(code, message, options)
    this.outcome = options.details.outcome
  }
}

/** True for our errors, from whatever copy of the package; with `code`, only for that code. Never throws. */
export function isLegateError(value: unknown, code?: ErrorCode): value is LegateError {
  if (!LegateError.isInstance(value)) return false
  return code === undefined || value.code === code
}

/** Ignores errors of one code, and throws all others. */
export function unless(code: ErrorCode): (error: unknown) => void {
  return (error) => {
    if (!isLegateError(error, code)) throw error
  }
}

const maxMessageLength = 2000

/**
 * Describes a thrown value for people: one line, at most 2,000 characters, with the cause behind it. Never throws and never
 * returns an empty text, whatever was thrown.
 */
export function messageOf(thrown: unknown): string {
  try {
    const line = oneLine(describe(thrown))
    if (line !== '') return line
  } catch {
    // A hostile value: fall through to the plain answer.
  }
  return 'unknown error'
}

interface ErrorClass<T> {
  new (...parameters: never[]): T
  readonly kind: string
}

function isOfClass<T>(errorClass: ErrorClass<T>, value: unknown): value is T {
  try {
    if (value instanceof errorClass) return true
    return Object.hasOwn(errorClass, 'kind') && markersOf(value).includes(errorClass.kind)
  } catch {
    return false
  }
}

function kindsOf(errorClass: unknown): readonly string[] {
  const kinds: string[] = []
  for (let current = errorClass; typeof current === 'function'; current = Object.getPrototypeOf(current)) {
    if (Object.hasOwn(current, 'kind')) kinds.push((current as ErrorClass<unknown>).kind)
  }
  return Object.freeze(kinds)
}

function markersOf(value: unknown): readonly unknown[] {
  if (typeof value !== 'object' || value === null) return []
  const kinds: unknown = Reflect.get(value, marker)
  return Array.isArray(kinds) ? kinds : []
}

function describe(thrown: unknown): string {
  if (typeof thrown === 'string') return thrown
  if (typeof thrown === 'function') return 'a function was thrown'
  if (typeof thrown !== 'object' || thrown === null) return String(thrown)
  const own = ownMessage(thrown)
  const behind = causeMessage(thrown)
  if (own === '') return behind === '' ? nameOf(thrown) : behind
  if (behind === '' || own.includes(behind)) return own
  return `${own.slice(0, maxMessageLength / 2)}${own.endsWith('.') ? '' : ':'} ${behind}`
}

function ownMessage(thrown: object): string {
  for (const key of ['message', 'reason', 'code']) {
    const value = read(thrown, key)
    if (typeof value === 'string' && value.trim() !== '') return value
  }
  return ''
}

function causeMessage(thrown: object): string {
  const errors = read(thrown, 'errors')
  const cause = read(thrown, 'cause') ?? (Array.isArray(errors) ? read(errors, '0') : undefined)
  if (typeof cause === 'string') return cause
  return typeof cause === 'object' && cause !== null ? ownMessage(cause) : ''
}

function nameOf(thrown: object): string {
  const name = read(thrown, 'name')
  if (typeof name === 'string' && name.trim() !== '') return name
  const fields = Object.keys(thrown).slice(0, 8)
  const shown = fields.map((key) => [key, read(thrown, key)] as const).filter(([, value]) => isShort(value))
  if (shown.length === 0) return 'unknown error'
  return shown.map(([key, value]) => `${key}: ${String(value)}`).join(', ')
}

function isShort(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
}

function read(from: object, key: string): unknown {
  try {
    return Reflect.get(from, key)
  } catch {
    return undefined
  }
}

function oneLine(text: string): string {
  const line = text
    .slice(0, maxMessageLength * 4)
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
  if (line.length <= maxMessageLength) return line.toWellFormed()
  return `${line.slice(0, maxMessageLength - 1)}…`.toWellFormed()
}
