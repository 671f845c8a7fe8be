import { parseOwnJson } from '../../core/base/json.ts'
import type { PageRoom } from '../../core/base/page/room.ts'
import type { EngineRow } from '../../core/graph/commit.ts'
import type { AwaitingQuery, RootsQuery, RunnableQuery, Scans } from '../../core/graph/reader.ts'
import type { Conversation, Id, Node, Turn } from '../../core/graph/rows.ts'
import { unpackEvents } from '../../core/store/codec/event-text.ts'
import { type PackedRow, parseRow, toConversation, toNode, toTurn } from '../../core/store/codec/rows.ts'
import { longText } from '../../core/store/codec/short-text.ts'
import { inTurn } from '../../core/store/in-turn.ts'
import type { Agenda, Store } from '../../core/store/store.ts'
import { longData } from './archive-tree.ts'
import type { Database } from './connection/database.ts'
import type { PgRow } from './connection/driver.ts'
import { escaped, FIRST_KEY, idOf, keyOf, unescaped } from './escape.ts'

/** The columns that the text of a row is read with. */
const ROW = 'h.root_id, r.letter::text, r.id, r.version, r.span, r.data'
const ROWS = `SELECT ${ROW} FROM @.rows r JOIN @.trees h USING (t)`
/** Nodes, with the conversations of their turns. */
const NODE = `${ROW}, c.conversation_id`
const OF_NODE = `JOIN @.trees h USING (t) JOIN @.rows c ON c.id = r.span AND c.letter = 't'`
const NODES = `SELECT ${NODE} FROM @.rows r ${OF_NODE}`
const OVERDUE = `${ROWS} WHERE queue = 't' AND due <= $1 ORDER BY due LIMIT $2`
/** Finds the turns first: joined at once, a young table is read whole. */
const UNSTOPPED = `WITH c AS MATERIALIZED (SELECT id, t, conversation_id FROM @.rows WHERE mark <= $1 AND letter = 't')
  SELECT ${NODE} FROM c JOIN @.rows r ON r.t = c.t AND r.span = c.id JOIN @.trees h ON h.t = c.t
  WHERE r.letter = 'n' AND r.state = 'r' LIMIT $2`
const WAITING = `${NODES} WHERE r.queue = $1 AND (r.due, r.id) > ($2, $3) ORDER BY r.due, r.id LIMIT $4`
const WAITING_OF_OWNER = `${NODES} WHERE r.wait = $1 AND (r.due, r.id) > ($2, $3) ORDER BY r.due, r.id LIMIT $4`
const CLAIMED = `${NODES} WHERE r.queue = $1 LIMIT $2`
const ENGINES = 'SELECT data FROM @.engines ORDER BY id'
const ENGINE = 'SELECT data FROM @.engines WHERE id = $1'
const NEXT_DUE = `SELECT least((SELECT min(due) FROM @.rows WHERE queue = 't' AND due > $1), (SELECT min(due) FROM @.rows WHERE queue = 'w' AND due > $1),
  (SELECT min(mark) FROM @.rows WHERE letter = 'n' AND mark > $1))`
/** Up to the commit that has the last event of the page. */
const EVENTS = `WITH tree AS (SELECT t FROM @.trees WHERE root_id = $1)
  SELECT seq, events, n FROM @.commits WHERE t = (SELECT t FROM tree) AND seq > $2 AND events <> '[]' AND seq <= coalesce(
    (SELECT min(seq) FROM @.commits WHERE t = (SELECT t FROM tree) AND seq >= $2::bigint + $3), 2147483647) ORDER BY seq, n LIMIT $3`
const EVENT_SIZES = `SELECT seq, octet_length(events) FROM @.commits WHERE t = (SELECT t FROM @.trees WHERE root_id = $1) AND seq > $2
  AND octet_length(events) > 2 ORDER BY seq, n LIMIT $3`
const CONVERSATIONS = `${ROWS} WHERE letter = 'c' AND id > $1 AND ($2::bytea IS NULL OR root_id = $2) ORDER BY id LIMIT $3`
const FIND_IDS = `SELECT id, letter::text FROM @.rows WHERE letter IN ('c', 't', 'n') AND right(@.id_text(id), length($1)) = $1
  ORDER BY strpos('ctn', letter::text) LIMIT $2`
const OPEN_TURNS = `${ROWS} WHERE queue IN ('t', 'u') AND ($2::bytea IS NULL OR root_id = $2) LIMIT $1`
const OPEN_ROOTS = `${ROWS} WHERE queue IN ('t', 'u') AND kind = 'user' LIMIT $1`
const OPEN_ROOTS_OF_OWNER = `${ROWS} WHERE wait = $1 LIMIT $2`
const ROOT_OF = `SELECT h.root_id, h.owner FROM @.rows r JOIN @.trees h USING (t) WHERE r.id = $1 AND letter IN ('c', 't', 'n')
  ORDER BY strpos('ctn', letter::text) LIMIT 1`

/** Skips from one queue to the next, however many rows are in it. */
const queuesBetween = (first: string, end: string) => `WITH RECURSIVE q (queue) AS (
    (SELECT queue FROM @.rows WHERE queue >= '${first}' AND queue < '${end}' ORDER BY queue LIMIT 1)
    UNION ALL SELECT (SELECT r.queue FROM @.rows r WHERE r.queue > q.queue AND r.queue < '${end}' ORDER BY r.queue LIMIT 1)
      FROM q WHERE q.queue IS NOT NULL)`
const CLAIMANTS = `${queuesBetween('e', 'f')} SELECT queue FROM q WHERE queue IS NOT NULL`
/**
 * Nodes of each owner after $5, and of those up to it; of each its share of $1, at least $6. OFFSET 0 has them read in their order,
 * until there are enough: the planner takes a queue for short, and would sort all of it.
 */
const RUNNABLE = `${queuesBetween('r', 's')},
  owners AS (SELECT queue, row_number() OVER (ORDER BY queue <= $5, queue) AS at, greatest($6, ceil($1::float8 / count(*) OVER ()))::bigint AS share
    FROM q WHERE queue IS NOT NULL)
  SELECT o.at, o.share, f.* FROM owners o CROSS JOIN LATERAL (
    SELECT ${NODE} FROM (
      SELECT * FROM @.rows WHERE queue = o.queue AND (mark IS NULL OR mark <= $2) AND kind = ANY ($3) ORDER BY due OFFSET 0) r
    ${OF_NODE} JOIN @.rows a ON a.id = c.conversation_id AND a.letter = 'c'
    WHERE a.kind = ANY ($4) ORDER BY r.due LIMIT o.share) f`

/** All that a sweep asks for. A request for an answer without a time limit has none. */
const AGENDA = `${queuesBetween('e', 'f')} SELECT extract(epoch FROM clock_timestamp()) * 1000::float8,
  (SELECT coalesce(json_agg(data ORDER BY id), '[]') FROM @.engines)::text,
  (SELECT coalesce(json_agg(queue ORDER BY queue), '[]') FROM q WHERE queue IS NOT NULL)::text,
  EXISTS (SELECT 1 FROM @.rows WHERE queue = 't' AND due <= $1) OR EXISTS (SELECT 1 FROM @.rows WHERE queue = 'a' AND due > 0 AND due <= $1)
    OR EXISTS (SELECT 1 FROM @.rows WHERE queue = 'w' AND due <= $1) OR EXISTS (SELECT 1 FROM @.rows WHERE mark <= $2 AND letter = 't'),
  EXISTS (SELECT 1 FROM @.rows WHERE queue >= 'r' AND queue < 's'),
  (${NEXT_DUE})`

/** An open turn is in a queue. */
const NOT_OPEN = `SELECT id FROM unnest($1::bytea[]) AS asked (id)
  WHERE NOT EXISTS (SELECT 1 FROM @.rows r WHERE r.id = asked.id AND r.letter = 't' AND r.queue IS NOT NULL)`

type PostgresScans = Omit<Scans, 'blocks'> & Pick<Store, 'rootOf' | 'ownerOf' | 'notOpen' | 'agenda'>

/** Scans over all trees, answered by the database. */
export function postgresScans(database: Database): PostgresScans {
  const ask = (text: string, values: readonly unknown[] = []) => database.query(text, values)
  const nodes = async (text: string, values: readonly unknown[]) => (await ask(text, values)).map(nodeOf)
  const turns = async (text: string, values: readonly unknown[]) => (await ask(text, values)).map(turnOf)
  const ownerOf = async (id: Id) => {
    const [row] = await ask(ROOT_OF, [keyOf(id)])
    return row === undefined ? undefined : { rootId: idOf(row[0]), owner: unescapedOrNull(row[1]) }
  }
  /** How many events come before the first commit that does not fit. */
  const fittingEvents = async ([rootId, after, limit]: readonly [Id, number, number], room: PageRoom) => {
    const from = Math.max(0, Math.floor(after))
    const sizes = await ask(EVENT_SIZES, [keyOf(rootId), from, limit])
    const at = sizes.findIndex(([, bytes]) => !room.take(Number(bytes)))
    return at < 0 ? limit : Number(sizes[at - 1]?.[0]) - from
  }
  return {
    ownerOf,
    rootOf: async (id) => (await ownerOf(id))?.rootId,
    notOpen: async (turnIds) => (await ask(NOT_OPEN, [turnIds.map(keyOf)])).map(([id]) => idOf(id)),
    runnable: (query) => runnable(database, query),
    overdue: (now, limit) => turns(OVERDUE, [now, bound(limit)]),
    unstopped: (before, limit) => nodes(UNSTOPPED, [before, bound(limit)]),
    awaiting: (query) => waiting(database, 'a', query),
    timed: (query) => waiting(database, 'w', query),
    claimedBy: (engineId, limit) => nodes(CLAIMED, [`e${escaped(engineId)}`, bound(limit)]),
    claimants: async () => (await ask(CLAIMANTS)).map(([queue]) => claimantOf(queue)),
    engines: async () => (await ask(ENGINES)).map(engineOf),
    engine: async (id) => (await ask(ENGINE, [escaped(id)])).map(engineOf)[0],
    agenda: async ({ now, stopBefore }) => agendaOf((await ask(AGENDA, [now, stopBefore]))[0] ?? []),
    nextDue: async (now) => {
      const [row] = await ask(NEXT_DUE, [now])
      return row?.[0] == null ? undefined : Number(row[0])
    },
    events: async (rootId, after, limit, room) => {
      const wanted = bound(limit)
      const most = room === undefined ? wanted : Math.min(wanted, await fittingEvents([rootId, after, wanted], room))
      const found = await ask(EVENTS, [keyOf(rootId), Math.max(0, Math.floor(after)), most])
      const events = found.flatMap(([seq, text]) => unpackEvents(longText(String(text), [rootId]), Number(seq)))
      return events.filter(({ seq }) => seq > after).slice(0, most)
    },
    roots: (query) => roots(database, query),
    conversations: async ({ rootId, after = '', limit }) =>
      (await ask(CONVERSATIONS, [keyAfter(after), keyOrNull(rootId), bound(limit)])).map(conversationOf),
    findIds: async (ending, limit) =>
      ending === '' ? nothing(database) : (await database.scan(FIND_IDS, [escaped(ending), bound(limit)])).map(foundId),
    openTurns: (limit, rootId) => turns(OPEN_TURNS, [bound(limit), keyOrNull(rootId)]),
    openRoots: ({ limit, owner }) =>
      owner === undefined
        ? turns(OPEN_ROOTS, [bound(limit)])
        : turns(OPEN_ROOTS_OF_OWNER, [`o${escaped(owner)}`, bound(limit)]),
  }
}

function nothing(database: Database): [] {
  database.requireOpen()
  return []
}

/** Asks each owner for its share first; where some have less, the others for more. */
async function runnable(database: Database, query: RunnableQuery): Promise<readonly Node[]> {
  const { now, limit, kinds, agents, after } = query
  database.requireOpen()
  if (limit <= 0 || kinds.length === 0 || agents.length === 0) return []
  const last = after === undefined ? '' : `r${escaped(after ?? '')}`
  for (let least = 1; ; ) {
    const values = [bound(limit), now, kinds.map(escaped), agents.map(escaped), last, least]
    const lists = new Map<number, Node[]>()
    let share = least
    for (const [at, most, ...row] of await database.query(RUNNABLE, values)) {
      share = Number(most)
      const known = lists.get(Number(at))
      if (known === undefined) lists.set(Number(at), [nodeOf(row)])
      else known.push(nodeOf(row))
    }
    const owners = [...lists].toSorted(([a], [b]) => a - b).map(([, nodes]) => nodes.toSorted(inLine))
    const found = inTurn(owners, limit)
    const isCut = owners.some(({ length }) => length >= share)
    if (found.length >= limit || !isCut || share >= limit) return found
    least = Math.min(share * 4, limit)
  }
}

/** The order in which nodes of an owner run. The database goes by their moment alone, so that it reads no more than it gives. */
function inLine(a: Node, b: Node): number {
  return a.createdAt - b.createdAt || a.ordinal - b.ordinal
}

async function waiting(database: Database, queue: 'a' | 'w', query: AwaitingQuery): Promise<readonly Node[]> {
  const { limit, owner, after = { wakeAt: -1, id: '' } } = query
  const place = [after.wakeAt, keyAfter(after.id), bound(limit)]
  const rows =
    owner === undefined
      ? await database.query(WAITING, [queue, ...place])
      : await database.query(WAITING_OF_OWNER, [queue + escaped(owner), ...place])
  return rows.map(nodeOf)
}

async function roots(database: Database, query: RootsQuery): Promise<readonly Conversation[]> {
  const { limit, before, owner, agent, state } = query
  const values: unknown[] = [bound(limit)]
  const terms: string[] = []
  const add = (term: string, value: string | undefined): void => {
    if (value === undefined) return
    values.push(value)
    terms.push(term.replace('?', `$${values.length}`))
  }
  add('h.t < (SELECT t FROM @.trees WHERE root_id = ?)', before === undefined ? undefined : keyOf(before))
  add('h.owner = ?', owner === undefined ? undefined : escaped(owner))
  add('h.agent = ?', agent === undefined ? undefined : escaped(agent))
  add('h.state = ?', state)
  const where = terms.length === 0 ? '' : `WHERE ${terms.join(' AND ')}`
  const sql = `SELECT ${ROW} FROM @.trees h JOIN @.rows r ON r.id = h.root_id AND r.letter = 'c' ${where} ORDER BY h.t DESC LIMIT $1`
  return (await database.query(sql, values)).map(conversationOf)
}

/** More than PostgreSQL takes as a limit of ours. */
const MOST = 2 ** 31 - 1

function bound(limit: number): number {
  return Math.min(Math.max(0, limit), MOST)
}

function keyAfter(id: Id): string {
  return id === '' ? FIRST_KEY : keyOf(id)
}

function keyOrNull(id: Id | undefined): string | null {
  return id === undefined ? null : keyOf(id)
}

function packedOf([root, ...row]: PgRow): PackedRow {
  return parseRow(longData(row, idOf(root)))
}

function nodeOf(row: PgRow): Node {
  const [root, , , , span, , conversation] = row
  const place = { id: idOf(span), conversationId: idOf(conversation), rootId: idOf(root) }
  return toNode(packedOf(row) as Parameters<typeof toNode>[0], place as Turn)
}

function turnOf(row: PgRow): Turn {
  return toTurn(packedOf(row) as Parameters<typeof toTurn>[0])
}

function conversationOf(row: PgRow): Conversation {
  return toConversation(packedOf(row) as Parameters<typeof toConversation>[0])
}

function agendaOf([now, engines, claimants, isDue, isRunnable, nextDue]: PgRow): Agenda {
  return {
    now: Number(now),
    engines: (parseOwnJson(String(engines)) as string[]).map((data) => engineOf([data])),
    claimants: (parseOwnJson(String(claimants)) as string[]).map(claimantOf),
    isDue: isDue === true,
    isRunnable: isRunnable === true,
    nextDue: nextDue == null ? undefined : Number(nextDue),
  }
}

function claimantOf(queue: unknown): Id {
  return unescaped(String(queue).slice(1))
}

function engineOf([data]: PgRow): EngineRow {
  return parseOwnJson(String(data)) as EngineRow
}

const TYPES = { c: 'conversation', t: 'turn', n: 'node' } as const

function foundId([id, letter]: PgRow): Awaited<ReturnType<Scans['findIds']>>[number] {
  return { id: idOf(id), type: TYPES[letter as keyof typeof TYPES] }
}

function unescapedOrNull(value: unknown): string | null {
  return value === null ? null : unescaped(String(value))
}
