import { type Json, parseOwnJson } from '../../core/base/json.ts'
import { type Registry, type RegistryRow, requireRegistryRow, staleRegistryRow } from '../../core/store/registry.ts'
import type { Database } from './connection/database.ts'
import type { PgRow } from './connection/driver.ts'
import { escaped, escapedOrNull, unescaped } from './escape.ts'

const FIELDS = 'kind, id, owner, version, at, data'
const GET = `SELECT ${FIELDS} FROM @.registry WHERE kind = $1 AND id = $2`
const LIST = `SELECT ${FIELDS} FROM @.registry WHERE kind = $1 AND id > $2`
const PUT = `WITH put AS (
    INSERT INTO @.registry AS r (kind, id, owner, version, at, data) SELECT $1, $2, $3, $4, $5, $6
    WHERE $4 = 1 OR EXISTS (SELECT 1 FROM @.registry WHERE kind = $1 AND id = $2)
    ON CONFLICT (kind, id) DO UPDATE SET owner = $3, version = $4, at = $5, data = $6 WHERE r.version = $4 - 1 RETURNING 1)
  SELECT count(*), nextval('@.writes') FROM put`
const DROP = `WITH gone AS (DELETE FROM @.registry WHERE kind = $1 AND id = $2 RETURNING 1) SELECT count(*), nextval('@.writes') FROM gone`

/** `told` is called after a write. */
export function postgresRegistry(database: Database, told: () => void): Registry {
  return {
    get: async (kind, id) => (await database.query(GET, [escaped(kind), escaped(id)])).map(registryRow)[0],
    list: async (kind, { owner, after = '', before, limit }) => {
      const values = [escaped(kind), escaped(after), Math.min(Math.max(0, limit), 2 ** 31 - 1)]
      const parts = [LIST]
      if (owner !== undefined) parts.push(`AND owner = $${values.push(escaped(owner))}`)
      if (before !== undefined) parts.push(`AND id < $${values.push(escaped(before))}`)
      parts.push(before === undefined ? 'ORDER BY id LIMIT $3' : 'ORDER BY id DESC LIMIT $3')
      return (await database.query(parts.join(' '), values)).map(registryRow)
    },
    put: async (row) => {
      requireRegistryRow(row)
      const { kind, id, owner, version, at, data } = row
      const values = [escaped(kind), escaped(id), escapedOrNull(owner), version, at, JSON.stringify(data)]
      const [found] = await putOnce(database, values)
      if (Number(found?.[0]) !== 1) throw staleRegistryRow(row)
      told()
    },
    drop: async (kind, id) => {
      const [found] = await database.query(DROP, [escaped(kind), escaped(id)])
      told()
      return Number(found?.[0]) > 0
    },
  }
}

/** Sent twice, a row would be refused the second time: whoever loses the answer reads and decides again. */
async function putOnce(database: Database, values: readonly unknown[]): Promise<readonly PgRow[]> {
  try {
    return await database.once(PUT, values)
  } catch (error) {
    throw database.failure(error)
  }
}

function registryRow([kind, id, owner, version, at, data]: PgRow): RegistryRow {
  return {
    kind: unescaped(String(kind)),
    id: unescaped(String(id)),
    owner: owner === null ? null : unescaped(String(owner)),
    version: Number(version),
    at: Number(at),
    data: parseOwnJson(String(data)) as Json,
  }
}
