import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { anyUnicode } from '../../../../test/support/any-unicode.ts'
import type { Json } from '../../base/json.ts'
import { yamlText } from './yaml-text.ts'

test('data reads as people write it', () => {
  const text = yamlText({
    name: 'Ann Smith',
    note: 'two\nlines',
    open: 'ends with a break\n',
    tricky: ['yes', '1', 'a: b', '', ' x', '- y'],
    list: [[1, []], { a: null, b: {} }],
  })

  expect(text).toBe(`name: Ann Smith
note: |-
  two
  lines
open: |
  ends with a break
tricky:
  - "yes"
  - "1"
  - "a: b"
  - ""
  - " x"
  - "- y"
list:
  - - 1
    - []
  - a: null
    b: {}`)
})

test('reads back as the same data, whatever it is', { timeout: 30_000 }, () => {
  const word = fc.oneof(
    anyUnicode(),
    fc.string({
      unit: fc.constantFrom('a', ' ', '\n', '\t', ':', '#', '-', '"', "'", '\r', '\u0085', '\u2028'),
      maxLength: 9,
    }),
    fc.constantFrom('true', '~', '0x1', '1e3', '<<', '=', '__proto__', 'k'.repeat(2_000), '…', '😀'),
  )
  const data: fc.Arbitrary<Json> = fc.letrec<{ data: Json }>((tie) => ({
    data: fc.oneof(
      { maxDepth: 3 },
      word,
      fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean(), fc.constant(null)),
      fc.array(tie('data'), { maxLength: 3 }),
      fc.dictionary(word, tie('data'), { maxKeys: 3, noNullPrototype: true }),
    ),
  })).data
  fc.assert(
    fc.property(data.map(wellFormed), (value) => {
      expect(parse(yamlText(value), { uniqueKeys: false, logLevel: 'silent' })).toEqual(value)
    }),
    { numRuns: 60 },
  )
})

/** Turns a value into one that prompts keep: no lone surrogates and no -0. */
function wellFormed(value: Json): Json {
  return JSON.parse(
    JSON.stringify(value)
      .toWellFormed()
      .replace(/\\ud[89a-f][0-9a-f]{2}/gi, '?'),
  )
}
