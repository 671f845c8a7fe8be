import { type SpawnOptions, spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { build } from 'tsdown'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { isLegateError } from '../base/error.ts'
import { storeConformance } from '../testing/store-conformance.ts'
import {
  commitOf,
  conversationRow,
  edgeRow,
  next,
  nodeRow,
  placeIn,
  treeCommit,
  warningEvent,
} from '../testing/store-rows.ts'
import { commitTexts } from './sqlite/commit.ts'
import { type Connection, connect } from './sqlite/driver.ts'
import { APPLICATION_ID } from './sqlite/schema.ts'
import { findTrees, readRecords } from './sqlite/tree.ts'
import { verifySqlite } from './sqlite/verify.ts'
import { sqliteStore } from './sqlite.ts'
import { chainHash } from './tree-chain.ts'

storeConformance({ name: 'sqlite', open: (folder) => sqliteStore(join(folder, 'legate.db')), durable: true, test })
storeConformance({
  name: 'sqlite (power)',
  open: (folder) => sqliteStore({ path: join(folder, 'legate.db'), durability: 'power' }),
  durable: true,
  test,
})

const root = join(import.meta.dirname, '../..')
/** Inside the package, so that the built files find its dependencies. */
const built = makeFolder(join(root, 'node_modules/.cache'))
const place = placeIn('root-a')
let folder: string
let path: string

beforeAll(async () => {
  const entry = { sqlite: 'src/store/sqlite.ts', rows: 'src/testing/store-rows.ts' }
  chmodSync(built, 0o755)
  await build({
    cwd: root,
    entry,
    outDir: built,
    format: 'esm',
    platform: 'node',
    config: false,
    dts: false,
    logLevel: 'silent',
  })
})
afterAll(() => rmSync(built, { recursive: true, force: true }))
beforeEach(() => {
  folder = makeFolder(tmpdir())
  path = join(folder, 'legate.db')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test('a missing folder is made, for the owner only, and after closing all is in the file', async () => {
  const deep = join(folder, 'a/b/legate.db')
  const store = sqliteStore(deep)
  await store.commit(treeCommit('root-a'))
  expect(statSync(join(folder, 'a')).mode & 0o777).toBe(0o700)
  expect(statSync(deep).mode & 0o777).toBe(0o600)
  expect(statSync(`${deep}-wal`).mode & 0o777).toBe(0o600)

  await store.close()

  const log = statSync(`${deep}-wal`, { throwIfNoEntry: false })
  expect(log?.size ?? 0).toBe(0)
})

test('processes that make, open and close one file at the same time are never refused', async () => {
  const code = `
    for (let n = 0; n < 25; n++) {
      const store = sqliteStore(${JSON.stringify(path)})
      store.findIds('none', 1)
      await store.close()
    }`

  const statuses = await Promise.all([1, 2, 3, 4].map(() => startChild(code).ended))

  expect(statuses).toEqual([0, 0, 0, 0])
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
  const said = runChild(code, { uid })

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
  const db = connect(open)
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
    const said = runChild(code, { uid }).trim()
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
  const { disk, mount } = smallDisk(2)
  skip(run([...mount, 'true']).status !== 0, 'no file system of its own can be made here')
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

  const said = runChild(code, {}, mount)

  expect(JSON.parse(said)).toEqual({ codes: ['store_full'], whole: true, some: true, after: 1 })
})

test('what was deleted is deleted, also where there is no room to write the file anew', ({ skip }) => {
  const { disk, mount } = smallDisk(8)
  skip(run([...mount, 'true']).status !== 0, 'no file system of its own can be made here')
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

  const said = runChild(code, {}, mount)

  expect(JSON.parse(said)).toMatchObject({ said: 'ok', stone: 'root-b', body: 1_200_000 })
})

test('a lock that is held too long is told as busy, and the loop goes on meanwhile', async () => {
  const store = sqliteStore({ path, busyMs: 300 })
  await store.commit(treeCommit('root-a'))
  const other = connect(path)
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
  verifyFile()
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

  const children = await Promise.all([1, 2, 3].map(() => startChild(code).ended))

  expect(children).toEqual([0, 0, 0])
  expect(store.node('counter')?.version).toBe(301)
  expect(store.events('root-a', 0, 999).map(({ seq }) => seq)).toEqual(Array.from({ length: 300 }, (_, n) => n + 1))
  await store.close()
  verifyFile()
})

test('what was there when a watch began is read from then on, also where it was read before', async () => {
  const store = sqliteStore(path)
  await store.commit(treeCommit('root-a', { nodes: [nodeRow(place, 'counter')] }))
  expect(store.node('counter')?.version).toBe(1)
  const code = `
    const store = sqliteStore(${JSON.stringify(path)})
    await store.commit(commitOf('root-a', { nodes: [next(store.node('counter'))] }))
    await store.close()`
  runChild(code)

  const unwatch = store.watch(() => undefined)
  expect(store.node('counter')?.version).toBe(2)
  unwatch()
  await store.close()
})

test('the file itself refuses an edge between conversations', async () => {
  const store = sqliteStore(path)
  await store.commit(treeCommit('root-a'))
  await store.commit(treeCommit('root-b'))
  await store.close()
  const db = connect(path)
  const add = (to: string) => db.run("INSERT INTO edges VALUES (?, ?, 's')", ['root-a-turn-node', to])

  expect(() => add('root-b-turn-node')).toThrow(/one conversation/)
  expect(() => add('root-a-turn-node')).toThrow(/one conversation/)
  expect(() => add('nowhere')).toThrow(/one conversation/)
  expect(db.all('SELECT * FROM edges')).toEqual([])
  db.close()
})

test('a conversation inside a tree has no sequence of its own, and no commit extends it', async () => {
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

  expect(verifyFile().get('root-a')).toBe(hash)
})

test('the driver can be chosen, and importing the store loads none', () => {
  const code = `
    const loaded = () => Object.keys(createRequire(import.meta.url).cache).some((file) => file.includes('libsql'))
    import { createRequire } from 'node:module'
    const before = loaded()
    const store = sqliteStore(${JSON.stringify(path)})
    console.log(before, loaded())`
  expect(runChild(code, { env: { LEGATE_SQLITE_DRIVER: 'libsql' } }).trim()).toBe('false true')

  const wrong = `try { sqliteStore(${JSON.stringify(path)}) } catch (error) { console.log(error.message) }`
  expect(runChild(wrong, { env: { LEGATE_SQLITE_DRIVER: 'better' } })).toContain('may be "node" or "libsql"')
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
  expect(runChild(code, { env: { LEGATE_SQLITE_DRIVER: 'libsql' } }).trim()).toBe('true\nfalse')
})

function makeFolder(parent: string): string {
  mkdirSync(parent, { recursive: true })
  return mkdtempSync(join(parent, 'legate-sqlite-'))
}

/** Of so many megabytes, for what runs inside `mount`. */
function smallDisk(megabytes: number): { disk: string; mount: string[] } {
  const disk = join(folder, 'disk')
  mkdirSync(disk)
  const sh = `mount -t tmpfs -o size=${megabytes}m tmpfs "$0" && exec "$@"`
  return { disk, mount: ['unshare', '-Urm', 'sh', '-c', sh, disk] }
}

function makeDatabase(sql: string): void {
  const db = connect(path)
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

/** Reads the file without the store: nothing is damaged and every tree's chain is right. The last hash of every tree. */
function verifyFile(): Map<string, string> {
  const db = connect(path)
  expect(db.first('PRAGMA integrity_check')).toEqual(['ok'])
  expect(db.all(STRAY_KEYS)).toEqual([])
  expect(db.first(COUNTS)).toEqual([0])
  const last = verifyChains(db)
  db.close()
  return last
}

/** Keys and rows tell the same. */
const STRAY_KEYS = `SELECT keys.id, keys.slot FROM keys LEFT JOIN rows ON rows.n = keys.n
  WHERE keys.id IS NOT CASE keys.slot WHEN 'c' THEN rows.data ->> '$.conversation' WHEN 't' THEN rows.data ->> '$.turn'
    WHEN 'n' THEN rows.data ->> '$.node' WHEN 'l' THEN rows.data ->> '$.link'
    ELSE coalesce(rows.data ->> '$.laneId', rows.data ->> '$.conversationId') END`
const COUNTS = `SELECT (SELECT count(*) FROM rows WHERE data ->> '$.edges' IS NULL)
  - (SELECT count(*) FROM keys WHERE slot IN ('c', 't', 'n', 'l'))`

function verifyChains(db: Connection): Map<string, string> {
  expect(verifySqlite(db).findings).toEqual([])
  const trees = [...findTrees(db).byRoot]
  return new Map(trees.map(([rootId, { tree = 0 }]) => [rootId, readRecords(db, tree).at(-1)?.hash ?? '']))
}

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
  const { child, ended } = startChild(code)
  const acknowledged: string[] = []
  const lines = createInterface({ input: child.stdout ?? process.stdin })
  lines.on('line', (line) => {
    if (acknowledged.push(line) === 1) setTimeout(() => child.kill('SIGKILL'), 10 + Math.random() * 60)
  })
  await ended
  return acknowledged
}

const prelude = `import { sqliteStore } from '${built}/sqlite.mjs'
import { commitOf, conversationRow, next, nodeRow, placeIn, treeCommit, warningEvent } from '${built}/rows.mjs'
const tryCommit = async (store, commit) => store.commit(commit)
`

function startChild(code: string) {
  const options: SpawnOptions = { stdio: ['ignore', 'pipe', 'inherit'] }
  const child = spawn(process.execPath, ['--input-type=module', '--eval', prelude + code], { ...options, cwd: built })
  const ended = new Promise<number | null>((resolve) => {
    child.on('close', (status) => resolve(status))
  })
  return { child, ended }
}

interface ChildOptions {
  readonly uid?: number
  readonly env?: Record<string, string>
}

function runChild(code: string, options: ChildOptions = {}, wrapper: string[] = []): string {
  const done = run([...wrapper, process.execPath, '--input-type=module', '--eval', prelude + code], options)
  return done.stdout || done.stderr
}

function run([command = '', ...rest]: string[], { env, ...options }: ChildOptions = {}) {
  return spawnSync(command, rest, { ...options, cwd: built, env: { ...process.env, ...env }, encoding: 'utf8' })
}
