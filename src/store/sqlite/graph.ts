import { isId } from '../../base/id.ts'
import type { Reader } from '../../graph/reader.ts'
import type { Conversation, Id } from '../../graph/rows.ts'
import { isOpen } from '../../graph/states.ts'
import type { Cell, RowCache, Tail, TreeRows, TurnCell } from '../row-cache.ts'
import type { CheckedSpans } from './checked-spans.ts'
import { type Connection, type SqlRow, textOf } from './driver.ts'
import { COMMITS_PER_TREE, SPAN, spanOf, turnSlotsFrom } from './rows.ts'
import { cacheSpan } from './span.ts'
import { BODY } from './tree.ts'

export type Read = <T>(query: (db: Connection) => T) => T

export interface SqliteReads {
  /** Runs one query on the open connection and turns what fails into a StoreError. */
  readonly read: Read
  /** Rows that are known to be as stored at this moment. */
  readonly cache: () => RowCache
  /** Rows of the file that are what was written. */
  readonly spans: () => CheckedSpans
}

export interface SqliteGraph {
  readonly reader: Reader
  /** For queries that tell of rows: others may just have stored them, and what they name is looked for. */
  readonly heard: Read
  readonly spans: SqliteReads['spans']
  tail(rootId: Id): Tail | undefined
}

/** What rules ask, from the cache where it knows; whatever is read is known from then on. */
export function sqliteGraph(reads: SqliteReads): SqliteGraph {
  const heard: Read = (query) => {
    const found = reads.read(query)
    reads.cache().greatestId = undefined
    return found
  }
  const cells = cellReads(reads, heard)
  const { conversation, turn, node, link } = cells
  const reader: Reader = {
    ...laneReads({ ...reads, read: heard }, cells),
    conversation: (id) => conversation(id)?.row,
    turn: (id) => turn(id)?.row,
    node: (id) => node(id)?.row,
    link: (id) => link(id)?.row,
    body: (hash) => {
      const text = bodyText(reads.read((db) => db.first(BODY, [hash])))
      if (text !== undefined) reads.spans().requireBody(hash, text)
      return text
    },
    edgesFrom: (nodeId) => node(nodeId)?.edgesFrom ?? [],
    edgesTo: (nodeId) => node(nodeId)?.edgesTo ?? [],
    nodesOf: (turnId) => turn(turnId)?.nodes.map(({ row }) => row) ?? [],
    openNodes: (turnId) => rowsWhere(turn(turnId)?.nodes, ({ state }) => isOpen(state)),
    nodeByKey: (turnId, kind, key) =>
      turn(turnId)?.nodes.find(({ row }) => row.idempotencyKey === key && row.kind === kind)?.row,
    linksOf: (hostTurnId) => turn(hostTurnId)?.links.map(({ row }) => row) ?? [],
    linkAt: (hostTurnId, ordinal) => {
      const links = turn(hostTurnId)?.links
      const likely = links?.[ordinal]?.row
      return likely?.ordinal === ordinal ? likely : links?.find(({ row }) => row.ordinal === ordinal)?.row
    },
    lastSeq: (rootId) => tailOf(reads, rootId)?.seq ?? 0,
    openLinks: (hostTurnId) => rowsWhere(turn(hostTurnId)?.links, ({ outcome }) => outcome === null),
  }
  return { reader, heard, spans: reads.spans, tail: (rootId) => tailOf(reads, rootId) }
}

function cellReads({ read, cache, spans }: SqliteReads, heard: Read) {
  // Between a key and its span another process may have deleted the tree.
  const span = (first: number, end: number): TreeRows | undefined => {
    const found = heard((db) => spans().read(db, first, end))
    return found === undefined ? undefined : cacheSpan(cache(), found)
  }
  const stored = (id: Id, slot: string): TreeRows | undefined => {
    if (isOfNow(id) && id > greatestId(read, cache())) return undefined
    const n = read((db) => db.first(KEY, [id, slot]))?.[0]
    if (typeof n !== 'number') return undefined
    const first = spanOf(n) * SPAN
    return span(first, first + SPAN)
  }
  return {
    conversation: (id: Id) => cache().home(id)?.conversations.get(id) ?? stored(id, 'c')?.conversations.get(id),
    turn: (id: Id) => cache().home(id)?.turns.get(id) ?? stored(id, 't')?.turns.get(id),
    node: (id: Id) => cache().home(id)?.nodes.get(id) ?? stored(id, 'n')?.nodes.get(id),
    link: (id: Id) => cache().home(id)?.links.get(id) ?? stored(id, 'l')?.links.get(id),
  }
}

/** Most ids that are asked for and not stored were made a moment ago: they are greater than all that are. */
function greatestId(read: Read, cache: RowCache): Id {
  cache.greatestId ??= textOf(read((db) => db.first(GREATEST_ID))?.[0])
  return cache.greatestId
}

/** Those that we make begin with 0 until the year 2527; others may have any form. */
function isOfNow(id: Id): boolean {
  return id < '1' && isId(id)
}

type TurnReads = Pick<ReturnType<typeof cellReads>, 'turn'>

function laneReads({ read, cache, spans }: SqliteReads, { turn }: TurnReads): Pick<Reader, 'turnsOf' | 'queuedTurn'> {
  const stored = (laneId: Id, last: number, limit: number): TurnCell[] => {
    if (last < 0) return []
    const found = read((db) => db.all(TURNS_OF, [laneId, turnSlotsFrom(last + 1), limit]))
    const cells = turnsAt(
      laneId,
      found.map(([n]) => Number(n)),
    ).reverse()
    const isCut = cells.length < limit && (cells[0]?.row.ordinal ?? 0) > 0
    if (isCut || hasGap(cells) || isShort(laneId, cells, last))
      read((db) => spans().requireWhole(db, rootOf(laneId, cells)))
    for (const { row } of cells) if (row.laneId !== laneId) throw spans().misplaced(row)
    cache().learnTurns(cells, last)
    return cells
  }
  /** By their numbers; those that are not known yet are read together. */
  const turnsAt = (laneId: Id, numbers: readonly number[]): TurnCell[] => {
    const known = cache().home(laneId)?.turnsAt
    const cells = new Map(numbers.map((n) => [n, known?.get(n)]))
    const unknown = numbers.filter((n) => cells.get(n) === undefined)
    for (let at = 0; at < unknown.length; at += TOGETHER) {
      const firsts = unknown.slice(at, at + TOGETHER)
      for (const span of read((db) => spans().readAll(db, firsts))) {
        cells.set(span.text.first, cacheSpan(cache(), span)?.turnsAt.get(span.text.first))
      }
    }
    return numbers.flatMap((n) => cells.get(n) ?? [])
  }
  const known = (laneId: Id): Conversation | undefined => cache().home(laneId)?.conversations.get(laneId)?.row
  /** A conversation that is known counts its turns. */
  const isShort = (laneId: Id, cells: readonly TurnCell[], last: number): boolean => {
    const count = last === Number.MAX_SAFE_INTEGER ? (known(laneId)?.turnCount ?? 0) : 0
    return count > (cells.at(-1)?.row.ordinal ?? -1) + 1
  }
  const rootOf = (laneId: Id, [first]: readonly TurnCell[]): Id => first?.row.rootId ?? known(laneId)?.rootId ?? laneId
  const listOf = (laneId: Id) => cache().home(laneId)?.turnsOf.get(laneId)
  return {
    turnsOf: (laneId, { last = Number.MAX_SAFE_INTEGER, limit }) => {
      const cells = listOf(laneId)?.upTo(last, bound(limit)) ?? stored(laneId, last, bound(limit))
      return cells.map(({ row }) => row)
    },
    queuedTurn: (laneId) => {
      const list = listOf(laneId)
      if (list?.isWhole === true) return list.queued()?.row
      const id = read((db) => db.first(QUEUED_TURN, [`q${laneId}`]))?.[0]
      return id == null ? undefined : turn(textOf(id))?.row
    },
  }
}

/** Turns that are read with one query: many small ones are worth it, and large ones take no more memory than they need. */
const TOGETHER = 64

/** Turns of a lane that were read one after the other, and are not. */
function hasGap(cells: readonly TurnCell[]): boolean {
  return cells.some(({ row }, at) => at > 0 && row.ordinal > (cells[at - 1]?.row.ordinal ?? 0) + 1)
}

function tailOf({ read, cache }: SqliteReads, rootId: Id): Tail | undefined {
  const known = cache().tail(rootId)
  if (known !== undefined) return known
  const [n, seq, hash] = read((db) => db.first(TAIL, [rootId])) ?? []
  if (typeof n !== 'number') return undefined
  const tree = Math.floor(n / COMMITS_PER_TREE)
  const found = { tree, commit: n % COMMITS_PER_TREE, seq: Number(seq), hash: textOf(hash) }
  cache().tree(rootId).tail = found
  return found
}

const KEY = 'SELECT n FROM keys WHERE id = ? AND slot = ?'
const GREATEST_ID = "SELECT CAST(max(id) AS BLOB) FROM keys WHERE id < '1'"
const TURNS_OF = `SELECT n FROM keys WHERE id = ? AND slot > 'T' AND slot < ? ORDER BY slot DESC LIMIT ?`
const QUEUED_TURN = `SELECT CAST(data ->> '$.turn' AS BLOB) FROM rows WHERE queue = ? ORDER BY due LIMIT 1`
const TAIL = `SELECT commits.n, seq, CAST(hash AS BLOB) FROM keys CROSS JOIN commits
  WHERE keys.id = ? AND keys.slot = 'c'
    AND commits.n >= keys.n / 1048576 * 16777216 AND commits.n < (keys.n / 1048576 + 1) * 16777216
  ORDER BY commits.n DESC LIMIT 1`

/** The rows of a query for ids. */
export function rowsOf<Row>(found: readonly SqlRow[], byId: (id: Id) => Row | undefined): Row[] {
  const rows: Row[] = []
  for (const [id] of found) {
    const row = byId(textOf(id))
    if (row !== undefined) rows.push(row)
  }
  return rows
}

/** SQLite takes a negative limit for none. */
export function bound(limit: number): number {
  return Math.min(Math.max(0, limit), Number.MAX_SAFE_INTEGER)
}

function rowsWhere<Row>(cells: readonly Cell<Row>[] = [], isWanted: (row: Row) => boolean): Row[] {
  const rows: Row[] = []
  for (const { row } of cells) if (isWanted(row)) rows.push(row)
  return rows
}

function bodyText(columns: SqlRow | undefined): string | undefined {
  const bytes = columns?.[0]
  if (!(bytes instanceof Uint8Array)) return undefined
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}
