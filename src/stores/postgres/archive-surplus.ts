// Trees that may go, found by their last activity.
//
// Owns:      the statements that find trees by `trees.active`, and the moment of trees that have none yet.
// Called by: the archive.
// Must stay true:
//   - Only what may go is read and sent: of trees that stay, the server counts entries of an index.

import type { SurplusQuery, SurplusTree } from '../../core/store/archive.ts'
import type { Database } from './connection/database.ts'
import type { PgRow } from './connection/driver.ts'
import { escaped, escapedOrNull, idOf, unescaped } from './escape.ts'

/** So many trees are found with one statement, and so many get their moment. */
const PAGE = 500

/** Trees that nobody has written to since they have a column for it. One that is being written to gets it from its writer. */
const DATE = `UPDATE @.trees h SET active = coalesce((SELECT at FROM @.commits c WHERE c.t = h.t AND c.events <> '[]'
    ORDER BY c.seq DESC, c.n DESC LIMIT 1), 0)
  WHERE h.root_id IN (SELECT root_id FROM @.trees WHERE active IS NULL AND state <> 'open' LIMIT ${PAGE} FOR UPDATE SKIP LOCKED)
  RETURNING 1`
/** Few turns are open, and all of them are in a queue. A tree may have some although its root has none. */
const OPEN = `open AS MATERIALIZED (SELECT DISTINCT t FROM @.rows WHERE queue IN ('t', 'u') AND letter = 't')`
const IS_IDLE = `state <> 'open' AND active IS NOT NULL AND ($1::text IS NULL OR owner = $1)
  AND (owner IS NULL OR owner <> ALL ($2)) AND ($3::text[] IS NULL OR agent = ANY ($3))
  AND NOT EXISTS (SELECT 1 FROM open WHERE open.t = h.t)`
/** The most recent tree that is one too many. */
const FIRST_TOO_MANY = `WITH ${OPEN} SELECT active, t FROM @.trees h WHERE ${IS_IDLE} ORDER BY active DESC, t DESC OFFSET $4 LIMIT 1`
/** Bounds stand in the statement as values: what lies behind them is not even looked at. */
const PAGE_OF = `WITH ${OPEN} SELECT root_id, seq, active, t, (active, t) <= ($6::float8, $7::bigint) FROM @.trees h
  WHERE ${IS_IDLE} AND (active, t) > ($4::float8, $5::bigint) AND (active, t) <= ($8::float8, $9::bigint) ORDER BY active, t LIMIT ${PAGE}`
const AGENTS = 'SELECT DISTINCT agent FROM @.trees'

type Place = readonly [active: number, t: number]
/** Greater than the number of every tree, and less than the place of every tree. */
const LAST = Number.MAX_SAFE_INTEGER
const NOWHERE: Place = [Number.NEGATIVE_INFINITY, 0]

/** Trees that may go, those that were inactive for longest first. */
export async function* surplusTrees(database: Database, query: SurplusQuery): AsyncGenerator<readonly SurplusTree[]> {
  const { owner, notOwners = [], maySee, keep, until } = query
  if (!database.options.readOnly) while ((await database.scan(DATE)).length > 0);
  const agents = maySee === undefined ? null : await agentsOf(database, maySee)
  const filter = [escapedOrNull(owner), notOwners.map(escaped), agents]
  const tooMany = keep === undefined ? undefined : (await database.scan(FIRST_TOO_MANY, [...filter, keep]))[0]
  const most = tooMany === undefined ? NOWHERE : placeOf(tooMany)
  const last = later(most, until === undefined ? NOWHERE : [until, LAST])
  for (let from = NOWHERE; ; ) {
    const page = await database.scan(PAGE_OF, [...filter, ...from, ...most, ...last])
    const newest = page.at(-1)
    if (newest === undefined) return
    yield page.map(([root, seq, , , isTooMany]) => ({
      rootId: idOf(root),
      seq: Number(seq),
      reason: isTooMany === true ? 'maximum' : 'ttl',
    }))
    if (page.length < PAGE) return
    from = placeOf(newest.slice(2))
  }
}

function later(a: Place, b: Place): Place {
  return a[0] > b[0] || (a[0] === b[0] && a[1] > b[1]) ? a : b
}

function placeOf([active, t]: PgRow): Place {
  return [Number(active), Number(t)]
}

/** The names of agents, as they are stored, that a caller may see. */
async function agentsOf(database: Database, maySee: (agent: string) => boolean): Promise<readonly string[]> {
  const names = (await database.scan(AGENTS)).map(([name]) => String(name))
  return names.filter((name) => maySee(unescaped(name)))
}
