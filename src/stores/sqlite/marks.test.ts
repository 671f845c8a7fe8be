import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { tempFolder } from '../../../test/support/temp-folder.ts'
import type { LocalStore } from '../../core/store/store.ts'
import {
  commitOf,
  conversationRow,
  edgeRow,
  next,
  nodeRow,
  placeIn,
  turnRow,
} from '../../testing/conformance/store-rows.ts'

import { type Connection, connectTo } from './driver.ts'
import { sqliteStore } from './index.ts'
import { sealStretches } from './marks.ts'

const place = placeIn('root')
let path: string
let store: LocalStore

beforeEach(async () => {
  path = join(tempFolder(), 'rows.db')
  store = sqliteStore(path)
  await store.commit(commitOf('root', { conversations: [conversationRow('root')], turns: [turnRow(place)] }))
})

afterEach(() => store.close())

/** Each node has an edge from the one before: two rows. */
async function addNodes(from: number, to: number): Promise<void> {
  for (let at = from; at < to; at++) {
    const edges = at === 0 ? [] : [edgeRow(place, nodeId(at - 1), nodeId(at))]
    await store.commit(commitOf('root', { nodes: [nodeRow(place, nodeId(at), { ordinal: at })], edges }))
  }
}

function nodeId(at: number): string {
  return `node-${String(at).padStart(8, '0')}`
}

function inFile<T>(use: (db: Connection) => T): T {
  const db = connectTo(path)
  try {
    db.exec('PRAGMA busy_timeout = 5000')
    return use(db)
  } finally {
    db.close()
  }
}

/** By their places in the turn. */
function sealed(): readonly unknown[] {
  return inFile((db) => db.all('SELECT n % 1048576 FROM stretches ORDER BY n').map(([n]) => n))
}

async function findings(): Promise<string[]> {
  return ((await store.archive?.verify())?.findings ?? []).map(({ type }) => type)
}

test('128 rows are sealed when 128 more came after them; the row of the turn is in no stretch', async () => {
  await addNodes(0, 128)
  expect(sealed()).toEqual([])

  await addNodes(128, 129)
  expect(sealed()).toEqual([1])
  await addNodes(129, 200)

  expect(sealed()).toEqual([1, 129])
  expect(await findings()).toEqual([])
})

test('what a commit adds at once is not sealed by it', async () => {
  const nodes = Array.from({ length: 600 }, (_, at) => nodeRow(place, nodeId(at), { ordinal: at }))
  await store.commit(commitOf('root', { nodes }))
  expect(sealed()).toEqual([])

  await addNodes(600, 660)

  expect(sealed()).toEqual([1, 129, 257, 385])
  expect(await findings()).toEqual([])
})

test('a stretch with a row that is written again is no longer sealed', async () => {
  await addNodes(0, 200)
  const node = store.node(nodeId(100))
  const turn = store.turn(place.turnId)
  if (node === undefined || turn === undefined) throw new Error('They are not there.')

  await store.commit(commitOf('root', { turns: [next(turn)] }))
  expect(sealed()).toEqual([1, 129])
  await store.commit(commitOf('root', { nodes: [next(node)] }))

  expect(sealed()).toEqual([1])
  expect(await findings()).toEqual([])
  store.reopen()
  expect(store.node(nodeId(100))).toEqual(next(node))
})

test('rows that are not what was written are not sealed', async () => {
  await addNodes(0, 200)
  const sealAgain = (change: string): readonly unknown[] => {
    inFile((db) => {
      db.exec(`SAVEPOINT changed; DELETE FROM stretches; ${change}`)
      const [last = 0] = db.first('SELECT max(n) FROM rows') ?? []
      sealStretches(db, { turnId: place.turnId, before: Number(last), last: Number(last) + 1_000 })
      db.exec('RELEASE changed')
    })
    return sealed()
  }

  expect(sealAgain('')).toEqual([1, 129, 257])
  expect(sealAgain(`UPDATE rows SET data = '{"edges":[[1,2,"s"]]}' WHERE n % 1048576 = 131`)).toEqual([1, 257])
  expect(sealAgain(`UPDATE rows SET data = 'no JSON' WHERE n % 1048576 = 20`)).toEqual([257])
  expect(sealAgain('DELETE FROM rows WHERE n % 1048576 = 300')).toEqual([])
})

test('with its tree a stretch is deleted', async () => {
  await addNodes(0, 200)
  const turn = store.turn(place.turnId)
  if (turn === undefined) throw new Error('It is not there.')
  await store.commit(commitOf('root', { turns: [next(turn, { state: 'ended' })] }))

  await store.archive?.remove('root', { at: 5000, reason: 'test' })

  expect(sealed()).toEqual([])
  expect(await findings()).toEqual([])
})
