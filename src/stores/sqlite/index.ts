import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { StoreError } from '../../core/base/error.ts'
import { anything, flag, number, type OptionRules, oneOf, readOptions } from '../../core/base/options.ts'
import type { Commit } from '../../core/graph/commit.ts'
import { watchFile } from '../../core/store/file-presence.ts'
import type { RowCache, WrittenNumbers } from '../../core/store/row-cache.ts'
import type { LocalStore } from '../../core/store/store.ts'
import { sqliteArchive } from './archive.ts'
import { readChanges } from './beside/changes.ts'
import { sqliteRegistry } from './beside/registry.ts'
import { readSpent } from './beside/spent.ts'
import { type CommitTexts, commitTexts, writeCommit } from './commit.ts'
import {
  atOneMoment,
  busyMessage,
  type Connection,
  filesFreed,
  RESULT,
  resultCode,
  storeError,
  whileBusy,
} from './driver.ts'
import { FIRST_TRY_MS, openFile, type SqliteFile } from './open.ts'
import {
  acknowledge,
  begin,
  checkedCache,
  dataVersion,
  end,
  numberEvents,
  type OpenFile,
  openStoreFile,
  requireThere,
  type SharedTransaction,
  sqliteFailure,
  validCache,
} from './open-file.ts'
import { type SqliteGraph, sqliteGraph, sqliteReader } from './read.ts'
import { rollBack } from './schema.ts'

export interface SqliteStoreOptions {
  /** The path of the file. It is made if it is not there, in a folder that is there already. */
  readonly path: string
  /** The failure that acknowledged commits survive: `process` = kill -9 (the default), `power` = also a power cut. */
  readonly durability?: 'process' | 'power'
  /** How long a commit waits for other processes before it fails with `store_busy`. Default 10 s. */
  readonly busyMs?: number
  /** Creates, migrates and writes nothing: for a file that is read only or must stay unchanged. Commits are refused. */
  readonly readOnly?: boolean
}

const OPTIONS: OptionRules<SqliteStoreOptions> = {
  path: anything,
  durability: oneOf('process', 'power'),
  busyMs: number(),
  readOnly: flag,
}

/** Opens one file for any number of processes, at once; throws StoreError when that is not possible. */
export function sqliteStore(pathOrOptions: string | SqliteStoreOptions): LocalStore {
  const file = fileOf(pathOrOptions)
  let current: OpenFile | undefined = openStoreFile(file)
  const session = (): OpenFile => {
    if (current !== undefined) return current
    throw new StoreError('store_closed', `The store of ${file.path} was closed. Open a new one.`, {
      details: { path: file.path },
    })
  }
  const read = <T>(query: (db: Connection) => T): T => {
    const current = session()
    const { db, mendMs, presence } = current
    presence.require()
    try {
      return whileBusy(mendMs, () => query(db))
    } catch (error) {
      throw sqliteFailure(current, error)
    }
  }
  const watchers = watchFile(() => read(dataVersion))
  const graph = sqliteGraph({ read, cache: () => validCache(session()), spans: () => session().spans })
  const place: Place = { session, graph, file }
  return {
    name: 'sqlite',
    address: file.path,
    shared: true,
    isReadOnly: file.readOnly,
    ...sqliteReader(graph, graph.heard),
    commit: (commit) => {
      const { shared } = session()
      return shared === undefined ? commitAtOnce(place, commit) : commitWith(place, shared, commit)
    },
    together: (work) => commitTogether(place, work),
    tampered: () => read((db) => session().spans.found(db)),
    archive: sqliteArchive({
      read,
      write: (change) => writeAtOnce(place, change),
      readApart: (query) => readApart(place, query),
      compact: () => {
        compact(session(), file)
      },
    }),
    changes: (after, limit) => read((db) => atOneMoment(db, () => readChanges(db, after, limit))),
    usage: (query) => read((db) => readSpent(db, query)),
    registry: sqliteRegistry({ read, write: (change) => writeBeside(place, change) }),
    watch: (changed) => {
      // Later reads see everything that was there when the watch began.
      session().isChecked = false
      return watchers.add(changed)
    },
    reopen: () => {
      session().db.close()
      current = undefined
      current = openStoreFile(file)
    },
    close: async () => {
      watchers.end()
      current?.db.close()
      current = undefined
      await filesFreed()
    },
  }
}

function fileOf(pathOrOptions: string | SqliteStoreOptions): SqliteFile {
  const options = typeof pathOrOptions === 'string' ? { path: pathOrOptions } : pathOrOptions
  const given = readOptions<SqliteStoreOptions>('sqliteStore()', options ?? {}, OPTIONS)
  const { path, durability = 'process', busyMs = 10_000, readOnly = false } = given
  // A variable that is not set is a mistake that types do not see everywhere.
  if (typeof path !== 'string' || path === '' || path === ':memory:') {
    throw new StoreError('store', 'A SQLite store needs the path of a file. For rows in memory use memoryStore().')
  }
  return { path: resolve(path), durability, busyMs: Math.max(0, Math.floor(busyMs)), readOnly }
}

interface Place {
  readonly session: () => OpenFile
  readonly graph: SqliteGraph
  readonly file: SqliteFile
}

/** Waits only if another process holds the lock. */
function commitAtOnce(place: Place, commit: Commit): void | Promise<void> {
  requireWritable(place.file)
  const texts = commitTexts(commit)
  if (!tryCommit(place, commit, texts)) return patiently(place, () => tryCommit(place, commit, texts))
}

/** Waits only if another process holds the lock. */
function commitTogether(place: Place, work: () => void): void | Promise<void> {
  requireWritable(place.file)
  if (!tryTogether(place, work)) return patiently(place, () => tryTogether(place, work))
}

function requireWritable({ path, readOnly }: SqliteFile): void {
  if (!readOnly) return
  const message = `The store of ${path} was opened to be read only. Open it without \`readOnly\` to write.`
  throw new StoreError('store_readonly', message, { details: { path } })
}

type Change = (db: Connection, cache: RowCache) => void

/** Writes a change that is not a commit, in one transaction. */
function writeAtOnce(place: Place, change: Change): void | Promise<void> {
  requireWritable(place.file)
  if (!tryWrite(place, change)) return patiently(place, () => tryWrite(place, change))
}

/** Writes a change that touches no row of a tree: the cache stays as it is. */
function writeBeside(place: Place, change: (db: Connection) => void): void | Promise<void> {
  requireWritable(place.file)
  if (!tryWriteBeside(place, change)) return patiently(place, () => tryWriteBeside(place, change))
}

/** Drivers block the event loop, so the first try waits 20 ms at most, and the others 3 ms: other work runs between them. */
async function patiently({ session, file: { path, busyMs } }: Place, tryOnce: () => boolean): Promise<void> {
  const giveUpAt = performance.now() + busyMs
  do {
    if (performance.now() >= giveUpAt) throw new StoreError('store_busy', busyMessage(path), { details: { path } })
    await sleep(5 + Math.random() * 10)
  } while (!briefly(session().db, tryOnce))
}

function briefly<T>(db: Connection, work: () => T): T {
  db.exec('PRAGMA busy_timeout = 3')
  try {
    return work()
  } finally {
    db.exec(`PRAGMA busy_timeout = ${FIRST_TRY_MS}`)
  }
}

/** False when another process holds the lock. */
function tryCommit({ session, graph, file }: Place, commit: Commit, texts: CommitTexts): boolean {
  const current = session()
  const { db } = current
  current.presence.requireUnseen()
  current.spans.require(db, commit.rootId)
  if (!begin(current)) return false
  current.spans.isWriting = true
  try {
    const cache = checkedCache(current)
    const written = writeCommit({ db, graph, cache }, commit, texts)
    end(current)
    requireThere(current, file)
    putWritten(cache, commit, written)
    acknowledge(current)
    return true
  } catch (error) {
    rollBack(db)
    current.cache.clear()
    throw sqliteFailure(current, error)
  } finally {
    current.spans.isWriting = false
  }
}

/** False when another process holds the lock. */
function tryTogether({ session, file }: Place, work: () => void): boolean {
  const current = session()
  const { db, spans } = current
  current.presence.requireUnseen()
  if (!begin(current)) return false
  const shared: SharedTransaction = {}
  current.shared = shared
  spans.isWriting = true
  try {
    checkedCache(current)
    work()
    if (shared.failed !== undefined) throw shared.failed
    end(current)
    requireThere(current, file)
    acknowledge(current)
    return true
  } catch (error) {
    rollBack(db)
    current.cache.clear()
    throw sqliteFailure(current, error)
  } finally {
    current.shared = undefined
    spans.isWriting = false
  }
}

/** Writes a commit into a transaction that it shares with others, so that it can be taken back alone. */
function commitWith({ session, graph }: Place, shared: SharedTransaction, commit: Commit): void {
  if (shared.failed !== undefined) throw shared.failed
  const current = session()
  const { db, cache, spans } = current
  spans.require(db, commit.rootId)
  db.exec('SAVEPOINT one')
  try {
    putWritten(cache, commit, writeCommit({ db, graph, cache }, commit, commitTexts(commit)))
    db.exec('RELEASE one')
  } catch (error) {
    cache.clear()
    const cause = sqliteFailure(current, error)
    if (!takeBack(db)) shared.failed = cause
    throw cause
  }
}

/** False where SQLite has rolled back the whole transaction: a disk was full, or failed. */
function takeBack(db: Connection): boolean {
  try {
    db.exec('ROLLBACK TO one')
    db.exec('RELEASE one')
    return true
  } catch {
    return false
  }
}

function putWritten(cache: RowCache, commit: Commit, written: WrittenNumbers): void {
  numberEvents(commit, (written.tail?.seq ?? 0) - commit.events.length)
  cache.putCommit(commit, written)
}

function tryWrite({ session, file }: Place, change: Change): boolean {
  const current = session()
  const { db } = current
  current.presence.requireUnseen()
  if (!begin(current)) return false
  try {
    change(db, checkedCache(current))
    end(current)
    requireThere(current, file)
    acknowledge(current)
    return true
  } catch (error) {
    rollBack(db)
    throw sqliteFailure(current, error)
  } finally {
    current.cache.clear()
  }
}

/** False when another process holds the lock. */
function tryWriteBeside({ session, file }: Place, change: (db: Connection) => void): boolean {
  const current = session()
  const { db } = current
  current.presence.requireUnseen()
  if (!begin(current)) return false
  try {
    change(db)
    end(current)
    requireThere(current, file)
    return true
  } catch (error) {
    rollBack(db)
    throw sqliteFailure(current, error)
  }
}

/** The connection sees one moment of the file until the query has ended. */
async function readApart<T>({ session, file }: Place, query: (db: Connection) => Promise<T>): Promise<T> {
  const current = session()
  current.presence.require()
  try {
    const db = openFile({ ...file, readOnly: true })
    try {
      db.exec('BEGIN')
      return await query(db)
    } finally {
      rollBack(db)
      db.close()
    }
  } catch (error) {
    throw sqliteFailure(current, error)
  }
}

/** A larger file is not rewritten while others wait for it. */
const CHEAP_BYTES = 64 * 1024 * 1024

/** Others are at work, or there is no space for a second copy: the file keeps its size. */
const NOT_NOW: readonly number[] = [RESULT.busy, RESULT.locked, RESULT.full, RESULT.io, RESULT.cantOpen]

/** Rewrites the file when more of it is free than used, if that is possible now. */
function compact({ db, cache, path }: OpenFile, file: SqliteFile): void {
  requireWritable(file)
  try {
    const [free = 0, pages = 0, bytes = 0] = ['freelist_count', 'page_count', 'page_size'].map((name) =>
      Number(db.first(`PRAGMA ${name}`)?.[0]),
    )
    if (2 * free <= pages || (pages - free) * bytes > CHEAP_BYTES) return
    db.exec('VACUUM')
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch (error) {
    if (!NOT_NOW.includes(resultCode(error) & 0xff)) throw storeError(error, path)
  } finally {
    cache.clear()
  }
}
