import { accessSync, closeSync, constants, mkdirSync, openSync, readSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { StoreError } from '../../base/error.ts'
import { type Connection, connect } from './driver.ts'
import { foreignMessage, storeError } from './error.ts'
import { readConnection } from './reading.ts'
import { APPLICATION_ID, MIGRATIONS, migrate, schemaVersion } from './schema.ts'

export interface SqliteFile {
  readonly path: string
  readonly durability: 'process' | 'power'
  /** How long to wait for other processes, in all. */
  readonly busyMs: number
  /** Nothing is made, migrated or written. */
  readonly readOnly: boolean
}

/** Opens our database file, or makes one where there is none. Throws StoreError; a file that is not ours stays as it is. */
export function openFile(file: SqliteFile): Connection {
  try {
    prepareFile(file)
    return countedConnection(file)
  } catch (error) {
    throw storeError(error, file.path)
  }
}

/**
 * How often this process has which file open, by device and inode. Closing any descriptor of such a file would give up
 * the locks that SQLite holds on it in this process, and others could take its log away: it is not looked into again.
 */
const openHere = new Map<string, number>()

function keyOf({ dev, ino }: { readonly dev: number; readonly ino: number }): string {
  return `${dev}/${ino}`
}

function countedConnection(file: SqliteFile): Connection {
  const connection = file.readOnly ? openForReading(file) : openConnection(file)
  const key = keyOf(statSync(file.path))
  openHere.set(key, (openHere.get(key) ?? 0) + 1)
  let isOpen = true
  return {
    ...connection,
    close: () => {
      connection.close()
      if (!isOpen) return
      isOpen = false
      const left = (openHere.get(key) ?? 1) - 1
      if (left > 0) openHere.set(key, left)
      else openHere.delete(key)
    },
  }
}

function prepareFile({ path, readOnly }: SqliteFile): void {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat === undefined) {
    if (readOnly) throw new StoreError('store', `There is no file ${path} to read.`, { details: { path } })
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    closeSync(openSync(path, 'a', 0o600))
    return
  }
  if (!stat.isFile())
    throw new StoreError('store', `${path} is not a file; name a file for the store.`, { details: { path } })
  if (readOnly) requireReadable(path)
  else requireWritable(path)
  if (stat.size > 0 && !openHere.has(keyOf(stat))) requireOurs(path)
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

/** Looks at the header only: to open a foreign database could already change it. */
function requireOurs(path: string): void {
  const header = readHeader(path)
  const foreign = (why: string): StoreError =>
    new StoreError('store_foreign_file', foreignMessage(path, why), { details: { path } })
  if (header.toString('latin1', 0, 16) !== 'SQLite format 3\0') throw foreign('is not a SQLite database')
  if (header.readUInt32BE(68) !== APPLICATION_ID) throw foreign('is the database of another application')
  requireKnownSchema(path, header.readUInt32BE(60))
}

function readHeader(path: string): Buffer {
  const header = Buffer.alloc(100)
  const descriptor = openSync(path, 'r')
  try {
    readSync(descriptor, header, 0, header.length, 0)
  } finally {
    closeSync(descriptor)
  }
  return header
}

function pageCount(connection: Connection): number {
  return Number(connection.first('PRAGMA page_count')?.[0])
}

function requireKnownSchema(path: string, version: number): void {
  if (version <= MIGRATIONS.length) return
  const message = `${path} was written by a newer version (schema ${version}; this one knows ${MIGRATIONS.length}). Update this program, or name another path.`
  throw new StoreError('store_newer_schema', message, { details: { path, version, known: MIGRATIONS.length } })
}

function openConnection({ path, durability, busyMs }: SqliteFile): Connection {
  const connection = connect(path)
  try {
    connection.exec(`PRAGMA busy_timeout = ${busyMs}`)
    // Before the write-ahead log exists, so that it is in the file's own header from the first byte on. SQLite is asked,
    // not the file: what a process wrote that died of it is taken back first.
    if (pageCount(connection) === 0) connection.exec(`PRAGMA application_id = ${APPLICATION_ID}`)
    connection.exec(`PRAGMA journal_mode = WAL`)
    connection.exec(`PRAGMA synchronous = ${durability === 'power' ? 'FULL' : 'NORMAL'}`)
    // Pages are written over and over until then: few checkpoints write few pages.
    connection.exec('PRAGMA wal_autocheckpoint = 8000')
    requireKnownSchema(path, schemaVersion(connection))
    migrate(connection)
    connection.exec('PRAGMA busy_timeout = 20')
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

function openForReading({ path, busyMs }: SqliteFile): Connection {
  const connection = readConnection(path, busyMs)
  try {
    requireKnownSchema(path, schemaVersion(connection))
    requireWritten(path, schemaVersion(connection))
    connection.exec('PRAGMA busy_timeout = 20')
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

/** Who only reads takes no steps of the schema. */
function requireWritten(path: string, version: number): void {
  if (version === MIGRATIONS.length) return
  const message =
    version === 0
      ? `${path} has no rows yet: no program has written to it as a store. It was left as it is.`
      : `${path} was written by an older version (schema ${version}). Open it once for writing: that brings it up to date.`
  throw new StoreError('store', message, { details: { path } })
}
