import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cleanText, oneLine } from './clean.ts'
import { jsonLine } from './output.ts'

const HOSTILE = 'a\u001b[31mb\u001b]0;title\u0007c\u001bPq\u001b\\d\u009b2Je\u0008f\rg\u202eh\u0000i'

test('no text can do anything to a terminal, whatever it is', () => {
  const characters = fc.oneof(fc.constantFrom(...HOSTILE), fc.string({ maxLength: 3 }))
  fc.assert(
    fc.property(fc.array(characters), (parts) => {
      const text = parts.join('')
      expect(oneLine(text)).not.toMatch(/\p{Cc}/u)
      expect(cleanText(text).replaceAll('\n', '')).not.toMatch(/\p{Cc}/u)
      expect(jsonLine(text).trimEnd()).not.toMatch(/\p{Cc}/u)
    }),
  )
})

test('escape sequences go as a whole, line breaks stay where there may be lines', () => {
  expect(oneLine(HOSTILE)).toMatch(/^abc/)
  expect(oneLine('one\n  two\tthree ')).toBe('one two three')
  expect(cleanText('one\r\n\ttwo')).toBe('one\n  two')
})

test('JSON keeps the text, escaped', () => {
  expect(JSON.parse(jsonLine({ text: HOSTILE }))).toEqual({ text: HOSTILE })
})
