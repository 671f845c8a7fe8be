import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Registry, RegistryRow } from '../../core/store/registry.ts'
import type { Store } from '../../core/store/store.ts'
import type { DurableLaw } from './store-durable-laws.ts'
import type { Law } from './store-read-laws.ts'
import { outcomeOf, placeIn, treeCommit, turnRow } from './store-rows.ts'

/** Laws about rows that belong to no tree. */
export const registryLaws: readonly Law[] = [
  [
    'a row of the registry is read as it was put, by its kind and id, and is gone when it was dropped',
    async (store, reopen) => {
      const { registry } = store
      const data = { secret: 'ü\u0000"\\', list: [1, null, { deep: true }] }
      const row = rowOf('a', { owner: 'Zoë', at: 5, data })
      assert.equal(await registry.get('token', 'a'), undefined)
      await registry.put(row)
      await registry.put(rowOf('a', { kind: 'webhook' }))
      data.list.push(2)

      for (const open of [() => store, reopen]) {
        const opened = await open()
        const got = await opened.registry.get('token', 'a')
        assert.deepEqual(got, { ...row, data: { ...data, list: [1, null, { deep: true }] } })
        assert.deepEqual(await opened.registry.get('webhook', 'a'), rowOf('a', { kind: 'webhook' }))
        for (const id of ['', 'A', '__proto__', "a' OR 1"])
          assert.equal(await opened.registry.get('token', id), undefined)
      }
      const again = await reopen()
      await again.archive?.compact?.()
      assert.equal(await again.registry.drop('token', 'a'), true)
      assert.equal(await again.registry.drop('token', 'a'), false)
      assert.equal(await again.registry.get('token', 'a'), undefined)
      const last = await reopen()
      assert.equal(await last.registry.get('token', 'a'), undefined)
      assert.notEqual(await last.registry.get('webhook', 'a'), undefined)
    },
  ],
  [
    'version n of a row of the registry replaces version n - 1 and no other; version 1 is a new row',
    async ({ registry }) => {
      await refused(registry, rowOf('a', { version: 2 }))
      await registry.put(rowOf('a', { data: 'first' }))
      await refused(registry, rowOf('a', { data: 'second' }))
      await registry.put(rowOf('a', { version: 2, data: 'second', owner: 'bo' }))
      for (const version of [1, 2, 4]) await refused(registry, rowOf('a', { version }))
      assert.deepEqual(await registry.get('token', 'a'), rowOf('a', { version: 2, data: 'second', owner: 'bo' }))

      await registry.drop('token', 'a')
      await refused(registry, rowOf('a', { version: 3 }))
      await registry.put(rowOf('a', { data: 'anew' }))
      assert.equal((await registry.get('token', 'a'))?.data, 'anew')
      for (const version of [0, -1, 1.5, Number.NaN]) {
        await assert.rejects(async () => registry.put(rowOf('b', { version })), { code: 'invalid_input' })
      }
      assert.equal(await registry.get('token', 'b'), undefined)
    },
  ],
  [
    'rows of the registry are listed by id, of one kind, of one owner or of all, page by page',
    async (store, reopen) => {
      const owners = [null, 'ann', 'bo', 'ann', null]
      for (const [n, owner] of owners.entries()) await store.registry.put(rowOf(`t-${4 - n}`, { owner }))
      await store.registry.put(rowOf('t-9', { kind: 'webhook', owner: 'ann' }))

      for (const open of [() => store, reopen]) {
        const { registry } = await open()
        const ids = async (query: object) => (await registry.list('token', { limit: 9, ...query })).map(({ id }) => id)
        assert.deepEqual(await ids({}), ['t-0', 't-1', 't-2', 't-3', 't-4'])
        assert.deepEqual(await ids({ after: 't-1', limit: 2 }), ['t-2', 't-3'])
        assert.deepEqual(await ids({ owner: 'ann' }), ['t-1', 't-3'])
        assert.deepEqual(await ids({ owner: 'ann', after: 't-1' }), ['t-3'])
        assert.deepEqual(await ids({ owner: 'ann', limit: 1 }), ['t-1'])
        assert.deepEqual(await ids({ before: 't-3' }), ['t-2', 't-1', 't-0'])
        assert.deepEqual(await ids({ before: 't-9', after: 't-1', limit: 2 }), ['t-4', 't-3'])
        assert.deepEqual(await ids({ before: 't-3', owner: 'ann' }), ['t-1'])
        assert.deepEqual([...(await ids({ owner: 'nobody' })), ...(await ids({ limit: 0 }))], [])
        assert.deepEqual(await registry.list('key', { limit: 9 }), [])
      }
      const { registry } = await reopen()
      await registry.put(rowOf('t-1', { version: 2, owner: 'bo' }))
      const ofAnn = await registry.list('token', { owner: 'ann', limit: 9 })
      assert.deepEqual(
        ofAnn.map(({ id }) => id),
        ['t-3'],
      )
    },
  ],
  [
    'no export has rows of the registry, and deleting a tree drops none',
    async (store) => {
      const { archive, registry } = store
      await registry.put(rowOf('a', { data: 'not to be exported' }))
      const ended = turnRow(placeIn('root-a'), { state: 'ended', outcome: outcomeOf('root-a-turn', 'root-a') })
      await store.commit(treeCommit('root-a', { turns: [ended], nodes: [] }))
      if (archive === undefined) return

      assert.doesNotMatch(JSON.stringify(await archive.read('root-a')), /not to be exported/)
      assert.notEqual(await archive.remove('root-a', { at: 1, reason: 'test' }), undefined)
      assert.notEqual(await registry.get('token', 'a'), undefined)
      assert.deepEqual((await archive.verify()).findings, [])
    },
  ],
]

/** Laws of a store whose rows outlive the process. */
export const durableRegistryLaws: readonly DurableLaw[] = [
  [
    'rows of the registry are there after closing and opening again, in their newest version',
    async (open) => {
      const first = await open()
      await first.registry.put(rowOf('a', { data: 1 }))
      await first.registry.put(rowOf('a', { version: 2, data: 2 }))
      await first.registry.put(rowOf('b'))
      await first.registry.drop('token', 'b')
      await first.close()

      const { registry } = await open()
      assert.deepEqual(await registry.list('token', { limit: 9 }), [rowOf('a', { version: 2, data: 2 })])
      await refused(registry, rowOf('a', { version: 2 }))
    },
  ],
]

/** Laws of a store that any number of processes may have open. */
export const sharedRegistryLaws: readonly DurableLaw[] = [
  [
    'of two handles that replace the same row of the registry one is refused, and counts that both add to lose nothing',
    async (open) => {
      const stores = [await open(), await open()]
      const [one, two] = stores
      assert.ok(one && two)
      await one.registry.put(rowOf('a', { data: 0 }))
      assert.equal((await two.registry.get('token', 'a'))?.data, 0)

      await Promise.all(stores.flatMap((store) => Array.from({ length: 25 }, () => addOne(store))))

      assert.equal((await one.registry.get('token', 'a'))?.data, 50)
      assert.equal((await two.registry.get('token', 'a'))?.version, 51)
    },
  ],
  [
    'a watcher hears of a change of the registry that another handle made',
    async (open) => {
      const [one, two] = [await open(), await open()]
      let heard = 0
      const unwatch = one.watch(() => {
        heard++
      })
      await two.registry.put(rowOf('a'))
      for (let tries = 0; heard === 0 && tries < 40; tries++) await sleep(25)
      unwatch()
      assert.ok(heard > 0)
      assert.deepEqual(await one.registry.get('token', 'a'), rowOf('a'))
    },
  ],
]

function rowOf(id: string, fields: Partial<RegistryRow> = {}): RegistryRow {
  return { kind: 'token', id, owner: null, version: 1, at: 1000, data: null, ...fields }
}

async function refused(registry: Registry, row: RegistryRow): Promise<void> {
  await assert.rejects(async () => registry.put(row), { code: 'conflict', details: staleAt(row) })
}

function staleAt({ kind, id }: RegistryRow): object {
  return { table: 'registry', kind, id, stale: true }
}

async function addOne({ registry }: Store): Promise<void> {
  for (let tries = 0; ; tries++) {
    const row = await registry.get('token', 'a')
    assert.ok(row)
    try {
      return await registry.put({ ...row, version: row.version + 1, data: Number(row.data) + 1 })
    } catch (error) {
      if (tries > 500 || (error as { code?: unknown }).code !== 'conflict') throw error
      await sleep(Math.random() * 5)
    }
  }
}
