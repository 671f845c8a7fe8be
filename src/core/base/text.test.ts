import { expect, test } from 'vitest'
import { type Path, pathText } from './text.ts'

test.each<[Path, string]>([
  [[], ''],
  [['a'], 'a'],
  [['tasks', 0, 'title'], 'tasks[0].title'],
  [[0, 1], '[0][1]'],
  [['headers', 'content-type'], 'headers["content-type"]'],
  [['', 'a b', '0'], '[""]["a b"]["0"]'],
  [['größe', '$ref', '_x'], 'größe.$ref._x'],
])('%j is written %s', (path, text) => {
  expect(pathText(path)).toBe(text)
})

test('a path is bounded however long it is', () => {
  expect(pathText(Array.from({ length: 100_000 }, () => 'key'))).toHaveLength(200)
  expect(pathText(['x'.repeat(1_000_000)])).toHaveLength(200)
  expect(pathText([`${'-'.repeat(197)}😀😀`]).isWellFormed()).toBe(true)
})
