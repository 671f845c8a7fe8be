import path from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { tempFolder } from '../../../test/support/temp-folder.ts'
import { freshId } from '../../base/id.ts'
import { placeIn, treeCommit, turnRow } from '../../testing/conformance/store-rows.ts'
import { sqliteStore } from './index.ts'

let file: string

beforeEach(() => {
  const folder = tempFolder()
  file = path.join(folder, 'rows.db')
})

function opened() {
  const store = sqliteStore(file)
  onTestFinished(() => store.close())
  return store
}

test('what another process stores is found by one that knew it was not there', async () => {
  const [first, second] = [opened(), opened()]
  const now = Date.now()
  await first.commit(treeCommit(freshId(now)))

  for (const time of [now + 1, now + 2, now - 5_000, 2 ** 47]) {
    const id = freshId(time)
    expect(first.conversation(id)).toBeUndefined()
    await second.commit(treeCommit(id))
    await nextTurn()
    expect(first.conversation(id)?.id).toBe(id)
  }
})

test('what another process stores is found at once by one that hears of it', async () => {
  const first = opened()
  const now = Date.now()
  await first.commit(treeCommit(freshId(now)))
  // As in another process: what it commits is not told here.
  vi.resetModules()
  const elsewhere = (await import('./index.ts')).sqliteStore(file)
  onTestFinished(() => elsewhere.close())
  const root = freshId(now + 1)

  expect(first.conversation(root)).toBeUndefined()
  elsewhere.commit(treeCommit(root))

  expect(first.openTurns(10).map(({ rootId }) => rootId)).toContain(root)
  expect(first.conversation(root)?.id).toBe(root)
})

test('what the cache has let go is found again, also where ids do not grow', async () => {
  const store = opened()
  const now = Date.now()
  expect(store.conversation(freshId(now))).toBeUndefined()
  const ids = Array.from({ length: 40 }, (_, at) => freshId(now + (at % 7) * 1_000))

  for (const id of ids) {
    expect(store.conversation(id)).toBeUndefined()
    await store.commit(treeCommit(id, { turns: [turnRow(placeIn(id), { state: 'ended', endedAt: now })] }))
  }

  for (const id of ids) expect(store.conversation(id)?.id).toBe(id)
})

test('names that people give do not hide ids, nor ids names', async () => {
  const store = opened()
  const names = ['zebra', '0', '01', '0\u{1f600}', '\uffee', freshId(Date.now())]
  for (const name of names) {
    expect(store.conversation(name)).toBeUndefined()
    await store.commit(treeCommit(name))
  }
  await store.reopen()

  for (const name of names) expect(store.conversation(name)?.id).toBe(name)
  expect(store.conversation(freshId(Date.now() + 1))).toBeUndefined()
})
