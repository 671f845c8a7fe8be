import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { tempFolder } from '../../../test/support/temp-folder.ts'
import { verifyFile } from '../../../test/support/verify-sqlite.ts'
import { isLegateError } from '../../core/base/error.ts'
import { after, type Later } from '../../core/base/maybe.ts'
import type { Commit } from '../../core/graph/commit.ts'
import { chainHash } from '../../core/store/commit-chain.ts'
import type { LocalStore } from '../../core/store/store.ts'
import { snapshot } from '../../testing/conformance/store-commit-laws.ts'
import { storeConformance } from '../../testing/conformance/store-conformance.ts'
import {
  commitOf,
  conversationRow,
  edgeRow,
  next,
  nodeRow,
  placeIn,
  treeCommit,
  warningEvent,
} from '../../testing/conformance/store-rows.ts'
import { commitTexts } from './commit.ts'
import { connectTo } from './driver.ts'
import { sqliteStore } from './index.ts'
import { APPLICATION_ID } from './schema.ts'

const reopen = (store: LocalStore) => store.reopen()

storeConformance({
  name: 'sqlite',
  open: (folder) => sqliteStore(join(folder, 'legate.db')),
  durable: true,
  reopen,
  test,
})
storeConformance({
  name: 'sqlite (power)',
  open: (folder) => sqliteStore({ path: join(folder, 'legate.db'), durability: 'power' }),
  durable: true,
  test,
})
storeConformance({
  name: 'sqlite (together)',
  open: (folder) => {
    const store = sqliteStore(join(folder, 'legate.db'))
    return { ...store, commit: (commit) => inOne(store, commit) }
  },
  durable: true,
  reopen,
  test,
})

/** Commits as several nodes do that run at the same time. */
function inOne(store: LocalStore, commit: Commit): Later<void> {
  let refused: unknown
  const stored = store.together?.(() => {
    try {
      store.commit(commit)
    } catch (error) {
      refused = error
    }
  })
  return after(stored, () => {
    if (refused !== undefined) throw refused
  })
}

const place = placeIn('root-a')
let folder: string
let path: string

beforeEach(() => {
  folder = tempFolder()
  path = join(folder, 'legate.db')
})

test('a missing folder is not made: it may be a slip of the pen', () => {
  const deep = join(folder, 'a/legate.db')
  expect(() => sqliteStore(deep)).toThrow(
    `There is no folder ${join(folder, 'a')} for the store ${deep}. Make the folder first, or name another path.`,
  )
  expect(readdirSync(folder)).toEqual([])
})

test('the file is for its owner only, and after closing all is in the file', async () => {
  const deep = join(folder, 'deep.db')
  const store = sqliteStore(deep)
  await store.commit(treeCommit('root-a'))
  expect(statSync(deep).mode & 0o777).toBe(0o600)
  expect(statSync(`${deep}-wal`).mode & 0o777).toBe(0o600)

  await store.close()

  const log = statSync(`${deep}-wal`, { throwIfNoEntry: false })
  expect(log?.size ?? 0).toBe(0)
})

test.each([
  ['a text file', () => writeFileSync(path, 'not a database, but long enough to be one '.repeat(200))],
  ['a short file', () => writeFileSync(path, '{}')],
  ['a database without an owner', () => makeDatabase('CREATE TABLE users (id); INSERT INTO users VALUES (1)')],
  ['a database of another application', () => makeDatabase('PRAGMA application_id = 7; CREATE TABLE users (id)')],
  ['a database with a write-ahead log', () => makeDatabase('PRAGMA journal_mode = WAL; CREATE TABLE users (id)')],
])('%s is refused and left as it is', (_, make) => {
  make()
  const before = readFileSync(path)

  expect(() => sqliteStore(path)).toThrow(expect.objectContaining({ code: 'store_foreign_file' }))

  expect(messageOfOpening(path)).toContain(path)
  expect(readFileSync(path).equals(before)).toBe(true)
  expect(readdirSync(folder)).toEqual(['legate.db'])
})

test('a file of a newer version is refused and left as it is', () => {
  makeDatabase(`PRAGMA application_id = ${APPLICATION_ID}; CREATE TABLE future (id); PRAGMA user_version = 99`)
  const before = readFileSync(path)

  expect(() => sqliteStore(path)).toThrow(expect.objectContaining({ code: 'store_newer_schema' }))

  expect(messageOfOpening(path)).toMatch(/99.*Update this program/)
  expect(readFileSync(path).equals(before)).toBe(true)
})

test('a folder, an empty path, none at all and :memory: are refused', () => {
  for (const wrong of [folder, '', ':memory:', undefined as never, {} as never]) {
    expect(() => sqliteStore(wrong)).toThrow(expect.objectContaining({ code: 'store' }))
  }
  expect(() => sqliteStore(join(import.meta.filename, 'x.db'))).toThrow(expect.objectContaining({ code: 'store' }))
})

test('a lock that is held too long is told as busy, and the loop goes on meanwhile', async () => {
  const store = sqliteStore({ path, busyMs: 300 })
  await store.commit(treeCommit('root-a'))
  const other = connectTo(path)
  other.exec('BEGIN IMMEDIATE')
  let ticks = 0
  const timer = setInterval(() => ticks++, 10)

  await expect(store.commit(treeCommit('root-b'))).rejects.toMatchObject({ code: 'store_busy', isRetryable: true })
  expect(ticks).toBeGreaterThan(2)
  setTimeout(() => other.exec('ROLLBACK'), 100)
  await store.commit(treeCommit('root-b'))

  clearInterval(timer)
  other.close()
  await store.close()
})

test('the file itself refuses an edge between conversations', async () => {
  const store = sqliteStore(path)
  await store.commit(treeCommit('root-a'))
  await store.commit(treeCommit('root-b'))
  await store.close()
  const db = connectTo(path)
  const add = (to: string) => db.run("INSERT INTO edges VALUES (?, ?, 's')", ['root-a-turn-node', to])

  expect(() => add('root-b-turn-node')).toThrow(/one conversation/)
  expect(() => add('root-a-turn-node')).toThrow(/one conversation/)
  expect(() => add('nowhere')).toThrow(/one conversation/)
  expect(db.all('SELECT * FROM edges')).toEqual([])
  db.close()
})

test('a commit that fails in the middle of being written changes nothing, and is taken when it can be', async () => {
  const store = sqliteStore(path)
  await store.commit(treeCommit('root-a'))
  const before = await snapshot(store)
  const db = connectTo(path)
  // Bodies are written after the rows.
  db.exec("CREATE TRIGGER broken BEFORE INSERT ON bodies BEGIN SELECT RAISE(ABORT, 'broken'); END")
  const commit = commitOf('root-a', {
    nodes: [nodeRow(place, 'n-1', { ordinal: 9 })],
    bodies: [{ hash: 'a-body', text: 'text' }],
    events: [warningEvent(place, 'one')],
  })

  expect(() => store.commit(commit)).toThrow(/broken/)
  expect(await snapshot(store)).toEqual(before)
  expect(store.node('n-1')).toBeUndefined()
  db.exec('DROP TRIGGER broken')
  db.close()
  await store.commit(commit)
  expect([store.node('n-1')?.id, store.body('a-body')]).toEqual(['n-1', 'text'])
  await store.close()
})

test('a conversation inside a tree has no sequence of its own, and no commit extends it (I13)', async () => {
  const store = sqliteStore(path)
  const conversations = [conversationRow('root-a'), conversationRow('child', { rootId: 'root-a' })]
  await store.commit(treeCommit('root-a', { conversations, events: [warningEvent(place, 'one')] }))
  expect([store.lastSeq('child'), store.events('child', 0, 9)]).toEqual([0, []])
  const lost = commitOf('child', { events: [warningEvent(place, 'lost')] })
  expect(() => store.commit(lost)).toThrow(expect.objectContaining({ code: 'conflict' }))
  await store.close()
})

test('the chain of hashes covers rows and events of every commit', async () => {
  const store = sqliteStore(path)
  const node = nodeRow(place, 'n-1')
  const commits = [
    treeCommit('root-a', {
      nodes: [node, nodeRow(place, 'n-2', { ordinal: 1 })],
      events: [warningEvent(place, 'one')],
    }),
    commitOf('root-a', { nodes: [next(node)], edges: [edgeRow(place, 'n-1', 'n-2')] }),
    commitOf('root-a', { events: [warningEvent(place, 'two'), warningEvent(place, 'three')] }),
  ]
  let hash = ''
  let seq = 0
  for (const commit of commits) {
    const { marks, events } = commitTexts(commit)
    const { kind, at } = commit
    seq += commit.events.length
    hash = chainHash(hash, { kind, at, seq, events, marks })
    await store.commit(commit)
  }
  await store.close()

  expect(verifyFile(path).get('root-a')).toBe(hash)
})

function makeDatabase(sql: string): void {
  const db = connectTo(path)
  db.exec(sql)
  db.close()
  expect(existsSync(path)).toBe(true)
}

function messageOfOpening(file: string): string {
  try {
    sqliteStore(file)
  } catch (error) {
    if (isLegateError(error)) return error.message
  }
  return ''
}

test('a closed store does not reopen', async () => {
  const store = sqliteStore(path)
  await store.close()

  expect(() => store.reopen()).toThrow(expect.objectContaining({ code: 'store_closed' }))
})
