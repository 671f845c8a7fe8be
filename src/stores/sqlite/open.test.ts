import { copyFileSync, existsSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { tempFolder } from '../../../test/support/temp-folder.ts'
import { treeCommit } from '../../testing/conformance/store-rows.ts'
import { connectTo } from './driver.ts'
import { sqliteStore } from './index.ts'
import { openFile } from './open.ts'
import { APPLICATION_ID, MIGRATIONS, migrate, schemaVersion } from './schema.ts'

const PAGE = 1024
let folder: string
let file: string

beforeEach(() => {
  folder = tempFolder()
  file = path.join(folder, 'rows.db')
})

test.each([false, true])(
  'a file is whole whose log another process is just moving into it (readOnly: %s)',
  async (readOnly) => {
    const [live, moved, half] = ['live', 'moved', 'half'].map((name) => path.join(folder, `${name}.db`)) as [
      string,
      string,
      string,
    ]
    const writer = sqliteStore(live)
    onTestFinished(() => writer.close())
    await writer.commit(treeCommit('root-a'))
    for (const file of [moved, half]) copyFileSync(`${live}-wal`, `${file}-wal`)
    copyFileSync(live, moved)
    await sqliteStore(moved).close()
    // The first page has been moved, and names others that have not.
    copyFileSync(moved, half)
    truncateSync(half, PAGE)

    const store = sqliteStore({ path: half, readOnly })
    onTestFinished(() => store.close())

    expect(readFileSync(moved).length).toBeGreaterThan(PAGE)
    expect(store.conversation('root-a')?.id).toBe('root-a')
  },
)

test.each([
  ['a new file has', undefined, PAGE],
  ['an older file keeps its', 4096, 4096],
])('%s pages, and the log has equally many bytes until they are moved', (_, given, bytes) => {
  if (given !== undefined) {
    const db = connectTo(file)
    db.exec(`PRAGMA page_size = ${given}`)
    db.exec(`PRAGMA application_id = ${APPLICATION_ID}`)
    db.close()
  }
  const made = openFile({ path: file, durability: 'process', busyMs: 1_000, readOnly: false })
  onTestFinished(() => made.close())

  expect(made.first('PRAGMA page_size')).toEqual([bytes])
  expect(Number(made.first('PRAGMA wal_autocheckpoint')?.[0]) * bytes).toBe(32 * 1024 * 1024)
})

test('schema steps are taken one by one, each whole or not at all', () => {
  const db = connectTo(file)
  const one = 'CREATE TABLE one (id TEXT); INSERT INTO one VALUES (1);'
  migrate(db, [one])
  expect(schemaVersion(db)).toBe(1)

  const broken = [one, 'CREATE TABLE two (id TEXT);', 'CREATE TABLE three (id TEXT); INSERT INTO nowhere VALUES (1);']
  expect(() => migrate(db, broken)).toThrow(/nowhere/)
  expect(schemaVersion(db)).toBe(2)
  expect(db.all("SELECT name FROM sqlite_schema WHERE name = 'three'")).toEqual([])

  migrate(db, [...broken.slice(0, 2), 'ALTER TABLE one ADD COLUMN more TEXT;'])
  expect(schemaVersion(db)).toBe(3)
  expect(db.all('SELECT id, more FROM one')).toEqual([['1', null]])
  db.close()
})

test('a file whose schema is older is brought up to date when it is opened', async () => {
  const made = connectTo(file)
  made.exec(`PRAGMA application_id = ${APPLICATION_ID}`)
  made.close()
  const store = sqliteStore(file)

  await store.commit(treeCommit('root-a'))

  await store.close()
  const db = connectTo(file)
  expect(schemaVersion(db)).toBe(MIGRATIONS.length)
  db.close()
})

describe('a store that only reads', () => {
  let file = ''

  beforeEach(() => {
    const folder = tempFolder()
    file = path.join(folder, 'rows.db')
  })

  test('a store that is read only makes no file', () => {
    expect(() => sqliteStore({ path: file, readOnly: true })).toThrow(`There is no file ${file} to read.`)
    expect(existsSync(file)).toBe(false)
  })

  test('a file without rows is refused and stays as it is', () => {
    writeFileSync(file, '')
    expect(() => sqliteStore({ path: file, readOnly: true })).toThrow(/has no rows yet/)
    expect(readFileSync(file)).toHaveLength(0)

    const db = connectTo(file)
    db.exec(`PRAGMA application_id = ${APPLICATION_ID}`)
    db.close()
    const before = readFileSync(file)
    expect(() => sqliteStore({ path: file, readOnly: true })).toThrow(/has no rows yet/)
    expect(readFileSync(file)).toEqual(before)
  })

  test('reading changes no byte, and a commit is refused', async () => {
    const writer = sqliteStore(file)
    await writer.commit(treeCommit('root-a'))
    await writer.close()
    const before = readFileSync(file)

    const reader = sqliteStore({ path: file, readOnly: true })
    expect(reader.conversation('root-a')?.id).toBe('root-a')
    expect(() => reader.commit(treeCommit('root-b'))).toThrow(expect.objectContaining({ code: 'store_readonly' }))
    await reader.close()

    expect(readFileSync(file)).toEqual(before)
    const log = statSync(`${file}-wal`, { throwIfNoEntry: false })
    expect(log?.size ?? 0).toBe(0)
  })

  test('who reads sees what others commit meanwhile, and takes no lock of theirs', async () => {
    const writer = sqliteStore(file)
    await writer.commit(treeCommit('root-a'))
    const reader = sqliteStore({ path: file, readOnly: true })
    expect(reader.conversation('root-b')).toBeUndefined()

    await writer.commit(treeCommit('root-b'))

    expect(reader.conversation('root-b')?.id).toBe('root-b')
    await reader.close()
    await writer.commit(treeCommit('root-c'))
    await writer.close()
  })
})

test('a log that a reader has made long shrinks when the reader is gone', async () => {
  const store = sqliteStore(file)
  onTestFinished(() => store.close())
  await store.commit(treeCommit('root-a'))
  const reader = connectTo(file, 'read')
  reader.exec('BEGIN')
  reader.all('SELECT n FROM commits')
  const text = 'x'.repeat(4_000_000)
  const logBytes = () => statSync(`${file}-wal`).size
  for (let at = 0; logBytes() < 80_000_000; at++) {
    await store.commit(treeCommit(`root-${at}`, { bodies: [{ hash: `text-${at}`, text }] }))
  }
  reader.exec('COMMIT')
  reader.close()

  // One commit moves the log into the file, the next begins the log anew.
  for (const id of ['root-b', 'root-c']) await store.commit(treeCommit(id))

  expect(logBytes()).toBeLessThan(68_000_000)
})
