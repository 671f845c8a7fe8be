import assert from 'node:assert/strict'
import { sha256 } from '../../core/base/hash.ts'
import type { Commit } from '../../core/graph/commit.ts'
import type { Id } from '../../core/graph/rows.ts'
import { createRuntime } from '../../core/runtime/runtime.ts'
import { agent } from '../../core/runtime/standalone.ts'
import type { Archive, Tombstone, WholeTree } from '../../core/store/archive.ts'
import { packEvents } from '../../core/store/codec/event-text.ts'
import { toLines } from '../../core/store/codec/tree-text.ts'
import { chainHash } from '../../core/store/commit-chain.ts'
import { memoryStore } from '../../core/store/memory/index.ts'
import type { Store } from '../../core/store/store.ts'
import { scriptedModel } from '../stand-ins/scripted-model.ts'
import { snapshot } from './store-commit-laws.ts'
import type { DurableLaw } from './store-durable-laws.ts'
import type { Law } from './store-read-laws.ts'
import {
  commitOf,
  conversationRow,
  edgeRow,
  linkRow,
  next,
  nodeRow,
  outcomeOf,
  placeIn,
  turnRow,
  warningEvent,
} from './store-rows.ts'

const HOW = { at: 5000, reason: 'ttl' }
const SHARED = 'a text of two trees'

/** Laws about deleting trees. They do not apply to a store without an archive. */
export const removeLaws: readonly Law[] = [
  [
    'a tree that has ended is deleted whole, leaves its tombstone, and all others are as they were',
    async (store, reopen) => {
      const { archive } = store
      if (archive === undefined) return
      await store.commit(endedTree('root-b'))
      const before = await snapshot(store)
      await store.commit(endedTree('root-a'))
      const head = await headOf(archive, 'root-a')

      const trial = await archive.remove('root-a', { ...HOW, dryRun: true })
      assert.deepEqual(await archive.tombstones(), [])
      assert.notEqual((await store.tree('root-a')).conversation('root-a'), undefined)
      const stone = await archive.remove('root-a', HOW)

      assert.deepEqual(stone, {
        rootId: 'root-a',
        hash: head,
        seq: 2,
        agent: 'editor',
        owner: 'ann',
        ...HOW,
        conversations: [
          { id: 'root-a', parentId: null, runs: ['root-a-turn'] },
          { id: 'root-a-child', parentId: 'root-a', runs: ['root-a-child-turn'] },
        ],
      })
      assert.deepEqual(trial, stone)
      for (const open of [() => store, reopen]) {
        const opened = await open()
        const kept = opened.archive
        await assertGone(opened, 'root-a')
        assert.deepEqual(await snapshot(opened), before)
        assert.deepEqual(await kept?.tombstones(), [stone])
        for (const id of ['root-a', 'root-a-child-turn']) assert.deepEqual(await kept?.tombstone(id), stone)
        for (const id of ['', 'root', 'ttl', '__proto__', 'root-b']) assert.equal(await kept?.tombstone(id), undefined)
        assert.deepEqual((await kept?.verify())?.findings, [])
        assert.equal((await kept?.remove('root-b', { ...HOW, dryRun: true }))?.owner, null)
      }
    },
  ],
  [
    'a tree with an open turn stays, and so does one that has gone on since it was looked at',
    async (store) => {
      const { archive } = store
      if (archive === undefined) return
      const place = placeIn('root-a')
      await store.commit(endedTree('root-a'))
      const queued = turnRow({ ...place, turnId: 'second' }, { ordinal: 1, state: 'queued' })
      await store.commit(commitOf('root-a', { turns: [queued] }))
      const before = await snapshot(store)

      await assert.rejects(async () => archive.remove('root-a', HOW), { code: 'conflict', message: /second.*ancel/ })

      assert.deepEqual(await snapshot(store), before)
      const events = [warningEvent(place, 'it goes on')]
      await store.commit(commitOf('root-a', { turns: [next(queued, { state: 'ended' })], events }))
      assert.equal(await archive.remove('root-a', { ...HOW, seq: 2 }), undefined)
      assert.equal((await archive.remove('root-a', { ...HOW, seq: 3 }))?.seq, 3)
    },
  ],
  [
    'of what is not there, or is no root, nothing is deleted, whatever its id',
    async (store) => {
      const { archive } = store
      if (archive === undefined) return
      await store.commit(endedTree('root-a'))
      const before = await snapshot(store)

      for (const id of [
        'nowhere',
        '',
        '__proto__',
        'constructor',
        'root-a-child',
        'root-a-turn',
        "'; DROP TABLE rows",
      ]) {
        assert.equal(await archive.remove(id, HOW), undefined)
      }

      assert.deepEqual(await snapshot(store), before)
      await store.commit(endedTree('__proto__'))
      assert.equal((await archive.remove('__proto__', HOW))?.rootId, '__proto__')
      assert.equal(await archive.remove('__proto__', HOW), undefined)
      assert.equal((await archive.tombstones()).length, 1)
    },
  ],
  [
    'a text lives as long as a tree that needs it',
    async (store) => {
      const { archive } = store
      if (archive === undefined) return
      await store.commit(endedTree('root-a'))
      await store.commit(endedTree('root-b'))

      await archive.remove('root-a', HOW)
      assert.equal((await store.tree('root-b')).body(sha256(SHARED)), SHARED)
      assert.equal((await store.tree('root-a')).body(sha256('own text of root-a')), undefined)
      await archive.remove('root-b', HOW)
      for (const rootId of ['root-a', 'root-b']) {
        assert.equal((await store.tree(rootId)).body(sha256(SHARED)), undefined)
      }
    },
  ],
  [
    'what was deleted is taken again as it was, and nothing else in its place',
    async (store) => {
      const { archive } = store
      if (archive === undefined) return
      await store.commit(endedTree('root-a'))
      const early = await archive.read('root-a')
      await store.commit(commitOf('root-a', { events: [warningEvent(placeIn('root-a'), 'later')] }))
      const whole = await archive.read('root-a')
      const before = await snapshot(store)
      await archive.remove('root-a', HOW)
      assert.ok(early !== undefined && whole !== undefined)

      await assert.rejects(async () => archive.restore(early), { code: 'conflict', message: /was deleted at/ })
      await assertGone(store, 'root-a')
      const stones = await archive.tombstones()
      await archive.restore(whole)

      assert.deepEqual(await archive.tombstones(), [])
      assert.equal(stones.length, 1, 'a list that was given stays as it is')
      assert.deepEqual(await snapshot(store), before)
      assert.equal((await archive.remove('root-a', HOW))?.hash, whole.records.at(-1)?.hash)
    },
  ],
  [
    'a tree that is there already is imported again without a change, and not once it has gone on',
    async (store) => {
      if (store.archive === undefined) return
      const tree = await recordedTree()
      const lines = [...toLines(tree)]
      const runtime = createRuntime({ store })
      await runtime.import(lines)
      const before = await snapshot(store)

      assert.equal(await runtime.import(lines), tree.rootId)

      assert.deepEqual(await snapshot(store), before)
      await store.commit(commitOf(tree.rootId, { events: [warningEvent(placeIn(tree.rootId), 'later')] }))
      await assert.rejects(runtime.import(lines), { code: 'conflict' })
    },
  ],
  [
    'an id that was deleted may be used again; both trees leave a tombstone',
    async (store) => {
      const { archive } = store
      if (archive === undefined) return
      await deleteTwice(store, 6000)

      const stones = await archive.tombstones()
      assert.deepEqual(
        stones.map(({ rootId, reason }) => [rootId, reason]),
        [
          ['root-a', 'ttl'],
          ['root-a', 'maximum'],
        ],
      )
      assert.deepEqual(await archive.tombstone('root-a'), stones.at(-1))
      await assert.rejects(async () => store.commit(commitOf('root-a', { turns: [turnRow(placeIn('root-a'))] })), {
        code: 'conflict',
      })
    },
  ],
  [
    'of two trees with one id the one that was deleted last is told of, also where the clock was set back meanwhile',
    async (store) => {
      const { archive } = store
      if (archive === undefined) return
      const last = await deleteTwice(store, HOW.at - 1000)

      assert.deepEqual(await archive.tombstone('root-a'), last)
      assert.deepEqual(await archive.tombstone('root-a-child-turn'), last)
    },
  ],
]

export const durableRemoveLaws: readonly DurableLaw[] = [
  [
    'tombstones are the same after closing and opening again, and no number is given twice',
    async (open) => {
      const first = await open()
      if (first.archive === undefined) return
      await first.commit(endedTree('root-a'))
      await first.commit(endedTree('root-b'))
      await first.archive.remove('root-b', HOW)
      const stones = [...(await first.archive.tombstones())]
      await first.close()

      const second = await open()

      assert.deepEqual(await second.archive?.tombstones(), stones)
      await second.commit(endedTree('root-c'))
      assert.deepEqual(await idsOf(second), ['root-c', 'root-a'])
      assert.equal((await second.events('root-c', 0, 9)).length, 2)
      assert.deepEqual((await second.archive?.verify())?.findings, [])
    },
  ],
]

export const sharedRemoveLaws: readonly DurableLaw[] = [
  [
    'of two handles that delete a tree one does, and what the other commits to it is refused',
    async (open) => {
      const [one, two] = [await open(), await open()]
      if (one.archive === undefined) return
      await one.commit(endedTree('root-a'))
      assert.notEqual((await two.tree('root-a')).turn('root-a-turn'), undefined)
      const known = (await two.tree('root-a')).conversation('root-a')
      assert.ok(known)

      const stones = await Promise.all([one.archive.remove('root-a', HOW), two.archive?.remove('root-a', HOW)])

      assert.equal(stones.filter((stone): stone is Tombstone => stone !== undefined).length, 1)
      for (const store of [one, two]) {
        assert.equal((await store.archive?.tombstones())?.length, 1)
        await assertGone(store, 'root-a')
      }
      const late = commitOf('root-a', { conversations: [next(known)] })
      await assert.rejects(async () => two.commit(late), { code: 'conflict' })
      const more = commitOf('root-a', { events: [warningEvent(placeIn('root-a'), 'late')] })
      await assert.rejects(async () => two.commit(more), { code: 'conflict', message: /no tree root-a/ })
    },
  ],
]

/** A tree of a run that is over, with a record of two commits, as a store gives it that keeps one. */
async function recordedTree(): Promise<WholeTree> {
  const store = memoryStore()
  const clerk = agent({ name: 'clerk', instructions: '', model: scriptedModel(['ok']) })
  const { conversationId } = await createRuntime({ store }).run(clerk, 'go').result
  const whole = await store.archive?.read(conversationId)
  const first = whole?.records.at(-1)
  assert.ok(whole !== undefined && first !== undefined)
  const later = { kind: 'mutate', at: first.at, seq: first.seq, events: packEvents([]), marks: '' }
  return { ...whole, records: [first, { ...later, hash: chainHash(first.hash, later) }] }
}

/** Makes a root with a child, both ended, with one row of everything. */
function endedTree(rootId: Id): Commit {
  const place = placeIn(rootId)
  const child = { ...placeIn(`${rootId}-child`), rootId }
  const ended = { state: 'ended', endedAt: 2000, outcome: outcomeOf(place.turnId, rootId) } as const
  const own = `own text of ${rootId}`
  return commitOf(rootId, {
    conversations: [
      conversationRow(rootId, { owner: rootId === 'root-a' ? 'ann' : null }),
      conversationRow(child.conversationId, { rootId, type: 'sub_agent', depth: 1, parentConversationId: rootId }),
    ],
    turns: [
      turnRow(place, ended),
      turnRow(child, { ...ended, outcome: outcomeOf(child.turnId, child.conversationId) }),
    ],
    nodes: [
      nodeRow(place, `${rootId}-1`, { state: 'finished', output: { bodyRef: sha256(SHARED) } }),
      nodeRow(place, `${rootId}-2`, { ordinal: 1, state: 'finished', output: { bodyRef: sha256(own) } }),
      nodeRow(child, `${rootId}-3`, { state: 'finished' }),
    ],
    edges: [edgeRow(place, `${rootId}-1`, `${rootId}-2`)],
    links: [linkRow(place, child.turnId, { childConversationId: child.conversationId })],
    bodies: [SHARED, own].map((text) => ({ hash: sha256(text), text })),
    events: [warningEvent(place, 'one'), warningEvent(child, 'two')],
  })
}

async function headOf(archive: Archive, rootId: Id): Promise<string | undefined> {
  return (await archive.read(rootId))?.records.at(-1)?.hash
}

async function idsOf(store: Store): Promise<Id[]> {
  return (await store.roots({ limit: 9 })).map(({ id }) => id)
}

async function assertGone(store: Store, rootId: Id): Promise<void> {
  const turnId = `${rootId}-turn`
  const childTurnId = `${rootId}-child-turn`
  const tree = await store.tree(rootId)
  assert.deepEqual(
    [
      tree.conversation(rootId),
      tree.conversation(`${rootId}-child`),
      tree.turn(turnId),
      tree.turn(childTurnId),
      tree.node(`${rootId}-1`),
      tree.link(childTurnId),
      await store.rootOf(rootId),
      await store.rootOf(childTurnId),
      await store.rootOf(`${rootId}-1`),
    ],
    new Array(9).fill(undefined),
  )
  assert.deepEqual(
    [
      tree.turnsOf(rootId, { limit: 9 }),
      tree.nodesOf(turnId),
      tree.edgesFrom(`${rootId}-1`),
      tree.linksOf(turnId),
      await store.events(rootId, 0, 9),
      await store.conversations({ rootId, limit: 9 }),
      await store.findIds(turnId, 9),
    ],
    new Array(7).fill([]),
  )
  assert.equal(tree.lastSeq(rootId), 0)
}

/** Deletes a tree and later another one with the same id. Returns the second tombstone. */
async function deleteTwice(store: Store, at: number): Promise<Tombstone | undefined> {
  await store.commit(endedTree('root-a'))
  await store.archive?.remove('root-a', HOW)
  await store.commit(endedTree('root-a'))
  assert.deepEqual(await idsOf(store), ['root-a'])
  return store.archive?.remove('root-a', { at, reason: 'maximum' })
}
