import fc from 'fast-check'
import { expect, test } from 'vitest'
import { inOrder, Trie } from './trie.ts'

test('a trie holds what a map holds, and an older one keeps what it held', () => {
  const change = fc.record({ key: fc.constantFrom(...'abcdefgh'), value: fc.option(fc.nat()) })
  fc.assert(
    fc.property(fc.array(change), (changes) => {
      const map = new Map<string, number>()
      let trie = new Trie<number>()
      const older: { readonly trie: Trie<number>; readonly map: ReadonlyMap<string, number> }[] = []
      for (const { key, value } of changes) {
        older.push({ trie, map: new Map(map) })
        if (value === null) map.delete(key)
        else map.set(key, value)
        trie = value === null ? trie.without(key) : trie.with(key, value)
      }
      for (const one of [...older, { trie, map }]) {
        expect(one.trie.size).toBe(one.map.size)
        expect(one.trie.values().sort()).toEqual([...one.map.values()].sort())
        for (const key of 'abcdefgh') expect(one.trie.get(key)).toBe(one.map.get(key))
      }
    }),
  )
})

test('keys with the same hash stand beside each other', () => {
  // FNV-1a of 32 bits gives both the same number.
  const [one, other] = ['costarring', 'liquid']
  const trie = new Trie<number>().with(one, 1).with(other, 2)

  expect([trie.get(one), trie.get(other), trie.size]).toEqual([1, 2, 2])
  expect([trie.without(one).get(one), trie.without(one).get(other)]).toEqual([undefined, 2])
})

test('a hundred thousand keys are found again', () => {
  let trie = new Trie<number>()
  for (let at = 0; at < 100_000; at++) trie = trie.with(`01b8dac5-b400-7${at}`, at)

  expect(trie.size).toBe(100_000)
  for (const at of [0, 1, 4_711, 99_999]) expect(trie.get(`01b8dac5-b400-7${at}`)).toBe(at)
  expect(trie.get('01b8dac5')).toBeUndefined()
})

test('a list is read oldest first', () => {
  expect(inOrder({ item: 2, rest: { item: 1, rest: null } })).toEqual([1, 2])
  expect(inOrder(null)).toEqual([])
})
