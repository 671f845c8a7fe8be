import type { RunEvent } from 'legate'
import { memoryStore } from 'legate/store/memory'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../../src/core/base/clock.ts'
import { KeepAlive } from '../../../src/core/conversation/ends.ts'
import { Feeds } from '../../../src/core/conversation/feeds.ts'
import { followTree } from '../../../src/core/conversation/follow.ts'
import { commitOf, placeIn, treeCommit, warningEvent } from '../../../src/testing/conformance/store-rows.ts'

const ROOT = 'root-a'
const PER_COMMIT = 1_000
/** As many events as the buffer of a tree may hold. */
const LIMIT = 200_000

interface LongTree {
  readonly feeds: Feeds
  /** Commits so many events. */
  readonly add: (events: number) => void
  readonly read: () => Promise<AsyncIterator<RunEvent>>
  readonly buffered: () => number
  readonly last: () => number
}

function longTree(): LongTree {
  const store = memoryStore()
  const feeds = new Feeds(store, systemClock, () => 'me')
  const keepAlive = new KeepAlive()
  const last = () => store.tree(ROOT).lastSeq(ROOT)
  store.commit(treeCommit(ROOT))
  onTestFinished(() => store.close())
  const addOnce = () => {
    const before = last()
    const commit = commitOf(ROOT, {
      events: Array.from({ length: PER_COMMIT }, (_, at) => warningEvent(placeIn(ROOT), `${at}`)),
    })
    store.commit(commit)
    feeds.committed({ ...commit, events: store.events(ROOT, before, PER_COMMIT) })
  }
  return {
    feeds,
    last,
    add: (events) => {
      for (let done = 0; done < events; done += PER_COMMIT) addOnce()
    },
    read: async () => followTree({ store, feeds, keepAlive, after: 0, live: false }, ROOT),
    buffered: () => {
      const { trees } = feeds as unknown as { trees: Map<string, { feed: { buffer: unknown[] } }> }
      return trees.get(ROOT)?.feed.buffer.length ?? 0
    },
  }
}

async function readTo(reader: AsyncIterator<RunEvent>, from: number, to: number): Promise<void> {
  for (let seq = from; seq <= to; seq++) {
    const { value } = await reader.next()
    if (value?.seq !== seq) throw new Error(`expected ${seq}, got ${value?.seq}`)
  }
}

test('readers of a tree that was long before they came read pages of the store, and share what comes', async () => {
  const { add, read, buffered, last } = longTree()
  add(10_000)
  const readers = await Promise.all(Array.from({ length: 10 }, read))
  const end = last()
  for (const reader of readers) await readTo(reader, 1, end)
  add(3_000)
  for (const reader of readers) await readTo(reader, end + 1, end + 3_000)

  expect(buffered()).toBeLessThan(5_001)
  for (const reader of readers) await reader.return?.()
  expect(buffered()).toBe(0)
})

test('a tree that grows while somebody reads it fills no more than the buffer, and who is slow still reads all of it', async () => {
  const { add, read, buffered, last } = longTree()
  const [quick, slow] = [await read(), await read()]
  let done = 0
  for (let round = 0; round < 5; round++) {
    add(50_000)
    await readTo(quick, done + 1, last())
    done = last()
    expect(buffered()).toBeLessThanOrEqual(LIMIT)
  }
  await readTo(slow, 1, done)
  const late = await read()
  await readTo(late, 1, done)
  add(1_000)
  for (const reader of [quick, slow, late]) await readTo(reader, done + 1, last())
}, 120_000)

test('1,000 readers share one buffer', async () => {
  const { add, read, buffered, last } = longTree()
  const readers = await Promise.all(Array.from({ length: 1_000 }, read))
  const before = last()
  add(1_000)
  expect(buffered()).toBe(before + 1_000)
  for (const reader of readers) await readTo(reader, 1, 20)
  for (const reader of readers) await reader.return?.()
  expect(buffered()).toBe(0)
})
