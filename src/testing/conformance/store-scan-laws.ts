import assert from 'node:assert/strict'
import type { LiveBlock } from '../../core/graph/commit.ts'
import type { EventRow } from '../../core/graph/event.ts'
import { idsOf, type Law } from './store-read-laws.ts'
import {
  commitOf,
  conversationRow,
  engineRow,
  next,
  nodeRow,
  placeIn,
  treeCommit,
  turnRow,
  warningEvent,
} from './store-rows.ts'

const place = placeIn('root-a')
const anyQuery = { now: 5000, limit: 99, kinds: ['task', 'note'], agents: ['editor', 'writer'] }

/** Laws about queries over the whole store: those of sweeps, lists and readers. */
export const scanLaws: readonly Law[] = [
  [
    'runnable is pending, without blockers, awake',
    async (store) => {
      const nodes = [
        nodeRow(place, 'ready'),
        nodeRow(place, 'blocked', { ordinal: 1, blockers: 1 }),
        nodeRow(place, 'running', { ordinal: 2, state: 'running' }),
        nodeRow(place, 'asleep', { ordinal: 3, wakeAt: 5001 }),
        nodeRow(place, 'awake', { ordinal: 4, wakeAt: 5000 }),
        nodeRow(place, 'done', { ordinal: 5, state: 'finished' }),
      ]
      await store.commit(treeCommit('root-a', { nodes }))

      assert.deepEqual(idsOf(await store.runnable(anyQuery)), ['ready', 'awake'])
      assert.deepEqual(idsOf(await store.runnable({ ...anyQuery, now: 5001 })), ['ready', 'asleep', 'awake'])

      const [ready, blocked] = nodes
      assert.ok(ready && blocked)
      const step = [next(ready, { state: 'running' }), next(blocked, { blockers: 0 })]
      await store.commit(commitOf('root-a', { nodes: step }))
      assert.deepEqual(idsOf(await store.runnable(anyQuery)), ['blocked', 'awake'])
    },
  ],
  [
    'runnable nodes come oldest first, of the kinds and agents asked for, up to the limit',
    async (store) => {
      const other = placeIn('root-b')
      const nodes = [
        nodeRow(place, 'third', { createdAt: 30 }),
        nodeRow(place, 'first', { createdAt: 10 }),
        nodeRow(place, 'of-a-kind', { createdAt: 15, kind: 'note' }),
      ]
      await store.commit(treeCommit('root-a', { nodes }))
      const writer = conversationRow('root-b', { agent: { name: 'writer', hash: 'h' } })
      const second = nodeRow(other, 'second', { createdAt: 20 })
      await store.commit(treeCommit('root-b', { conversations: [writer], nodes: [second] }))

      const runnable = async (fields: object) => idsOf(await store.runnable({ ...anyQuery, ...fields }))
      assert.deepEqual(await runnable({}), ['first', 'of-a-kind', 'second', 'third'])
      assert.deepEqual(await runnable({ limit: 2 }), ['first', 'of-a-kind'])
      assert.deepEqual(await runnable({ kinds: ['task'] }), ['first', 'second', 'third'])
      assert.deepEqual(await runnable({ agents: ['writer'] }), ['second'])
      for (const none of [{ agents: [] }, { kinds: [] }, { limit: 0 }]) assert.deepEqual(await runnable(none), [])
    },
  ],
  [
    'overdue turns are running and past their deadline',
    async (store) => {
      const turns = [
        turnRow({ ...place, turnId: 'late' }, { deadline: 900 }),
        turnRow({ ...place, turnId: 'later' }, { deadline: 1000, ordinal: 1 }),
        turnRow({ ...place, turnId: 'in-time' }, { deadline: 1001, ordinal: 2 }),
        turnRow({ ...place, turnId: 'queued' }, { deadline: 900, state: 'queued', ordinal: 3 }),
        turnRow({ ...place, turnId: 'ended' }, { deadline: 900, state: 'ended', ordinal: 4 }),
        turnRow({ ...place, turnId: 'free' }, { ordinal: 5 }),
      ]
      await store.commit(commitOf('root-a', { conversations: [conversationRow('root-a')], turns }))

      assert.deepEqual(idsOf(await store.overdue(1000, 9)), ['late', 'later'])
      assert.deepEqual(idsOf(await store.overdue(1000, 1)), ['late'])
      assert.deepEqual(idsOf(await store.overdue(899, 9)), [])
    },
  ],
  [
    'the next due moment is the earliest wake or deadline still to come',
    async (store) => {
      assert.equal(await store.nextDue(0), undefined)
      const timed = turnRow(place, { deadline: 500 })
      const asleep = nodeRow(place, 'asleep', { wakeAt: 300 })
      await store.commit(treeCommit('root-a', { turns: [timed], nodes: [asleep] }))

      assert.equal(await store.nextDue(0), 300)
      assert.equal(await store.nextDue(300), 500)
      assert.equal(await store.nextDue(500), undefined)

      const woken = next(asleep, { state: 'running', wakeAt: null })
      await store.commit(commitOf('root-a', { nodes: [woken] }))
      assert.equal(await store.nextDue(0), 500)
      await store.commit(commitOf('root-a', { turns: [next(timed, { state: 'ended' })] }))
      assert.equal(await store.nextDue(0), undefined)
    },
  ],
  [
    'unstopped nodes run in a turn that was asked to stop long enough ago',
    async (store) => {
      const cancel = { at: 1000, cause: 'cancelled' as const, reason: null }
      const nodes = [
        nodeRow(place, 'stubborn', { state: 'running' }),
        nodeRow(place, 'gone', { state: 'stopped', ordinal: 1 }),
        nodeRow({ ...place, turnId: 'untouched' }, 'innocent', { state: 'running' }),
      ]
      const turns = [turnRow(place, { cancel }), turnRow({ ...place, turnId: 'untouched' }, { ordinal: 1 })]
      await store.commit(treeCommit('root-a', { turns, nodes }))

      assert.deepEqual(idsOf(await store.unstopped(1000, 9)), ['stubborn'])
      assert.deepEqual(await store.unstopped(999, 9), [])
      assert.deepEqual(await store.unstopped(1000, 0), [])
    },
  ],
  [
    'claims of an engine are found, and gone when the node has ended or was taken over',
    async (store) => {
      const claimed = { state: 'running', engineId: 'e-1', epoch: 1 } as const
      const nodes = ['c-1', 'c-2', 'c-3'].map((id) => nodeRow(place, id, claimed))
      await store.commit(treeCommit('root-a', { nodes }))
      assert.deepEqual(idsOf(await store.claimedBy('e-1', 9)).sort(), ['c-1', 'c-2', 'c-3'])
      assert.equal((await store.claimedBy('e-1', 2)).length, 2)
      assert.deepEqual(await store.claimants(), ['e-1'])

      const [first, second] = nodes
      assert.ok(first && second)
      const step = [next(first, { state: 'finished' }), next(second, { engineId: 'e-2', epoch: 2 })]
      await store.commit(commitOf('root-a', { nodes: step }))
      assert.deepEqual(idsOf(await store.claimedBy('e-1', 9)), ['c-3'])
      assert.deepEqual(idsOf(await store.claimedBy('e-2', 9)), ['c-2'])
      assert.deepEqual([...(await store.claimants())].sort(), ['e-1', 'e-2'])
    },
  ],
  [
    'nodes that await a person are listed, what must be answered first before the rest, page by page',
    async (store) => {
      const asked = (id: string, wakeAt: number) => nodeRow(place, id, { state: 'awaiting_approval', wakeAt })
      const nodes = [asked('w-3', 30), asked('w-1', 10), asked('w-2b', 20), asked('w-2a', 20), nodeRow(place, 'w-0')]
      await store.commit(treeCommit('root-a', { nodes }))
      assert.deepEqual(idsOf(await store.awaiting({ limit: 9 })), ['w-1', 'w-2a', 'w-2b', 'w-3'])
      const after = { wakeAt: 20, id: 'w-2a' }
      assert.deepEqual(idsOf(await store.awaiting({ limit: 1, after })), ['w-2b'])

      const [third] = nodes
      assert.ok(third)
      await store.commit(commitOf('root-a', { nodes: [next(third, { state: 'rejected' })] }))
      assert.deepEqual(idsOf(await store.awaiting({ limit: 9, after })), ['w-2b'])
      assert.deepEqual(await store.awaiting({ limit: 0 }), [])
    },
  ],
  [
    'nodes that wait until a moment are listed, the earliest first, and count as due; others that wait are not',
    async (store) => {
      const waiting = (id: string, wakeAt: number | null) => nodeRow(place, id, { state: 'waiting', wakeAt })
      const nodes = [waiting('t-3', 30), waiting('t-1', 10), waiting('t-2', 20), waiting('t-0', null)]
      await store.commit(treeCommit('root-a', { nodes }))
      assert.deepEqual(idsOf(await store.timed({ limit: 9 })), ['t-1', 't-2', 't-3'])
      assert.deepEqual(idsOf(await store.timed({ limit: 1, after: { wakeAt: 10, id: 't-1' } })), ['t-2'])
      assert.equal(await store.nextDue(10), 20)

      const [third] = nodes
      assert.ok(third)
      await store.commit(commitOf('root-a', { nodes: [next(third, { state: 'finished', wakeAt: null })] }))
      assert.deepEqual(idsOf(await store.timed({ limit: 9 })), ['t-1', 't-2'])
      assert.equal(await store.nextDue(20), undefined)
    },
  ],
  [
    'open turns are those that run or are queued, of any conversation',
    async (store) => {
      const child = placeIn('child-a')
      const inner = { ...child, rootId: 'root-a' }
      const conversation = conversationRow('child-a', { rootId: 'root-a', type: 'sub_agent', depth: 1 })
      await store.commit(
        treeCommit('root-a', {
          conversations: [conversationRow('root-a'), conversation],
          turns: [turnRow(place), turnRow(inner, { state: 'queued' })],
        }),
      )
      assert.deepEqual(idsOf(await store.openTurns(9)).sort(), ['child-a-turn', 'root-a-turn'])
      assert.equal((await store.openTurns(1)).length, 1)
      assert.deepEqual(idsOf(await store.openRoots({ limit: 9 })), ['root-a-turn'])

      await store.commit(commitOf('root-a', { turns: [next(turnRow(inner, { state: 'queued' }), { state: 'ended' })] }))
      assert.deepEqual(idsOf(await store.openTurns(9)), ['root-a-turn'])
    },
  ],
  [
    'engines are put, renewed and dropped without a tree',
    async (store) => {
      const engine = engineRow('e-1')
      await store.commit(commitOf(null, { kind: 'lease', engines: [engine, engineRow('e-2')] }))
      await store.commit(commitOf(null, { kind: 'lease', engines: [next(engine, { leaseUntil: 9 })] }))

      assert.equal((await store.engine('e-1'))?.leaseUntil, 9)
      assert.deepEqual(idsOf(await store.engines()).sort(), ['e-1', 'e-2'])

      await store.commit(commitOf(null, { kind: 'lease', dropEngines: ['e-1', 'nobody'] }))
      assert.deepEqual(idsOf(await store.engines()), ['e-2'])
    },
  ],
  [
    'blocks are added, read after a number, dropped, and left out when the claim they were made under is over',
    async (store) => {
      const stream = (...blocks: LiveBlock[]) => store.commit(commitOf(null, { kind: 'stream', blocks }))
      const texts = async (after: number) => (await store.blocks('root-a', after)).map(({ n, ...rest }) => rest)
      const running = nodeRow(place, 'streams', { state: 'running', engineId: 'e-1', epoch: 2 })
      await store.commit(treeCommit('root-a', { nodes: [running, nodeRow(place, 'idle', { ordinal: 1 })] }))
      await stream(block('streams', 2, 'a'))
      await stream(block('streams', 2, 'b'), block('idle', 0, 'x'))
      await stream(block('streams', 1, 'zombie'))

      assert.deepEqual(await texts(0), [block('streams', 2, 'a'), block('streams', 2, 'b')])
      const [first, second] = await store.blocks('root-a', 0)
      assert.ok(first && second && first.n < second.n)
      assert.deepEqual(await texts(first.n), [block('streams', 2, 'b')])
      assert.deepEqual(await store.blocks('root-b', 0), [])

      await store.commit(commitOf('root-a', { nodes: [next(running, { state: 'finished' })], dropBlocks: ['streams'] }))
      assert.deepEqual(await texts(0), [])
      await stream(block('streams', 2, 'too late'))
      assert.deepEqual(await texts(0), [])
    },
  ],
  [
    'events have whole numbers from 1, per tree, without gaps, and are paged by them',
    async (store) => {
      await store.commit(treeCommit('root-a', { events: warnings('a', 2) }))
      await store.commit(treeCommit('root-b', { events: warnings('b', 3) }))
      const written = warnings('c', 3)
      await store.commit(commitOf('root-a', { kind: 'note', events: written }))

      const lastSeq = async (rootId: string) => (await store.tree(rootId)).lastSeq(rootId)
      assert.deepEqual(sequence(written), [3, 4, 5])
      assert.deepEqual(await store.events('root-a', 2, 9), written)
      assert.deepEqual(sequence(await store.events('root-a', 0, 99)), [1, 2, 3, 4, 5])
      assert.deepEqual(sequence(await store.events('root-b', 0, 99)), [1, 2, 3])
      assert.deepEqual(sequence(await store.events('root-a', 1, 3)), [2, 3, 4])
      assert.deepEqual(sequence(await store.events('root-a', 3.25, 1)), [4])
      assert.deepEqual([...(await store.events('root-a', 5, 9)), ...(await store.events('root-a', 0, 0))], [])
      assert.deepEqual([await lastSeq('root-a'), await lastSeq('root-b')], [5, 3])
    },
  ],
  [
    'conversations are listed by id, those of one tree or all, page by page',
    async (store) => {
      const child = (id: string, rootId: string) => conversationRow(id, { rootId, type: 'sub_agent', depth: 1 })
      const ofA = [conversationRow('root-a'), child('z-of-a', 'root-a'), child('b-of-a', 'root-a')]
      await store.commit(commitOf('root-a', { conversations: ofA }))
      await store.commit(commitOf('root-b', { conversations: [conversationRow('root-b'), child('c-of-b', 'root-b')] }))

      assert.deepEqual(idsOf(await store.conversations({ rootId: 'root-a', limit: 9 })), ['b-of-a', 'root-a', 'z-of-a'])
      assert.deepEqual(idsOf(await store.conversations({ rootId: 'root-b', limit: 9 })), ['c-of-b', 'root-b'])
      assert.deepEqual(idsOf(await store.conversations({ limit: 3 })), ['b-of-a', 'c-of-b', 'root-a'])
      assert.deepEqual(idsOf(await store.conversations({ after: 'root-a', limit: 9 })), ['root-b', 'z-of-a'])
      assert.deepEqual(await store.conversations({ rootId: 'nowhere', limit: 9 }), [])
      assert.deepEqual(await store.conversations({ limit: 0 }), [])
    },
  ],
]

function block(nodeId: string, epoch: number, text: string): LiveBlock {
  const { rootId, conversationId, turnId } = place
  const at = { seq: 1.1, at: 1, conversationId, runId: turnId, nodeId, path: ['editor'], parentId: null }
  return { nodeId, rootId, epoch, events: [{ ...at, type: 'text-delta', text }] }
}

function warnings(message: string, count: number): EventRow[] {
  return Array.from({ length: count }, () => warningEvent(place, message))
}

function sequence(events: readonly EventRow[]): number[] {
  return events.map((event) => event.seq)
}
