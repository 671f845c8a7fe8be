import type { ErrorCode } from '../../../index.ts'

/** Codes of faults that are found before the runtime is asked. */
export const HTTP_CODES = Object.freeze([
  'unauthenticated',
  'forbidden_origin',
  'method_not_allowed',
  'timeout',
  'too_large',
  'unsupported_type',
  'wrong_host',
  'too_many',
  'draining',
  'unavailable',
] as const)

export type HttpCode = (typeof HTTP_CODES)[number]

/** The code of a problem: one of the library's error codes, or one of HTTP. */
export type ProblemCode = ErrorCode | HttpCode

/** The status of each code. */
export const STATUS: Readonly<Record<ProblemCode, number>> = {
  definition: 422,
  subagent_unavailable: 422,
  invalid_input: 400,
  not_found: 404,
  deleted: 410,
  denied: 403,
  over_quota: 429,
  files_undecided: 422,
  programs_untrusted: 422,
  conflict: 409,
  store: 503,
  store_busy: 503,
  store_foreign_file: 503,
  store_newer_schema: 503,
  store_readonly: 503,
  store_full: 507,
  store_closed: 503,
  store_gone: 503,
  tampered: 500,
  model: 502,
  tool: 502,
  run: 409,
  field: 409,
  recipe: 422,
  unserialisable: 400,
  aborted: 503,
  internal: 500,
  unauthenticated: 401,
  forbidden_origin: 403,
  method_not_allowed: 405,
  timeout: 408,
  too_large: 413,
  unsupported_type: 415,
  wrong_host: 421,
  too_many: 429,
  draining: 503,
  unavailable: 503,
}

/** A short name of each status, the same for all problems that have it. */
export const TITLES: Readonly<Record<number, string>> = {
  400: 'Invalid request',
  401: 'Not authenticated',
  403: 'Not allowed',
  404: 'Not found',
  405: 'Method not allowed',
  408: 'Too slow',
  409: 'Conflict',
  410: 'Deleted',
  413: 'Too large',
  415: 'Unsupported media type',
  421: 'Wrong host',
  422: 'Cannot be done',
  429: 'Too many requests',
  500: 'Internal error',
  502: 'Failed elsewhere',
  503: 'Not available',
  507: 'Storage is full',
}

/** Advice to the caller, where the code alone suffices for one. */
export const ADVICE: Readonly<Partial<Record<ProblemCode, string>>> = {
  unauthenticated: 'Send the header "Authorization: Bearer <token>". `legate token add` makes a token.',
  forbidden_origin: 'Start the server with --allow-origin <origin> if this web page may use it.',
  wrong_host: 'Use an address that the server knows, or start it with --allow-host <host>.',
  unsupported_type: 'Send the body as JSON with the header "Content-Type: application/json", not compressed.',
  over_quota: 'Wait until the day ends, at midnight UTC, or ask whoever made your token for a higher limit.',
  too_many: 'Wait as many seconds as the header Retry-After says.',
  draining: 'Connect again: another process takes over.',
  unavailable: 'Try again in as many seconds as the header Retry-After says.',
  store_busy: 'Try again in a moment.',
  store_full: 'Free space where the store is, or delete old trees: `legate prune`.',
  timeout: 'Send the whole request within 30 seconds.',
  not_found:
    'Check the address, the name and the id. What belongs to another owner looks the same as what does not exist.',
}
