import { expect, test } from 'vitest'
import { columnsOf, hangingLines } from './clean.ts'

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
  expect(columnsOf({ isTTY: true, columns: 60 })).toBe(60)
  expect(columnsOf({ isTTY: true, columns: 0 })).toBe(80)
  expect(columnsOf({ isTTY: false, columns: 60 })).toBe(Number.POSITIVE_INFINITY)
})
