import { StoreError } from '../../../core/base/error.ts'
import { type Json, parseOwnJson } from '../../../core/base/json.ts'
import type { SqlValue } from '../../../core/store/codec/rows.ts'
import { type Registry, type RegistryRow, requireRegistryRow, staleRegistryRow } from '../../../core/store/registry.ts'
import { type Connection, columnText, type SqlAccess, type SqlRow } from './connection.ts'

/** Rows that belong to no tree. */
export const REGISTRY = `
CREATE TABLE registry (
  kind TEXT NOT NULL,
  id TEXT NOT NULL,
  owner TEXT,
  version INTEGER NOT NULL,
  at INTEGER NOT NULL,
  data TEXT NOT NULL,
  PRIMARY KEY (kind, id)
) WITHOUT ROWID;
CREATE INDEX registry_of_owner ON registry (owner, kind, id) WHERE owner IS NOT NULL;
`

const FIELDS = 'CAST(kind AS BLOB), CAST(id AS BLOB), CAST(owner AS BLOB), version, at, CAST(data AS BLOB)'
const GET = `SELECT ${FIELDS} FROM registry WHERE kind = ? AND id = ?`
const OF_ALL = `SELECT ${FIELDS} FROM registry WHERE kind = ? AND id > ?`
const OF_OWNER = `SELECT ${FIELDS} FROM registry WHERE owner = ? AND kind = ? AND id > ?`
const UPWARD = 'ORDER BY id LIMIT ?'
const DOWNWARD = 'AND id < ? ORDER BY id DESC LIMIT ?'
const ADD = 'INSERT OR IGNORE INTO registry (owner, version, at, data, kind, id) VALUES (?, ?, ?, ?, ?, ?)'
const SET = 'UPDATE registry SET owner = ?, version = ?, at = ?, data = ? WHERE kind = ? AND id = ? AND version = ?'
const DROP = 'DELETE FROM registry WHERE kind = ? AND id = ?'

export function sqliteRegistry({ read, write }: SqlAccess): Registry {
  return {
    get: (kind, id) => {
      const row = read((db) => db.first(GET, [kind, id]))
      return row === undefined ? undefined : toRow(row)
    },
    list: (kind, { owner, after = '', before, limit }) => {
      const most = Math.min(Math.max(0, limit), Number.MAX_SAFE_INTEGER)
      const which = owner === undefined ? [kind, after] : [owner, kind, after]
      const end = before === undefined ? [most] : [before, most]
      const sql = `${owner === undefined ? OF_ALL : OF_OWNER} ${before === undefined ? UPWARD : DOWNWARD}`
      return read((db) => db.all(sql, [...which, ...end])).map(toRow)
    },
    put: (row) => {
      requireRegistryRow(row)
      return write((db) => put(db, row))
    },
    drop: (kind, id) => {
      let dropped = 0
      const written = write((db) => {
        dropped = db.run(DROP, [kind, id])
      })
      return written instanceof Promise ? written.then(() => dropped > 0) : dropped > 0
    },
  }
}

export function forgetRegistered(db: Connection, owner: string): void {
  db.run('DELETE FROM registry WHERE owner = ?', [owner])
}

function put(db: Connection, row: RegistryRow): void {
  const { kind, id, owner, version, at, data } = row
  const values: SqlValue[] = [owner, version, at, JSON.stringify(data), kind, id]
  const changes = version === 1 ? db.run(ADD, values) : db.run(SET, [...values, version - 1])
  if (changes !== 1) throw staleRegistryRow(row)
}

function toRow([kind, id, owner, version, at, data]: SqlRow): RegistryRow {
  const place = { kind: columnText(kind), id: columnText(id) }
  try {
    const value = parseOwnJson(columnText(data)) as Json
    return {
      ...place,
      owner: owner === null ? null : columnText(owner),
      version: Number(version),
      at: Number(at),
      data: value,
    }
  } catch (cause) {
    const message = `The row ${place.kind} ${place.id} of the registry cannot be read: somebody changed it outside of the runtime.`
    throw new StoreError('store', message, { details: place, cause })
  }
}
