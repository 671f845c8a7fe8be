import { describe, expect, test } from 'vitest'
import { LegateError, ModelError } from '../base/error.ts'
import { MODEL_ATTEMPTS, retryDelay } from './retry.ts'

const withStatus = (statusCode: unknown) => Object.assign(new Error('x'), { statusCode })

describe('a failed model call is tried again', () => {
  test.each<[string, unknown]>([
    ['after a timeout of the server', withStatus(408)],
    ['after a conflict', withStatus(409)],
    ['after a rate limit', withStatus(429)],
    ['after a fault of the server', withStatus(500)],
    ['after an overload', withStatus(529)],
    ['when the status is named status', { status: 503 }],
    ['when the connection was reset', Object.assign(new Error('x'), { code: 'ECONNRESET' })],
    ['when the name could not be found', { code: 'ENOTFOUND' }],
    ['when fetch hides the cause', new TypeError('fetch failed', { cause: { code: 'UND_ERR_SOCKET' } })],
    ['when it says so itself', { isRetryable: true }],
    ['when one of our errors says so', new ModelError('model', 'cut', { isRetryable: true })],
  ])('%s', (_name, error) => {
    expect(retryDelay(error, 2)).toBeGreaterThan(0)
  })
})

describe('a failed model call is not tried again', () => {
  const cycle: { cause?: unknown } = {}
  cycle.cause = cycle

  test.each<[string, unknown]>([
    ['for a plain error', new Error('x')],
    ['for a wrong request', withStatus(400)],
    ['for a wrong key', withStatus(401)],
    ['for a missing model', withStatus(404)],
    ['for a wrong request that claims to pass', { statusCode: 400, isRetryable: true }],
    ['for a status that is not a number', withStatus('429')],
    ['for one of our errors that does not say so', new LegateError('model', 'x', { cause: withStatus(500) })],
    ['for a quota that is used up', { status: 429, code: 'insufficient_quota' }],
    ['for such a quota, in the answer', { statusCode: 429, data: { error: { type: 'insufficient_quota' } } }],
    ['for such a quota, in a stream', { statusCode: 429, error: { code: 'billing_hard_limit_reached' } }],
    ['for a text', 'ECONNRESET'],
    ['for null', null],
    ['for undefined', undefined],
    ['for an error that causes itself', cycle],
    [
      'for a hostile object',
      new Proxy(
        {},
        {
          get: () => {
            throw new Error('no')
          },
        },
      ),
    ],
  ])('%s', (_name, error) => {
    expect(retryDelay(error, 2)).toBeUndefined()
  })

  test('when all attempts are used', () => {
    expect(MODEL_ATTEMPTS).toBe(4)
    expect(retryDelay(withStatus(429), 4)).toBeDefined()
    expect(retryDelay(withStatus(429), 5)).toBeUndefined()
  })
})

describe('the wait before the next attempt', () => {
  test.each([
    [2, 1_000, 1_250],
    [3, 2_000, 2_500],
    [4, 4_000, 5_000],
  ])('doubles with each: attempt %i after %i to %i ms', (next, least, most) => {
    for (let at = 0; at < 50; at++) {
      const delay = retryDelay(withStatus(500), next)
      expect(delay).toBeGreaterThanOrEqual(least)
      expect(delay).toBeLessThanOrEqual(most)
    }
  })

  test('is what the provider asks for, up to 60 s', () => {
    expect(retryDelay({ statusCode: 429, retryAfterMs: 123 }, 2)).toBe(123)
    expect(retryDelay({ statusCode: 429, retryAfterMs: 0 }, 2)).toBe(0)
    expect(retryDelay({ statusCode: 429, retryAfterMs: 60_000 }, 2)).toBe(60_000)
  })

  test('never comes when the provider asks for longer', () => {
    expect(retryDelay({ statusCode: 429, retryAfterMs: 60_001 }, 2)).toBeUndefined()
    expect(retryDelay({ statusCode: 429, retryAfterMs: Number.POSITIVE_INFINITY }, 2)).toBeUndefined()
  })

  test('is our own where the provider asks for nonsense', () => {
    for (const retryAfterMs of [-5, Number.NaN, 'soon', null]) {
      expect(retryDelay({ statusCode: 429, retryAfterMs }, 2)).toBeGreaterThanOrEqual(1_000)
    }
  })
})
