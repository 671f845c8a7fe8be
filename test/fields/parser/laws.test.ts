import { deepStrictEqual, equal, ok } from 'node:assert/strict'
import fc from 'fast-check'
import { type FieldEvent, fieldParser } from 'legate/fields'
import { describe, test } from 'vitest'
import { anyUnicode } from '../../support/any-unicode.ts'
import { cutAt, cutBy, everyCut, type ParserOptions, read } from './support.ts'

const wild = fc.string({ unit: fc.oneof(anyUnicode({ minLength: 1, maxLength: 1 }), anySign()) })
const key = fc.oneof(fc.constantFrom('a', 'b', 'tasks', '__proto__', 'constructor', '', 'a.b', '0', '*'), wild)
const leaf = fc.oneof(
  wild,
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.integer(),
  fc.maxSafeInteger(),
  fc.constantFrom(true, false, null, 0, -0, '', 1e21, 1e-7, 5e-324, 123456789012345.6),
)
const { value: anyValue } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    leaf,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.array(fc.tuple(key, tie('value')), { maxLength: 4 }).map(recordOf),
    fc.array(
      tie('value').map((item) =>
        recordOf([
          ['id', item],
          ['tags', [item]],
        ]),
      ),
      { maxLength: 4 },
    ),
  ),
}))
const anyDocument = fc.oneof(
  anyValue.map((value) => [value]),
  anyValue.map((value) => recordOf([['a', value]])),
)
const anyCut = fc.array(fc.nat(), { maxLength: 12 })
/** Text that is nearly JSON: pieces of it and of what models write around it. */
const scraps = fc
  .array(
    fc.constantFrom(
      ...['{', '}', '[', ']', ',', ':', '"', "'", '\\', '/', '//', '/*', '*/', '\n', ' ', '<think>', '</think>'],
      ...[
        '"a"',
        '"a":',
        '{"a":',
        '{"b":',
        'a:',
        '1',
        '-',
        '1.5',
        '.',
        'e',
        'true',
        'tr',
        'null',
        'NaN',
        '`',
        '```json',
      ],
      ...[
        '\\u',
        '\\ud83d',
        'de00',
        '\ud83d',
        '\ude00',
        'é',
        '\u2028',
        '\ufeff',
        'prose',
        '__proto__',
        '{"a":1}',
        '[1]',
      ],
    ),
    { maxLength: 30 },
  )
  .map((parts) => parts.join(''))
const anyText = fc.oneof(
  scraps,
  fc.tuple(scraps, anyDocument, scraps).map(([before, value, after]) => `${before}${JSON.stringify(value)}${after}`),
)
const schema = {
  type: 'object',
  properties: { a: {}, tasks: { type: 'array' } },
  required: ['a'],
} as const
const anyOptions: fc.Arbitrary<ParserOptions> = fc.constantFrom(
  {},
  { strict: true },
  { schema },
  { schema, strict: true },
)

describe('laws of the parser', () => {
  test('1 and 8: any text, cut in any way, gives the same events, value, state and notes', () => {
    check(
      fc.property(anyText, anyCut, anyOptions, (text, cut, options) => {
        const whole = read([text], options)

        deepStrictEqual(read(cutAt(text, cut), options), whole)
        deepStrictEqual(read(cutBy(text, 1), options), whole)
      }),
    )
  })

  test('a document comes out as JSON.parse gives it, keys like __proto__ too, strict or not', () => {
    check(
      fc.property(anyDocument, anyCut, fc.boolean(), fc.constantFrom(0, 2), (value, cut, strict, indent) => {
        const text = JSON.stringify(value, undefined, indent)
        const found = read(cutAt(text, cut), { strict })

        equal(found.state, 'complete')
        deepStrictEqual(found.value, wellFormed(JSON.parse(text)))
      }),
    )
  })

  test('2 and 7: the deltas of each string join to its value, and each is whole characters', () => {
    check(
      fc.property(anyDocument, anyCut, (value, cut) => {
        let joined = ''
        for (const event of eventsOf(value, cut)) {
          joined += event.delta ?? ''
          ok(event.delta === undefined || (event.delta !== '' && event.delta.isWellFormed()))
          if (typeof event.value === 'string') equal(event.value, joined)
          if (event.kind === 'done') joined = ''
        }
      }),
    )
  })

  test('3 to 6: one done for each value and nothing for it after; children before parents; kinds never change', () => {
    check(
      fc.property(anyDocument, anyCut, (value, cut) => {
        const done = new Set<string>()
        const kinds = new Map<string, string>()
        for (const { slash, kind, value: part } of eventsOf(value, cut)) {
          ok(!done.has(slash))
          equal(kindOf(part), kinds.get(slash) ?? kindOf(part))
          kinds.set(slash, kindOf(part))
          if (kind === 'done') done.add(slash)
        }

        deepStrictEqual([...done], placesIn(wellFormed(JSON.parse(JSON.stringify(value)))))
      }),
    )
  })

  test('done comes with the piece that closes the value', () => {
    check(
      fc.property(anyDocument, (value) => {
        const parser = fieldParser()
        const text = JSON.stringify(value)
        for (const [at, char] of text.split('').entries()) {
          const done = parser.push(char).filter(({ kind }) => kind === 'done')
          const isClosing = (char === '}' || char === ']') && isStructural(text, at)
          equal(done.filter(({ value: part }) => typeof part === 'object' && part !== null).length, Number(isClosing))
        }
      }),
    )
  })

  test('whatever stands before and behind a recognised document makes no event', () => {
    const prose = fc.string({ unit: fc.constantFrom(...'xyz .,:;!?\n\'"`()<>-'.split('')) })
    const noise = fc.array(
      fc.oneof(
        prose,
        fc.constantFrom('[1]', '{x}', '{"b":[{"c":1}]}', '```json\n', '<think>{"a":0}</think>', '{', "{'", "{x:'"),
      ),
      { maxLength: 6 },
    )
    /** What would close an object that an apostrophe before it has opened. */
    const closing = fc.constantFrom("'", "':[]}", "'}", "',b:1}", '"\'}')
    check(
      fc.property(noise, fc.oneof(anyValue, closing), noise, anyCut, (before, value, after, cut) => {
        const document = JSON.stringify({ a: value, tasks: [] })
        const text = `${before.join('')}\n${document}\n${after.join('')}`

        const found = read(cutAt(text, cut), { schema })

        equal(found.state, 'complete')
        deepStrictEqual(found.lines, read([document], { schema }).lines)
      }),
    )
  })

  test('cut off at any place, nothing open is done and the value is a beginning of the whole', () => {
    const short = anyDocument.filter((value) => JSON.stringify(value).length < 120)
    check(
      fc.property(short, (value) => {
        const text = JSON.stringify(value)
        const whole = wellFormed(JSON.parse(text))
        const allDone = read([text]).lines.filter(isDone)
        for (let length = 0; length < text.length; length++) {
          const cut = read([text.slice(0, length)])
          const done = cut.lines.filter(isDone)

          ok(cut.state === 'truncated' || cut.state === 'absent')
          deepStrictEqual(done, allDone.slice(0, done.length))
          isBeginning(cut.value, whole)
        }
      }),
    )
  })

  test('nothing a model can write makes it throw', () => {
    check(
      fc.property(fc.oneof(anyUnicode(), scraps), anyOptions, (text, options) => {
        for (const pieces of everyCut(text.slice(0, 25))) read(pieces, options)
      }),
    )
  })

  test('strict mode takes what JSON.parse takes, and nothing else', () => {
    const spoilt = fc
      .tuple(anyDocument, fc.nat(), fc.constantFrom('', ',', '"', '}', '0', 'x', ' ', '\\', '-', '.', '\n'))
      .map(([value, at, sign]) => {
        const text = JSON.stringify(value)
        const place = at % text.length
        return text.slice(0, place) + sign + text.slice(place + 1)
      })
    check(
      fc.property(fc.oneof(spoilt, scraps), anyCut, (text, cut) => {
        const strict = read(cutAt(text, cut), { strict: true })

        equal(strict.state === 'complete', isJson(text))
        if (isJson(text)) deepStrictEqual(strict.value, finite(wellFormed(JSON.parse(withoutMark(text)))))
      }),
    )
  })
})

/** LEGATE_FULL tries a hundred times as many. */
function check(property: fc.IProperty<never> | fc.IRawProperty<unknown>): void {
  fc.assert(property as fc.IProperty<unknown>, { numRuns: process.env['LEGATE_FULL'] === '1' ? 20_000 : 150 })
}

function eventsOf(value: unknown, cut: readonly number[]): FieldEvent[] {
  const parser = fieldParser()
  return cutAt(JSON.stringify(value), cut).flatMap((piece) => [...parser.push(piece)])
}

function isDone(line: string): boolean {
  return line.startsWith('done')
}

function anySign(): fc.Arbitrary<string> {
  return fc.constantFrom(
    '"',
    '\\',
    '/',
    '\n',
    '\u0000',
    '\ud83d',
    '\ude00',
    '😀',
    '{',
    '[',
    '}',
    ']',
    ',',
    ':',
    "'",
    '`',
    '<',
  )
}

/** Keys that are read as one are one: a document with the same key twice tells of both. */
function recordOf(entries: readonly (readonly [string, unknown])[]): object {
  return Object.fromEntries(new Map(entries.map((entry) => [entry[0].toWellFormed(), entry])).values())
}

/** Lone surrogates of the document are marks in what is read. */
function wellFormed(value: unknown): unknown {
  return mapped(value, (of) => (typeof of === 'string' ? of.toWellFormed() : of))
}

function finite(value: unknown): unknown {
  return mapped(value, (of) => (typeof of === 'number' && !Number.isFinite(of) ? null : of))
}

function mapped(value: unknown, change: (leaf: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => mapped(item, change))
  if (typeof value !== 'object' || value === null) return change(value)
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name.toWellFormed(), mapped(item, change)]))
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'list' : typeof value
}

/** Every place of a value as a pointer, children before parents. */
function placesIn(value: unknown, place = ''): string[] {
  if (typeof value !== 'object' || value === null) return [place]
  const below = Object.entries(value).flatMap(([name, item]) =>
    placesIn(item, `${place}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`),
  )
  return [...below, place]
}

function isStructural(text: string, at: number): boolean {
  const before = text.slice(0, at).replaceAll(/\\./g, '')
  return before.split('"').length % 2 === 1
}

function isBeginning(part: unknown, whole: unknown): void {
  if (part === undefined) return
  if (typeof part === 'string') return ok(typeof whole === 'string' && whole.startsWith(part))
  if (typeof part !== 'object' || part === null) return deepStrictEqual(part, whole)
  deepStrictEqual(Object.keys(part), Object.keys(Object(whole)).slice(0, Object.keys(part).length))
  for (const [name, item] of Object.entries(part)) isBeginning(item, Reflect.get(Object(whole), name))
}

/** A byte order mark is passed over here, and refused by JSON.parse. */
function withoutMark(text: string): string {
  return text.startsWith('\ufeff') ? text.slice(1) : text
}

function isJson(text: string): boolean {
  try {
    JSON.parse(withoutMark(text))
    return true
  } catch {
    return false
  }
}
