import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { watchWork } from '../../../test/support/pace.ts'
import { canonicalJson, type Json, parseJson, parseOwnJson, sizeOf, toJson, truncateUtf8 } from './json.ts'

const anyJson = fc.jsonValue({ maxDepth: 6, stringUnit: 'binary' }) as fc.Arbitrary<Json>
/** Code units without any rule, so that many strings hold lone surrogates. */
const anyText = fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units))

describe('parseJson', () => {
  test('reads what JSON.stringify writes', () => {
    fc.assert(
      fc.property(anyJson, (value) => {
        const text = JSON.stringify(value)
        expect(parseJson(text)).toEqual({ ok: true, value: JSON.parse(text) })
      }),
    )
  })

  test('never throws, whatever the text', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(typeof parseJson(text).ok).toBe('boolean')
      }),
    )
  })

  test.each([
    '',
    ' ',
    '{',
    '[1,]',
    '{"a":1,}',
    "{'a':1}",
    'undefined',
    'NaN',
    '"',
    '"\\',
    '"\\u12"',
    '[1] x',
    '01',
    '\u0000',
  ])('says what is wrong with %j in one line', (text) => {
    const parsed = parseJson(text)

    expect(parsed).toEqual({ ok: false, error: expect.stringMatching(/^Not valid JSON: .+$/) })
  })

  test('64 levels are read and 65 are refused, unless said otherwise', () => {
    expect(parseJson(nested(64)).ok).toBe(true)
    expect(parseJson(nested(65))).toEqual({ ok: false, error: 'The JSON text is nested more than 64 levels deep.' })
    expect(parseJson('{"a":{"a":1}}', { maxDepth: 1 }).ok).toBe(false)
    expect(parseJson('[{"a":[]}]', { maxDepth: 3 }).ok).toBe(true)
    expect(parseJson('7', { maxDepth: 0 }).ok).toBe(true)
    expect(parseJson('[]', { maxDepth: 0 }).ok).toBe(false)
  })

  test('a million levels are refused without using the stack', () => {
    expect(parseJson('['.repeat(1_000_000)).ok).toBe(false)
    expect(parseJson('{"a":'.repeat(1_000_000)).ok).toBe(false)
    expect(parseJson(nested(1_000_000), { maxDepth: 2_000_000, maxValues: 2_000_000 }).ok).toBe(true)
  })

  test('more than 100,000 values are refused, whatever they are', () => {
    for (const unit of ['1', '[]', '{}', '""', '{"a":1}', '[[[[]]]]']) {
      expect(parseJson(`[${`${unit},`.repeat(100_000)}1]`)).toEqual({
        ok: false,
        error: 'The JSON text has more than 100000 values.',
      })
    }
    expect(parseJson(`[${'1,'.repeat(99_000)}1]`).ok).toBe(true)
  })

  test('brackets inside strings are no levels', () => {
    const text = JSON.stringify({ a: `${'['.repeat(1000)}"\\${'{'.repeat(1000)}`, '[[[[': '\\"[' })

    expect(parseJson(text, { maxDepth: 1 })).toEqual({ ok: true, value: JSON.parse(text) })
  })

  test('levels that close again do not add up', () => {
    expect(parseJson(`[${Array.from({ length: 1000 }, () => '[{}]').join(',')}]`, { maxDepth: 3 }).ok).toBe(true)
  })

  test('text beyond maxBytes is refused, counted in UTF-8', () => {
    const text = JSON.stringify('é'.repeat(10))

    expect(parseJson(text, { maxBytes: 22 }).ok).toBe(true)
    expect(parseJson(text, { maxBytes: 21 })).toEqual({ ok: false, error: 'The JSON text is longer than 21 bytes.' })
    expect(parseJson(`"${'a'.repeat(16_000_000)}"`).ok).toBe(false)
  })

  test('a __proto__ key stays a property and changes no prototype', () => {
    const parsed = parseJson('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}')

    const value = parsed.ok ? (parsed.value as Record<string, unknown>) : {}
    expect(Object.keys(value)).toEqual(['__proto__', 'constructor'])
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect(value['polluted']).toBeUndefined()
    expect(Reflect.get({}, 'polluted')).toBeUndefined()
  })

  test.each([
    ['"\\ud800"', '\ufffd'],
    ['"\\uDC00x"', '\ufffdx'],
    ['"\\ud83d\\ude00"', '😀'],
    ['"\\uD800\\ud83d\\uDE00"', '\ufffd😀'],
    ['"\\ud83d\\\\ude00"', '\ufffd\\ude00'],
    ['"\\\\ud800"', '\\ud800'],
    ['"\\\\\\ud800"', '\\\ufffd'],
    ['"\ud800"', '\ufffd'],
    ['"\ud83d\\ude00"', '\ufffd\ufffd'],
    ['"\\u00e9 \\ud7ff \\ue000"', 'é \ud7ff \ue000'],
  ])('the string %s becomes well-formed', (text, expected) => {
    expect(parseJson(text)).toEqual({ ok: true, value: expected })
  })

  test('keys become well-formed too', () => {
    expect(parseJson('{"\\udfff":1}')).toEqual({ ok: true, value: { '\ufffd': 1 } })
  })

  test('every string it gives is well-formed', () => {
    fc.assert(
      fc.property(anyText, fc.boolean(), (text, escaped) => {
        const source = escaped ? JSON.stringify(text) : `"${text.replace(/[\p{Cc}"\\]/gu, '')}"`
        const parsed = parseJson(source)
        expect(parsed.ok && (parsed.value as string).isWellFormed()).toBe(true)
        if (escaped) expect(parsed).toEqual({ ok: true, value: text.toWellFormed() })
      }),
    )
  })

  test.each([
    '1e999',
    '-1e999',
    '[1,{"a":1E+400}]',
    '9'.repeat(400),
    `[${'9'.repeat(310)}]`,
    `{"a":-${'9'.repeat(400)}.5}`,
  ])('a number beyond the finite ones is refused: %s', (text) => {
    expect(parseJson(text)).toEqual({ ok: false, error: 'The JSON text has a number too large to keep.' })
  })

  test('large and small finite numbers are read', () => {
    expect(parseJson('[1e308,1e-999,1.7976931348623157e308,-0,12345678901234567890]')).toEqual({
      ok: true,
      value: [1e308, 0, Number.MAX_VALUE, -0, 12345678901234567000],
    })
    expect(parseJson(`0.${'1'.repeat(1000)}`).ok).toBe(true)
    expect(parseJson(`"${'9'.repeat(400)}e999"`).ok).toBe(true)
  })

  test('a byte order mark is skipped', () => {
    expect(parseJson('\ufeff{"a":1}')).toEqual({ ok: true, value: { a: 1 } })
  })

  test.each([
    ['backslashes', `"${'\\'.repeat(8_000_000)}`],
    ['quotes', '"'.repeat(8_000_000)],
    ['escaped quotes', `"${'\\"'.repeat(4_000_000)}`],
    ['half escapes', `"${'\\ud800'.repeat(1_500_000)}"`],
    ['digits', '1'.repeat(8_000_000)],
    ['numbers with exponents', `[${'1e1,'.repeat(2_000_000)}1]`],
    ['spaces', ' '.repeat(8_000_000)],
  ])('8 MB of %s take linear time', (_, text) => {
    const workMs = watchWork()

    parseJson(text)

    expect(workMs()).toBeLessThan(5000)
  })
})

test('parseOwnJson reads what was written here and throws on anything else', () => {
  expect(parseOwnJson('{"a":[1]}')).toEqual({ a: [1] })
  expect(() => parseOwnJson('{')).toThrow(SyntaxError)
})

describe('toJson', () => {
  test('gives back plain data with its text, as a copy', () => {
    fc.assert(
      fc.property(anyJson, (value) => {
        const plain = toJson(value)
        if (!plain.ok) throw new Error(plain.error)
        expect(parseJson(plain.text)).toEqual({ ok: true, value: plain.value })
        expect(plain.text).toBe(JSON.stringify(plain.value))
      }),
    )
    const source = { list: [{ a: 1 }] }
    const plain = toJson(source)
    expect(plain).toEqual({ ok: true, value: source, text: '{"list":[{"a":1}]}' })
    expect(plain.ok && plain.value).not.toBe(source)
  })

  test('never throws, and what it accepts is read back the same', () => {
    fc.assert(
      fc.property(
        fc.anything({ withBigInt: true, withDate: true, withMap: true, withSet: true, withTypedArray: true }),
        (value) => {
          const plain = toJson(value)
          if (plain.ok) expect(parseJson(plain.text)).toEqual({ ok: true, value: plain.value })
          else expect(plain.error).toMatch(/^.+$/)
        },
      ),
    )
  })

  test.each<[string, unknown, string]>([
    ['undefined', undefined, 'null'],
    ['null', null, 'null'],
    ['an undefined property', { a: undefined, b: 1 }, '{"b":1}'],
    ['undefined in an array', [undefined, 1], '[null,1]'],
    ['a hole in an array', Array(2), '[null,null]'],
    ['a date', { at: new Date(0) }, '{"at":"1970-01-01T00:00:00.000Z"}'],
    ['toJSON', { a: { toJSON: (key: string) => [key] } }, '{"a":["a"]}'],
    ['toJSON of a class', new URL('https://example.com/x'), '"https://example.com/x"'],
    ['a toJSON property that is data', { toJSON: 'yes' }, '{"toJSON":"yes"}'],
    ['an object without a prototype', Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
    ['negative zero', [-0], '[0]'],
    ['lone surrogates', { '\ud800': 'x\udc00' }, '{"\ufffd":"x\ufffd"}'],
    ['a getter', Object.defineProperty({}, 'a', { get: () => 1, enumerable: true }), '{"a":1}'],
    ['symbol keys', { [Symbol('hidden')]: 1n, a: 1 }, '{"a":1}'],
    ['the same object twice', twice({ a: 1 }), '[{"a":1},{"a":1}]'],
  ])('%s', (_, value, text) => {
    const plain = toJson(value)

    expect(plain).toMatchObject({ ok: true, text })
    expect(plain.ok && plain.value).toEqual(JSON.parse(text))
  })

  test.each<[string, unknown, string]>([
    ['a BigInt', { user: { ids: [1, 2n] } }, '"user.ids[1]" is a BigInt; return it as a string or a number.'],
    ['a function', { run: () => 1 }, '"run" is a function; return data only.'],
    ['a symbol', Symbol('s'), 'The value is a symbol; return data only.'],
    ['NaN', [Number.NaN], '"[0]" is NaN, which JSON cannot keep; return null or a string.'],
    ['Infinity', { a: -Infinity }, '"a" is -Infinity, which JSON cannot keep; return null or a string.'],
    ['an invalid date', { at: new Date(Number.NaN) }, '"at" is an invalid Date; return null.'],
    ['a Map', { a: new Map() }, '"a" is an instance of Map; return Object.fromEntries(map) or [...map].'],
    ['a Set', new Set(), 'The value is an instance of Set; return [...set].'],
    ['a promise', { a: Promise.resolve(1) }, '"a" is an instance of Promise; await it first.'],
    ['an error', new RangeError('x'), 'The value is an instance of RangeError; throw it, or return its message.'],
    ['bytes', { file: Buffer.from('x') }, '"file" is binary data; return it as base64 text.'],
    ['a buffer', new ArrayBuffer(1), 'The value is binary data; return it as base64 text.'],
    [
      'a class instance',
      { who: new (class User {})() },
      '"who" is an instance of User; return a plain object, or give the class a toJSON method.',
    ],
    [
      'a class instance from toJSON',
      { toJSON: () => new Map() },
      'The value has a toJSON that returns an instance of Map; return plain data from it.',
    ],
    ['a throwing getter', { a: throwing('get') }, '"a.get" could not be read: hostile'],
    ['a throwing toJSON', { a: { toJSON: hostile } }, '"a" could not be read: hostile'],
    ['a throwing proxy', [new Proxy({}, { get: hostile, ownKeys: hostile })], '"[0]" could not be read: hostile'],
    ['a throw after a sibling', { a: { b: { c: 1 } }, d: throwing('x') }, '"d.x" could not be read: hostile'],
  ])('%s is refused with its place', (_, value, error) => {
    expect(toJson(value)).toEqual({ ok: false, error })
  })

  test('a cycle is refused with the place where it closes', () => {
    const object: Record<string, unknown> = { name: 'x' }
    object['children'] = [{ parent: object }]
    const list: unknown[] = []
    list.push(list)

    expect(toJson({ top: object })).toEqual({
      ok: false,
      error: '"top.children[0].parent" is part of a cycle; return a value that does not contain itself.',
    })
    expect(toJson(list)).toMatchObject({ ok: false, error: expect.stringContaining('"[0]" is part of a cycle') })
  })

  test('64 levels are kept and more are refused, also a million', () => {
    expect(toJson(nestedValue(64)).ok).toBe(true)
    expect(toJson(nestedValue(65))).toEqual({
      ok: false,
      error: '"[0][0][0]" is nested more than 64 levels deep; return a flatter value.',
    })
    expect(toJson(nestedValue(1_000_000)).ok).toBe(false)
  })

  test('an own __proto__ property is kept as a property', () => {
    const plain = toJson(JSON.parse('{"__proto__":{"polluted":true},"a":1}'))

    expect(plain).toMatchObject({ ok: true, text: '{"__proto__":{"polluted":true},"a":1}' })
    const value = plain.ok ? plain.value : null
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect(Reflect.get({}, 'polluted')).toBeUndefined()
  })

  test('a value too large to read back is refused', () => {
    const error = 'The value is larger than 16000000 bytes as JSON; return less, or a reference to it.'

    expect(toJson('a'.repeat(16_000_000))).toEqual({ ok: false, error })
    expect(toJson('é'.repeat(8_000_000))).toEqual({ ok: false, error })
    expect(toJson(new Array(4_000_000_000))).toEqual({ ok: false, error })
    expect(toJson('a'.repeat(15_999_990)).ok).toBe(true)
  })

  test('a value that shares its parts again and again is refused in bounded time', () => {
    let value: unknown = 'leaf'
    for (let level = 0; level < 60; level++) value = [value, value]
    const endless = { toJSON: () => ({ a: endless, b: endless }) }

    expect(toJson(value)).toMatchObject({ ok: false, error: expect.stringContaining('more than') })
    expect(toJson(endless).ok).toBe(false)
  })
})

describe('sizes', () => {
  test('sizeOf counts UTF-8 bytes', () => {
    expect(['', 'a', 'é', '€', '😀'].map(sizeOf)).toEqual([0, 1, 2, 3, 4])
  })

  test('truncateUtf8 keeps whole characters only', () => {
    expect(truncateUtf8('aé€😀', 100)).toBe('aé€😀')
    expect(truncateUtf8('aé€😀', 10)).toBe('aé€😀')
    expect(truncateUtf8('aé€😀', 9)).toBe('aé€')
    expect(truncateUtf8('aé€😀', 5)).toBe('aé')
    expect(truncateUtf8('aé€😀', 1)).toBe('a')
    expect(['é', 'x'].map((text) => truncateUtf8(text, 1.9))).toEqual(['', 'x'])
    expect([0, -1, Number.NaN].map((size) => truncateUtf8('abc', size))).toEqual(['', '', ''])
    expect(truncateUtf8('abc', Number.POSITIVE_INFINITY)).toBe('abc')
  })

  test('the cut text is the longest beginning that fits, and well-formed', () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 0, max: 60 }), (text, size) => {
        const cut = truncateUtf8(text, size)
        const whole = [...text.toWellFormed()]
        const kept = [...cut].length
        expect(whole.join('').startsWith(cut)).toBe(true)
        expect(sizeOf(cut)).toBeLessThanOrEqual(size)
        if (kept < whole.length) expect(sizeOf(whole.slice(0, kept + 1).join(''))).toBeGreaterThan(size)
      }),
    )
  })
})

describe('canonicalJson', () => {
  test('sorts keys at every level and leaves lists alone', () => {
    expect(canonicalJson({ b: [2, 1, { d: null, c: 'x' }], a: true, '10': 1, '9': 2 })).toBe(
      '{"10":1,"9":2,"a":true,"b":[2,1,{"c":"x","d":null}]}',
    )
  })

  test('equal data in another order gives the same text, which is the same data', () => {
    fc.assert(
      fc.property(anyJson, (value) => {
        const text = canonicalJson(value)
        expect(canonicalJson(reversed(value))).toBe(text)
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    )
  })

  test('an undefined property counts as absent', () => {
    expect(canonicalJson({ a: 1, b: undefined } as unknown as Json)).toBe('{"a":1}')
  })

  test('a __proto__ key counts', () => {
    expect(canonicalJson(JSON.parse('{"a":1,"__proto__":2}'))).toBe('{"__proto__":2,"a":1}')
  })

  test('endless values give a typed error', () => {
    const cycle: Json[] = []
    cycle.push(cycle)

    expect(() => canonicalJson(cycle)).toThrow(expect.objectContaining({ code: 'unserialisable' }))
    expect(() => canonicalJson(nestedValue(1_000_000))).toThrow(expect.objectContaining({ code: 'unserialisable' }))
    expect(canonicalJson(nestedValue(900))).toHaveLength(1800)
  })
})

function nested(levels: number): string {
  return '['.repeat(levels) + ']'.repeat(levels)
}

function nestedValue(levels: number): Json {
  let value: Json = []
  for (let level = 1; level < levels; level++) value = [value]
  return value
}

function twice(value: unknown): unknown {
  return [value, value]
}

function hostile(): never {
  throw new Error('hostile')
}

function throwing(key: string): object {
  return Object.defineProperty({}, key, { get: hostile, enumerable: true })
}

function reversed(value: Json): Json {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(reversed)
  const entries = Object.entries(value).map(([key, item]): [string, Json] => [key, reversed(item)])
  return Object.fromEntries(entries.reverse())
}
