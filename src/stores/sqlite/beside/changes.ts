import { parseOwnJson } from '../../../core/base/json.ts'
import { type ChangePage, readCursor, type TreeChange } from '../../../core/store/feed.ts'
import { type Connection, columnText, type SqlRow } from './connection.ts'

/** The newest changes of all trees. Each row has the number after the one before it. */
export const CHANGES = `
CREATE TABLE changes (
  n INTEGER PRIMARY KEY,
  root_id TEXT NOT NULL,   -- empty where its owner was forgotten
  seq INTEGER NOT NULL,
  owner TEXT,
  agent TEXT NOT NULL,
  at INTEGER NOT NULL,
  types TEXT NOT NULL      -- a list as JSON
);
`

/** Changes that are kept; now and then the older ones go. */
const KEPT = 100_000
const EVERY = 1_000

const ADD = 'INSERT INTO changes (n, root_id, seq, owner, agent, at, types) VALUES (?, ?, ?, ?, ?, ?, ?)'
const LAST = 'SELECT max(n) FROM changes'
const FIRST = 'SELECT min(n) FROM changes'
const READ = `SELECT n, CAST(root_id AS BLOB), seq, CAST(owner AS BLOB), CAST(agent AS BLOB), at, CAST(types AS BLOB)
  FROM changes WHERE n > ? ORDER BY n LIMIT ?`

/** Adds a change in the transaction of its commit, after the change of this number; gives its own. */
export function putChange(db: Connection, change: TreeChange, last: number | undefined): number {
  const { rootId, seq, owner, agent, at, types } = change
  const n = (last ?? lastChange(db)) + 1
  db.run(ADD, [n, rootId, seq, owner, agent, at, JSON.stringify(types)])
  if (n % EVERY === 0) db.run('DELETE FROM changes WHERE n <= ?', [n - KEPT])
  return n
}

function lastChange(db: Connection): number {
  return Number(db.first(LAST)?.[0] ?? 0)
}

/** Must be run at one moment: others may add changes meanwhile. */
export function readChanges(db: Connection, after: string | null, limit: number): ChangePage {
  const last = lastChange(db)
  if (after === null && limit <= 0) return { changes: [], cursor: String(last), isCut: false }
  const first = Number(db.first(FIRST)?.[0] ?? last + 1)
  const from = readCursor(after, first, last)
  const rows = db.all(READ, [from.after, Math.min(Math.max(0, limit), Number.MAX_SAFE_INTEGER)])
  const cursor = String(rows.at(-1)?.[0] ?? from.after)
  return { changes: rows.flatMap((row) => toChange(row) ?? []), cursor, isCut: from.isCut }
}

/** Undefined for a change that was forgotten, or that cannot be read. */
function toChange([, rootId, seq, owner, agent, at, types]: SqlRow): TreeChange | undefined {
  const id = columnText(rootId)
  if (id === '') return undefined
  try {
    return {
      rootId: id,
      seq: Number(seq),
      owner: owner === null ? null : columnText(owner),
      agent: columnText(agent),
      at: Number(at),
      types: parseOwnJson(columnText(types)) as TreeChange['types'],
    }
  } catch {
    return undefined
  }
}

const FORGET = "UPDATE changes SET root_id = '', owner = NULL, agent = '', types = '[]' WHERE owner = ?"

/** Erases the changes of an owner. Their numbers stay taken. */
export function forgetChanges(db: Connection, owner: string): void {
  db.run(FORGET, [owner])
}
