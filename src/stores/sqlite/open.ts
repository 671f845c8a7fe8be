import { accessSync, closeSync, constants, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { isLegateError, StoreError } from '../../core/base/error.ts'
import { DATABASE_ENDINGS, ownFile } from '../../core/base/system/own-files.ts'
import { requireFolder } from '../../core/store/file-presence.ts'
import { type Connection, connectTo, foreignMessage, RESULT, resultCode, storeError, whileBusy } from './driver.ts'
import { APPLICATION_ID, MIGRATIONS, migrate, schemaVersion } from './schema.ts'

export interface SqliteFile {
  readonly path: string
  readonly durability: 'process' | 'power'
  /** How long to wait for other processes, in all. */
  readonly busyMs: number
  /** Creates, migrates and writes nothing. */
  readonly readOnly: boolean
}

/** How long a statement waits for the lock of another process, and the event loop with it. */
export const FIRST_TRY_MS = 20

/** Opens our database file, or creates one. Throws StoreError; a file that is not ours stays as it is. */
export function openFile(file: SqliteFile): Connection {
  try {
    prepareFile(file)
    const connection = file.readOnly ? openForReading(file) : openConnection(file)
    ownFile(file.path, 'the store', DATABASE_ENDINGS)
    return connection
  } catch (error) {
    throw storeError(error, file.path)
  }
}

function prepareFile({ path, readOnly }: SqliteFile): void {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat === undefined) {
    if (readOnly) throw new StoreError('store', `There is no file ${path} to read.`, { details: { path } })
    requireFolder(path)
    closeSync(openSync(path, 'a', 0o600))
    return
  }
  if (!stat.isFile())
    throw new StoreError('store', `${path} is not a file; name a file for the store.`, { details: { path } })
  if (readOnly) requireReadable(path)
  else requireWritable(path)
  if (stat.size > 0) requireOurs(path)
}

function requireReadable(path: string): void {
  try {
    accessSync(path, constants.R_OK)
  } catch (cause) {
    const message = `Permission denied: ${path} may not be read by this user. Change its permissions, or name another path.`
    throw new StoreError('store_readonly', message, { cause, details: { path } })
  }
}

function requireWritable(path: string): void {
  accessSync(path, constants.R_OK | constants.W_OK)
  accessSync(dirname(path), constants.W_OK)
}

/**
 * Checks that a file is ours. Merely opening a foreign database could change it, so it is opened as immutable. SQLite must do
 * that: closing any other descriptor of a file would release the locks that SQLite holds on it in this process. Without locks a
 * file that another process writes to may look damaged: the caller then checks again.
 */
function requireOurs(path: string): void {
  const header = connectTo(path, 'immutable')
  try {
    requireApplication(path, header)
    requireKnownSchema(path, schemaVersion(header))
  } catch (error) {
    if (isLegateError(error) || (resultCode(error) & 0xff) === RESULT.notADatabase) throw error
  } finally {
    header.close()
  }
}

function requireApplication(path: string, connection: Connection): void {
  if (Number(connection.first('PRAGMA application_id')?.[0]) === APPLICATION_ID) return
  const message = foreignMessage(path, 'is the database of another application')
  throw new StoreError('store_foreign_file', message, { details: { path } })
}

function pageCount(connection: Connection): number {
  return Number(connection.first('PRAGMA page_count')?.[0])
}

function pageSize(connection: Connection): number {
  return Number(connection.first('PRAGMA page_size')?.[0])
}

function requireKnownSchema(path: string, version: number): void {
  if (version <= MIGRATIONS.length) return
  const message = `${path} was written by a newer version (schema ${version}; this one knows ${MIGRATIONS.length}). Update this program, or name another path.`
  throw new StoreError('store_newer_schema', message, { details: { path, version, known: MIGRATIONS.length } })
}

function openConnection({ path, durability, busyMs }: SqliteFile): Connection {
  const connection = connectTo(path)
  try {
    connection.exec(`PRAGMA busy_timeout = ${busyMs}`)
    // Sets our mark before the write-ahead log exists, so that it is in the file's own header from the first byte on. Asks
    // SQLite for the size, not the file system: SQLite first undoes the writes of a process that died.
    if (pageCount(connection) === 0) {
      connection.exec(`PRAGMA page_size = ${PAGE_BYTES}`)
      connection.exec(`PRAGMA application_id = ${APPLICATION_ID}`)
    } else requireApplication(path, connection)
    // SQLite itself does not wait for a process that reads or converts a new file at the same time.
    whileBusy(busyMs, () => connection.exec('PRAGMA journal_mode = WAL'))
    connection.exec(`PRAGMA synchronous = ${durability === 'power' ? 'FULL' : 'NORMAL'}`)
    // Until a checkpoint pages are overwritten in the log, so few checkpoints write few pages.
    connection.exec(`PRAGMA wal_autocheckpoint = ${Math.floor(CHECKPOINT_BYTES / pageSize(connection))}`)
    // A reader that stays in the way of checkpoints makes the log grow; afterwards it shrinks to this again.
    connection.exec(`PRAGMA journal_size_limit = ${LOG_BYTES}`)
    requireKnownSchema(path, schemaVersion(connection))
    migrate(connection)
    connection.exec(`PRAGMA busy_timeout = ${Math.min(busyMs, BEGIN_MS)}`)
    if (durability === 'power') beginLog(connection)
    connection.exec(`PRAGMA busy_timeout = ${FIRST_TRY_MS}`)
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

/** How long opening waits for those who write. */
const BEGIN_MS = 2_000

/**
 * The first flush of a connection is followed by one of the folder, and the first of an empty log by one of its header. They
 * belong to opening: later a commit stops the event loop for one flush.
 */
function beginLog(connection: Connection): void {
  try {
    connection.exec(`PRAGMA user_version = ${schemaVersion(connection)}`)
  } catch (error) {
    // The disk is full, or another process writes. Reading goes on, and a commit says so itself.
    if (!NOT_NOW.has(resultCode(error) & 0xff)) throw error
  }
}

const NOT_NOW: ReadonlySet<number> = new Set([RESULT.busy, RESULT.full, RESULT.io])

/**
 * The pages of a new file. A commit changes few bytes of each page that it touches, and the log gets whole pages: with pages of
 * 4 KB, which older files have, it is twice as long.
 */
const PAGE_BYTES = 1024

/** How long the log becomes until its pages are moved into the file. */
const CHECKPOINT_BYTES = 32 * 1024 * 1024

/** The log between two checkpoints, and room for one large commit. */
const LOG_BYTES = 64 * 1024 * 1024

function openForReading({ path, busyMs }: SqliteFile): Connection {
  const connection = readConnection(path, busyMs)
  try {
    requireKnownSchema(path, schemaVersion(connection))
    requireWritten(path, schemaVersion(connection))
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

/** A reader takes no steps of the schema. */
function requireWritten(path: string, version: number): void {
  if (version === MIGRATIONS.length) return
  const message =
    version === 0
      ? `${path} has no rows yet: no program has written to it as a store. It was left as it is.`
      : `${path} was written by an older version (schema ${version}). Open it once for writing: that brings it up to date.`
  throw new StoreError('store', message, { details: { path } })
}

/**
 * Opens a connection that only reads, also where neither the file nor its folder may be written. Where SQLite would have to
 * write beside the file, the file alone is read; it must then hold everything.
 */
function readConnection(path: string, busyMs: number): Connection {
  const connection = connectTo(path, 'read')
  try {
    connection.exec(`PRAGMA busy_timeout = ${busyMs}`)
    connection.first('PRAGMA schema_version')
    return connection
  } catch (error) {
    connection.close()
    if (!NEEDS_WRITING.has(resultCode(error) & 0xff)) throw error
  }
  requireNoLog(path)
  return connectTo(path, 'immutable')
}

const NEEDS_WRITING: ReadonlySet<number> = new Set([RESULT.cantOpen, RESULT.readonly])

function requireNoLog(path: string): void {
  const log = ['-wal', '-journal'].find((ending) => sizeOf(path + ending) > 0)
  if (log === undefined) return
  const message = `${path} cannot be read without writing: its last rows are in ${path}${log}, and SQLite must write beside it to read them. Make the folder writable, or copy both files to one that is.`
  throw new StoreError('store_readonly', message, { details: { path } })
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}
