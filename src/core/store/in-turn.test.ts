import { expect, test } from 'vitest'
import { readInTurn } from './in-turn.ts'

const lists: Record<string, readonly string[]> = {
  a: Array.from({ length: 10_000 }, (_, n) => `a${n}`),
  b: ['b0', 'b1'],
  c: [],
  d: ['d0', 'd1', 'd2'],
}

function reading() {
  let read = 0
  const of = (name: string, limit: number) => {
    const items = (lists[name] ?? []).slice(0, limit)
    read += items.length + 1
    return items
  }
  return { of, read: () => read }
}

test.each([
  [0, ''],
  [1, 'a0'],
  [2, 'a0 b0'],
  [3, 'a0 b0 d0'],
  [4, 'a0 b0 d0 a1'],
  [9, 'a0 b0 d0 a1 b1 d1 a2 d2 a3'],
])('%i items of lists come in turn', (limit, expected) => {
  expect(readInTurn(Object.keys(lists), limit, reading().of).join(' ')).toBe(expected)
})

test('a long list is read as far as it is needed', () => {
  const { of, read } = reading()
  expect(readInTurn(Object.keys(lists), 64, of)).toHaveLength(64)
  expect(read()).toBeLessThan(64 * 5)
})

test('names are asked for as far as they are needed', () => {
  let asked = 0
  function* names() {
    for (;;) yield Object.keys(lists)[asked++ % 4] ?? ''
  }
  readInTurn(names(), 3, reading().of)
  expect(asked).toBeLessThan(6)
})

test('all lists without items end the search', () => {
  expect(readInTurn(['c', 'c', 'x'], Number.MAX_SAFE_INTEGER, reading().of)).toEqual([])
  expect(readInTurn(['d', 'b'], Number.MAX_SAFE_INTEGER, reading().of)).toHaveLength(5)
})
