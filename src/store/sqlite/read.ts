import { parseOwnJson } from '../../base/json.ts'
import type { LiveBlock } from '../../graph/commit.ts'
import type { RunnableQuery, Scanner } from '../../graph/reader.ts'
import type { Conversation, EngineRow, Id, Node, Turn } from '../../graph/rows.ts'
import { unlessTampered } from '../tampered.ts'
import { type SqlRow, type SqlValue, textOf } from './driver.ts'
import { readEvents } from './event-reads.ts'
import { bound, type Read, rowsOf, type SqliteGraph } from './graph.ts'
import { COMMITS_PER_TREE } from './rows.ts'

export function sqliteScanner(graph: SqliteGraph, read: Read): Scanner {
  const number = (sql: string, values: SqlRow): number | undefined => {
    const value = read((db) => db.first(sql, values))?.[0]
    return typeof value === 'number' ? value : undefined
  }
  const list = (sql: string, values: SqlRow): readonly SqlRow[] => read((db) => db.all(sql, values))
  // One tree that was changed from outside does not hold up the others.
  const turn = (id: Id) => unlessTampered(() => graph.reader.turn(id))
  const node = (id: Id) => unlessTampered(() => graph.reader.node(id))
  const conversation = (id: Id) => unlessTampered(() => graph.reader.conversation(id))
  const turns = (sql: string, values: SqlRow): Turn[] => page(values, (bounded) => list(sql, bounded), turn)
  const nodes = (sql: string, values: SqlRow): Node[] => page(values, (bounded) => list(sql, bounded), node)
  const conversations = (sql: string, values: SqlRow): Conversation[] =>
    page(values, (bounded) => list(sql, bounded), conversation)
  return {
    ...graph.reader,
    runnable: (query) => nodes(RUNNABLE, runnableValues(query)),
    overdue: (now, limit) => turns(OVERDUE, [now, bound(limit)]),
    unstopped: (before, limit) => nodes(UNSTOPPED, [before, bound(limit)]),
    awaiting: ({ limit, after = { wakeAt: -1, id: '' } }) => nodes(AWAITING, [after.wakeAt, after.id, bound(limit)]),
    timed: ({ limit, after = { wakeAt: -1, id: '' } }) => nodes(TIMED, [after.wakeAt, after.id, bound(limit)]),
    claimedBy: (engineId, limit) => nodes(CLAIMED, [`e${engineId}`, bound(limit)]),
    claimants: () => list(CLAIMANTS, []).map(([queue]) => textOf(queue).slice(1)),
    engines: () => list('SELECT CAST(data AS BLOB) FROM engines', []).map(ownRow<EngineRow>),
    engine: (id) => list('SELECT CAST(data AS BLOB) FROM engines WHERE id = ?', [id]).map(ownRow<EngineRow>)[0],
    nextDue: (now) => number(NEXT_DUE, [now]),
    events: readEvents(graph, read),
    blocks: (rootId, after) =>
      list(BLOCKS, [rootId, after]).flatMap(([n, data]) => {
        const block = blockIn(data)
        return block === undefined ? [] : [{ ...block, n: Number(n) }]
      }),
    roots: ({ limit, before }) => {
      const tree = before === undefined ? Number.MAX_SAFE_INTEGER : graph.tail(before)?.tree
      if (tree === undefined) return []
      const end = Math.min(tree * COMMITS_PER_TREE, Number.MAX_SAFE_INTEGER)
      return conversations(ROOTS, [end, bound(limit)])
    },
    conversations: ({ rootId = null, after = '', limit }) =>
      conversations(CONVERSATIONS, [after, rootId, bound(limit)]),
    findIds: (ending, limit) => findIds(read, ending, limit),
    openTurns: (limit) => turns(OPEN_TURNS, [bound(limit)]),
    openRoots: (limit) => turns(OPEN_ROOTS, [bound(limit)]),
  }
}

const CONVERSATION_OF_TURN = `CROSS JOIN keys ON keys.id = t.data ->> '$.conversationId' AND keys.slot = 'c'
  CROSS JOIN rows AS c ON c.n = keys.n`
const RUNNABLE = `SELECT CAST(rows.data ->> '$.node' AS BLOB) FROM rows CROSS JOIN rows AS t ON t.n = rows.n / 1048576 * 1048576
    ${CONVERSATION_OF_TURN}
  WHERE rows.queue = 'r' AND (rows.mark IS NULL OR rows.mark <= ?)
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
const OPEN_ROOTS = `SELECT CAST(t.data ->> '$.turn' AS BLOB) FROM rows AS t ${CONVERSATION_OF_TURN}
  WHERE t.queue >= 'q' AND t.queue < 'u' AND t.n % 1048576 = 0
    AND coalesce(c.data ->> '$.type', 'user') = 'user' LIMIT ?`
const CONVERSATIONS = `SELECT CAST(keys.id AS BLOB) FROM keys CROSS JOIN rows ON rows.n = keys.n WHERE keys.slot = 'c' AND keys.id > ?1
    AND (?2 IS NULL OR coalesce(rows.data ->> '$.rootId', keys.id) = ?2) ORDER BY keys.id LIMIT ?3`
/** From one tree's first commit to the one of the tree made before it. */
const ROOTS = `WITH RECURSIVE trees (first) AS (
    SELECT max(n) / 16777216 * 16777216 FROM commits WHERE n < ?1
    UNION ALL SELECT (SELECT max(n) / 16777216 * 16777216 FROM commits WHERE n < first) FROM trees WHERE first IS NOT NULL
    LIMIT ?2)
  SELECT CAST(root_id AS BLOB) FROM trees CROSS JOIN commits ON commits.n = first + 1`

/** As many rows as the last of the values says, where so many can be read: what is left out takes nobody's place. */
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
  return parseOwnJson(textOf(data)) as Row
}

/** What is streamed is shown and forgotten: one that cannot be read is passed over. The answer itself is in its node. */
function blockIn(data: SqlValue | undefined): LiveBlock | undefined {
  try {
    const block = parseOwnJson(textOf(data)) as Partial<LiveBlock> | null
    const isWhole = typeof block?.nodeId === 'string' && Array.isArray(block.events) && block.events.every(isTyped)
    return isWhole ? (block as LiveBlock) : undefined
  } catch {
    return undefined
  }
}

function isTyped(event: Partial<LiveBlock['events'][number]> | null): boolean {
  return typeof event?.type === 'string'
}

function runnableValues({ now, limit, kinds, agents }: RunnableQuery): SqlRow {
  return [now, JSON.stringify(kinds), JSON.stringify(agents), bound(limit)]
}

type FoundId = ReturnType<Scanner['findIds']>[number]

const FIND_IDS = 'SELECT CAST(id AS BLOB) FROM keys WHERE slot = ? AND substr(id, ?) = ? LIMIT ?'
const SLOTS = [
  ['conversation', 'c'],
  ['turn', 't'],
  ['node', 'n'],
] as const

/** A search through all ids: for people who type the end of one. */
function findIds(read: Read, ending: string, limit: number): readonly FoundId[] {
  const found: FoundId[] = []
  if (ending === '') return found
  const { length } = [...ending]
  for (const [type, slot] of SLOTS) {
    const ids = read((db) => db.all(FIND_IDS, [slot, -length, ending, bound(limit - found.length)]))
    for (const [id] of ids) found.push({ id: textOf(id), type })
  }
  return found
}
