import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { StoreError } from '../base/error.ts'
import type { Commit } from '../graph/commit.ts'
import { cacheCommit, clearCache, emptyCache, type RowCache } from './row-cache.ts'
import { type CommitTexts, commitTexts, writeCommit } from './sqlite-commit.ts'
import { type Connection, RESULT, resultCode } from './sqlite-driver.ts'
import { busyMessage, storeError } from './sqlite-error.ts'
import { openFile, type SqliteFile } from './sqlite-open.ts'
import { sqliteScanner } from './sqlite-read.ts'
import { rollBack } from './sqlite-schema.ts'
import { watchFile } from './sqlite-watch.ts'
import type { Store } from './store.ts'

export interface SqliteStoreOptions {
  readonly path: string
  /** What acknowledged commits survive: `process` = kill -9 (the default), `power` = also a power cut. */
  readonly durability?: 'process' | 'power'
  /** How long a commit waits for other processes before it fails with `store_busy`. */
  readonly busyMs?: number
}

/** One file for any number of processes. Opens it at once; throws StoreError when that is not possible. */
export function sqliteStore(pathOrOptions: string | SqliteStoreOptions): Store {
  const file = fileOf(pathOrOptions)
  let current: Session | undefined = openSession(file)
  const session = (): Session => {
    if (current !== undefined) return current
    throw new StoreError('store_closed', `The store of ${file.path} was closed. Open a new one.`, {
      details: { path: file.path },
    })
  }
  const read = <T>(query: (db: Connection) => T): T => {
    const { db } = session()
    try {
      return query(db)
    } catch (error) {
      throw storeError(error, file.path)
    }
  }
  const watchers = watchFile(() => read(dataVersion))
  return {
    name: 'sqlite',
    shared: true,
    ...sqliteScanner({ read, cache: () => validCache(session(), read) }),
    commit: (commit) => commitPatiently(session, commit, file),
    watch: (changed) => {
      session()
      return watchers.add(changed)
    },
    reopen: () => {
      session().db.close()
      current = undefined
      current = openSession(file)
    },
    close: async () => {
      watchers.end()
      current?.db.close()
      current = undefined
    },
  }
}

/** An open connection and what is known of its rows. */
interface Session {
  readonly db: Connection
  readonly cache: RowCache
  /** The version of the file that the cache is of; changes with every commit of another connection. */
  version: number
  isChecked: boolean
}

function openSession(file: SqliteFile): Session {
  return { db: openFile(file), cache: emptyCache(), version: 0, isChecked: false }
}

/** Looks once per synchronous stretch of code whether others have written: inside it nobody can have heard of a commit. */
function validCache(session: Session, read: <T>(query: (db: Connection) => T) => T): RowCache {
  if (session.isChecked) return session.cache
  const version = read(dataVersion)
  if (version !== session.version) clearCache(session.cache)
  session.version = version
  session.isChecked = true
  queueMicrotask(() => {
    session.isChecked = false
  })
  return session.cache
}

function fileOf(pathOrOptions: string | SqliteStoreOptions): SqliteFile {
  const {
    path,
    durability = 'process',
    busyMs = 10_000,
  } = typeof pathOrOptions === 'string' ? { path: pathOrOptions } : pathOrOptions
  if (path === '' || path === ':memory:') {
    throw new StoreError('store', 'A SQLite store needs the path of a file. For rows in memory use memoryStore().')
  }
  return { path: resolve(path), durability, busyMs: Math.max(0, Math.floor(busyMs)) }
}

function dataVersion(db: Connection): number {
  return Number(db.first('PRAGMA data_version')?.[0])
}

/** Drivers block the event loop: each try waits 20 ms at most, the rest of the time others may run. */
async function commitPatiently(session: () => Session, commit: Commit, { path, busyMs }: SqliteFile): Promise<void> {
  const texts = commitTexts(commit)
  const giveUpAt = performance.now() + busyMs
  while (!tryCommit(session(), { commit, texts, path })) {
    if (performance.now() >= giveUpAt) throw new StoreError('store_busy', busyMessage(path), { details: { path } })
    await sleep(5 + Math.random() * 45)
  }
}

interface Try {
  readonly commit: Commit
  readonly texts: CommitTexts
  readonly path: string
}

/** False when another process holds the lock. */
function tryCommit({ db, cache }: Session, { commit, texts, path }: Try): boolean {
  if (!begin(db, path)) return false
  try {
    const before = writeCommit(db, commit, texts)
    db.exec('COMMIT')
    number(commit, before)
    cacheCommit(cache, commit)
    return true
  } catch (error) {
    rollBack(db)
    clearCache(cache)
    throw storeError(error, path)
  }
}

function number({ events }: Commit, before: number): void {
  events.forEach((event, index) => {
    ;(event as { seq: number }).seq = before + index + 1
  })
}

function begin(db: Connection, path: string): boolean {
  try {
    db.exec('BEGIN IMMEDIATE')
    return true
  } catch (error) {
    if ((resultCode(error) & 0xff) === RESULT.busy) return false
    rollBack(db)
    throw storeError(error, path)
  }
}
