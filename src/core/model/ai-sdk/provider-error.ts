import { LegateError, ModelError, messageOf } from '../../base/error.ts'
import { withoutSecrets } from '../../base/secrets/secrets.ts'
import { isOutOfQuota, LONGEST_ASKED_MS, retryDelay } from '../retry.ts'
import type { ModelLabel } from './ai-sdk-model.ts'

/** Providers' names for faults that may pass by themselves. They come inside a stream that began with 200. */
const PASSING: ReadonlySet<string> = new Set([
  'overloaded_error',
  'api_error',
  'rate_limit_error',
  'timeout_error',
  'server_error',
  'internal_server_error',
  'internal_error',
  'rate_limit_exceeded',
  'service_unavailable',
  'UNAVAILABLE',
  'INTERNAL',
  'RESOURCE_EXHAUSTED',
  'DEADLINE_EXCEEDED',
])

/** Errors about an unreadable answer, which counts as cut. */
const GARBLED: ReadonlySet<string> = new Set([
  'AI_JSONParseError',
  'AI_TypeValidationError',
  'AI_EmptyResponseBodyError',
  'AI_InvalidResponseDataError',
])

/** Turns a provider's failure into ours: its message without keys, whether another try may help, and when. */
export function providerError(adapted: ModelLabel, error: unknown, secrets: readonly string[]): LegateError {
  if (LegateError.isInstance(error)) return error
  const { id, keyName, hint, urlName } = adapted
  const status = statusOf(error)
  const known = adapted.secret === undefined ? secrets : [adapted.secret, ...secrets]
  const said = withoutSchemas(withoutSecrets(wordsOf(error), known))
  const answered = status === undefined ? '' : ` (status ${status})`
  const retryAfterMs = askedPause(error)
  const isPassing = mayPass(error, status)
  const advice = [
    adviceFor(status, { keyName, hint: isUnreachable(error) ? hint : undefined }),
    isNotThere(status) ? withoutSecrets(notThere(error, urlName), known) : '',
    isPassing ? longPause(retryAfterMs) : '',
  ].join('')
  const failure = new ModelError(
    'model',
    `${id} failed${answered}: ${advice === '' ? said : sentence(said)}${advice}`,
    {
      isRetryable: isPassing,
      details: { model: id, ...(status === undefined ? {} : { statusCode: status }) },
    },
  )
  return retryAfterMs === undefined ? failure : Object.assign(failure, { retryAfterMs })
}

function mayPass(error: unknown, status: number | undefined): boolean {
  if (isOutOfQuota(error)) return false
  if (status === undefined ? retryDelay(error, 2) !== undefined : retryDelay({ status }, 2) !== undefined) return true
  // A good status only shows how the answer began: if it failed later, it was cut or unreadable.
  if (isGarbled(error) || isBegun(error)) return true
  return [error, errorField(error, 'error')].some((one) =>
    ['type', 'code', 'status'].some((key) => PASSING.has(String(errorField(one, key)))),
  )
}

function isBegun(error: unknown): boolean {
  const status = errorField(error, 'statusCode')
  return typeof status === 'number' && status < 300
}

function isGarbled(error: unknown): boolean {
  return GARBLED.has(String(errorField(error, 'name')))
}

/** True when the server never answered. */
function isUnreachable(error: unknown): boolean {
  return statusOf(error) === undefined && String(errorField(error, 'message')).startsWith('Cannot connect to API')
}

/** The status of the answer, or the code of an error inside a stream where that is a status. */
function statusOf(error: unknown): number | undefined {
  const inner = errorField(error, 'error')
  const found = [errorField(error, 'statusCode'), errorField(error, 'code'), errorField(inner, 'code')]
  return found.find((one): one is number => typeof one === 'number' && one >= 400 && one < 600)
}

function wordsOf(error: unknown): string {
  const inner = errorField(errorField(error, 'error'), 'message')
  if (typeof inner === 'string' && inner !== '' && typeof errorField(error, 'message') !== 'string')
    return messageOf(inner)
  return messageOf(error)
}

/** Validators print the whole value and every schema that it does not fit; this keeps the beginning. */
function withoutSchemas(said: string): string {
  return said.replace(/Type validation failed: Value: (.{0,160})[\s\S]*$/, 'what came could not be read: $1…')
}

function adviceFor(
  status: number | undefined,
  { keyName, hint }: { keyName: string | undefined; hint: string | undefined },
): string {
  if ((status === 401 || status === 403) && keyName !== undefined) return ` Check ${keyName}.`
  return hint === undefined ? '' : ` ${hint}`
}

/** True when the server does not have the address or the model. */
export function isNotThere(status: unknown): boolean {
  return status === 404 || status === 405 || status === 501
}

function notThere(error: unknown, urlName: string | undefined): string {
  const url = errorField(error, 'url')
  const [asked] = typeof url === 'string' ? url.split('?') : []
  const version = asked === undefined || /\/v\d/.test(asked) ? '' : ': most servers want /v1 at its end'
  const address = urlName === undefined ? '' : `, and the address in ${urlName}${version}`
  return `${asked === undefined ? '' : ` It was asked at ${asked}.`} Check the name of the model${address}.`
}

/** Ends the text as a sentence, because another one follows. */
function sentence(said: string): string {
  return /[.!?…]$/.test(said) ? said : `${said}.`
}

function longPause(askedMs: number | undefined): string {
  if (askedMs === undefined || askedMs <= LONGEST_ASKED_MS) return ''
  return ` It asks to be left alone for ${Math.ceil(askedMs / 1_000)} s, which is more than the ${LONGEST_ASKED_MS / 1_000} s that a run waits: it was not tried again. Run it again then.`
}

/** Reads `Retry-After` (seconds or a date), or `retry-after-ms` where a provider is more exact. */
function askedPause(error: unknown): number | undefined {
  const headers = errorField(error, 'responseHeaders')
  const exact = Number.parseFloat(String(errorField(headers, 'retry-after-ms')))
  if (exact >= 0) return exact
  const after = String(errorField(headers, 'retry-after') ?? '')
  if (/^\d+(\.\d+)?$/.test(after)) return Number(after) * 1_000
  const until = Date.parse(after) - Date.now()
  return Number.isNaN(until) ? undefined : Math.max(0, until)
}

/** Reads a property of a value that a provider threw or made, which may be anything. */
export function errorField(from: unknown, key: string): unknown {
  if (typeof from !== 'object' || from === null) return undefined
  try {
    return Reflect.get(from, key)
  } catch {
    return undefined
  }
}
