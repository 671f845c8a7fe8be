import { copyFileSync, readFileSync, truncateSync } from 'node:fs'
import path from 'node:path'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { tempFolder } from '../../../test/support/temp-folder.ts'
import { treeCommit } from '../../testing/conformance/store-rows.ts'
import { connect } from './driver.ts'
import { sqliteStore } from './index.ts'
import { APPLICATION_ID, MIGRATIONS, migrate, schemaVersion } from './schema.ts'

const PAGE = 4096
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

test('schema steps are taken one by one, each whole or not at all', () => {
  const db = connect(file)
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
  const made = connect(file)
  made.exec(`PRAGMA application_id = ${APPLICATION_ID}`)
  made.close()
  const store = sqliteStore(file)

  await store.commit(treeCommit('root-a'))

  await store.close()
  const db = connect(file)
  expect(schemaVersion(db)).toBe(MIGRATIONS.length)
  db.close()
})
