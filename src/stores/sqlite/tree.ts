import type { Body, Edge, Id, Turn } from '../../core/graph/rows.ts'
import type { WrittenRow } from '../../core/store/archive.ts'
import {
  COMMITS_PER_TREE,
  type EdgeEnds,
  edgeType,
  type PackedRow,
  parseRow,
  SPAN,
  type SqlValue,
  toTurn,
} from '../../core/store/codec/rows.ts'
import { longText } from '../../core/store/codec/short-text.ts'
import type { ChainRecord } from '../../core/store/commit-chain.ts'
import { type Connection, columnText, type SqlRow } from './driver.ts'

/** A row of the file with its parsed text; null when it cannot be parsed. */
export interface FileRow {
  readonly n: number
  readonly columns: readonly SqlValue[]
  /** The commit that wrote it; for the first row of a span, also the number of rows. */
  readonly written: readonly [writer: SqlValue, size: SqlValue]
  readonly text: string
  readonly packed: PackedRow | null
}

/** All rows of a turn, or of a conversation: the first row tells which. */
export interface FileSpan {
  readonly rows: readonly FileRow[]
  readonly turn: Turn | null
}

const SPAN_ROWS = `SELECT n, CAST(queue AS BLOB), due, mark, writer, size, iif(typeof(data) = 'text', CAST(data AS BLOB), NULL)
  FROM rows WHERE n >= ? AND n < ? ORDER BY n`

export function readSpan(db: Connection, first: number): FileSpan {
  const rows = db.all(SPAN_ROWS, [first, first + SPAN]).map(toFileRow)
  return { rows, turn: turnOf(rows[0]?.packed ?? null) }
}

function toFileRow([n, queue = null, due = null, mark = null, writer = null, size = null, data]: SqlRow): FileRow {
  const text = columnText(data)
  const columns = [queue === null ? null : columnText(queue), due, mark]
  return { n: Number(n), columns, written: [writer, size], text, packed: tryParse(text) }
}

/** Null for a text that is no row. */
export function tryParse(text: string): PackedRow | null {
  try {
    const packed: unknown = parseRow(text)
    return typeof packed === 'object' && packed !== null ? (packed as PackedRow) : null
  } catch {
    return null
  }
}

/** Null for a row of another kind, or with damaged parts. */
function turnOf(packed: PackedRow | null): Turn | null {
  if (packed === null || !('turn' in packed)) return null
  try {
    return toTurn(packed)
  } catch {
    return null
  }
}

/** Null for edges, and for rows that cannot be read. */
export function writtenRow({ packed, text }: FileRow, turnId: Id | null): WrittenRow | null {
  if (packed === null) return null
  if ('conversation' in packed) return { letter: 'c', id: packed.conversation, turnId: null, text }
  if ('turn' in packed) return { letter: 't', id: packed.turn, turnId: null, text }
  if ('node' in packed) return { letter: 'n', id: packed.node, turnId, text }
  return 'link' in packed ? { letter: 'l', id: packed.link, turnId, text } : null
}

export interface FileEdge extends Edge {
  /** True where its ends are in two turns: both spans have it. */
  readonly isShared: boolean
}

export function edgesIn({ rows, turn }: FileSpan): FileEdge[] {
  const names = new Map<number, Id>()
  for (const { n, packed } of rows) if (packed !== null && 'node' in packed) names.set(n % SPAN, packed.node)
  const idOf = (end: number | Id): Id => (typeof end === 'number' ? (names.get(end) ?? `row ${end}`) : String(end))
  return rows.flatMap(({ packed }) => {
    const ends = packed !== null && 'edges' in packed && Array.isArray(packed.edges) ? packed.edges : []
    return (ends as readonly EdgeEnds[]).map((one) => {
      const type = Array.isArray(one) ? edgeType(one[2]) : undefined
      const [from, to] = type === undefined ? UNREADABLE : one
      const isShared = typeof from !== 'number' || typeof to !== 'number'
      const place = { rootId: turn?.rootId ?? '', conversationId: turn?.conversationId ?? '' }
      return { ...place, from: idOf(from), to: idOf(to), type: type ?? 'sequence', isShared }
    })
  })
}

/** Stands for an edge that cannot be read: the log knows no such edge. */
const UNREADABLE = ['', ''] as const

const RECORDS = `SELECT n, CAST(root_id AS BLOB), seq, CAST(kind AS BLOB), at, CAST(events AS BLOB), CAST(marks AS BLOB),
  CAST(hash AS BLOB) FROM commits WHERE n > ? AND n < ? ORDER BY n`

export interface FileRecord extends ChainRecord {
  readonly number: number
  readonly rootId: Id | null
}

export function readRecords(db: Connection, tree: number): FileRecord[] {
  const first = tree * COMMITS_PER_TREE
  return db.all(RECORDS, [first, first + COMMITS_PER_TREE]).map(([n, rootId, seq, kind, at, events, marks, hash]) => ({
    number: Number(n) - first,
    rootId: rootId === null || rootId === undefined ? null : columnText(rootId),
    seq: Number(seq),
    kind: columnText(kind),
    at: Number(at),
    events: longText(columnText(events), []),
    marks: columnText(marks),
    hash: columnText(hash),
  }))
}

/** The hashes of the bodies that rows name. */
export function namedIn({ rows }: FileSpan): string[] {
  return rows.flatMap(({ packed }) => {
    const output = packed !== null && 'node' in packed ? packed.output : undefined
    return typeof output?.bodyRef === 'string' ? output.bodyRef : []
  })
}

export const BODY = "SELECT iif(typeof(text) = 'blob', text, NULL) FROM bodies WHERE hash = ?"

export function bodiesOf(db: Connection, spans: readonly FileSpan[]): Body[] {
  return [...new Set(spans.flatMap(namedIn))].flatMap((hash) => {
    const [bytes] = db.first(BODY, [hash]) ?? []
    return bytes instanceof Uint8Array ? [{ hash, text: Buffer.from(bytes).toString('utf8') }] : []
  })
}

/** The tree of each span, according to its first row; null where that cannot be read. */
const HEADS = `SELECT n, CASE WHEN json_valid(data) THEN
    CAST(coalesce(data ->> '$.rootId', data ->> '$.conversation', data ->> '$.conversationId') AS BLOB) END AS root,
    CASE WHEN json_valid(data) THEN CAST(data ->> '$.conversation' AS BLOB) END
  FROM rows WHERE n % 1048576 = 0`
const HEADS_OF = `SELECT * FROM (${HEADS}) WHERE root = CAST(? AS BLOB) OR root IS NULL`

export interface TreePlace {
  readonly spans: number[]
  /** The number of the tree in the log: the span of its root. Undefined until it is found. */
  tree: number | undefined
}

export interface TreeSpans {
  readonly byRoot: ReadonlyMap<Id, TreePlace>
  /** Spans whose first row names no tree. */
  readonly lost: readonly number[]
}

/** Finds the spans of all trees, or of one. */
export function findTrees(db: Connection, rootId?: Id): TreeSpans {
  const found = new FoundTrees()
  for (const head of rootId === undefined ? headsIn(db) : db.each(HEADS_OF, [rootId])) found.take(head)
  for (const [root, place] of found.byRoot) place.tree ??= treeByLog(db, root)
  return found
}

/** The first rows of all spans. */
export function headsIn(db: Connection): Iterable<SqlRow> {
  return db.each(HEADS)
}

/** Trees, as the first rows of their spans name them. */
export class FoundTrees implements TreeSpans {
  readonly byRoot = new Map<Id, TreePlace>()
  readonly lost: number[] = []

  take([n, bytes = null, conversation]: SqlRow): void {
    if (bytes === null) {
      this.lost.push(Number(n))
      return
    }
    const root = columnText(bytes)
    const place: TreePlace = this.byRoot.get(root) ?? { spans: [], tree: undefined }
    this.byRoot.set(root, place)
    place.spans.push(Number(n))
    if (columnText(conversation) === root) place.tree = Number(n) / SPAN
  }
}

export function treeByLog(db: Connection, rootId: Id): number | undefined {
  const [n] = db.first('SELECT n FROM commits WHERE root_id = ? LIMIT 1', [rootId]) ?? []
  return typeof n === 'number' ? Math.floor(n / COMMITS_PER_TREE) : undefined
}
