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

test('rows of trees that have ended make room, and a tree that goes on keeps its rows', () => {
  const cache = new RowCache()
  const put = (rootId: string, state: 'running' | 'ended', count: number) => {
    const place = { ...placeIn(rootId), turnId: `${rootId}-turn` }
    const nodes = Array.from({ length: count }, (_, at) => nodeRow(place, `${rootId}-node-${at}`, { ordinal: at }))
    const commit = commitOf(rootId, {
      conversations: [conversationRow(rootId)],
      turns: [turnRow(place, { state })],
      nodes,
    })
    const numbers = Array.from({ length: count + 2 }, (_, at) => at)
    cache.putCommit(commit, { numbers, ends: new Map(), tail: { tree: 0, commit: 1, seq: 1, hash: '' } })
  }
  put('open', 'running', 5_000)
  put('old', 'ended', 9_000)
  put('new', 'ended', 9_000)

  cache.makeRoom()

  expect(cache.home('open-node-4999')?.nodes.size).toBe(5_000)
  expect([cache.home('old'), cache.home('old-turn'), cache.home('old-node-0')]).toEqual([
    undefined,
    undefined,
    undefined,
  ])

  put('open', 'running', 21_000)
  cache.makeRoom()
  expect(cache.home('open')).toBeUndefined()
})
