import assert from 'node:assert/strict'
import type { Spent } from '../../core/graph/commit.ts'
import type { EventRow } from '../../core/graph/event.ts'
import type { Law } from './store-read-laws.ts'
import { commitOf, conversationRow, outcomeOf, placeIn, treeCommit, turnRow, warningEvent } from './store-rows.ts'

const WEEK = { from: '2026-11-10', to: '2026-11-17' }

/** Laws about what owners used, and about forgetting an owner. */
export const spentLaws: readonly Law[] = [
  [
    'what commits spend is summed by owner, day, agent and model over all trees, and stays when a tree is deleted',
    async (store, reopen) => {
      await store.commit(endedTree('root-a', 'ann', [spentOf({ runs: 1, modelCalls: 0, model: '' }), spentOf({})]))
      await store.commit(endedTree('root-b', 'ann', [spentOf({}), spentOf({ day: '2026-11-18' })]))
      await store.commit(commitOf('root-b', { spent: [spentOf({ model: 'other' }), spentOf({ owner: 'bo' })] }))
      await assert.rejects(async () => store.commit(endedTree('root-b', 'ann', [spentOf({})])), { code: 'conflict' })
      await store.archive?.remove('root-a', { at: 1, reason: 'test' })

      const twice = { inputTokens: 20, outputTokens: 4, cacheReadTokens: 2, cacheWriteTokens: 0 }
      const ofAnn = [
        spentOf({ runs: 1, modelCalls: 0, model: '' }),
        spentOf({ modelCalls: 2, usage: twice }),
        spentOf({ model: 'other' }),
      ]
      for (const open of [() => store, reopen]) {
        const opened = await open()
        assert.deepEqual(await opened.usage({ owner: 'ann', ...WEEK }), ofAnn)
        assert.deepEqual(await opened.usage(WEEK), [...ofAnn, spentOf({ owner: 'bo' })])
        const day = { from: '2026-11-18', to: '2026-11-18' }
        assert.deepEqual(await opened.usage(day), [spentOf({ day: '2026-11-18' })])
        assert.deepEqual(await opened.usage({ owner: 'nobody', ...WEEK }), [])
        assert.deepEqual(await opened.usage({ from: '2026-11-19', to: '2026-11-01' }), [])
      }
    },
  ],
  [
    'of an owner who is forgotten nothing is left beside the trees, and everything of the others stays',
    async (store, reopen) => {
      if (store.archive === undefined) return
      const row = { kind: 'token', version: 1, at: 1, data: null }
      for (const owner of ['ann', 'bo']) {
        await store.commit(endedTree(`root-of-${owner}`, owner, [spentOf({ owner })]))
        await store.registry.put({ ...row, id: `of-${owner}`, owner })
        await store.archive.remove(`root-of-${owner}`, { at: 1, reason: 'personal' })
      }
      const { cursor } = await store.changes(null, 0)

      await store.archive.forgetOwner('ann')

      for (const open of [() => store, reopen]) {
        const opened = await open()
        assert.deepEqual(await opened.usage(WEEK), [spentOf({ owner: 'bo' })])
        const rows = await opened.registry.list('token', { limit: 9 })
        assert.deepEqual([rows.length, rows[0]?.id], [1, 'of-bo'])
        const { changes } = await opened.changes(null, 9)
        assert.deepEqual([changes.length, changes[0]?.owner], [1, 'bo'])
        assert.deepEqual(await opened.changes(cursor, 9), { changes: [], cursor, isCut: false })
        const stones = (await opened.archive?.tombstones()) ?? []
        assert.deepEqual(
          stones.map(({ owner, agent, reason, rootId }) => [owner, agent, reason, rootId]),
          [
            [null, '', 'forgotten', 'root-of-ann'],
            ['bo', 'editor', 'personal', 'root-of-bo'],
          ],
        )
        assert.deepEqual((await opened.archive?.verify())?.findings, [])
      }
      const last = await reopen()
      await last.commit(endedTree('root-c', 'ann', []))
      assert.equal((await last.changes(cursor, 9)).changes[0]?.rootId, 'root-c')
    },
  ],
]

function spentOf(fields: Partial<Spent>): Spent {
  const usage = { inputTokens: 10, outputTokens: 2, cacheReadTokens: 1, cacheWriteTokens: 0 }
  return { owner: 'ann', day: '2026-11-17', agent: 'editor', model: 'm', runs: 0, modelCalls: 1, usage, ...fields }
}

function endedTree(rootId: string, owner: string, spent: readonly Spent[]) {
  const place = placeIn(rootId)
  const outcome = outcomeOf(place.turnId, rootId)
  const events: EventRow[] = [
    { ...warningEvent(place, ''), body: { type: 'run-end', status: outcome.status, outcome } },
  ]
  const turns = [turnRow(place, { state: 'ended', endedAt: 2000, outcome })]
  return treeCommit(rootId, { conversations: [conversationRow(rootId, { owner })], turns, nodes: [], events, spent })
}
