import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { tempFolder } from '../../../test/support/temp-folder.ts'
import { treeCommit } from '../../testing/conformance/store-rows.ts'
import { sqliteStore } from './index.ts'

test('opening a file that this process has open already does not give up its locks', async () => {
  const file = newFile()
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

/** The index of a log as a process leaves it that is killed while it writes it, and the locks of who mends it. */
const MENDING = `
import fcntl, os, sys, time
index = os.open(sys.argv[1], os.O_RDWR)
for byte in (120, 122): fcntl.lockf(index, fcntl.LOCK_EX, 1, byte)
os.pwrite(index, bytes(96), 0)
print('mending', flush=True)
time.sleep(0.3)
`

test('a read waits for who mends the log of a process that was killed', async ({ skip }) => {
  skip(spawnSync('python3', ['--version']).status !== 0, 'there is no python3 to hold the locks')
  const file = newFile()
  const store = sqliteStore(file)
  onTestFinished(() => store.close())
  await store.commit(treeCommit('root-a'))
  const mender = spawn('python3', ['-c', MENDING, `${file}-shm`], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(mender.stdout, 'data')
  const began = performance.now()

  expect(store.conversation('root-a')?.id).toBe('root-a')

  expect(performance.now() - began).toBeGreaterThan(100)
  await store.commit(treeCommit('root-b'))
  expect(store.conversation('root-b')?.id).toBe('root-b')
})

function newFile(): string {
  const folder = tempFolder()
  return path.join(folder, 'rows.db')
}
