import assert from 'node:assert/strict'
import type { Commit } from '../../core/graph/commit.ts'
import { ROOT_STATES, type RootState } from '../../core/graph/kinds.ts'
import { EMPTY_ACCOUNT } from '../../core/graph/limits.ts'
import type { Status } from '../../core/graph/outcome.ts'
import type { Id, Node, Turn } from '../../core/graph/rows.ts'
import type { Store } from '../../core/store/store.ts'
import { idsOf, type Law } from './store-read-laws.ts'
import { commitOf, conversationRow, next, nodeRow, outcomeOf, placeIn, treeCommit, turnRow } from './store-rows.ts'

/** Laws about lists by owner, agent and state. */
export const ownerLaws: readonly Law[] = [
  [
    'roots are listed newest first by owner, agent and state, in any combination, page by page',
    async (store, reopen) => {
      await store.commit(treeOf('r-1', { owner: 'ann' }))
      await store.commit(treeOf('r-2', { owner: 'bo', agent: 'writer' }))
      await store.commit(treeOf('r-3', { owner: 'ann', agent: 'writer', status: 'completed' }))
      await store.commit(treeOf('r-4', { agent: 'writer', status: 'failed' }))
      await store.commit(treeOf('r-5', { owner: 'ann', status: 'over_budget' }))
      await store.commit(treeOf('r-6', { owner: 'ann', status: 'cancelled' }))
      await store.commit(treeOf('r-7', { owner: 'ann', status: 'uncertain', uncertain: ['n'] }))

      for (const open of [() => store, reopen]) {
        const roots = await rootsIn(await open())
        assert.deepEqual(await roots({}), ['r-7', 'r-6', 'r-5', 'r-4', 'r-3', 'r-2', 'r-1'])
        assert.deepEqual(await roots({ owner: 'ann' }), ['r-7', 'r-6', 'r-5', 'r-3', 'r-1'])
        assert.deepEqual(await roots({ owner: 'ann', limit: 2 }), ['r-7', 'r-6'])
        assert.deepEqual(await roots({ owner: 'ann', before: 'r-6', limit: 2 }), ['r-5', 'r-3'])
        assert.deepEqual(await roots({ owner: 'ann', before: 'r-4' }), ['r-3', 'r-1'])
        assert.deepEqual(await roots({ agent: 'writer' }), ['r-4', 'r-3', 'r-2'])
        assert.deepEqual(await roots({ owner: 'ann', agent: 'writer' }), ['r-3'])
        assert.deepEqual(await roots({ state: 'open' }), ['r-2', 'r-1'])
        assert.deepEqual(await roots({ state: 'failed' }), ['r-5', 'r-4'])
        assert.deepEqual(await roots({ state: 'uncertain' }), ['r-7'])
        assert.deepEqual(await roots({ owner: 'ann', state: 'completed' }), ['r-6', 'r-3'])
        assert.deepEqual(await roots({ owner: 'ann', state: 'open', agent: 'editor' }), ['r-1'])
        assert.deepEqual(await roots({ agent: 'writer', state: 'failed' }), ['r-4'])
        assert.deepEqual(await roots({ state: 'failed', before: 'r-5' }), ['r-4'])
        for (const none of [{ owner: 'Ann' }, { owner: '' }, { agent: 'edit' }, { owner: 'ann', limit: 0 }]) {
          assert.deepEqual(await roots(none), [])
        }
        assert.deepEqual(await roots({ owner: 'ann', before: 'nowhere' }), [])
      }
    },
  ],
  [
    'the state of a tree is that of the newest turn of its root, whatever its other turns and lanes do',
    async (store) => {
      await checkStates(store, 'root-a', 'ann')
      await checkStates(store, 'root-b')
      assert.deepEqual((await store.archive?.verify())?.findings ?? [], [])
    },
  ],
  [
    'what waits is listed for the owner of its tree, as deep as it may be, in the order of all lists of this sort',
    async (store, reopen) => {
      for (const [rootId, owner] of [
        ['root-a', 'ann'],
        ['root-b', 'bo'],
        ['root-c', null],
      ] as const) {
        await store.commit(waitingTree(rootId, owner))
      }
      const lists = async (opened: Store, owner: string) => ({
        awaiting: idsOf(await opened.awaiting({ owner, limit: 9 })),
        timed: idsOf(await opened.timed({ owner, limit: 9 })),
        open: idsOf(await opened.openRoots({ owner, limit: 9 })),
      })
      for (const open of [() => store, reopen]) {
        const opened = await open()
        assert.deepEqual(await lists(opened, 'ann'), {
          awaiting: ['root-a-asks-1', 'root-a-asks-2a', 'root-a-asks-2b'],
          timed: ['root-a-sleeps-1', 'root-a-sleeps-2'],
          open: ['root-a-turn'],
        })
        assert.deepEqual(await lists(opened, 'nobody'), { awaiting: [], timed: [], open: [] })
        assert.equal((await opened.awaiting({ limit: 99 })).length, 9)
        assert.equal((await opened.openRoots({ limit: 99 })).length, 3)
      }
      const opened = await reopen()
      const after = { wakeAt: 20, id: 'root-a-asks-2a' }
      assert.deepEqual(idsOf(await opened.awaiting({ owner: 'ann', limit: 9, after })), ['root-a-asks-2b'])
      assert.deepEqual(idsOf(await opened.awaiting({ owner: 'ann', limit: 1 })), ['root-a-asks-1'])
      assert.deepEqual(
        idsOf(await opened.timed({ owner: 'ann', limit: 9, after: { wakeAt: 10, id: 'root-a-sleeps-1' } })),
        ['root-a-sleeps-2'],
      )

      const tree = await opened.tree('root-a')
      const nodes = ['root-a-asks-1', 'root-a-sleeps-1'].map((id) => next(known(tree.node(id)), { state: 'finished' }))
      const later = next(known(tree.node('root-a-asks-2a')), { wakeAt: 40 })
      await opened.commit(commitOf('root-a', { nodes: [...nodes, later] }))
      await opened.commit(
        commitOf('root-b', { turns: [ended(known((await opened.tree('root-b')).turn('root-b-turn')), 'failed')] }),
      )
      assert.deepEqual(await lists(opened, 'ann'), {
        awaiting: ['root-a-asks-2b', 'root-a-asks-2a'],
        timed: ['root-a-sleeps-2'],
        open: ['root-a-turn'],
      })
      assert.deepEqual((await lists(opened, 'bo')).open, [])
      assert.deepEqual((await opened.archive?.verify())?.findings ?? [], [])
    },
  ],
  [
    'a tree that is exported, deleted and imported again is listed for its owner as before, and nowhere while it is gone',
    async (store) => {
      const { archive } = store
      if (archive === undefined) return
      const roots = await rootsIn(store)
      await store.commit(treeOf('root-a', { owner: 'ann', status: 'failed' }))
      await store.commit(treeOf('root-b', { owner: 'ann' }))
      const whole = await archive.read('root-a')
      await archive.remove('root-a', { at: 1, reason: 'test' })
      assert.deepEqual(await roots({ owner: 'ann' }), ['root-b'])
      assert.deepEqual(await roots({ state: 'failed' }), [])

      await archive.restore(known(whole))
      assert.deepEqual(await roots({ owner: 'ann' }), ['root-a', 'root-b'])
      assert.deepEqual(await roots({ owner: 'ann', state: 'failed' }), ['root-a'])
      assert.deepEqual((await archive.verify()).findings, [])
    },
  ],
]

async function checkStates(store: Store, rootId: Id, owner?: string): Promise<void> {
  const roots = await rootsIn(store)
  const isOnly = async (wanted: RootState) => {
    for (const state of ROOT_STATES) {
      const found = await roots({ state, ...(owner === undefined ? {} : { owner }) })
      assert.equal(found.includes(rootId), state === wanted, `${rootId} is ${wanted}, not ${state}`)
    }
  }
  const place = placeIn(rootId)
  const first = turnRow(place)
  const second = turnRow({ ...place, turnId: `${rootId}-second` }, { ordinal: 1, state: 'queued' })
  await store.commit(treeOf(rootId, { ...(owner === undefined ? {} : { owner }) }))
  await store.commit(commitOf(rootId, { turns: [second] }))
  await store.commit(commitOf(rootId, { turns: [ended(first, 'failed')] }))
  await isOnly('open')

  const running = next(second, { state: 'running' })
  const child = { ...placeIn(`${rootId}-child`), rootId }
  const conversations = [conversationRow(child.conversationId, { rootId, type: 'sub_agent', depth: 1 })]
  await store.commit(commitOf(rootId, { conversations, turns: [running, ended(turnRow(child), 'failed', 1)] }))
  await isOnly('open')

  const over: Turn = { ...ended(running, 'uncertain'), account: { ...EMPTY_ACCOUNT, uncertain: ['n'] } }
  await store.commit(commitOf(rootId, { turns: [over] }))
  await isOnly('uncertain')
  await store.commit(commitOf(rootId, { turns: [next(over, { account: EMPTY_ACCOUNT })] }))
  await isOnly('failed')
  const third = turnRow({ ...place, turnId: `${rootId}-third` }, { ordinal: 2 })
  await store.commit(commitOf(rootId, { turns: [third] }))
  await isOnly('open')
  await store.commit(commitOf(rootId, { turns: [ended(third, 'cancelled')] }))
  await isOnly('completed')
}

type Roots = (query: Partial<Parameters<Store['roots']>[0]>) => Promise<Id[]>

async function rootsIn(store: Store): Promise<Roots> {
  return async (query) => idsOf(await store.roots({ limit: 9, ...query }))
}

interface TreeFacts {
  readonly owner?: string
  readonly agent?: string
  readonly status?: Status
  readonly uncertain?: readonly Id[]
}

/** A tree whose only turn runs, or has ended so. */
function treeOf(rootId: Id, { owner, agent = 'editor', status, uncertain = [] }: TreeFacts): Commit {
  const place = placeIn(rootId)
  const row = conversationRow(rootId, { owner: owner ?? null, agent: { name: agent, hash: 'h' }, path: [agent] })
  const turn = turnRow(place, { account: { ...EMPTY_ACCOUNT, uncertain } })
  const turns = [status === undefined ? turn : { ...ended(turn, status), version: 1 }]
  return treeCommit(rootId, { conversations: [row], turns, nodes: [] })
}

function ended(turn: Turn, status: Status, version = turn.version + 1): Turn {
  const outcome = { ...outcomeOf(turn.id, turn.conversationId), status }
  return { ...turn, version, state: 'ended', endedAt: 2000, outcome }
}

/** A root and a child, each with nodes that wait for a person or for a moment. */
function waitingTree(rootId: Id, owner: string | null): Commit {
  const place = placeIn(rootId)
  const child = { ...placeIn(`${rootId}-child`), rootId }
  const asks = (at: typeof place, name: string, wakeAt: number): Node =>
    nodeRow(at, `${rootId}-asks-${name}`, { state: 'awaiting_approval', wakeAt })
  const sleeps = (at: typeof place, name: string, wakeAt: number): Node =>
    nodeRow(at, `${rootId}-sleeps-${name}`, { state: 'waiting', wakeAt })
  const below = conversationRow(child.conversationId, { rootId, type: 'sub_agent', depth: 1, owner: 'somebody else' })
  return treeCommit(rootId, {
    conversations: [conversationRow(rootId, { owner }), below],
    turns: [turnRow(place), turnRow(child)],
    nodes: [
      asks(place, '2b', 20),
      asks(child, '1', 10),
      asks(child, '2a', 20),
      sleeps(child, '2', 30),
      sleeps(place, '1', 10),
      nodeRow(place, `${rootId}-runs`, { state: 'running' }),
    ],
  })
}

function known<T>(value: T | undefined): T {
  assert.ok(value !== undefined)
  return value
}
