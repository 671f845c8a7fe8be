import { expect, test } from 'vitest'
import { commitOf, conversationRow, nodeRow, placeIn, turnRow } from '../../testing/conformance/store-rows.ts'
import { RowCache } from './row-cache.ts'

test('a new turn is cached with its nodes, also in a lane whose turns nobody has read', () => {
  const cache = new RowCache()
  cache.addConversation(conversationRow('root-a'), 0)
  cache.greatestId = 'root-a-turn'
  const place = { ...placeIn('root-a'), turnId: 'turn-1' }
  const commit = commitOf('root-a', { turns: [turnRow(place, { ordinal: 1 })], nodes: [nodeRow(place, 'node-1')] })

  cache.putCommit(commit, { numbers: [7, 8], ends: new Map(), tail: { tree: 0, commit: 2, seq: 1, hash: '' } })

  expect(
    cache
      .home('turn-1')
      ?.turns.get('turn-1')
      ?.nodes.map(({ row }) => row.id),
  ).toEqual(['node-1'])
})
