import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cleanText, exactLine, hangingLines, oneLine, printable, terminalWidth } from './clean.ts'
import { jsonLine } from './output.ts'

const HOSTILE =
  'a\u001b[31mb\u001b]0;title\u0007c\u001bPq\u001b\\d\u009b2Je\u0008f\rg\u202eh\u0000i\u2066j\u200fk\u061cl'

test('no text can do anything to a terminal, whatever it is', () => {
  const characters = fc.oneof(fc.constantFrom(...HOSTILE), fc.string({ maxLength: 3 }))
  fc.assert(
    fc.property(fc.array(characters), (parts) => {
      const text = parts.join('')
      expect(oneLine(text)).not.toMatch(/\p{Cc}/u)
      expect(exactLine(text)).not.toMatch(/[\p{Cc}\p{Cf}]/u)
      expect(cleanText(text).replaceAll('\n', '')).not.toMatch(/\p{Cc}/u)
      expect(jsonLine(text).trimEnd()).not.toMatch(/\p{Cc}/u)
      for (const shown of [oneLine(text), cleanText(text)]) expect(shown).not.toMatch(/\p{Bidi_Control}/u)
    }),
  )
})

test('of what is written only the colours of the command line reach a terminal', () => {
  const [bold, plain] = ['\u001b[1m', '\u001b[22m']
  expect(printable(`${bold}who${plain}\tasks\n`)).toBe(`${bold}who${plain}\tasks\n`)
  expect(printable('\u001b[2Ja\u001b[8mb\u009b1m\u202ec\rd\u200b\r\n')).toBe(
    '\\u001b[2Ja\\u001b[8mb\\u009b1m\\u202ec\\rd\\u200b\n',
  )
  expect(printable('👩‍👩‍👧 日本語')).toBe('👩‍👩‍👧 日本語')
})

test('I11 a control character is shown for what it is, and takes nothing of what follows with it', () => {
  expect(exactLine('echo these files: \u009b;touch PWNED')).toBe('echo these files: \\u009b;touch PWNED')
  expect(oneLine('git status \u009b;./evil&\u009c')).toBe('git status \\u009b;./evil&\\u009c')
  expect(cleanText('notes\u001b]0;./evil;\u0007\nend')).toBe('notes\\u001b]0;./evil;\\u0007\nend')
  expect(exactLine('a  b\n# c\u202ed\u200be\u00a0f')).toBe('a  b\\n# c\\u202ed\\u200be\\u00a0f')
})

test('I11 nothing that can be seen is ever left out', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.constantFrom(...HOSTILE), fc.string({ maxLength: 3 }))), (parts) => {
      const seen = parts.join('').replace(/[^!-~]/g, '')
      for (const shown of [oneLine, cleanText, exactLine]) {
        const left = [...shown(parts.join(''))]
        expect([...seen].every((one) => left.splice(0, left.indexOf(one) + 1).length > 0)).toBe(true)
      }
    }),
  )
})

test('line breaks stay where there may be lines', () => {
  expect(oneLine('one\n  two\tthree ')).toBe('one two three')
  expect(cleanText('one\r\n\ttwo')).toBe('one\n  two')
})

test('JSON keeps the text, escaped', () => {
  expect(JSON.parse(jsonLine({ text: HOSTILE }))).toEqual({ text: HOSTILE })
})

describe('a text that hangs under its first line', () => {
  test('what does not fit goes on below, indented, and no line is wider than the terminal', () => {
    const text = 'a.yaml:3: warning: the tool NotebookEdit is not here and is left out'

    expect(hangingLines(text, { columns: 40 })).toEqual([
      'a.yaml:3: warning: the tool',
      '    NotebookEdit is not here and is',
      '    left out',
    ])
    expect(hangingLines(text, { columns: 200 })).toEqual([text])
    expect(hangingLines(text, { columns: Number.POSITIVE_INFINITY })).toEqual([text])
    expect(hangingLines('', { columns: 40 })).toEqual([])
  })

  test('a text that begins further right is indented from there', () => {
    expect(hangingLines('one two three four five six', { columns: 23, from: 2 })).toEqual([
      'one two three four',
      '      five six',
    ])
  })

  test('words that are longer than a line are broken, and nothing is lost', () => {
    const path = `/tmp/${'deep/'.repeat(30)}a.yaml:1: error: no`

    expect(
      hangingLines(path, { columns: 30 })
        .map((line) => line.trim())
        .join(''),
    ).toBe(path.replaceAll(' ', '').replace('error:no', 'error: no').replace(':error', ': error'))
  })

  test('only a terminal has a width', () => {
    expect(terminalWidth({ isTTY: true, columns: 60 })).toBe(60)
    expect(terminalWidth({ isTTY: true, columns: 0 })).toBe(80)
    expect(terminalWidth({ isTTY: false, columns: 60 })).toBe(Number.POSITIVE_INFINITY)
  })
})
