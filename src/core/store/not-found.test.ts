import { expect, test } from 'vitest'
import type { Tombstone, WrittenRow } from './archive.ts'
import { liftedBy } from './not-found.ts'

const stone: Tombstone = {
  rootId: 'a',
  hash: 'last',
  seq: 1,
  agent: 'editor',
  owner: null,
  at: 0,
  reason: 'ttl',
  conversations: [{ id: 'a', parentId: null, runs: ['a-turn'] }],
}

test('a tree is refused that has a conversation or run of a deleted one and is not it', () => {
  const taking = (rootId: string, hash: string, rows: WrittenRow[]) => () => liftedBy([stone], { rootId, rows }, hash)

  expect(taking('a', 'last', [row('c', 'a'), row('t', 'a-turn')])()).toBe(stone)
  expect(taking('b', 'last', [row('c', 'b'), row('t', 'b-turn'), row('n', 'a')])()).toBeUndefined()
  expect(taking('a', 'other', [row('c', 'a')])).toThrow(/The tree a is not taken/)
  expect(taking('b', 'last', [row('c', 'b'), row('c', 'a')])).toThrow(/The tree b is not taken/)
  expect(taking('b', 'last', [row('c', 'b'), row('t', 'a-turn')])).toThrow(/The tree b is not taken/)
})

function row(letter: WrittenRow['letter'], id: string): WrittenRow {
  return { letter, id, turnId: null, text: '' }
}
