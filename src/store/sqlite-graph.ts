import type { Reader } from '../graph/reader.ts'
import type { Conversation, Edge, Id, Link, Node, Turn } from '../graph/rows.ts'
import { isOpen } from '../graph/states.ts'
import type { Cell, RowCache, Tail } from './row-cache.ts'
import type { Connection, SqlRow } from './sqlite-driver.ts'
import { edgeEnd, keySlot, memberSlotsFrom, PARTS, toConversation, toLink, toNode, toTurn } from './sqlite-rows.ts'

/** Room for the commits of one tree in the numbering of the log. */
export const COMMITS_PER_TREE: number = 2 ** 24

export type Read = <T>(query: (db: Connection) => T) => T

export interface SqliteReads {
  /** Runs one query on the open connection and turns what fails into a StoreError. */
  readonly read: Read
  /** Rows that are known to be as stored at this moment. */
  readonly cache: () => RowCache
}

export interface SqliteGraph {
  readonly reader: Reader
  tail(rootId: Id): Tail | undefined
  knownConversation(columns: SqlRow): Cell<Conversation>
  knownTurn(columns: SqlRow): Cell<Turn>
  knownNode(columns: SqlRow): Cell<Node>
}

/** What rules ask, from the cache where it knows; whatever is read is known from then on. */
export function sqliteGraph(reads: SqliteReads): SqliteGraph {
  const known = knownRows(reads.cache)
  const rows = rowReads(reads, known)
  const { nodesOf, linksOf } = memberReads(reads, known)
  const edges = edgeReads(reads, rows.node)
  const reader: Reader = {
    ...rows,
    ...laneReads(reads, known),
    body: (hash) => bodyText(reads.read((db) => db.first('SELECT text FROM bodies WHERE hash = ?', [hash]))),
    lastSeq: (rootId) => tailOf(reads, rootId)?.seq ?? 0,
    edgesFrom: (nodeId) => edges(nodeId, 'edgesFrom'),
    edgesTo: (nodeId) => edges(nodeId, 'edgesTo'),
    nodesOf: (turnId) => nodesOf(turnId).map(({ row }) => row),
    openNodes: (turnId) => rowsWhere(nodesOf(turnId), (row) => isOpen(row.state)),
    linksOf: (hostTurnId) => linksOf(hostTurnId).map(({ row }) => row),
    linkAt: (hostTurnId, ordinal) => {
      const cells = linksOf(hostTurnId)
      const likely = cells[ordinal]?.row
      return likely?.ordinal === ordinal ? likely : cells.find(({ row }) => row.ordinal === ordinal)?.row
    },
    openLinks: (hostTurnId) => rowsWhere(linksOf(hostTurnId), (row) => row.outcome === null),
  }
  return {
    reader,
    tail: (rootId) => tailOf(reads, rootId),
    knownConversation: known.conversation,
    knownTurn: known.turn,
    knownNode: known.node,
  }
}

type KnownRows = ReturnType<typeof knownRows>

function rowReads({ read, cache }: SqliteReads, known: KnownRows) {
  const find = <Row>(id: Id, slot: string, make: (columns: SqlRow) => Cell<Row>): Row | undefined => {
    const columns = read((db) => db.first(BY_KEY, [id, slot]))
    return columns === undefined ? undefined : make(columns).row
  }
  return {
    conversation: (id: Id): Conversation | undefined =>
      cache().home(id)?.conversations.get(id)?.row ?? find(id, 'c', known.conversation),
    turn: (id: Id): Turn | undefined => cache().home(id)?.turns.get(id)?.row ?? find(id, 't', known.turn),
    node: (id: Id): Node | undefined => cache().home(id)?.nodes.get(id)?.row ?? find(id, 'n', known.node),
    link: (id: Id): Link | undefined => cache().home(id)?.links.get(id)?.row ?? find(id, 'l', known.link),
    nodeByKey: (turnId: Id, kind: string, key: string): Node | undefined => {
      const list = cache().home(turnId)?.nodesOf.get(turnId)
      if (list === undefined) return find(turnId, keySlot(kind, key), known.node)
      return list.find(({ row }) => row.idempotencyKey === key && row.kind === kind)?.row
    },
  }
}

function memberReads({ read, cache }: SqliteReads, known: KnownRows) {
  return {
    nodesOf: (turnId: Id): readonly Cell<Node>[] => {
      const list = cache().home(turnId)?.nodesOf.get(turnId)
      if (list !== undefined) return list
      const cells = read((db) => db.all(MEMBERS, [turnId, 'N', 'O'])).map(known.node)
      const [one] = cells
      if (one !== undefined) cache().tree(one.row.rootId).nodesOf.set(turnId, cells)
      return cells
    },
    linksOf: (hostTurnId: Id): readonly Cell<Link>[] => {
      const list = cache().home(hostTurnId)?.linksOf.get(hostTurnId)
      if (list !== undefined) return list
      const cells = read((db) => db.all(MEMBERS, [hostTurnId, 'L', 'M'])).map(known.link)
      const [one] = cells
      if (one !== undefined) cache().tree(one.row.rootId).linksOf.set(hostTurnId, cells)
      return cells
    },
  }
}

function laneReads({ read, cache }: SqliteReads, known: KnownRows): Pick<Reader, 'turnsOf' | 'queuedTurn'> {
  const stored = (laneId: Id, last: number, limit: number): readonly Turn[] => {
    if (last < 0) return []
    const found = read((db) => db.all(TURNS_OF, [laneId, memberSlotsFrom('t', last + 1), limit]))
    return found.map((columns) => known.turn(columns).row).reverse()
  }
  return {
    turnsOf: (laneId, { last = Number.MAX_SAFE_INTEGER, limit }) => {
      const list = cache().home(laneId)?.turnsOf.get(laneId)
      if (list === undefined) return stored(laneId, last, bound(limit))
      const until = list.findLastIndex(({ row }) => row.ordinal <= last) + 1
      return list.slice(Math.max(0, until - bound(limit)), until).map(({ row }) => row)
    },
    queuedTurn: (laneId) => {
      const list = cache().home(laneId)?.turnsOf.get(laneId)
      if (list !== undefined) return list.find(({ row }) => row.state === 'queued')?.row
      const columns = read((db) => db.first(QUEUED_TURN, [`q${laneId}`]))
      return columns === undefined ? undefined : known.turn(columns).row
    },
  }
}

function edgeReads({ read, cache }: SqliteReads, node: Reader['node']) {
  return (nodeId: Id, side: 'edgesFrom' | 'edgesTo'): readonly Edge[] => {
    const list = cache().home(nodeId)?.[side].get(nodeId)
    if (list !== undefined) return list
    const slots = read((db) => db.all(side === 'edgesFrom' ? EDGES_FROM : EDGES_TO, [nodeId]))
    const at = node(nodeId)
    if (at === undefined) return []
    const found = slots.map(([slot]) => edgeAt(at, String(slot)))
    cache().tree(at.rootId)[side].set(nodeId, found)
    return found
  }
}

function tailOf({ read, cache }: SqliteReads, rootId: Id): Tail | undefined {
  const known = cache().tail(rootId)
  if (known !== undefined) return known
  const [tree, n, seq, hash] = read((db) => db.first(TAIL, [rootId])) ?? []
  if (typeof tree !== 'number' || typeof n !== 'number') return undefined
  const found = { tree, commit: n - tree * COMMITS_PER_TREE, seq: Number(seq), hash: String(hash) }
  cache().tree(rootId).tail = found
  return found
}

const BY_KEY = `SELECT ${PARTS} FROM keys CROSS JOIN rows ON rows.n = keys.n WHERE keys.id = ? AND keys.slot = ?`
const MEMBERS = `SELECT ${PARTS} FROM keys CROSS JOIN rows ON rows.n = keys.n
  WHERE keys.id = ? AND keys.slot > ? AND keys.slot < ? ORDER BY keys.slot`
const TURNS_OF = `SELECT ${PARTS} FROM keys CROSS JOIN rows ON rows.n = keys.n
  WHERE keys.id = ? AND keys.slot > 'T' AND keys.slot < ? ORDER BY keys.slot DESC LIMIT ?`
const QUEUED_TURN = `SELECT ${PARTS} FROM rows WHERE queue = ? ORDER BY due LIMIT 1`
const EDGES_FROM = `SELECT slot FROM keys WHERE id = ? AND slot > '>' AND slot < '?'`
const EDGES_TO = `SELECT slot FROM keys WHERE id = ? AND slot > '<' AND slot < '='`
const TAIL = `SELECT rows.ordinal, commits.n, seq, hash FROM keys CROSS JOIN rows ON rows.n = keys.n CROSS JOIN commits
  WHERE keys.id = ? AND keys.slot = 'c' AND rows.home = rows.id
    AND commits.n >= rows.ordinal * 16777216 AND commits.n < (rows.ordinal + 1) * 16777216
  ORDER BY commits.n DESC LIMIT 1`

/** Rows of query results. One that is in the cache is not made a second time. */
function knownRows(cache: () => RowCache) {
  return {
    conversation: (columns: SqlRow): Cell<Conversation> => {
      const [id, n] = idOf(columns)
      return cache().home(id)?.conversations.get(id) ?? cache().putConversation(toConversation(columns), n)
    },
    turn: (columns: SqlRow): Cell<Turn> => {
      const [id, n] = idOf(columns)
      return cache().home(id)?.turns.get(id) ?? cache().putTurn(toTurn(columns), n)
    },
    node: (columns: SqlRow): Cell<Node> => {
      const [id, n] = idOf(columns)
      return cache().home(id)?.nodes.get(id) ?? cache().putNode(toNode(columns), n)
    },
    link: (columns: SqlRow): Cell<Link> => {
      const [id, n] = idOf(columns)
      return cache().home(id)?.links.get(id) ?? cache().putLink(toLink(columns), n)
    },
  }
}

function idOf([n, id]: SqlRow): readonly [id: Id, n: number] {
  return [String(id), Number(n)]
}

/** SQLite takes a negative limit for none. */
export function bound(limit: number): number {
  return Math.min(Math.max(0, limit), Number.MAX_SAFE_INTEGER)
}

function rowsWhere<Row>(cells: readonly Cell<Row>[], isWanted: (row: Row) => boolean): Row[] {
  const rows: Row[] = []
  for (const { row } of cells) if (isWanted(row)) rows.push(row)
  return rows
}

function edgeAt({ id, rootId, conversationId }: Node, slot: string): Edge {
  const { other, type } = edgeEnd(slot)
  const [from, to] = slot.startsWith('>') ? [id, other] : [other, id]
  return { rootId, conversationId, from, to, type }
}

function bodyText(columns: SqlRow | undefined): string | undefined {
  const bytes = columns?.[0]
  if (!(bytes instanceof Uint8Array)) return undefined
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}
