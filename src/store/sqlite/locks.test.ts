import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { sqliteStore } from '../sqlite.ts'

test('opening a file that this process has open already does not give up its locks', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'legate-locks-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = path.join(folder, 'rows.db')
  const first = sqliteStore(file)
  const second = sqliteStore(file)
  // Only a process that has the file for itself may do this.
  const script = `const Database = require('libsql'); const db = new Database(${JSON.stringify(file)})
    console.log(db.prepare('PRAGMA journal_mode = DELETE').raw().get()[0])`

  let said = ''
  try {
    said = execFileSync(process.execPath, ['-e', script], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    }).trim()
  } catch (error) {
    said = String((error as { stderr: unknown }).stderr)
  }
  await first.close()
  await second.close()

  expect(said).toMatch(/^wal$|locked/)
})
