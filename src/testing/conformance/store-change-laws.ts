import assert from 'node:assert/strict'
import type { EventBody, EventRow } from '../../core/graph/event.ts'
import type { Id } from '../../core/graph/rows.ts'
import type { ChangePage, TreeChange } from '../../core/store/feed.ts'
import type { Store } from '../../core/store/store.ts'
import type { DurableLaw } from './store-durable-laws.ts'
import type { Law } from './store-read-laws.ts'
import { commitOf, conversationRow, outcomeOf, placeIn, treeCommit, warningEvent } from './store-rows.ts'

/** Laws about the feed of changes. */
export const changeLaws: readonly Law[] = [
  [
    'the feed has each commit in which a run at the root begins or ends, somebody is asked or answers, and no other',
    async (store, reopen) => {
      const started: EventBody = { type: 'run-start', agent: 'editor' }
      await store.commit(treeOf('root-a', 'ann', [eventIn('root-a', started), warningEvent(placeIn('root-a'), 'x')]))
      await store.commit(treeOf('root-b', null, [eventIn('root-b', { type: 'run-queued' })]))
      await store.commit(commitOf('root-a', { events: [warningEvent(placeIn('root-a'), 'nothing to look at')] }))
      await store.commit(commitOf('root-a', { events: [eventIn('root-a', started, 'host')] }))
      await store.commit(
        commitOf('root-a', { at: 2000, events: [eventIn('root-a', asked(), 'host'), eventIn('root-a', asked())] }),
      )
      const outcome = outcomeOf('root-b-turn', 'root-b')
      await store.commit(
        commitOf('root-b', { events: [eventIn('root-b', { type: 'run-end', status: outcome.status, outcome })] }),
      )
      await store.commit(commitOf(null, { kind: 'lease' }))

      for (const open of [() => store, reopen]) {
        const opened = await open()
        const { changes, isCut, cursor } = await opened.changes(null, 9)
        assert.deepEqual(changes, [
          { rootId: 'root-a', seq: 2, owner: 'ann', agent: 'editor', at: 1000, types: ['run-start'] },
          { rootId: 'root-b', seq: 1, owner: null, agent: 'editor', at: 1000, types: ['run-queued'] },
          { rootId: 'root-a', seq: 6, owner: 'ann', agent: 'editor', at: 2000, types: ['question'] },
          { rootId: 'root-b', seq: 2, owner: null, agent: 'editor', at: 1000, types: ['run-end'] },
        ] satisfies TreeChange[])
        assert.equal(isCut, false)
        assert.deepEqual(await opened.changes(cursor, 9), { changes: [], cursor, isCut: false })
      }
    },
  ],
  [
    'who follows the feed page by page misses nothing and hears nothing twice, also of what came meanwhile',
    async (store, reopen) => {
      for (let n = 0; n < 5; n++) await store.commit(startedTree(`root-${n}`))
      const first = await store.changes(null, 2)
      const second = await store.changes(first.cursor, 2)
      await store.commit(startedTree('root-5'))
      const now = await store.changes(null, 0)
      const opened = await reopen()
      const rest = await opened.changes(second.cursor, 9)
      await opened.commit(startedTree('root-6'))

      assert.deepEqual([first, second, rest].flatMap(rootsOf), rootIds(0, 6))
      assert.deepEqual(rootsOf(await opened.changes(rest.cursor, 9)), ['root-6'])
      assert.deepEqual(rootsOf(await opened.changes(now.cursor, 9)), ['root-6'])
      assert.deepEqual(rootsOf(await opened.changes(first.cursor, 9)), rootIds(2, 7))
      assert.deepEqual(now.changes, [])
    },
  ],
  [
    'a cursor that the store does not know is told to be cut, and a refused commit makes no change',
    async (store) => {
      await store.commit(startedTree('root-a'))
      await assert.rejects(async () => store.commit(startedTree('root-a')), { code: 'conflict' })
      for (const cursor of ['', 'x', '-1', '1e3', '999999999999']) {
        const page = await store.changes(cursor, 9)
        assert.deepEqual([page.isCut, rootsOf(page)], [true, ['root-a']])
      }
    },
  ],
]

/** Laws of a store that any number of processes may have open. */
export const sharedChangeLaws: readonly DurableLaw[] = [
  [
    'a reader misses none of the changes that several handles commit at the same time, in whatever order they end',
    async (open) => {
      const writers = [await open(), await open(), await open()]
      const reader = await open()
      let isOver = false
      const written = Promise.all(writers.map((store, n) => commitMany(store, n))).finally(() => {
        isOver = true
      })
      const seen: Id[] = []
      for (let cursor: string | null = null, last = false; ; ) {
        const page: ChangePage = await reader.changes(cursor, 3)
        seen.push(...rootsOf(page))
        cursor = page.cursor
        if (last && page.changes.length === 0) break
        last = isOver
        await new Promise((resolve) => setImmediate(resolve))
      }
      await written
      assert.equal(new Set(seen).size, seen.length)
      assert.deepEqual(seen.toSorted(), writers.flatMap((_, n) => rootIds(0, 20).map((id) => `${n}-${id}`)).toSorted())
    },
  ],
]

async function commitMany(store: Store, writer: number): Promise<void> {
  await Promise.all(rootIds(0, 20).map(async (id) => store.commit(startedTree(`${writer}-${id}`))))
}

function rootIds(from: number, to: number): Id[] {
  return Array.from({ length: to - from }, (_, n) => `root-${from + n}`)
}

function rootsOf({ changes }: ChangePage): Id[] {
  return changes.map(({ rootId }) => rootId)
}

function treeOf(rootId: Id, owner: string | null, events: readonly EventRow[]) {
  return treeCommit(rootId, { conversations: [conversationRow(rootId, { owner })], events })
}

function startedTree(rootId: Id) {
  return treeOf(rootId, null, [eventIn(rootId, { type: 'run-start', agent: 'editor' })])
}

function eventIn(rootId: Id, body: EventBody, parentId: Id | null = null): EventRow {
  return { ...warningEvent(placeIn(rootId), ''), parentId, body }
}

function asked(): EventBody {
  return { type: 'question', to: 'person', text: 'Which?', seen: '', expiresAt: 1 }
}
