import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Store } from '../../store/store.ts'
import { snapshot } from './store-commit-laws.ts'
import { fullCommit } from './store-read-laws.ts'
import { commitOf, next, nodeRow, placeIn, treeCommit, warningEvent } from './store-rows.ts'

/** A law with its check. `open` opens the same rows again; the suite closes the store. */
export type DurableLaw = readonly [sentence: string, check: (open: () => Promise<Store>) => Promise<void>]

const place = placeIn('root-a')

export const durableLaws: readonly DurableLaw[] = [
  [
    'rows are the same after closing and opening again',
    async (open) => {
      const first = await open()
      await first.commit(fullCommit())
      const before = snapshot(first)
      await first.close()

      const second = await open()

      assert.deepEqual(snapshot(second), before)
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
        second.roots({ limit: 9 }).map(({ id }) => id),
        ['root-b', 'root-a'],
      )
    },
  ],
]

/** Laws of a store that any number of processes may have open. */
export const sharedLaws: readonly DurableLaw[] = [
  [
    'two handles see and respect what the other committed',
    async (open) => {
      const [one, two] = [await open(), await open()]
      const node = nodeRow(place, 'shared')
      await one.commit(treeCommit('root-a', { nodes: [node], events: [warningEvent(place, 'one')] }))
      assert.deepEqual(two.node('shared'), node)

      await two.commit(commitOf('root-a', { nodes: [next(node)], events: [warningEvent(place, 'two')] }))

      assert.equal(one.node('shared')?.version, 2)
      assert.deepEqual(
        one.events('root-a', 0, 9).map(({ seq }) => seq),
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

      const events = stores[0]?.events('root-a', 0, 999) ?? []
      assert.deepEqual(
        events.map(({ seq }) => seq),
        Array.from({ length: 100 }, (_, index) => index + 1),
      )
    },
  ],
  [
    'a watcher hears of commits of others within half a second, not of its own, and no more after it ended',
    async (open) => {
      const [one, two] = [await open(), await open()]
      let heard = 0
      const unwatch = one.watch(() => heard++)
      await one.commit(treeCommit('root-own'))
      await sleep(250)
      assert.equal(heard, 0)

      await two.commit(treeCommit('root-a'))
      await until(() => heard > 0, 500)
      assert.equal(heard, 1)

      unwatch()
      await two.commit(treeCommit('root-b'))
      await sleep(250)
      assert.equal(heard, 1)
    },
  ],
]

async function until(isDone: () => boolean, timeoutMs: number): Promise<void> {
  const deadline = Date.now() + timeoutMs
  while (!isDone()) {
    assert.ok(Date.now() < deadline, `nothing happened within ${timeoutMs} ms`)
    await sleep(5)
  }
}
