import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Commit } from '../../core/graph/commit.ts'
import type { Id, Node } from '../../core/graph/rows.ts'
import type { Store, StoreChange } from '../../core/store/store.ts'
import { snapshot } from './store-commit-laws.ts'
import { fullCommit } from './store-read-laws.ts'
import { commitOf, next, nodeRow, placeIn, treeCommit, warningEvent } from './store-rows.ts'

/** A law with its check. `open` opens the same rows again; the suite closes the store. */
export type DurableLaw = readonly [sentence: string, check: (open: () => Promise<Store>) => Promise<void>]

const place = placeIn('root-a')
/** How many commits a reader in another handle follows. */
const VERSIONS = 20

export const durableLaws: readonly DurableLaw[] = [
  [
    'rows are the same after closing and opening again',
    async (open) => {
      const first = await open()
      await first.commit(fullCommit())
      const before = await snapshot(first)
      await first.close()

      const second = await open()

      assert.deepEqual(await snapshot(second), before)
    },
  ],
]

/** Laws of a store that only one handle may have open. */
export const exclusiveLaws: readonly DurableLaw[] = [
  [
    'a second handle is refused while the first is open, changes nothing, and opens when that is closed',
    async (open) => {
      const first = await open()
      await first.commit(treeCommit('root-a'))

      await assert.rejects(open, { code: 'store_busy' })
      await assert.rejects(open, { code: 'store_busy' })

      await first.commit(treeCommit('root-b'))
      await first.close()
      const second = await open()
      assert.deepEqual(
        (await second.roots({ limit: 9 })).map(({ id }) => id),
        ['root-b', 'root-a'],
      )
    },
  ],
]

/** Laws of a store that any number of processes may have open. */
export const sharedLaws: readonly DurableLaw[] = [
  [
    'two handles see, after `await tree()`, what the other committed, and respect it',
    async (open) => {
      const [one, two] = [await open(), await open()]
      const node = nodeRow(place, 'shared')
      await one.commit(treeCommit('root-a', { nodes: [node], events: [warningEvent(place, 'one')] }))
      assert.deepEqual((await two.tree('root-a')).node('shared'), node)

      await two.commit(commitOf('root-a', { nodes: [next(node)], events: [warningEvent(place, 'two')] }))

      assert.equal((await one.tree('root-a')).node('shared')?.version, 2)
      assert.deepEqual(
        (await one.events('root-a', 0, 9)).map(({ seq }) => seq),
        [1, 2],
      )
      await assert.rejects(async () => one.commit(commitOf('root-a', { nodes: [next(node)] })), { code: 'conflict' })
    },
  ],
  [
    'writers on two handles take turns: nobody waits for ever and nothing is lost',
    async (open) => {
      const stores = [await open(), await open()]
      await stores[0]?.commit(treeCommit('root-a'))
      const add = (store: Store, name: string) =>
        store.commit(commitOf('root-a', { events: [warningEvent(place, name)] }))

      await Promise.all(
        stores.flatMap((store, n) => Array.from({ length: 50 }, (_, index) => add(store, `${n}-${index}`))),
      )

      const events = (await stores[0]?.events('root-a', 0, 999)) ?? []
      assert.deepEqual(
        events.map(({ seq }) => seq),
        Array.from({ length: 100 }, (_, index) => index + 1),
      )
    },
  ],
  [
    'a watcher hears within half a second of what it may have to act on, not of its own commits, and no more after it ended',
    async (open) => {
      const [one, two] = [await open(), await open()]
      const heard: (StoreChange | null)[] = []
      const unwatch = one.watch((change) => heard.push(change))
      await one.commit(workIn('root-own'))
      await sleep(250)
      const count = () => heard.length
      assert.equal(count(), 0)

      await two.commit(workIn('root-a'))
      await until(() => count() > 0, 500)
      assert.equal(count(), 1)
      const [change] = heard
      if (change) assert.deepEqual([change.rootId, change.runnable], ['root-a', true])

      unwatch()
      await two.commit(workIn('root-b'))
      await sleep(250)
      assert.equal(count(), 1)
    },
  ],
  [
    'whoever has read an event sees the rows of its commit',
    async (open) => {
      const [one, two] = [await open(), await open()]
      const node = nodeRow(place, 'shared')
      await one.commit(treeCommit('root-a', { nodes: [node] }))
      assert.equal((await two.tree('root-a')).node('shared')?.version, 1)

      await Promise.all([writeVersions(one, node, VERSIONS), readVersions(two, VERSIONS)])
    },
  ],
]

/** Makes a tree with a node that nobody has claimed. */
function workIn(rootId: Id): Commit {
  return treeCommit(rootId, { nodes: [nodeRow(placeIn(rootId), `${rootId}-work`)], wakes: [{ id: rootId, at: null }] })
}

/** Commits versions of a node, each with one more node and an event that names it. */
async function writeVersions(store: Store, first: Node, count: number): Promise<void> {
  let node = first
  for (let ordinal = 1; ordinal <= count; ordinal++) {
    const added = nodeRow(place, `added-${ordinal}`, { ordinal })
    node = next(node)
    const event = { ...warningEvent(place, 'added'), nodeId: added.id }
    await store.commit(commitOf('root-a', { nodes: [node, added], events: [event] }))
    await sleep(ordinal % 3)
  }
}

/** Reads these events as they come, and the rows of each. */
async function readVersions(store: Store, count: number): Promise<void> {
  for (let read = 0; read < count; await sleep(1)) {
    for (const { seq, nodeId } of await store.events('root-a', read, 99)) {
      const tree = await store.tree('root-a')
      assert.ok((tree.node('shared')?.version ?? 0) > seq, `event ${seq} is there, its changed row is not`)
      assert.ok(tree.node(nodeId ?? ''), `event ${seq} is there, its new row is not`)
      assert.ok(tree.nodesOf(place.turnId).some(({ id }) => id === nodeId))
      assert.ok(tree.lastSeq('root-a') >= seq)
      read = seq
    }
  }
}

async function until(isDone: () => boolean, timeoutMs: number): Promise<void> {
  const deadline = Date.now() + timeoutMs
  while (!isDone()) {
    assert.ok(Date.now() < deadline, `nothing happened within ${timeoutMs} ms`)
    await sleep(5)
  }
}
