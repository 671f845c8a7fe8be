import { parseOwnJson } from '../base/json.ts'
import type { LiveBlock } from '../graph/commit.ts'
import type { EventRow } from '../graph/event.ts'
import type { RunnableQuery, Scanner } from '../graph/reader.ts'
import type { Conversation, Edge, EdgeType, EngineRow, Id, Link, Node, Turn } from '../graph/rows.ts'
import { cacheRow, type RowCache } from './row-cache.ts'
import { keyOf } from './sqlite-commit.ts'
import type { Connection, SqlRow } from './sqlite-driver.ts'

export interface SqliteReads {
  /** Runs one query on the open connection and turns what fails into a StoreError. */
  readonly read: Read
  /** Rows that are known to be as stored at this moment. */
  readonly cache: () => RowCache
}

type Read = <T>(query: (db: Connection) => T) => T

export function sqliteScanner({ read, cache }: SqliteReads): Scanner {
  const number = (sql: string, values: SqlRow): number | undefined => {
    const value = read((db) => db.first(sql, values))?.[0]
    return typeof value === 'number' ? value : undefined
  }
  const list = <Row>(sql: string, values: SqlRow = []): Row[] => read((db) => db.all(sql, values)).map(rowOf<Row>)
  const conversations = tableReads<Conversation>(read, () => cache().conversations)
  const turns = tableReads<Turn>(read, () => cache().turns)
  const nodes = tableReads<Node>(read, () => cache().nodes)
  const links = tableReads<Link>(read, () => cache().links)
  return {
    conversation: (id) => conversations.byId('SELECT id, data FROM conversations WHERE id = ?', id),
    turn: (id) => turns.byId('SELECT id, data FROM turns WHERE id = ?', id),
    node: (id) => nodes.byId('SELECT id, data FROM nodes WHERE id = ?', id),
    link: (id) => links.byId('SELECT id, data FROM links WHERE id = ?', id),
    body: (hash) => bodyText(read((db) => db.first('SELECT text FROM bodies WHERE hash = ?', [hash]))),
    edgesFrom: (nodeId) => read((db) => db.all(`${EDGES} WHERE from_id = ?`, [nodeId])).map(edgeOf),
    edgesTo: (nodeId) => read((db) => db.all(`${EDGES} WHERE to_id = ?`, [nodeId])).map(edgeOf),
    nodesOf: (turnId) => nodes.all('SELECT id, data FROM nodes WHERE turn_id = ? ORDER BY ordinal, n', [turnId]),
    openNodes: (turnId) => nodes.all(OPEN_NODES, [turnId]),
    nodeByKey: (turnId, kind, key) => nodes.first(NODE_BY_KEY, [turnId, keyOf(kind, key)]),
    linksOf: (hostTurnId) => links.all(LINKS_OF, [hostTurnId]),
    linkAt: (hostTurnId, ordinal) => links.first(LINK_AT, [hostTurnId, ordinal]),
    openLinks: (hostTurnId) => links.all(OPEN_LINKS, [hostTurnId]),
    turnsOf: (laneId, { last = Number.MAX_SAFE_INTEGER, limit }) =>
      turns.all(TURNS_OF, [laneId, last, bound(limit)]).reverse(),
    queuedTurn: (laneId) => turns.first(QUEUED_TURN, [laneId]),
    runnable: (query) => nodes.all(RUNNABLE, runnableValues(query)),
    overdue: (now, limit) =>
      turns.all('SELECT id, data FROM turns WHERE due <= ? ORDER BY due LIMIT ?', [now, bound(limit)]),
    unstopped: (before, limit) => nodes.all(UNSTOPPED, [before, bound(limit)]),
    claimedBy: (engineId, limit) => nodes.all(CLAIMED, [engineId, bound(limit)]),
    engines: () => list<EngineRow>('SELECT id, data FROM engines'),
    engine: (id) => list<EngineRow>('SELECT id, data FROM engines WHERE id = ?', [id])[0],
    nextDue: (now) => number(NEXT_DUE, [now]),
    events: (rootId, after, limit) =>
      eventsOf(
        read((db) => db.all(EVENTS, [rootId, after, bound(limit)])),
        after,
        limit,
      ),
    lastSeq: (rootId) => number('SELECT max(seq) FROM commits WHERE root_id = ?', [rootId]) ?? 0,
    blocks: (rootId) => list<LiveBlock>('SELECT node_id, data FROM blocks WHERE root_id = ?', [rootId]),
    roots: ({ limit, before }) =>
      before === undefined
        ? conversations.all(ROOTS, [bound(limit)])
        : conversations.all(ROOTS_BEFORE, [before, bound(limit)]),
    findIds: (ending, limit) => findIds(read, ending, limit),
    openRoots: (limit) => turns.all(OPEN_ROOTS, [bound(limit)]),
  }
}

/** Reads of one table. Queries give id and data; a row that is in the cache is not read a second time. */
function tableReads<Row extends { readonly id: Id }>(read: Read, cached: () => Map<Id, Row>) {
  const rowOfTable = (columns: SqlRow, rows: Map<Id, Row>): Row => {
    const known = rows.get(String(columns[0]))
    if (known !== undefined) return known
    const row = rowOf<Row>(columns)
    cacheRow(rows, row)
    return row
  }
  const first = (sql: string, values: SqlRow): Row | undefined => {
    const rows = cached()
    const columns = read((db) => db.first(sql, values))
    return columns === undefined ? undefined : rowOfTable(columns, rows)
  }
  return {
    first,
    byId: (sql: string, id: Id): Row | undefined => {
      const known = cached().get(id)
      return known === undefined ? first(sql, [id]) : known
    },
    all: (sql: string, values: SqlRow): Row[] => {
      const rows = cached()
      return read((db) => db.all(sql, values)).map((columns) => rowOfTable(columns, rows))
    },
  }
}

const EDGES = 'SELECT root_id, conversation_id, from_id, to_id, type FROM edges'
const OPEN_NODES = 'SELECT id, data FROM nodes WHERE turn_id = ? AND is_open = 1 ORDER BY ordinal, n'
const OPEN_LINKS = 'SELECT id, data FROM links WHERE host_turn_id = ? AND is_open = 1 ORDER BY ordinal, n'
const LINK_AT = 'SELECT id, data FROM links WHERE host_turn_id = ? AND is_open IN (0, 1) AND ordinal = ? LIMIT 1'
const NODE_BY_KEY = 'SELECT id, data FROM nodes WHERE turn_id = ? AND key = ?'
const CLAIMED = 'SELECT id, data FROM nodes WHERE engine_id = ? LIMIT ?'
const LINKS_OF = 'SELECT id, data FROM links WHERE host_turn_id = ? ORDER BY ordinal, n'
const OPEN_ROOTS = 'SELECT id, data FROM turns WHERE open_root IS NOT NULL ORDER BY n LIMIT ?'
const TURNS_OF = 'SELECT id, data FROM turns WHERE lane_id = ? AND ordinal <= ? ORDER BY ordinal DESC LIMIT ?'
const QUEUED_TURN = 'SELECT id, data FROM turns WHERE lane_id = ? AND queued IS NOT NULL ORDER BY ordinal LIMIT 1'
const RUNNABLE = `SELECT nodes.id, nodes.data FROM nodes CROSS JOIN conversations ON conversations.id = nodes.conversation_id
  WHERE ready IS NOT NULL AND (wake_at IS NULL OR wake_at <= ?)
    AND kind IN (SELECT value FROM json_each(?)) AND agent IN (SELECT value FROM json_each(?))
  ORDER BY ready, nodes.n LIMIT ?`
const UNSTOPPED = `SELECT nodes.id, nodes.data FROM turns CROSS JOIN nodes ON nodes.turn_id = turns.id
  WHERE stop_at <= ? AND is_open = 1 AND epoch IS NOT NULL LIMIT ?`
const NEXT_DUE = `SELECT min(due) FROM (
  SELECT min(due) AS due FROM turns WHERE due > ?1 UNION ALL SELECT min(wake_at) FROM nodes WHERE wake_at > ?1)`
const EVENTS = `SELECT seq, events FROM commits WHERE root_id = ? AND seq > ? AND events <> '[]' ORDER BY seq LIMIT ?`
const ROOTS = 'SELECT id, data FROM conversations WHERE id = root_id ORDER BY n DESC LIMIT ?'
const ROOTS_BEFORE = `SELECT id, data FROM conversations
  WHERE id = root_id AND n < (SELECT n FROM conversations WHERE id = ?) ORDER BY n DESC LIMIT ?`

function rowOf<Row>(columns: SqlRow): Row {
  return parseOwnJson(String(columns[1])) as Row
}

/** SQLite takes a negative limit for none. */
function bound(limit: number): number {
  return Math.min(Math.max(0, limit), Number.MAX_SAFE_INTEGER)
}

function edgeOf([rootId, conversationId, from, to, type]: SqlRow): Edge {
  return {
    rootId: String(rootId),
    conversationId: String(conversationId),
    from: String(from),
    to: String(to),
    type: type as EdgeType,
  }
}

function bodyText(columns: SqlRow | undefined): string | undefined {
  const bytes = columns?.[0]
  if (!(bytes instanceof Uint8Array)) return undefined
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}

function runnableValues({ now, limit, kinds, agents }: RunnableQuery): SqlRow {
  return [now, JSON.stringify(kinds), JSON.stringify(agents), bound(limit)]
}

function eventsOf(commits: readonly SqlRow[], after: number, limit: number): EventRow[] {
  const found: EventRow[] = []
  for (const [last, text] of commits) {
    const events = parseOwnJson(String(text)) as { seq: number }[]
    let seq = Number(last) - events.length
    for (const event of events) {
      event.seq = ++seq
      if (seq > after && found.length < limit) found.push(event as EventRow)
    }
  }
  return found
}

type FoundId = ReturnType<Scanner['findIds']>[number]

const FIND_IDS = (table: string): string => `SELECT id FROM ${table} WHERE substr(id, ?) = ? LIMIT ?`
const ID_TABLES = [
  ['conversation', FIND_IDS('conversations')],
  ['turn', FIND_IDS('turns')],
  ['node', FIND_IDS('nodes')],
] as const

/** A search through all ids: for people who type the end of one. */
function findIds(read: Read, ending: string, limit: number): readonly FoundId[] {
  const found: FoundId[] = []
  if (ending === '') return found
  const { length } = [...ending]
  for (const [type, sql] of ID_TABLES) {
    const ids = read((db) => db.all(sql, [-length, ending, bound(limit - found.length)]))
    for (const [id] of ids) found.push({ id: String(id), type })
  }
  return found
}
