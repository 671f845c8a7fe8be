import path from 'node:path'
import { createRuntime } from 'legate'
import { jsonStore } from 'legate/store/json'
import { sqliteStore } from 'legate/store/sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Store } from '../../src/core/store/store.ts'
import { connectTo } from '../../src/stores/sqlite/driver.ts'
import { copyLaws, lead, open } from '../support/copy-laws.ts'
import { tempFolder } from '../support/temp-folder.ts'
import { leaveUnaudited } from '../support/unaudited.ts'

const sqlite = (folder: string): Store => sqliteStore(path.join(folder, 'runs.db'))

describe('a copy from SQLite to SQLite', () => copyLaws(sqlite, sqlite))
describe('a copy from SQLite to JSON', () => copyLaws(sqlite, jsonStore))
describe('a copy from JSON to SQLite', () => copyLaws(jsonStore, sqlite))

test('a tree that somebody changed from outside is not copied, and named; all others are', async () => {
  const folder = tempFolder()
  const first = open(sqlite, folder)
  const { conversationId } = await first.run(lead, 'only here').result
  await first.run(lead, 'b').result
  await first.close()
  const db = connectTo(path.join(folder, 'runs.db'))
  db.exec("UPDATE rows SET data = replace(data, 'only here', 'only hers') WHERE data LIKE '%only here%'")
  db.close()
  const source = open(sqlite, folder)
  leaveUnaudited(source.store)
  const second = open(sqlite, tempFolder())
  const report = await second.copyFrom(source.store)
  expect(report).toMatchObject({ copied: 1, refused: [{ rootId: conversationId, message: expect.any(String) }] })
})

test('a store without hashes is not copied', async () => {
  const runtime = createRuntime()
  onTestFinished(() => runtime.close())
  await expect(runtime.copyFrom(open(sqlite, tempFolder()).store)).rejects.toThrow('keeps no hashes')
})
