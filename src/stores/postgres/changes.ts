import { parseOwnJson } from '../../core/base/json.ts'
import type { ChangePage, TreeChange } from '../../core/store/feed.ts'
import type { DayUsage, SpentQuery } from '../../core/store/spent.ts'
import type { Database } from './connection/database.ts'
import type { PgRow } from './connection/driver.ts'
import { escapedOrNull, idOf, unescaped } from './escape.ts'

const USAGE = `SELECT owner, day, agent, model, sum(runs)::float8, sum(model_calls)::float8, sum(input)::float8, sum(output)::float8,
  sum(cache_read)::float8, sum(cache_write)::float8 FROM @.spent
  WHERE day >= $1 AND day <= $2 AND ($3::text IS NULL OR owner = $3) GROUP BY 1, 2, 3, 4 ORDER BY day, owner, agent, model`

export async function readUsage(database: Database, { owner, from, to }: SpentQuery): Promise<readonly DayUsage[]> {
  const rows = await database.query(USAGE, [from, to, escapedOrNull(owner)])
  return rows.map(([whose, day, agent, model, runs, modelCalls, input, output, cacheRead, cacheWrite]) => ({
    owner: unescaped(String(whose)),
    day: String(day),
    agent: unescaped(String(agent)),
    model: unescaped(String(model)),
    runs: Number(runs),
    modelCalls: Number(modelCalls),
    usage: {
      inputTokens: Number(input),
      outputTokens: Number(output),
      cacheReadTokens: Number(cacheRead),
      cacheWriteTokens: Number(cacheWrite),
    },
  }))
}

/** Changes before all transactions that are still open: none of them can come in later. */
const CHANGES = `WITH s AS (SELECT pg_snapshot_xmin(pg_current_snapshot()) AS xmin, pg_snapshot_xmax(pg_current_snapshot()) AS xmax,
    EXISTS (SELECT 1 FROM @.feed f WHERE ($1::text::xid8, $2::bigint) < (f.xid, f.c)) AS gone)
  SELECT s.xmin::text, s.xmax::text, s.gone, c.xid::text, c.c, c.root_id, c.seq, c.owner, c.agent, c.at, c.types FROM s LEFT JOIN LATERAL (
    SELECT * FROM @.changes WHERE xid < s.xmin AND (xid, c) > ($1::text::xid8, $2) ORDER BY xid, c LIMIT $3) c ON true ORDER BY c.xid, c.c`

export async function readChanges(database: Database, after: string | null, limit: number): Promise<ChangePage> {
  const asked = after === null ? START : readPlace(after)
  const rows = await database.query(CHANGES, [...(asked ?? START), Math.min(Math.max(0, limit), 2 ** 31 - 1)])
  const [xmin, xmax, gone] = (rows[0] ?? []).map(String)
  if (after === null && limit <= 0) return { changes: [], cursor: `${BigInt(xmin ?? 0) - 1n}-${LAST}`, isCut: false }
  // Whoever begins anew reads what is kept.
  const isCut = asked === undefined || BigInt(asked[0]) >= BigInt(xmax ?? 0) || (gone === 'true' && after !== null)
  if (isCut && after !== null) return { ...(await readChanges(database, null, limit)), isCut }
  const found = rows.filter(([, , , xid]) => xid !== null)
  const last = found.at(-1)
  const [xid, c] = last === undefined ? (asked ?? START) : [last[3], last[4]]
  const cursor = `${xid}-${c}`
  return { changes: found.flatMap((row) => changeOf(row) ?? []), cursor, isCut: false }
}

const START = ['0', '0'] as const
/** Greater than the number of every change. */
const LAST = '9007199254740991'

function readPlace(cursor: string): readonly [xid: string, c: string] | undefined {
  const [, xid, c] = /^(\d{1,18})-(\d{1,16})$/.exec(cursor) ?? []
  return xid === undefined || c === undefined ? undefined : [xid, c]
}

function changeOf([, , , , , rootId, seq, owner, agent, at, types]: PgRow): TreeChange | undefined {
  if (rootId === null) return undefined
  return {
    rootId: idOf(rootId),
    seq: Number(seq),
    owner: owner === null ? null : unescaped(String(owner)),
    agent: unescaped(String(agent)),
    at: Number(at),
    types: parseOwnJson(String(types)) as TreeChange['types'],
  }
}

/** So many of the newest changes are kept, and up to a tenth more. */
const KEPT = 100_000
const FORGET_CHANGES = `WITH last AS (SELECT xid, c FROM @.changes ORDER BY xid DESC, c DESC OFFSET ${KEPT} LIMIT 1),
    cut AS (UPDATE @.feed f SET xid = last.xid, c = last.c FROM last WHERE (f.xid, f.c) < (last.xid, last.c))
  DELETE FROM @.changes g USING last WHERE (g.xid, g.c) <= (last.xid, last.c)`
const IS_LONG = `SELECT (SELECT max(c) FROM (SELECT c FROM @.changes ORDER BY xid DESC, c DESC LIMIT 1) n)
  - (SELECT c FROM @.changes ORDER BY xid, c LIMIT 1) >= ${KEPT * 1.1}`
/** Streams of nodes that no longer run, and readers that are gone. */
const FORGET_STREAMS = `DELETE FROM @.blocks b WHERE NOT EXISTS (
  SELECT 1 FROM @.rows r WHERE r.id = b.node_id AND r.letter = 'n' AND r.state = 'r')`
const FORGET_READERS = 'DELETE FROM @.readers WHERE until < now()'
/** So many sums of runs are folded with one statement, and so few are left alone. */
const MOST_SUMS = 10_000
const FEW_SUMS = 1_000
const ARE_MANY = `SELECT count(*) >= ${FEW_SUMS} FROM (SELECT 1 FROM @.spent WHERE NOT folded LIMIT ${FEW_SUMS}) n`
const FOLD = `WITH gone AS (DELETE FROM @.spent WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM @.spent WHERE NOT folded LIMIT ${MOST_SUMS} FOR UPDATE SKIP LOCKED)) RETURNING *),
    put AS (INSERT INTO @.spent AS s (owner, day, agent, model, runs, model_calls, input, output, cache_read, cache_write, folded)
      SELECT owner, day, agent, model, sum(runs), sum(model_calls), sum(input), sum(output), sum(cache_read), sum(cache_write), true
      FROM gone GROUP BY 1, 2, 3, 4 ORDER BY 2, 1, 3, 4
      ON CONFLICT (day, owner, agent, model) WHERE folded DO UPDATE SET runs = s.runs + excluded.runs,
        model_calls = s.model_calls + excluded.model_calls, input = s.input + excluded.input, output = s.output + excluded.output,
        cache_read = s.cache_read + excluded.cache_read, cache_write = s.cache_write + excluded.cache_write)
  SELECT count(*) FROM gone`

/** Forgets old changes and streams that are over, and folds sums. Costs little where there is little. */
export async function tidy(database: Database): Promise<void> {
  const [row] = await database.query(IS_LONG)
  if (row?.[0] === true) await database.scan(FORGET_CHANGES)
  for (const forget of [FORGET_STREAMS, FORGET_READERS]) await database.query(forget)
  const [many] = await database.query(ARE_MANY)
  if (many?.[0] === true) await foldSpent(database)
}

/** Adds what single runs have spent to the sums of their keys, so that whoever asks for usage reads few rows. */
export async function foldSpent(database: Database): Promise<void> {
  for (let count = MOST_SUMS; count >= MOST_SUMS; ) count = Number((await database.scan(FOLD))[0]?.[0])
}
