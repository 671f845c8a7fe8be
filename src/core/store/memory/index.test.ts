import { expect, test } from 'vitest'
import { storeConformance } from '../../../testing/conformance/store-conformance.ts'
import {
  commitOf,
  next,
  nodeRow,
  placeIn,
  treeCommit,
  turnRow,
  warningEvent,
} from '../../../testing/conformance/store-rows.ts'
import type { LocalStore } from '../store.ts'
import { memoryStore } from './index.ts'
import { reloadTables } from './snapshot.ts'
import { emptyTables } from './tables.ts'

const reopen = (store: LocalStore) => store.reopen()

storeConformance({ name: 'memory', open: () => memoryStore(), durable: false, reopen, test })

test('only what was planned on the very rows that are there is taken without a check', async () => {
  const store = memoryStore()
  await store.commit(treeCommit('a', {}))
  const planned = { ...commitOf('a', { turns: [next(turnRow(placeIn('a')))] }), plannedOn: store.writes?.() }

  store.reopen()
  await store.commit(commitOf('a', { turns: [next(turnRow(placeIn('a')))] }))

  expect(() => store.commit(planned)).toThrow(/version/)
  expect(() => store.commit({ ...planned, plannedOn: undefined })).toThrow(/version/)
})

test('beyond `keep` the tree that ended first is forgotten whole', async () => {
  const store = memoryStore({ keep: 2 })
  for (const id of ['a', 'b', 'c']) await store.commit(full(id))

  for (const id of ['b', 'a', 'c']) await end(store, id)

  expect(store.roots({ limit: 9 }).map(({ id }) => id)).toEqual(['c', 'a'])
  const { turnId } = placeIn('b')
  expect([store.conversation('b'), store.turn(turnId), store.node('b-node')]).toEqual([undefined, undefined, undefined])
  expect([store.nodesOf(turnId), store.turnsOf('b', { limit: 1 }), store.events('b', 0, 9)]).toEqual([[], [], []])
  expect([store.body('only-b'), store.lastSeq('b')]).toEqual([undefined, 0])
  expect(store.runnable({ now: 0, limit: 9, kinds: ['task'], agents: ['editor'] }).map(({ id }) => id)).toEqual([
    'a-node',
    'c-node',
  ])
})

test('any number of tombstones is read back', () => {
  const tables = emptyTables()
  const stone = { rootId: 'a', hash: '', seq: 0, agent: '', owner: null, at: 0, reason: 'maximum', conversations: [] }
  for (let n = 0; n < 250_000; n++) tables.tombstones.push(stone)

  expect(reloadTables(tables).tombstones).toHaveLength(250_000)
})

test('a text stays as long as one tree has it or names it', async () => {
  const store = memoryStore({ keep: 0 })
  for (const id of ['a', 'b']) await store.commit(full(id))
  const naming = nodeRow(placeIn('c'), 'c-node', { output: { bodyRef: 'both' } })
  await store.commit(treeCommit('c', { nodes: [naming] }))

  await end(store, 'a')
  await end(store, 'b')
  expect([store.body('both'), store.body('only-a')]).toEqual(['shared', undefined])

  await end(store, 'c')
  expect(store.body('both')).toBeUndefined()
})

test('a tree that gets another turn is not ended any more', async () => {
  const store = memoryStore({ keep: 1 })
  await store.commit(full('a'))
  await end(store, 'a')
  const again = turnRow({ ...placeIn('a'), turnId: 'again' }, { ordinal: 1, state: 'queued' })
  await store.commit(commitOf('a', { turns: [again] }))

  for (const id of ['b', 'c']) {
    await store.commit(full(id))
    await end(store, id)
  }

  expect(store.roots({ limit: 9 }).map(({ id }) => id)).toEqual(['c', 'a'])
})

test('forgetting goes on after reopening, in the same order', async () => {
  const store = memoryStore({ keep: 2 })
  for (const id of ['a', 'b', 'c']) await store.commit(full(id))
  await end(store, 'b')
  await end(store, 'a')

  store.reopen()
  await end(store, 'c')

  expect(store.roots({ limit: 9 }).map(({ id }) => id)).toEqual(['c', 'a'])
})

test('nothing is forgotten when keep is Infinity', async () => {
  const store = memoryStore({ keep: Number.POSITIVE_INFINITY })
  for (let index = 0; index < 1500; index++) {
    await store.commit(full(`r${index}`))
    await end(store, `r${index}`)
  }

  expect(store.roots({ limit: 9999 })).toHaveLength(1500)
})

test('rows are kept by reference, and reopening replaces them by equal ones', async () => {
  const store = memoryStore()
  const commit = full('a')
  await store.commit(commit)
  expect(store.node('a-node')).toBe(commit.nodes[0])

  store.reopen()

  expect(store.node('a-node')).not.toBe(commit.nodes[0])
  expect(store.node('a-node')).toEqual(commit.nodes[0])
})

type MemoryStore = ReturnType<typeof memoryStore>

function full(id: string) {
  const place = placeIn(id)
  return treeCommit(id, {
    nodes: [nodeRow(place, `${id}-node`)],
    bodies: [
      { hash: `only-${id}`, text: id },
      { hash: 'both', text: 'shared' },
    ],
    events: [warningEvent(place, id)],
  })
}

async function end(store: MemoryStore, id: string): Promise<void> {
  await store.commit(commitOf(id, { kind: 'end', turns: [next(turnRow(placeIn(id)), { state: 'ended' })] }))
}

test('a commit of very many turns, as an import is, is checked without looking through all of them for each node', async () => {
  let looks = 0
  const places = Array.from({ length: 500 }, (_, at) => ({ ...placeIn('a'), turnId: `turn-${at}` }))
  const turns = places.map((place, ordinal) => {
    const row = turnRow(place, { ordinal, state: 'ended' })
    const id = () => {
      looks++
      return place.turnId
    }
    return Object.defineProperty(row, 'id', { get: id, enumerable: true })
  })
  const nodes = places.map((place) => nodeRow(place, `${place.turnId}-node`, { state: 'finished', endedAt: 1 }))

  await memoryStore().commit(treeCommit('a', { turns, nodes }))

  expect(looks).toBeLessThan(20 * places.length)
})

test('a closed store does not reopen', async () => {
  const store = memoryStore()
  await store.close()

  expect(() => store.reopen()).toThrow(expect.objectContaining({ code: 'store_closed' }))
})
