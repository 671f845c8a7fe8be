import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { sqliteStore } from 'legate/store/sqlite'
import { expect, test } from 'vitest'
import { connectTo } from '../../src/stores/sqlite/driver.ts'
import { APPLICATION_ID } from '../../src/stores/sqlite/schema.ts'
import { tempFolder } from '../support/temp-folder.ts'

test('I3: a database whose maker was killed in the middle of making it can be opened again and again', async () => {
  const folder = tempFolder()
  const file = path.join(folder, 'rows.db')
  const maker = connectTo(file)
  maker.exec(`PRAGMA application_id = ${APPLICATION_ID}`)
  maker.close()
  writeFileSync(`${file}-journal`, journalOfEmptyFile())

  for (let opening = 0; opening < 3; opening++) {
    const store = sqliteStore(file)
    expect(store.roots({ limit: 1 })).toEqual([])
    await store.close()
  }
})

/** What SQLite leaves beside a file that it was about to give its first page: take all of it back. */
function journalOfEmptyFile(): Buffer {
  const header = Buffer.alloc(512)
  header.write('d9d505f920a163d7', 'hex')
  header.writeUInt32BE(0, 8) // no pages to restore
  header.writeUInt32BE(1, 12) // a number of its own
  header.writeUInt32BE(0, 16) // the file had no page
  header.writeUInt32BE(512, 20)
  header.writeUInt32BE(4096, 24)
  return header
}
