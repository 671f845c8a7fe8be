import { parseOwnJson } from '../../../core/base/json.ts'
import type { Spent } from '../../../core/graph/commit.ts'
import { addSpent, type SpentQuery } from '../../../core/store/spent.ts'
import { type Connection, columnText, type SqlRow } from './connection.ts'

/** The usage of owners by day, agent and model, summed over all trees. */
export const SPENT = `
CREATE TABLE spent (
  owner TEXT NOT NULL,
  day TEXT NOT NULL,
  agent TEXT NOT NULL,
  model TEXT NOT NULL,
  runs INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  usage TEXT NOT NULL,
  PRIMARY KEY (owner, day, agent, model)
) WITHOUT ROWID;
CREATE INDEX spent_of_day ON spent (day);
`

const FIELDS =
  'CAST(owner AS BLOB), CAST(day AS BLOB), CAST(agent AS BLOB), CAST(model AS BLOB), runs, calls, CAST(usage AS BLOB)'
const GET = `SELECT ${FIELDS} FROM spent WHERE owner = ? AND day = ? AND agent = ? AND model = ?`
const PUT = 'REPLACE INTO spent (owner, day, agent, model, runs, calls, usage) VALUES (?, ?, ?, ?, ?, ?, ?)'
const OF_OWNER = `SELECT ${FIELDS} FROM spent WHERE owner = ? AND day >= ? AND day <= ? ORDER BY day, owner, agent, model`
const OF_ALL = `SELECT ${FIELDS} FROM spent WHERE day >= ? AND day <= ? ORDER BY day, owner, agent, model`

/** Adds to the sums in the transaction of the commit. */
export function putSpent(db: Connection, spent: readonly Spent[]): void {
  for (const one of spent) {
    const known = db.first(GET, [one.owner, one.day, one.agent, one.model])
    const sum = known === undefined ? one : addSpent(toSpent(known), one)
    const { owner, day, agent, model, runs, modelCalls, usage } = sum
    db.run(PUT, [owner, day, agent, model, runs, modelCalls, JSON.stringify(usage)])
  }
}

export function readSpent(db: Connection, { owner, from, to }: SpentQuery): Spent[] {
  const rows = owner === undefined ? db.all(OF_ALL, [from, to]) : db.all(OF_OWNER, [owner, from, to])
  return rows.map(toSpent)
}

function toSpent([owner, day, agent, model, runs, calls, usage]: SqlRow): Spent {
  return {
    owner: columnText(owner),
    day: columnText(day),
    agent: columnText(agent),
    model: columnText(model),
    runs: Number(runs),
    modelCalls: Number(calls),
    usage: parseOwnJson(columnText(usage)) as Spent['usage'],
  }
}

export function forgetSpent(db: Connection, owner: string, keptDay = ''): void {
  db.run('DELETE FROM spent WHERE owner = ? AND day <> ?', [owner, keptDay])
}
