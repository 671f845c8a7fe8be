import { runInNewContext } from 'node:vm'
import { describe, expect, expectTypeOf, test } from 'vitest'
import {
  ConflictError,
  DefinitionError,
  DeniedError,
  ERROR_CODES,
  type ErrorCode,
  InputError,
  isLegateError,
  LegateError,
  ModelError,
  messageOf,
  NotFoundError,
  RecipeError,
  RunError,
  StoreError,
  SubAgentUnavailable,
  ToolError,
} from './error.ts'

const classes = {
  LegateError,
  DefinitionError,
  SubAgentUnavailable,
  InputError,
  NotFoundError,
  DeniedError,
  ConflictError,
  StoreError,
  ModelError,
  ToolError,
  RecipeError,
}

/** A second copy of the module, as two installed versions of the package would be. */
async function otherCopy(): Promise<typeof import('./error.ts')> {
  const url = new URL('./error.ts?copy', import.meta.url).href
  return import(/* @vite-ignore */ url)
}

describe('errors', () => {
  test.each(Object.entries(classes))(
    '%s keeps its code, message, details and cause under its own name',
    (name, made) => {
      const cause = new Error('disk')

      const error = new made('store', 'It broke.', { details: { file: 'a' }, cause, isRetryable: true })

      expect(error).toBeInstanceOf(Error)
      expect(error).toBeInstanceOf(LegateError)
      expect(error).toMatchObject({
        name,
        code: 'store',
        message: 'It broke.',
        details: { file: 'a' },
        isRetryable: true,
      })
      expect(error.cause).toBe(cause)
      expect(String(error)).toBe(`${name}: It broke.`)
      expect(error.stack).toContain('error.test.ts')
    },
  )

  test('details are empty and nothing is retryable unless said, except a busy store', () => {
    const error = new LegateError('internal', 'x')

    expect(error.details).toEqual({})
    expect(error.isRetryable).toBe(false)
    expect('cause' in error).toBe(false)
    expect(new StoreError('store_busy', 'x').isRetryable).toBe(true)
    expect(new StoreError('store_busy', 'x', { isRetryable: false }).isRetryable).toBe(false)
  })

  test('a cause that was given as undefined is kept as given', () => {
    expect('cause' in new LegateError('internal', 'x', { cause: undefined })).toBe(true)
  })

  test('only the documented fields are enumerable', () => {
    expect(Object.keys(new LegateError('internal', 'x'))).toEqual(['code', 'details', 'isRetryable'])
  })

  test('a RunError carries its outcome, typed', () => {
    const outcome = { status: 'failed', turns: 3 }

    const error = new RunError('run', 'The run failed.', { details: { outcome } })

    expect(error.outcome).toBe(outcome)
    expect(error.details['outcome']).toBe(outcome)
    expectTypeOf(error.outcome).toEqualTypeOf<{ status: string; turns: number }>()
  })

  test('the list of codes is frozen, has no doubles and is the type', () => {
    expect(Object.isFrozen(ERROR_CODES)).toBe(true)
    expect(new Set(ERROR_CODES).size).toBe(ERROR_CODES.length)
    expect(ERROR_CODES).toHaveLength(27)
    expectTypeOf<(typeof ERROR_CODES)[number]>().toEqualTypeOf<ErrorCode>()
  })
})

describe('isInstance and isLegateError', () => {
  test('a class recognises itself and its subclasses, never its siblings or parents', () => {
    const error = new SubAgentUnavailable('subagent_unavailable', 'x')

    expect(LegateError.isInstance(error)).toBe(true)
    expect(DefinitionError.isInstance(error)).toBe(true)
    expect(SubAgentUnavailable.isInstance(error)).toBe(true)
    expect(StoreError.isInstance(error)).toBe(false)
    expect(SubAgentUnavailable.isInstance(new DefinitionError('definition', 'x'))).toBe(false)
  })

  test('an error of another copy of the package is recognised, class by class', async () => {
    const other = await otherCopy()
    const error: unknown = new other.SubAgentUnavailable('subagent_unavailable', 'x')

    expect(error).not.toBeInstanceOf(LegateError)
    expect(isLegateError(error, 'subagent_unavailable')).toBe(true)
    expect(DefinitionError.isInstance(error)).toBe(true)
    expect(StoreError.isInstance(error)).toBe(false)
  })

  test("a user's own subclass is recognised by instance only, and is still ours", () => {
    class Mine extends ToolError {}
    const mine: unknown = new Mine('tool', 'x')

    expect(Mine.isInstance(mine)).toBe(true)
    expect(ToolError.isInstance(mine)).toBe(true)
    expect(Mine.isInstance(new ToolError('tool', 'x'))).toBe(false)
  })

  test('a code narrows the question', () => {
    const error = new StoreError('store_full', 'x')

    expect(isLegateError(error)).toBe(true)
    expect(isLegateError(error, 'store_full')).toBe(true)
    expect(isLegateError(error, 'store_busy')).toBe(false)
  })

  test.each([undefined, null, 0, '', 'store', Symbol('x'), {}, [], new Error('x'), () => {}])(
    'other values are not ours: %s',
    (value) => {
      expect(isLegateError(value)).toBe(false)
    },
  )

  test('hostile values answer false', () => {
    const hostile = new Proxy({}, { get: fail, getPrototypeOf: fail, has: fail })

    expect(isLegateError(hostile)).toBe(false)
    expect(isLegateError({ [Symbol.for('legate.error')]: 'LegateError' })).toBe(false)
  })

  test('the type is narrowed to the class', () => {
    const error: unknown = new StoreError('store', 'x')
    if (StoreError.isInstance(error)) expectTypeOf(error).toEqualTypeOf<StoreError>()
    if (isLegateError(error)) expectTypeOf(error.code).toEqualTypeOf<ErrorCode>()
  })
})

describe('messageOf', () => {
  test.each<[string, unknown, string]>([
    ['an error', new Error('no such file'), 'no such file'],
    ['a string', 'plain text', 'plain text'],
    ['undefined', undefined, 'undefined'],
    ['null', null, 'null'],
    ['a number', 42, '42'],
    ['a bigint', 10n, '10'],
    ['a symbol', Symbol('s'), 'Symbol(s)'],
    ['a function', () => 1, 'a function was thrown'],
    ['an empty string', '', 'unknown error'],
    ['an empty object', {}, 'unknown error'],
    ['an object with a message', { message: 'from elsewhere' }, 'from elsewhere'],
    ['an object without one', { status: 500, body: 'oops', nested: {} }, 'status: 500, body: oops'],
    ['an error with no message', new RangeError(), 'RangeError'],
    ['an error with a code only', Object.assign(new Error(''), { code: 'ECONNREFUSED' }), 'ECONNREFUSED'],
    ['an error of another realm', runInNewContext('new Error("far away")'), 'far away'],
    ['a null-prototype object', Object.create(null), 'unknown error'],
  ])('reads %s', (_, thrown, expected) => {
    expect(messageOf(thrown)).toBe(expected)
  })

  test('what lies behind an error is told once', () => {
    const behind = new Error('connect ECONNREFUSED 127.0.0.1:1')

    expect(messageOf(new TypeError('fetch failed', { cause: behind }))).toBe(`fetch failed: ${behind.message}`)
    expect(messageOf(new Error(`failed: ${behind.message}`, { cause: behind }))).toBe(`failed: ${behind.message}`)
    expect(messageOf(new Error('failed', { cause: 'the disk' }))).toBe('failed: the disk')
    expect(messageOf(new AggregateError([behind], 'all failed'))).toBe(`all failed: ${behind.message}`)
    expect(messageOf(new AggregateError([behind], ''))).toBe(behind.message)
    expect(messageOf(new Error('It failed.', { cause: behind }))).toBe(`It failed. ${behind.message}`)
  })

  test('an error that is its own cause is read', () => {
    const error: Error = new Error('round')
    error.cause = error

    expect(messageOf(error)).toBe('round')
  })

  test('the answer is one line without control characters', () => {
    expect(messageOf(new Error('  first\r\n\tsecond\u0000\u001b[31m third '))).toBe('first second [31m third')
    expect(messageOf('\ud800')).toBe('\ufffd')
  })

  test('the answer is never longer than 2,000 characters', () => {
    const cause = new Error('b'.repeat(5000))

    expect(messageOf('a'.repeat(1_000_000))).toHaveLength(2000)
    expect(messageOf('a'.repeat(2000))).toBe('a'.repeat(2000))
    expect(messageOf(new Error('a'.repeat(5000), { cause }))).toHaveLength(2000)
    expect(messageOf(new Error('a'.repeat(5000), { cause }))).toContain('aa: bb')
    expect(messageOf(`${'a'.repeat(1998)}😀😀`).isWellFormed()).toBe(true)
  })

  test.each<[string, unknown]>([
    ['throwing getters', Object.defineProperty({}, 'message', { get: fail })],
    ['a proxy that throws at everything', new Proxy({}, { get: fail, ownKeys: fail, getPrototypeOf: fail, has: fail })],
    ['a revoked proxy', revoked()],
    ['a throwing toString', { toString: fail, [Symbol.toPrimitive]: fail }],
    ['a message that is no string', { message: { toString: fail } }],
    ['a throwing cause', Object.defineProperty(new Error(''), 'cause', { get: fail })],
  ])('survives %s', (_, thrown) => {
    expect(messageOf(thrown)).toMatch(/^.+$/)
  })
})

function fail(): never {
  throw new Error('hostile')
}

function revoked(): unknown {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}
