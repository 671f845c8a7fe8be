import { expect, test } from 'vitest'
import { widthOf, wrap } from './width.ts'

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

test('no line is wider, whatever it is made of', () => {
  for (const columns of [1, 2, 7]) {
    const { lines } = wrap('日本語e\u0301 👩‍👩‍👧 text', columns)
    expect(lines.join('').replaceAll(' ', '')).toBe('日本語e\u0301👩‍👩‍👧text')
    for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(Math.max(2, columns))
  }
})
