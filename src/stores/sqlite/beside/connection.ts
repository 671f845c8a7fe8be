import type { SqlValue } from '../../../core/store/codec/rows.ts'

export type SqlRow = readonly SqlValue[]

/** One open database file. Statements are prepared once per SQL text and way of running them. */
export interface Connection {
  exec(sql: string): void
  first(sql: string, parameters?: SqlRow): SqlRow | undefined
  all(sql: string, parameters?: SqlRow): readonly SqlRow[]
  /** The rows one after the other, for a table that memory need not hold. No other loop may use the same statement meanwhile. */
  each(sql: string, parameters?: SqlRow): Iterable<SqlRow>
  /** Gives the number of changed rows. */
  run(sql: string, parameters: SqlRow): number
  close(): void
}

/** How a store runs statements: reads at once, changes in one transaction of their own. */
export interface SqlAccess {
  /** Runs one query on the open connection and turns a failure into a StoreError. */
  readonly read: <T>(query: (db: Connection) => T) => T
  /** Runs a change that touches no row of a tree. */
  readonly write: (change: (db: Connection) => void) => void | Promise<void>
}

/**
 * Decodes a text that was read as bytes, with U+FFFD for invalid UTF-8, which its hash then reveals. Read as text, such a byte
 * would end the process (libsql), so every text column is read as bytes.
 */
export function columnText(value: SqlValue | undefined): string {
  if (!(value instanceof Uint8Array)) return String(value ?? '')
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('utf8')
}
