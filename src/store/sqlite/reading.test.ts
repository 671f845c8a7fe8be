import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { tempFolder } from '../../../test/support/temp-folder.ts'
import { treeCommit } from '../../testing/conformance/store-rows.ts'
import { connect } from './driver.ts'
import { sqliteStore } from './index.ts'
import { APPLICATION_ID } from './schema.ts'

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

  const db = connect(file)
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
