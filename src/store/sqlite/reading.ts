import { statSync } from 'node:fs'
import { StoreError } from '../../base/error.ts'
import { type Connection, connect, RESULT, resultCode } from './driver.ts'

/**
 * A connection that reads only, also where neither the file nor its folder may be written. Where SQLite would need to
 * write beside the file to read it, the file alone is read; it must then have all there is.
 */
export function readConnection(path: string, busyMs: number): Connection {
  const connection = connect(path, 'read')
  try {
    connection.exec(`PRAGMA busy_timeout = ${busyMs}`)
    connection.first('PRAGMA schema_version')
    return connection
  } catch (error) {
    connection.close()
    if (!NEEDS_WRITING.has(resultCode(error) & 0xff)) throw error
  }
  requireNoLog(path)
  return connect(path, 'immutable')
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
