// The open connection of a store, and the rows that it knows.
//
// Owns:      the connection, the cache of rows and the moment up to which the cache agrees with the file.
// Called by: `index`, for every read and every transaction.
// Must stay true:
//   - Within a turn of the event loop the file is asked once whether others have written.
//   - A failure is reported as what it is: a file that is gone, a disk that is full, a lock that somebody holds.

import { isLegateError } from '../../core/base/error.ts'
import type { Commit } from '../../core/graph/commit.ts'
import { FilePresence } from '../../core/store/file-presence.ts'
import { RowCache } from '../../core/store/row-cache.ts'
import { type Connection, isBusy, storeError, whileBusy } from './driver.ts'
import { openFile, type SqliteFile } from './open.ts'
import { rollBack } from './schema.ts'
import { CheckedSpans } from './spans.ts'

/** An open connection and its cached rows. */
export interface OpenFile {
  readonly db: Connection
  readonly cache: RowCache
  readonly path: string
  readonly presence: FilePresence
  readonly spans: CheckedSpans
  /** How long a read waits for a process that mends the log: all others only write beside it. */
  readonly mendMs: number
  /** The version of the file that the cache reflects; every commit of another connection changes it. */
  version: number
  isChecked: boolean
  /** `commitsHere` at the last check. */
  commits: number
  /** The moment before which no transaction begins. */
  restsUntil: number
  /** The open transaction that several commits share. */
  shared: SharedTransaction | undefined
}

/** A transaction of several commits. Some failures make SQLite roll all of it back: then the others fail with it. */
export interface SharedTransaction {
  failed?: Error
}

/** Counts commits of all stores of this process, which the others notice at once. */
let commitsHere = 0

/** Mending takes milliseconds: a process that takes longer has been stopped, and others must not stop with it. */
const MEND_MS = 2_000

/** A smaller file is not a database. All rows may be in the log, so more cannot be required. */
const HEADER_BYTES = 100

export function openStoreFile(file: SqliteFile): OpenFile {
  const mendMs = Math.min(file.busyMs, MEND_MS)
  const db = openFile(file)
  const presence = new FilePresence()
  presence.hold(file.path, () => HEADER_BYTES)
  presence.hold(`${file.path}-wal`)
  return {
    db,
    cache: new RowCache(),
    path: file.path,
    presence,
    spans: new CheckedSpans(file.path),
    mendMs,
    version: 0,
    isChecked: false,
    commits: 0,
    restsUntil: 0,
    shared: undefined,
  }
}

/** Checks once per turn of the event loop whether others have written: within a turn nobody can know of a commit. */
export function validCache(session: OpenFile): RowCache {
  return session.isChecked && session.commits === commitsHere ? session.cache : checkedCache(session)
}

export function checkedCache(session: OpenFile): RowCache {
  const version = versionOf(session)
  if (version === session.version) session.cache.makeRoom()
  else session.cache.clear()
  session.version = version
  session.commits = commitsHere
  if (!session.isChecked) {
    session.isChecked = true
    // Runs after all settled promises were handled, before the next event from outside.
    process.nextTick(() => {
      session.isChecked = false
    })
  }
  return session.cache
}

function versionOf({ db, path, mendMs }: OpenFile): number {
  try {
    return whileBusy(mendMs, () => dataVersion(db))
  } catch (error) {
    throw storeError(error, path)
  }
}

export function dataVersion(db: Connection): number {
  return Number(db.first('PRAGMA data_version')?.[0])
}

/** SQLite reports a file that was emptied as damaged. */
export function sqliteFailure({ presence, path }: OpenFile, error: unknown): Error {
  if (!isLegateError(error)) presence.requireNow()
  return storeError(error, path)
}

/**
 * Checks the file before the commit is acknowledged. A flush costs more than the check; without a flush, not every commit
 * checks.
 */
export function requireThere({ presence }: OpenFile, { durability }: SqliteFile): void {
  if (durability === 'power') presence.requireNow()
  else presence.require()
}

/** All stores of this process that have the file open look again. */
export function acknowledge(session: OpenFile): void {
  session.commits = ++commitsHere
}

export function numberEvents({ events }: Commit, before: number): void {
  events.forEach((event, index) => {
    ;(event as { seq: number }).seq = before + index + 1
  })
}

/** Begins a transaction that writes. False when another process holds the lock, or has to get the lock first. */
export function begin({ db, path, restsUntil }: OpenFile): boolean {
  if (restsUntil > 0 && performance.now() < restsUntil) return false
  try {
    db.exec('BEGIN IMMEDIATE')
    return true
  } catch (error) {
    if (isBusy(error)) return false
    rollBack(db)
    throw storeError(error, path)
  }
}

/**
 * Ends a transaction that writes. On a slow disk this process then rests: else the lock would be free for moments only, which
 * others hardly meet, and several transactions in a row would stop the event loop for the sum of their times.
 */
export function end(session: OpenFile): void {
  const begun = performance.now()
  session.db.exec('COMMIT')
  const now = performance.now()
  session.restsUntil = now - begun > SLOW_MS ? now + REST_MS : 0
}

const SLOW_MS = 50

/** Longer than others wait from one try to the next. */
const REST_MS = 20
