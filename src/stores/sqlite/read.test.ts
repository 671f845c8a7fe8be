import path, { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { Chance } from '../../../test/support/chance.ts'
import { tempFolder } from '../../../test/support/temp-folder.ts'
import { freshId } from '../../core/base/id.ts'
import { RowCache } from '../../core/store/row-cache.ts'
import {
  commitOf,
  conversationRow,
  placeIn,
  treeCommit,
  turnRow,
  warningEvent,
} from '../../testing/conformance/store-rows.ts'
import { commitTexts, writeCommit } from './commit.ts'
import { type Connection, connectTo } from './driver.ts'
import { sqliteStore } from './index.ts'
import { type RunQuery, sqliteGraph, sqliteReader } from './read.ts'
import { migrate } from './schema.ts'
import { CheckedSpans } from './spans.ts'

const folder = tempFolder(afterAll)
const open: Connection[] = []
afterAll(() => {
  for (const db of open) db.close()
})

test('the turns of a lane that was forgotten are read once, however long it is', () => {
  const lane = new Lane(5_000)
  lane.cache.clear()

  const first = lane.statements(() => lane.turns(4_999, 50))
  const again = lane.statements(() => [lane.turns(4_999, 50), lane.turns(4_980, 20), lane.newest(10)].flat())
  const middle = lane.statements(() => lane.turns(2_000, 20))
  const middleAgain = lane.statements(() => lane.turns(2_000, 20))
  lane.append()
  const after = lane.statements(() => lane.newest(51))

  // One for the list, one for all of its turns.
  expect([first, middle]).toEqual([2, 2])
  // Only the newest are not known to be that before they were asked for.
  expect(again).toBe(1)
  expect([middleAgain, after]).toEqual([0, 0])
})

test('turns are those of the file, in whatever order they are asked for, made and forgotten', () => {
  const chance = new Chance(4)
  for (let round = 0; round < 10; round++) {
    const lane = new Lane(chance.below(30))
    if (chance.is(0.8)) lane.cache.clear()
    for (let step = 0; step < 100; step++) {
      if (chance.is(0.1)) lane.append()
      if (chance.is(0.02)) lane.cache.clear()
      const limit = chance.below(12)
      if (chance.is(0.3)) expect(lane.newest(limit)).toEqual(lane.expected(Number.MAX_SAFE_INTEGER, limit))
      const last = chance.below(lane.count + 3) - 1
      expect(lane.turns(last, limit)).toEqual(lane.expected(last, limit))
    }
  }
})

test('a page of events is found in few steps, at both ends and in the middle of a long log', () => {
  const lane = new Lane(3_000)
  const seqs = (after: number, limit: number) => lane.reader.events('root', after, limit).map(({ seq }) => seq)
  const few = [0, 1, 17, 1_500, 2_998, 2_999, 3_000, 3_001, 9_999].map((after) => {
    const expected = Array.from({ length: 3 }, (_, at) => after + 1 + at).filter((seq) => seq <= 3_001)
    return lane.statements(() => expect(seqs(after, 3)).toEqual(expected))
  })

  expect(Math.max(...few)).toBeLessThan(30)
  expect(seqs(2_990, 5)).toEqual([2_991, 2_992, 2_993, 2_994, 2_995])
})

test('of a tree that is no longer kept nothing is left, not even lanes of which only turns were read', () => {
  const lane = new Lane(1)
  lane.fork('lane')
  lane.cache.clear()

  expect(lane.reader.turnsOf('lane', { limit: 1 })).toHaveLength(1)
  expect(lane.cache.home('lane')).toBeDefined()
  lane.append()
  for (let other = 0; other < 16; other++) lane.other(`root-${other}`)

  expect(['root', 'turn-0', 'lane'].map((id) => lane.cache.home(id))).toEqual([undefined, undefined, undefined])
})

/** A lane in a file of its own, one event to a turn, and how many statements it takes to read it. */
class Lane {
  count = 0
  readonly cache = new RowCache()
  private asked = 0
  private readonly db = connectTo(join(folder, `${open.length}.db`))
  private readonly read: RunQuery = (query) => query(this.counting())
  private readonly spans = new CheckedSpans('lanes')
  private readonly graph = sqliteGraph({ read: this.read, cache: () => this.cache, spans: () => this.spans })
  readonly reader = sqliteReader(this.graph, this.read)

  constructor(turns: number) {
    open.push(this.db)
    this.db.exec('PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY')
    migrate(this.db)
    this.db.exec('BEGIN')
    this.put(
      commitOf('root', { conversations: [conversationRow('root')], events: [warningEvent(placeIn('root'), 'made')] }),
    )
    while (this.count < turns) this.append()
    this.db.exec('COMMIT')
  }

  append(): void {
    const place = { ...placeIn('root'), turnId: `turn-${this.count}` }
    const turn = turnRow(place, { ordinal: this.count++, state: 'ended' })
    this.put(commitOf('root', { turns: [turn], events: [warningEvent(place, 'said')] }))
  }

  /** One more lane of the tree, with a turn. */
  fork(id: string): void {
    const place = { rootId: 'root', conversationId: id, laneId: id, turnId: `${id}-turn` }
    this.put(commitOf('root', { conversations: [conversationRow(id, { rootId: 'root' })], turns: [turnRow(place)] }))
  }

  /** A tree that has ended. */
  other(id: string): void {
    const place = { ...placeIn(id), turnId: `${id}-turn` }
    this.put(commitOf(id, { conversations: [conversationRow(id)], turns: [turnRow(place, { state: 'ended' })] }))
  }

  turns(last: number, limit: number): string[] {
    return this.reader.turnsOf('root', { last, limit }).map(({ id }) => id)
  }

  newest(limit: number): string[] {
    return this.reader.turnsOf('root', { limit }).map(({ id }) => id)
  }

  expected(last: number, limit: number): string[] {
    const end = Math.min(last + 1, this.count)
    return Array.from({ length: Math.max(0, end) }, (_, at) => `turn-${at}`).slice(limit === 0 ? end : -limit)
  }

  statements(work: () => unknown): number {
    this.asked = 0
    work()
    return this.asked
  }

  private put(commit: ReturnType<typeof commitOf>): void {
    const written = writeCommit({ db: this.db, graph: this.graph, cache: this.cache }, commit, commitTexts(commit))
    this.cache.putCommit(commit, written)
  }

  private counting(): Connection {
    this.asked++
    return this.db
  }
}

describe('finding rows by their ids', () => {
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
})
