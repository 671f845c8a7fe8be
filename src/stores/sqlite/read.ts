import { Slices } from '../../core/base/clock.ts'
import { isId } from '../../core/base/id.ts'
import { parseOwnJson } from '../../core/base/json.ts'
import type { PageRoom } from '../../core/base/page/room.ts'
import type { EngineRow, LiveBlock } from '../../core/graph/commit.ts'
import type { EventRow } from '../../core/graph/event.ts'
import { isOpen, rootState } from '../../core/graph/kinds.ts'
import {
  type LocalReader,
  type LocalScans,
  type RootsQuery,
  type StoreReader,
  type TreeReader,
  unlessTampered,
} from '../../core/graph/reader.ts'
import type { Conversation, Id, Node, Turn } from '../../core/graph/rows.ts'
import { unpackEvents } from '../../core/store/codec/event-text.ts'
import { COMMITS_PER_TREE, SPAN, type SqlValue, spanOf, turnSlotsFrom } from '../../core/store/codec/rows.ts'
import { longText } from '../../core/store/codec/short-text.ts'
import { readInTurn } from '../../core/store/in-turn.ts'
import type { CachedTree, Cell, RowCache, Tail, TurnCell } from '../../core/store/row-cache.ts'
import { type Connection, columnText, type SqlRow } from './driver.ts'
import { readyQueues, rootsAsked, WAITS } from './owners.ts'
import { type CheckedSpans, cacheSpan } from './spans.ts'
import { BODY } from './tree.ts'

type SqliteReader = LocalReader & Pick<StoreReader, 'notOpen' | 'openPages'>

export function sqliteReader(graph: SqliteGraph, read: RunQuery): SqliteReader {
  const number = (sql: string, values: SqlRow): number | undefined => {
    const value = read((db) => db.first(sql, values))?.[0]
    return typeof value === 'number' ? value : undefined
  }
  const list = (sql: string, values: SqlRow): readonly SqlRow[] => read((db) => db.all(sql, values))
  // A tree that was changed from outside does not hold up the others.
  const turn = (id: Id) => unlessTampered(() => graph.reader.turn(id))
  const node = (id: Id) => unlessTampered(() => graph.reader.node(id))
  const conversation = (id: Id) => unlessTampered(() => graph.reader.conversation(id))
  const turns = (sql: string, values: SqlRow): Turn[] => page(values, (bounded) => list(sql, bounded), turn)
  const nodes = (sql: string, values: SqlRow): Node[] => page(values, (bounded) => list(sql, bounded), node)
  const conversations = (sql: string, values: SqlRow): Conversation[] =>
    page(values, (bounded) => list(sql, bounded), conversation)
  const { reader } = graph
  const waits = (values: SqlRow) => list(WAITS, values)
  /** The index may have been changed from outside: the root itself must say whose the row is (I9). */
  const ownedBy =
    <Row extends { readonly rootId: Id }>(owner: string, byId: (id: Id) => Row | undefined) =>
    (id: Id): Row | undefined => {
      const row = byId(id)
      return row !== undefined && conversation(row.rootId)?.owner === owner ? row : undefined
    }
  const isOf = (rootId: Id, state: RootsQuery['state']): boolean =>
    state === undefined || unlessTampered(() => rootState(reader.turnsOf(rootId, { limit: 1 })[0])) === state
  /** The ids of all roots before a tree, newest first. */
  function* rootIds(before: number): Generator<Id> {
    for (let end = before; end > 0; ) {
      const ids = list(ROOTS, [endOf(end), PAGE]).map(([id]) => columnText(id))
      yield* ids
      end = ids.length < PAGE ? 0 : treeOf(ids.at(-1) ?? '')
    }
  }
  /** Walks from tree to tree: no index has those without an owner. */
  function* unlistedRoots(before: number, state: RootsQuery['state']): Generator<Conversation> {
    if (state === 'open') return yield* openTrees(before)
    for (const id of rootIds(before)) {
      const row = isOf(id, state) ? conversation(id) : undefined
      if (row !== undefined) yield row
    }
  }
  const treeOf = (rootId: Id): number => graph.tail(rootId)?.tree ?? 0
  function openTrees(before: number): Conversation[] {
    const ids = new Set(turns(OPEN_ROOTS, [Number.MAX_SAFE_INTEGER]).map(({ rootId }) => rootId))
    const found = [...ids].filter((id) => treeOf(id) < before && isOf(id, 'open'))
    return found.sort((a, b) => treeOf(b) - treeOf(a)).flatMap((id) => conversation(id) ?? [])
  }
  return {
    ...reader,
    tree: () => reader,
    rootOf: graph.rootOf,
    ownerOf: (id) => {
      const [found] = list(OWNER_OF, [id])
      if (found === undefined) return undefined
      const [rootId, owner] = found
      return { rootId: columnText(rootId), owner: owner === null ? null : columnText(owner) }
    },
    runnable: ({ now, limit, kinds, agents, after }) => {
      const fit = [now, JSON.stringify(kinds), JSON.stringify(agents)]
      return readInTurn(readyQueues(list, after), bound(limit), (queue, most) => nodes(RUNNABLE, [queue, ...fit, most]))
    },
    overdue: (now, limit) => turns(OVERDUE, [now, bound(limit)]),
    unstopped: (before, limit) => nodes(UNSTOPPED, [before, bound(limit)]),
    awaiting: ({ limit, owner, after = FIRST }) =>
      owner === undefined
        ? nodes(AWAITING, [after.wakeAt, after.id, bound(limit)])
        : page([owner, 'a', after.wakeAt, after.id, bound(limit)], waits, ownedBy(owner, node)),
    timed: ({ limit, owner, after = FIRST }) =>
      owner === undefined
        ? nodes(TIMED, [after.wakeAt, after.id, bound(limit)])
        : page([owner, 'w', after.wakeAt, after.id, bound(limit)], waits, ownedBy(owner, node)),
    claimedBy: (engineId, limit) => nodes(CLAIMED, [`e${engineId}`, bound(limit)]),
    claimants: () => list(CLAIMANTS, []).map(([queue]) => columnText(queue).slice(1)),
    engines: () => list('SELECT CAST(data AS BLOB) FROM engines', []).map(ownRow<EngineRow>),
    engine: (id) => list('SELECT CAST(data AS BLOB) FROM engines WHERE id = ?', [id]).map(ownRow<EngineRow>)[0],
    nextDue: (now) => number(NEXT_DUE, [now]),
    events: readEvents(graph, read),
    blocks: (rootId, after) =>
      list(BLOCKS, [rootId, after]).flatMap(([n, data]) => {
        const block = blockIn(data)
        return block === undefined ? [] : [{ ...block, n: Number(n) }]
      }),
    roots: ({ limit, before, ...wanted }) => {
      const tree = before === undefined ? Number.MAX_SAFE_INTEGER : graph.tail(before)?.tree
      if (tree === undefined) return []
      const { owner, agent, state } = wanted
      if (owner === undefined && agent === undefined && state === undefined) {
        return conversations(ROOTS, [endOf(tree), bound(limit)])
      }
      const asked = rootsAsked(wanted, tree)
      if (asked === null) {
        return take(unlistedRoots(tree, state), (row) => agent === undefined || row.agent.name === agent, limit)
      }
      const [sql, values] = asked
      const byId = owner === undefined ? conversation : ownedBy(owner, conversation)
      return page([...values, bound(limit)], (bounded) => list(sql, bounded), byId)
    },
    conversations: ({ rootId = null, after = '', limit }) =>
      conversations(CONVERSATIONS, [after, rootId, bound(limit)]),
    findIds: (ending, limit) => findIds(read, ending, limit),
    openTurns: (limit, rootId) => {
      if (rootId === undefined) return turns(OPEN_TURNS, [bound(limit)])
      return turns(OPEN_IN_TREE, [rootId, bound(limit)]).filter((turn) => turn.rootId === rootId)
    },
    notOpen: async (turnIds) => {
      const found: Id[] = []
      const slices = new Slices()
      for (let at = 0; at < turnIds.length; at += PAGE) {
        const page = JSON.stringify(turnIds.slice(at, at + PAGE))
        for (const [id] of list(NOT_OPEN, [page])) found.push(columnText(id))
        await slices.next()
      }
      return found
    },
    openPages: function* () {
      const [[numbers] = []] = list(OPEN_PLACES, [])
      const places = numbers == null ? [] : columnText(numbers).split(',').map(Number)
      for (let at = 0; at < places.length; at += OPEN_PAGE) {
        const page = places.slice(at, at + OPEN_PAGE)
        const homes = list(HOMES_OF, [JSON.stringify(page)]).map(([n]) => Number(n))
        yield graph.turnsAt([...page, ...homes])
      }
    },
    openRoots: ({ limit, owner }) =>
      owner === undefined
        ? turns(OPEN_ROOTS, [bound(limit)])
        : page([owner, 'o', -1, '', bound(limit)], waits, ownedBy(owner, turn)),
  }
}

const FIRST = { wakeAt: -1, id: '' }
/** How many open turns are read together, each with its conversation. */
const OPEN_PAGE = 32
/** How many trees one step of a walk reads, and how many runs one query asks for. */
const PAGE = 256

/** Commits of trees before this one have lesser numbers. */
function endOf(tree: number): number {
  return Math.min(tree * COMMITS_PER_TREE, Number.MAX_SAFE_INTEGER)
}

function take<Row>(rows: Iterable<Row>, isWanted: (row: Row) => boolean, limit: number): Row[] {
  const taken: Row[] = []
  if (limit <= 0) return taken
  for (const row of rows) {
    if (isWanted(row)) taken.push(row)
    if (taken.length >= limit) break
  }
  return taken
}

/** The first row of a span is its conversation or its turn. */
const OWNER_OF = `SELECT CAST(root.id AS BLOB), CAST(r.data ->> '$.owner' AS BLOB) FROM keys CROSS JOIN rows AS f
    CROSS JOIN keys AS root CROSS JOIN rows AS r
  WHERE keys.id = ? AND keys.slot IN ('c', 't', 'n') AND f.n = keys.n / 1048576 * 1048576
    AND root.id = coalesce(f.data ->> '$.rootId', f.data ->> '$.conversation', f.data ->> '$.conversationId')
    AND root.slot = 'c' AND r.n = root.n LIMIT 1`
const CONVERSATION_OF_TURN = `CROSS JOIN keys ON keys.id = t.data ->> '$.conversationId' AND keys.slot = 'c'
  CROSS JOIN rows AS c ON c.n = keys.n`
const RUNNABLE = `SELECT CAST(rows.data ->> '$.node' AS BLOB) FROM rows CROSS JOIN rows AS t ON t.n = rows.n / 1048576 * 1048576
    ${CONVERSATION_OF_TURN}
  WHERE rows.queue = ? AND (rows.mark IS NULL OR rows.mark <= ?)
    AND rows.data ->> '$.kind' IN (SELECT value FROM json_each(?))
    AND coalesce(c.data ->> '$.agent.code', c.data ->> '$.agent.name') IN (SELECT value FROM json_each(?))
  ORDER BY rows.due, rows.n LIMIT ?`
const OVERDUE = `SELECT CAST(data ->> '$.turn' AS BLOB) FROM rows WHERE queue = 't' AND due <= ? ORDER BY due LIMIT ?`
const UNSTOPPED = `SELECT CAST(rows.data ->> '$.node' AS BLOB) FROM rows AS t CROSS JOIN rows ON rows.n > t.n AND rows.n < t.n + 1048576
  WHERE t.mark <= ? AND t.n % 1048576 = 0
    AND rows.data ->> '$.state' = 'running' AND rows.data ->> '$.node' IS NOT NULL LIMIT ?`
const AWAITING = `SELECT CAST(data ->> '$.node' AS BLOB) FROM rows
  WHERE queue = 'a' AND (due > ?1 OR due = ?1 AND data ->> '$.node' > ?2) ORDER BY due, data ->> '$.node' LIMIT ?3`
const TIMED = AWAITING.replace("'a'", "'w'")
const BLOCKS = 'SELECT n, CAST(data AS BLOB) FROM blocks WHERE root_id = ? AND n > ? ORDER BY n'
const CLAIMED = `SELECT CAST(data ->> '$.node' AS BLOB) FROM rows WHERE queue = ? LIMIT ?`
const CLAIMANTS = `SELECT DISTINCT CAST(queue AS BLOB) FROM rows WHERE queue > 'e' AND queue < 'f'`
const NEXT_DUE = `SELECT min(due) FROM (SELECT min(due) AS due FROM rows WHERE queue IN ('t', 'w') AND due > ?1
  UNION ALL SELECT min(mark) FROM rows WHERE mark > ?1 AND n % 1048576 > 0)`
const OPEN_TURNS = `SELECT CAST(data ->> '$.turn' AS BLOB) FROM rows WHERE queue >= 'q' AND queue < 'u' AND n % 1048576 = 0 LIMIT ?`
const OPEN_IN_TREE = OPEN_TURNS.replace(
  'LIMIT',
  "AND coalesce(data ->> '$.rootId', data ->> '$.conversationId') = ? LIMIT",
)
const NOT_OPEN = `SELECT CAST(json_each.value AS BLOB) FROM json_each(?) WHERE NOT EXISTS (
    SELECT 1 FROM keys CROSS JOIN rows ON rows.n = keys.n
    WHERE keys.id = json_each.value AND keys.slot = 't' AND rows.queue IS NOT NULL)`
/** One text, from the index alone. */
const OPEN_PLACES = `SELECT CAST(group_concat(n) AS BLOB) FROM rows WHERE queue >= 'q' AND queue < 'u' AND n % 1048576 = 0`
const HOMES_OF = `SELECT DISTINCT c.n FROM json_each(?) CROSS JOIN rows AS t ON t.n = json_each.value ${CONVERSATION_OF_TURN}`
const OPEN_ROOTS = `SELECT CAST(t.data ->> '$.turn' AS BLOB) FROM rows AS t ${CONVERSATION_OF_TURN}
  WHERE t.queue >= 'q' AND t.queue < 'u' AND t.n % 1048576 = 0
    AND coalesce(c.data ->> '$.type', 'user') = 'user' LIMIT ?`
const CONVERSATIONS = `SELECT CAST(keys.id AS BLOB) FROM keys CROSS JOIN rows ON rows.n = keys.n WHERE keys.slot = 'c' AND keys.id > ?1
    AND (?2 IS NULL OR coalesce(rows.data ->> '$.rootId', keys.id) = ?2) ORDER BY keys.id LIMIT ?3`
/** Walks from one tree's first commit to the tree made before it. */
const ROOTS = `WITH RECURSIVE trees (first) AS (
    SELECT max(n) / 16777216 * 16777216 FROM commits WHERE n < ?1
    UNION ALL SELECT (SELECT max(n) / 16777216 * 16777216 FROM commits WHERE n < first) FROM trees WHERE first IS NOT NULL
    LIMIT ?2)
  SELECT CAST(root_id AS BLOB) FROM trees CROSS JOIN commits ON commits.n = first + 1`

/** Gives as many readable rows as the last value demands: unreadable ones take nobody's place. */
function page<Row>(
  values: SqlRow,
  query: (values: SqlRow) => readonly SqlRow[],
  byId: (id: Id) => Row | undefined,
): Row[] {
  const limit = Number(values.at(-1))
  for (let more = 0; ; ) {
    const most = bound(limit + more)
    const found = query([...values.slice(0, -1), most])
    const rows = rowsOf(found, byId)
    const left = found.length - rows.length
    if (left <= more || found.length < most) return rows.length > limit ? rows.slice(0, limit) : rows
    more = left
  }
}

function ownRow<Row>([data]: SqlRow): Row {
  return parseOwnJson(columnText(data)) as Row
}

/** Skips a block that cannot be read: streams are shown and forgotten, and the node has the whole answer. */
function blockIn(data: SqlValue | undefined): LiveBlock | undefined {
  try {
    const block = parseOwnJson(columnText(data)) as Partial<LiveBlock> | null
    const isWhole = typeof block?.nodeId === 'string' && Array.isArray(block.events) && block.events.every(isWholeEvent)
    return isWhole ? (block as LiveBlock) : undefined
  } catch {
    return undefined
  }
}

function isWholeEvent(event: Partial<LiveBlock['events'][number]> | null): boolean {
  return typeof event?.type === 'string' && typeof event.runId === 'string'
}

type FoundId = ReturnType<LocalScans['findIds']>[number]

const FIND_IDS = 'SELECT CAST(id AS BLOB) FROM keys WHERE slot = ? AND substr(id, ?) = ? LIMIT ?'
const SLOTS = [
  ['conversation', 'c'],
  ['turn', 't'],
  ['node', 'n'],
] as const

/** Searches all ids, for people who type the end of one. */
function findIds(read: RunQuery, ending: string, limit: number): readonly FoundId[] {
  const found: FoundId[] = []
  if (ending === '') return found
  const { length } = [...ending]
  for (const [type, slot] of SLOTS) {
    const ids = read((db) => db.all(FIND_IDS, [slot, -length, ending, bound(limit - found.length)]))
    for (const [id] of ids) found.push({ id: columnText(id), type })
  }
  return found
}

export type RunQuery = <T>(query: (db: Connection) => T) => T

export interface SqliteReads {
  /** Runs one query on the open connection and turns a failure into a StoreError. */
  readonly read: RunQuery
  /** The cached rows, which agree with the file at this moment. */
  readonly cache: () => RowCache
  /** Rows of the file that agree with their commits. */
  readonly spans: () => CheckedSpans
}

export interface SqliteGraph {
  readonly reader: TreeReader
  /** Runs a query that names rows. Others may just have stored them, so their ids are looked up in the file. */
  readonly heard: RunQuery
  readonly spans: SqliteReads['spans']
  tail(rootId: Id): Tail | undefined
  rootOf(id: Id): Id | undefined
  /** Reads the spans that begin at these numbers together, and gives the open turns among them. */
  turnsAt(firsts: readonly number[]): readonly Turn[]
}

/** Reads for rules, from the cache where possible; every row that it reads is cached. */
export function sqliteGraph(reads: SqliteReads): SqliteGraph {
  const heard: RunQuery = (query) => {
    const found = reads.read(query)
    reads.cache().greatestId = undefined
    return found
  }
  const cells = cellReads(reads, heard)
  const { conversation, turn, node, link } = cells
  const reader: TreeReader = {
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
    openCount: (turnId) => countOpen(turn(turnId)?.nodes),
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
  const rootOf = (id: Id): Id | undefined => {
    const known = reads.cache().home(id)
    const cached = known?.turns.get(id) ?? known?.nodes.get(id) ?? known?.conversations.get(id)
    return (cached ?? turn(id) ?? conversation(id) ?? node(id))?.row.rootId
  }
  const openAt = (firsts: readonly number[]): readonly Turn[] => {
    const found = heard((db) => reads.spans().readAll(db, firsts))
    return found.flatMap((span) => {
      const row = cacheSpan(reads.cache(), span)?.turnsAt.get(span.text.first)?.row
      return row === undefined || row.state === 'ended' ? [] : row
    })
  }
  return {
    reader,
    heard,
    spans: reads.spans,
    tail: (rootId) => tailOf(reads, rootId),
    rootOf,
    // One damaged span makes the query fail for all.
    turnsAt: (firsts) =>
      unlessTampered(() => openAt(firsts)) ?? firsts.flatMap((first) => unlessTampered(() => openAt([first])) ?? []),
  }
}

function cellReads({ read, cache, spans }: SqliteReads, heard: RunQuery) {
  // Between a key and its span another process may have deleted the tree.
  const span = (first: number, end: number): CachedTree | undefined => {
    const found = heard((db) => spans().read(db, first, end))
    return found === undefined ? undefined : cacheSpan(cache(), found)
  }
  const stored = (id: Id, slot: string): CachedTree | undefined => {
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

/** Most unknown ids were made a moment ago, and are greater than all stored ones. */
function greatestId(read: RunQuery, cache: RowCache): Id {
  cache.greatestId ??= columnText(read((db) => db.first(GREATEST_ID))?.[0])
  return cache.greatestId
}

/** Ids that we make begin with 0 until the year 2527; others may have any form. */
function isOfNow(id: Id): boolean {
  return id < '1' && isId(id)
}

function laneReads(
  { read, cache, spans }: SqliteReads,
  { turn }: Pick<ReturnType<typeof cellReads>, 'turn'>,
): Pick<TreeReader, 'turnsOf' | 'queuedTurn'> {
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
  /** Turns by their numbers; uncached ones are read together. */
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
  /** A cached conversation tells how many turns it has. */
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
      return id == null ? undefined : turn(columnText(id))?.row
    },
  }
}

/** How many turns one query reads: enough for many small ones, few enough to bound memory for large ones. */
const TOGETHER = 64

/** True where turns of a lane that should be consecutive are not. */
function hasGap(cells: readonly TurnCell[]): boolean {
  return cells.some(({ row }, at) => at > 0 && row.ordinal > (cells[at - 1]?.row.ordinal ?? 0) + 1)
}

function tailOf({ read, cache }: SqliteReads, rootId: Id): Tail | undefined {
  const known = cache().tail(rootId)
  if (known !== undefined) return known
  const [n, seq, hash] = read((db) => db.first(TAIL, [rootId])) ?? []
  if (typeof n !== 'number') return undefined
  const tree = Math.floor(n / COMMITS_PER_TREE)
  const found = { tree, commit: n % COMMITS_PER_TREE, seq: Number(seq), hash: columnText(hash) }
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
function rowsOf<Row>(found: readonly SqlRow[], byId: (id: Id) => Row | undefined): Row[] {
  const rows: Row[] = []
  for (const [id] of found) {
    const row = byId(columnText(id))
    if (row !== undefined) rows.push(row)
  }
  return rows
}

/** SQLite takes a negative limit for none. */
function bound(limit: number): number {
  return Math.min(Math.max(0, limit), Number.MAX_SAFE_INTEGER)
}

function rowsWhere<Row>(cells: readonly Cell<Row>[] = [], isWanted: (row: Row) => boolean): Row[] {
  const rows: Row[] = []
  for (const { row } of cells) if (isWanted(row)) rows.push(row)
  return rows
}

function countOpen(cells: readonly Cell<Node>[] = []): number {
  let count = 0
  for (const { row } of cells) if (isOpen(row.state)) count++
  return count
}

function bodyText(columns: SqlRow | undefined): string | undefined {
  const bytes = columns?.[0]
  if (!(bytes instanceof Uint8Array)) return undefined
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}

/** Reads the events of a tree after a number. The cost is that of the result, wherever in the log it is. */
function readEvents(graph: SqliteGraph, read: RunQuery) {
  return (rootId: Id, after: number, limit: number, room?: PageRoom): EventRow[] => {
    const tail = graph.tail(rootId)
    if (tail === undefined || after >= tail.seq) return []
    const first = tail.tree * COMMITS_PER_TREE
    const last = after < 1 ? first : commitBefore(read, tail, after)
    const all = first + COMMITS_PER_TREE
    const end = room === undefined ? all : fittingEnd(read, [last, all, bound(limit)], room)
    const commits = read((db) => db.all(EVENTS, [last, end, bound(limit)]))
    const events = commits.flatMap(([seq, text, n]) => {
      try {
        return unpackEvents(longText(columnText(text), []), Number(seq))
      } catch {
        throw graph.spans().unreadableEvents(rootId, Number(n) - first)
      }
    })
    return events.filter(({ seq }) => seq > after).slice(0, Math.max(0, limit))
  }
}

/** The number of the first commit whose events do not fit; without one, the number after all commits. */
function fittingEnd(read: RunQuery, range: readonly [number, number, number], room: PageRoom): number {
  const sizes = read((db) => db.all(EVENT_SIZES, [...range]))
  return Number(sizes.find(([, bytes]) => !room.take(Number(bytes)))?.[0] ?? range[1])
}

/**
 * A commit whose events all come before `after`: the last such, except for commits without events. It looks from the end in
 * steps that double, then halves the rest: readers who follow a tree have read nearly all of it.
 */
function commitBefore(read: RunQuery, { tree, commit }: Tail, after: number): number {
  const first = tree * COMMITS_PER_TREE
  const isBefore = (n: number): boolean => Number(read((db) => db.first(SEQ, [n, first]))?.[0] ?? 0) <= after
  let high = first + commit
  let step = 1
  while (high - step > first && !isBefore(high - step)) {
    high -= step
    step *= 2
  }
  let low = Math.max(first, high - step)
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (isBefore(middle)) low = middle
    else high = middle
  }
  return low
}

const SEQ = 'SELECT seq FROM commits WHERE n <= ? AND n >= ? ORDER BY n DESC LIMIT 1'
const EVENTS = `SELECT seq, CAST(events AS BLOB), n FROM commits WHERE n > ? AND n < ? AND events <> '[]' ORDER BY n LIMIT ?`
const EVENT_SIZES = `SELECT n, octet_length(events) FROM commits WHERE n > ? AND n < ? AND octet_length(events) > 2 ORDER BY n LIMIT ?`
