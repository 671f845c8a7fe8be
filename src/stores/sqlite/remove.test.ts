import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { tempFolder } from '../../../test/support/temp-folder.ts'
import { sha256 } from '../../core/base/hash.ts'
import type { Commit } from '../../core/graph/commit.ts'
import type { LocalStore } from '../../core/store/store.ts'
import { commitOf, conversationRow, nodeRow, placeIn, turnRow } from '../../testing/conformance/store-rows.ts'

import { type Connection, connectTo } from './driver.ts'
import { sqliteStore } from './index.ts'
import { MIGRATIONS, schemaVersion } from './schema.ts'

const HOW = { at: 5000, reason: 'ttl' }
const TEXT = 'a long text'

let folder: string
let path: string
const opened: LocalStore[] = []

beforeEach(() => {
  folder = tempFolder()
  path = join(folder, 'rows.db')
})

afterEach(async () => {
  for (const store of opened.splice(0)) await store.close()
})

test('a file of the first schema learns which texts its trees need', async () => {
  const old = openStore()
  await old.commit(endedTree('root-a'))
  await old.commit(endedTree('root-b'))
  await old.close()
  change(
    'DROP TABLE stones; DROP TABLE stone_ids; DROP TABLE uses; DROP TABLE seals; DROP TABLE stretches; DROP TABLE registry; DROP TABLE trees; DROP TABLE waits; DROP TABLE changes; DROP TABLE spent; ALTER TABLE rows DROP COLUMN writer; ALTER TABLE rows DROP COLUMN size; PRAGMA user_version = 1',
  )
  expect(() => sqliteStore({ path, readOnly: true })).toThrow(/older version \(schema 1\). Open it once for writing/)

  const store = openStore()

  expect(withFile(schemaVersion)).toBe(MIGRATIONS.length)
  await store.archive?.remove('root-a', HOW)
  expect(store.body(sha256(TEXT))).toBe(TEXT)
  await store.archive?.remove('root-b', HOW)
  expect(store.body(sha256(TEXT))).toBeUndefined()
  expect((await store.archive?.verify())?.findings).toEqual([])
  expect(countAll()).toEqual({ rows: 0, keys: 0, bodies: 0, commits: 0, blocks: 0, uses: 0, stones: 2 })
})

test('what no row of the tree leads to goes with it', async () => {
  const store = openStore()
  const stray = { ...placeIn('stray'), rootId: 'root-a' }
  await store.commit(endedTree('root-a'))
  await store.commit(
    commitOf('root-a', {
      conversations: [
        conversationRow('stray', { rootId: 'root-a', type: 'sub_agent', parentConversationId: 'root-a' }),
      ],
      turns: [turnRow(stray, { state: 'ended' })],
    }),
  )

  const stone = await store.archive?.remove('root-a', HOW)

  expect(stone?.conversations.map(({ id }) => id)).toEqual(['root-a', 'stray'])
  expect(countAll()).toMatchObject({ rows: 0, keys: 0, commits: 0, stones: 1 })
})

test('a file from before the ids of tombstones had an index finds them afterwards', async () => {
  const old = openStore()
  await old.commit(endedTree('root-a'))
  const stone = await old.archive?.remove('root-a', HOW)
  await old.close()
  change(`DROP TABLE stone_ids; PRAGMA user_version = ${MIGRATIONS.length - 3}`)

  const { archive } = openStore()

  const ids = stone?.conversations.flatMap(({ id, runs }) => [id, ...runs]) ?? []
  expect(ids.length).toBeGreaterThan(1)
  for (const id of ids) expect(await archive?.tombstone(id)).toEqual(stone)
  expect(await archive?.tombstone('root-')).toBeUndefined()
  expect((await archive?.verify())?.findings).toEqual([])
})

test('a later change of a tombstone, or of what says which texts are needed, is found', async () => {
  const store = openStore()
  await store.commit(endedTree('root-a'))
  await store.commit(endedTree('root-b'))
  await store.archive?.remove('root-b', HOW)

  for (const [sql, back] of [
    ["UPDATE stones SET data = replace(data, 'ttl', 'TTL')", "UPDATE stones SET data = replace(data, 'TTL', 'ttl')"],
    ['UPDATE stones SET n = n + 1048576', 'UPDATE stones SET n = n - 1048576'],
    ["UPDATE stones SET hash = hash || 'x'", 'UPDATE stones SET hash = substr(hash, 1, 43)'],
    ["UPDATE stone_ids SET id = id || 'x'", 'UPDATE stone_ids SET id = substr(id, 1, length(id) - 1)'],
    ["INSERT INTO stone_ids VALUES ('root-a', 7)", 'DELETE FROM stone_ids WHERE n = 7'],
    ['UPDATE uses SET tree = tree + 1', 'UPDATE uses SET tree = tree - 1'],
    ["UPDATE uses SET hash = hash || 'x'", 'UPDATE uses SET hash = substr(hash, 1, 64)'],
    ["INSERT INTO keys SELECT 'new', 'n', n FROM keys WHERE slot = 'n' LIMIT 1", "DELETE FROM keys WHERE id = 'new'"],
    ["INSERT INTO keys SELECT 'new', 'c', n FROM keys WHERE slot = 'c' LIMIT 1", "DELETE FROM keys WHERE id = 'new'"],
    ["INSERT INTO keys SELECT 'new', 't', n FROM keys WHERE slot = 't' LIMIT 1", "DELETE FROM keys WHERE id = 'new'"],
    ['DELETE FROM uses', `INSERT INTO uses VALUES (1, '${sha256(TEXT)}')`],
  ] as const) {
    change(sql)
    expect((await store.archive?.verify())?.findings.length, sql).toBeGreaterThan(0)
    change(back)
    expect((await store.archive?.verify())?.findings, back).toEqual([])
  }
})

test('a tree with a row that cannot be read stays, and that is said', async () => {
  const store = openStore()
  await store.commit(endedTree('root-a'))
  change(`UPDATE rows SET data = '{' WHERE data ->> '$.node' IS NOT NULL`)

  await expect(async () => store.archive?.remove('root-a', HOW)).rejects.toThrow(/cannot be read.*audit --verify/)

  expect(await store.archive?.tombstones()).toEqual([])
  expect(countAll()).toMatchObject({ rows: 3, stones: 0 })
})

test('a store that is only read deletes nothing, but says what would go', async () => {
  const writer = openStore()
  await writer.commit(endedTree('root-a'))
  const reader = sqliteStore({ path, readOnly: true })
  opened.push(reader)

  await expect(async () => reader.archive?.remove('root-a', HOW)).rejects.toMatchObject({ code: 'store_readonly' })
  expect(await reader.archive?.remove('root-a', { ...HOW, dryRun: true })).toMatchObject({ rootId: 'root-a' })

  expect(writer.conversation('root-a')).toBeDefined()
})

test('to delete a tree costs what it is large, not what the file is', async () => {
  const store = openStore()
  for (let n = 0; n < 400; n++) await store.commit(endedTree(`root-${n}`))
  const started = performance.now()

  for (let n = 0; n < 100; n++) await store.archive?.remove(`root-${n}`, HOW)

  expect((performance.now() - started) / 100).toBeLessThan(20)
  expect(store.roots({ limit: 999 })).toHaveLength(300)
})

function openStore(): LocalStore {
  const store = sqliteStore(path)
  opened.push(store)
  return store
}

function withFile<T>(use: (db: Connection) => T): T {
  const db = connectTo(path)
  try {
    return use(db)
  } finally {
    db.close()
  }
}

function change(sql: string): void {
  withFile((db) => db.exec(sql))
}

function countAll(): Record<string, number> {
  const tables = ['rows', 'keys', 'bodies', 'commits', 'blocks', 'uses', 'stones']
  return withFile((db) =>
    Object.fromEntries(tables.map((table) => [table, Number(db.first(`SELECT count(*) FROM ${table}`)?.[0])])),
  )
}

function endedTree(rootId: string): Commit {
  const place = placeIn(rootId)
  return commitOf(rootId, {
    conversations: [conversationRow(rootId)],
    turns: [turnRow(place, { state: 'ended' })],
    nodes: [nodeRow(place, `${rootId}-1`, { state: 'finished', output: { bodyRef: sha256(TEXT) } })],
    bodies: [{ hash: sha256(TEXT), text: TEXT }],
  })
}
