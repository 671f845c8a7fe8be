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
export function sqliteGraph({ read, cache }: SqliteReads): SqliteGraph {
  const first = (sql: string, values: SqlRow): SqlRow | undefined => read((db) => db.first(sql, values))
  const all = (sql: string, values: SqlRow): readonly SqlRow[] => read((db) => db.all(sql, values))
  const known = knownRows(cache)
  const member = (id: Id, slot: string): SqlRow | undefined => first(BY_KEY, [id, slot])

  const conversation = (id: Id): Conversation | undefined => {
    const cell = cache().home(id)?.conversations.get(id)
    if (cell !== undefined) return cell.row
    const columns = member(id, 'c')
    return columns === undefined ? undefined : known.conversation(columns).row
  }
  const turn = (id: Id): Turn | undefined => {
    const cell = cache().home(id)?.turns.get(id)
    if (cell !== undefined) return cell.row
    const columns = member(id, 't')
    return columns === undefined ? undefined : known.turn(columns).row
  }
  const node = (id: Id): Node | undefined => {
    const cell = cache().home(id)?.nodes.get(id)
    if (cell !== undefined) return cell.row
    const columns = member(id, 'n')
    return columns === undefined ? undefined : known.node(columns).row
  }
  const link = (id: Id): Link | undefined => {
    const cell = cache().home(id)?.links.get(id)
    if (cell !== undefined) return cell.row
    const columns = member(id, 'l')
    return columns === undefined ? undefined : known.link(columns).row
  }
  const nodeCells = (turnId: Id): readonly Cell<Node>[] => {
    const list = cache().home(turnId)?.nodesOf.get(turnId)
    if (list !== undefined) return list
    const cells = all(MEMBERS, [turnId, 'N', 'O']).map(known.node)
    const [one] = cells
    if (one !== undefined) cache().tree(one.row.rootId).nodesOf.set(turnId, cells)
    return cells
  }
  const linkCells = (hostTurnId: Id): readonly Cell<Link>[] => {
    const list = cache().home(hostTurnId)?.linksOf.get(hostTurnId)
    if (list !== undefined) return list
    const cells = all(MEMBERS, [hostTurnId, 'L', 'M']).map(known.link)
    const [one] = cells
    if (one !== undefined) cache().tree(one.row.rootId).linksOf.set(hostTurnId, cells)
    return cells
  }
  const turnsBefore = (laneId: Id, last: number, limit: number): readonly Turn[] => {
    if (last < 0) return []
    const found = all(TURNS_OF, [laneId, memberSlotsFrom('t', last + 1), limit])
    return found.map((columns) => known.turn(columns).row).reverse()
  }
  const turnsOf = (laneId: Id, last: number, limit: number): readonly Turn[] => {
    const list = cache().home(laneId)?.turnsOf.get(laneId)
    if (list === undefined) return turnsBefore(laneId, last, limit)
    const until = list.findLastIndex(({ row }) => row.ordinal <= last) + 1
    return list.slice(Math.max(0, until - limit), until).map(({ row }) => row)
  }
  const edges = (nodeId: Id, side: 'edgesFrom' | 'edgesTo'): readonly Edge[] => {
    const list = cache().home(nodeId)?.[side].get(nodeId)
    if (list !== undefined) return list
    const slots = all(side === 'edgesFrom' ? EDGES_FROM : EDGES_TO, [nodeId])
    const at = node(nodeId)
    if (at === undefined) return []
    const found = slots.map(([slot]) => edgeAt(at, String(slot)))
    cache().tree(at.rootId)[side].set(nodeId, found)
    return found
  }
  const nodeByKey = (turnId: Id, kind: string, key: string): Node | undefined => {
    const list = cache().home(turnId)?.nodesOf.get(turnId)
    if (list !== undefined) return list.find(({ row }) => row.idempotencyKey === key && row.kind === kind)?.row
    const columns = first(BY_KEY, [turnId, keySlot(kind, key)])
    return columns === undefined ? undefined : known.node(columns).row
  }
  const queuedTurn = (laneId: Id): Turn | undefined => {
    const list = cache().home(laneId)?.turnsOf.get(laneId)
    if (list !== undefined) return list.find(({ row }) => row.state === 'queued')?.row
    const columns = first(QUEUED_TURN, [`q${laneId}`])
    return columns === undefined ? undefined : known.turn(columns).row
  }
  const tail = (rootId: Id): Tail | undefined => {
    const known = cache().tail(rootId)
    if (known !== undefined) return known
    const [tree, n, seq, hash] = first(TAIL, [rootId]) ?? []
    if (typeof tree !== 'number' || typeof n !== 'number') return undefined
    const found = { tree, commit: n - tree * COMMITS_PER_TREE, seq: Number(seq), hash: String(hash) }
    cache().tree(rootId).tail = found
    return found
  }
  const reader: Reader = {
    conversation,
    turn,
    node,
    link,
    body: (hash) => bodyText(first('SELECT text FROM bodies WHERE hash = ?', [hash])),
    edgesFrom: (nodeId) => edges(nodeId, 'edgesFrom'),
    edgesTo: (nodeId) => edges(nodeId, 'edgesTo'),
    nodesOf: (turnId) => nodeCells(turnId).map(({ row }) => row),
    openNodes: (turnId) => rowsWhere(nodeCells(turnId), (row) => isOpen(row.state)),
    nodeByKey,
    linksOf: (hostTurnId) => linkCells(hostTurnId).map(({ row }) => row),
    linkAt: (hostTurnId, ordinal) => {
      const cells = linkCells(hostTurnId)
      const likely = cells[ordinal]?.row
      return likely?.ordinal === ordinal ? likely : cells.find(({ row }) => row.ordinal === ordinal)?.row
    },
    openLinks: (hostTurnId) => rowsWhere(linkCells(hostTurnId), (row) => row.outcome === null),
    turnsOf: (laneId, { last = Number.MAX_SAFE_INTEGER, limit }) => turnsOf(laneId, last, bound(limit)),
    queuedTurn,
  }
  return { reader, tail, knownConversation: known.conversation, knownTurn: known.turn, knownNode: known.node }
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
