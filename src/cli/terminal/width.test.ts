import { expect, test } from 'vitest'
import { cut, cutFront, pad, padLeft, widthOf } from './width.ts'

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
