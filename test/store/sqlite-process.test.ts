import { chmodSync, chownSync, copyFileSync, mkdirSync, readFileSync, renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, expect, test } from 'vitest'
import { connectTo } from '../../src/stores/sqlite/driver.ts'
import { sqliteStore } from '../../src/stores/sqlite/index.ts'
import { nodeRow, placeIn, treeCommit } from '../../src/testing/conformance/store-rows.ts'
import { StorePrograms, smallDisk } from '../support/store-programs.ts'
import { tempFolder } from '../support/temp-folder.ts'
import { verifyFile } from '../support/verify-sqlite.ts'

const programs = new StorePrograms('sqlite')
const place = placeIn('root-a')
let folder: string
let path: string

beforeEach(() => {
  folder = tempFolder()
  path = join(folder, 'legate.db')
})

test('processes that make, open and close one file at the same time are never refused', async () => {
  const code = `
    for (let n = 0; n < 25; n++) {
      const store = sqliteStore(${JSON.stringify(path)})
      store.findIds('none', 1)
      await store.close()
    }`

  const statuses = await Promise.all([1, 2, 3, 4].map(() => programs.start(code).ended))

  expect(statuses).toEqual([0, 0, 0, 0])
})

test.each([
  ['file', 0o400, 0o777],
  ['folder', 0o600, 0o555],
  ['unreadable file', 0o000, 0o777],
])('a read-only %s is told as such', async (_, fileMode, folderMode) => {
  const store = sqliteStore(path)
  await store.close()
  const uid = process.getuid?.() === 0 ? 65534 : (process.getuid?.() ?? 0)
  chownSync(path, uid, -1)
  chmodSync(path, fileMode)
  chmodSync(folder, folderMode)

  const code = `try { sqliteStore(${JSON.stringify(path)}) } catch (error) { console.log(error.code, error.message) }`
  const said = programs.run(code, { uid })

  chmodSync(folder, 0o700)
  expect(said).toMatch(/^store_readonly .*legate\.db.* permissions/)
})

test('a read-only file in a read-only folder can be read; where its log would be needed, that is said', async () => {
  const store = sqliteStore(path)
  await store.commit(treeCommit('root-a'))
  const copies = ['open', 'logged'].map((name) => join(folder, name, 'legate.db'))
  for (const copy of copies) mkdirSync(dirname(copy))
  const [open = '', logged = ''] = copies
  copyFileSync(path, logged)
  copyFileSync(`${path}-wal`, `${logged}-wal`)
  await store.close()
  // A file that says it has a log, and no log: so others leave it behind when they close.
  copyFileSync(path, open)
  const db = connectTo(open)
  db.exec('PRAGMA journal_mode = WAL')
  copyFileSync(open, `${open}.copy`)
  db.close()
  renameSync(`${open}.copy`, open)
  const read = (file: string): string => {
    chmodSync(file, 0o444)
    chmodSync(dirname(file), 0o555)
    const code = `try { const store = sqliteStore({ path: ${JSON.stringify(file)}, readOnly: true })
      console.log(store.conversation('root-a')?.id, store.lastSeq('root-a') >= 0); await store.close()
    } catch (error) { console.log(error.code, error.message) }`
    const uid = process.getuid?.() === 0 ? 65534 : (process.getuid?.() ?? 0)
    const said = programs.run(code, { uid }).trim()
    chmodSync(dirname(file), 0o755)
    return said
  }
  chmodSync(folder, 0o755)

  const said = [path, open, logged].map(read)

  expect(readFileSync(open).subarray(18, 20)).toEqual(Buffer.from([2, 2]))
  expect(said.slice(0, 2)).toEqual(['root-a true', 'root-a true'])
  expect(said[2]).toMatch(/^store_readonly \S+ cannot be read without writing: its last rows are in \S+-wal, /)
})

test('a full disk refuses the commit whole, and the store goes on when there is room', ({ skip }) => {
  const small = smallDisk(folder, 2)
  if (small === null) return skip('no file system of its own can be made here')
  const { disk, wrapper } = small
  const code = `
    import { rmSync, writeFileSync } from 'node:fs'
    writeFileSync('${disk}/filler', Buffer.alloc(1_000_000))
    const store = sqliteStore('${disk}/legate.db')
    await store.commit(treeCommit('root-a'))
    const codes = new Set()
    const add = (n) => commitOf('root-a', { bodies: [{ hash: 'h' + n, text: 'x'.repeat(50_000) }], events: [warningEvent(placeIn('root-a'), 'e' + n)] })
    let accepted = 0
    for (let n = 0; n < 100; n++) await tryCommit(store, add(n)).then(() => accepted++, (error) => codes.add(error.code))
    const whole = store.lastSeq('root-a') === accepted && store.body('h99') === undefined
    rmSync('${disk}/filler')
    await store.commit(add(100))
    console.log(JSON.stringify({ codes: [...codes], whole, some: accepted > 0 && accepted < 100, after: store.lastSeq('root-a') - accepted }))
    await store.close()`

  const said = programs.run(code, { wrapper })

  expect(JSON.parse(said)).toEqual({ codes: ['store_full'], whole: true, some: true, after: 1 })
})

test('what was deleted is deleted, also where there is no room to write the file anew', ({ skip }) => {
  const small = smallDisk(folder, 8)
  if (small === null) return skip('no file system of its own can be made here')
  const { disk, wrapper } = small
  const code = `
    import { statfsSync, statSync, writeFileSync } from 'node:fs'
    const first = sqliteStore('${disk}/legate.db')
    const ended = (id, size) => commitOf(id, {
      conversations: [conversationRow(id)],
      bodies: [{ hash: 'h' + id, text: 'x'.repeat(size) }],
      events: [warningEvent(placeIn(id), 'e')],
    })
    await first.commit(ended('root-a', 1_200_000))
    await first.commit(ended('root-b', 1_600_000))
    await first.close()
    const { bavail, bsize } = statfsSync('${disk}')
    writeFileSync('${disk}/filler', Buffer.alloc(bavail * bsize - 600_000))
    const store = sqliteStore('${disk}/legate.db')
    const stone = await store.archive.remove('root-b', { at: 1, reason: 'ttl' })
    const said = await Promise.resolve().then(() => store.archive.compact()).then(() => 'ok', (error) => error.code)
    const { findings } = await store.archive.verify()
    console.log(JSON.stringify({ said, stone: stone.rootId, findings, body: store.body('hroot-a')?.length }))
    await store.close()`

  const said = programs.run(code, { wrapper })

  expect(JSON.parse(said)).toMatchObject({ said: 'ok', stone: 'root-b', body: 1_200_000 })
})

test('kill -9 in the middle of a burst loses nothing that was acknowledged', { timeout: 60_000 }, async () => {
  const acknowledged: string[] = []
  for (let round = 0; round < 10; round++) acknowledged.push(...(await writeUntilKilled(round)))

  const store = sqliteStore(path)
  expect(acknowledged.length).toBeGreaterThan(20)
  for (const id of acknowledged) {
    expect(store.node(`${id}-turn-node`)?.version).toBe(2)
    expect(store.events(id, 0, 9).map(({ seq }) => seq)).toEqual([1, 2])
  }
  await store.close()
  verifyFile(path)
})

test('three processes write one tree: every commit arrives once', { timeout: 60_000 }, async () => {
  const store = sqliteStore(path)
  await store.commit(treeCommit('root-a', { nodes: [nodeRow(place, 'counter')] }))
  const code = `
    const store = sqliteStore(${JSON.stringify(path)})
    for (let done = 0; done < 100; ) {
      const node = store.node('counter')
      const commit = commitOf('root-a', { nodes: [next(node)], events: [warningEvent(placeIn('root-a'), 'x')] })
      await tryCommit(store, commit).then(() => done++, (error) => { if (error.code !== 'conflict') throw error })
    }
    await store.close()`

  const children = await Promise.all([1, 2, 3].map(() => programs.start(code).ended))

  expect(children).toEqual([0, 0, 0])
  expect(store.node('counter')?.version).toBe(301)
  expect(store.events('root-a', 0, 999).map(({ seq }) => seq)).toEqual(Array.from({ length: 300 }, (_, n) => n + 1))
  await store.close()
  verifyFile(path)
})

test('what was there when a watch began is read from then on, also where it was read before', async () => {
  const store = sqliteStore(path)
  await store.commit(treeCommit('root-a', { nodes: [nodeRow(place, 'counter')] }))
  expect(store.node('counter')?.version).toBe(1)
  const code = `
    const store = sqliteStore(${JSON.stringify(path)})
    await store.commit(commitOf('root-a', { nodes: [next(store.node('counter'))] }))
    await store.close()`
  programs.run(code)

  const unwatch = store.watch(() => undefined)
  expect(store.node('counter')?.version).toBe(2)
  unwatch()
  await store.close()
})

test('the driver can be chosen, and importing the store loads none', () => {
  const code = `
    const loaded = () => Object.keys(createRequire(import.meta.url).cache).some((file) => file.includes('libsql'))
    import { createRequire } from 'node:module'
    const before = loaded()
    const store = sqliteStore(${JSON.stringify(path)})
    console.log(before, loaded())`
  expect(programs.run(code, { env: { LEGATE_SQLITE_DRIVER: 'libsql' } }).trim()).toBe('false true')

  const wrong = `try { sqliteStore(${JSON.stringify(path)}) } catch (error) { console.log(error.message) }`
  expect(programs.run(wrong, { env: { LEGATE_SQLITE_DRIVER: 'better' } })).toContain('may be "node" or "libsql"')
})

test('loading the driver looks up the name of nobody who is connected, and leaves reports as they were', () => {
  const code = `
    const { getReport } = process.report
    process.report.getReport = () => {
      console.log(process.report.excludeNetwork)
      return getReport.call(process.report)
    }
    sqliteStore(${JSON.stringify(path)})
    console.log(process.report.excludeNetwork)`
  expect(programs.run(code, { env: { LEGATE_SQLITE_DRIVER: 'libsql' } }).trim()).toBe('true\nfalse')
})

async function writeUntilKilled(round: number): Promise<string[]> {
  const code = `
    import { writeSync } from 'node:fs'
    const store = sqliteStore(${JSON.stringify(path)})
    for (let n = 0; ; n++) {
      const id = 'r${round}-' + n
      const commit = treeCommit(id, { events: [warningEvent(placeIn(id), 'one')] })
      await store.commit(commit)
      await store.commit(commitOf(id, { nodes: [next(commit.nodes[0])], events: [warningEvent(placeIn(id), 'two')] }))
      writeSync(1, id + '\\n')
    }`
  const { child, ended, said, hears } = programs.start(code)
  await hears(`r${round}-0`)
  await sleep(10 + Math.random() * 60)
  child.kill('SIGKILL')
  await ended
  return said
}
