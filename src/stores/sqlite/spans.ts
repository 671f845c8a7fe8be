// Spans: the rows of one turn, or of one conversation, as they lie together in the file and are read together.
//
// Owns:      `CheckedSpans`, the one way from the file to rows that others use, and the list of trees found to be damaged.
// Called by: `read` for every row that is not cached, and `index` before each commit (`require`).
// Must stay true:
//   - A row is given out only if it is what its last commit wrote; none may be missing, and none added.
//   - A difference is looked at again in one transaction before it counts: another process may have written in between.
//   - A damaged tree refuses commits and reads; other trees continue.

import type { StoreError } from '../../core/base/error.ts'
import { sha256 } from '../../core/base/hash.ts'
import type { Edge, Id, Turn } from '../../core/graph/rows.ts'
import {
  COMMITS_PER_TREE,
  type EdgeEnds,
  edgeType,
  SPAN,
  toConversation,
  toLink,
  toNode,
  toTurn,
} from '../../core/store/codec/rows.ts'
import { tampered } from '../../core/store/not-found.ts'
import type { CachedTree, NodeCell, RowCache, TurnCell } from '../../core/store/row-cache.ts'
import { atOneMoment, type Connection, columnText } from './driver.ts'
import {
  CommitMarks,
  marksIn,
  readSpanText,
  readSpanTexts,
  rowName,
  rowsIn,
  type SpanRow,
  type SpanText,
  unsealedRows,
} from './marks.ts'

/** Reads rows of the file, and gives only rows that agree with their commits. */
export class CheckedSpans {
  /** True inside a transaction that writes, in which all reads see one moment. */
  isWriting = false
  private readonly check = new SpanCheck()
  private readonly trees = new Map<Id, StoreError>()
  private readonly path: string

  constructor(path: string) {
    this.path = path
  }

  /** Trees that were found to be changed from outside, and still exist: one error for each. */
  found(db: Connection): readonly StoreError[] {
    for (const rootId of this.trees.keys()) if (db.first(RECORD, [rootId]) === undefined) this.trees.delete(rootId)
    return [...this.trees.values()]
  }

  /** Refuses commits to a tree that was changed from outside. */
  require(db: Connection, rootId: Id | null): void {
    const error = rootId === null ? undefined : this.trees.get(rootId)
    if (error !== undefined && this.found(db).includes(error)) throw error
  }

  /** Undefined when its tree was deleted. */
  read(db: Connection, first: number, end: number): CheckedSpan | undefined {
    const once = () => this.look(db, first, end)
    const found = once()
    if (found === undefined || 'rows' in found) return found
    // Another process may have written between two reads.
    const again = this.isWriting ? found : atOneMoment(db, once)
    if (again === undefined || 'rows' in again) return again
    throw this.refuse(db, again)
  }

  /** Reads several whole spans. A damaged one is read again by itself, which reports it. */
  readAll(db: Connection, firsts: readonly number[]): CheckedSpan[] {
    return this.check.checkAll(db, readSpanTexts(db, firsts)).flatMap((one, at) => {
      const first = firsts[at] ?? 0
      return 'rows' in one ? one : (this.read(db, first, first + SPAN) ?? [])
    })
  }

  /** A text is named by its hash; a hand-made commit may choose another name. */
  requireBody(hash: string, text: string): void {
    if (!IS_HASH.test(hash) || sha256(text) === hash) return
    throw tampered(`The text ${hash} is not what was written`, { rootId: null, path: this.path })
  }

  /** Searches all rows, for a tree in which a run seems to be missing. */
  requireWhole(db: Connection, rootId: Id): void {
    const [first = 0] = db.first(RECORD, [rootId]) ?? []
    const [n] = db.first(MISSING, [Number(first), Number(first) + COMMITS_PER_TREE]) ?? []
    if (typeof n !== 'number') return
    const error = tampered(`Row ${n} of the file is missing`, { rootId, path: this.path })
    this.trees.set(rootId, error)
    throw error
  }

  /** The error for a turn that another lane's key leads to. */
  misplaced({ id, rootId }: Turn): StoreError {
    return tampered(`The turn ${id} is found in another conversation than its own`, { rootId, path: this.path })
  }

  /** The error for damaged events. No rule depends on events, so the tree continues for callers that do not read them. */
  unreadableEvents(rootId: Id, commit: number): StoreError {
    return tampered(`The events of commit ${commit} are not what was written`, { rootId, path: this.path, commit })
  }

  private look(db: Connection, first: number, end: number): CheckedSpan | SpanFault | undefined {
    const text = readSpanText(db, first, end)
    if (text.lines !== '') return this.check.check(db, text)
    // A deleted tree has neither rows nor seals.
    const [writer] = db.first(SEAL, [first]) ?? []
    return writer === undefined ? undefined : { what: `Row ${first} of the file is missing`, writer: Number(writer) }
  }

  private refuse(db: Connection, { what, writer }: SpanFault): StoreError {
    const rootId = rootOf(db, writer)
    const error = tampered(what, { rootId, path: this.path })
    if (rootId !== null) this.trees.set(rootId, this.trees.get(rootId) ?? error)
    return error
  }
}

const IS_HASH = /^[0-9a-f]{64}$/

const MISSING = `SELECT seals.n FROM seals LEFT JOIN rows ON rows.n = seals.n
  WHERE seals.writer >= ? AND seals.writer < ? AND rows.n IS NULL LIMIT 1`
const SEAL = 'SELECT writer FROM seals WHERE n = ?'
const RECORD = 'SELECT n FROM commits WHERE root_id = ?'
const ROOT = 'SELECT CAST(root_id AS BLOB) FROM commits WHERE n = ?'

/** The record names the tree of a commit; a changed row may name any. */
function rootOf(db: Connection, writer: number): Id | null {
  const [rootId] = db.first(ROOT, [Math.floor(writer / COMMITS_PER_TREE) * COMMITS_PER_TREE + 1]) ?? []
  return rootId == null ? null : columnText(rootId)
}

/** A span whose rows agree with their commits. */
export interface CheckedSpan {
  readonly text: SpanText
  readonly rows: readonly SpanRow[]
}

/** The fault of a span, and a commit of its tree. */
export interface SpanFault {
  readonly what: string
  readonly writer: number
}

/**
 * Compares rows from the file with the record of their commits. A span that passed is not looked up again while its text is
 * equal.
 */
class SpanCheck {
  private readonly right = new Map<number, SpanText>()
  private readonly record = new CommitMarks()
  private size = 0

  /** Gives the span if all rows agree, none is missing and none was added. */
  check(db: Connection, text: SpanText): CheckedSpan | SpanFault {
    return this.decide(db, { text, rows: rowsIn(text) })
  }

  /** Checks several spans, and reads their commits together. */
  checkAll(db: Connection, texts: readonly SpanText[]): (CheckedSpan | SpanFault)[] {
    const spans = texts.map((text) => ({ text, rows: rowsIn(text) }))
    const rows = spans.flatMap((span) => (this.isKnown(span.text) || span.text.stretches !== '' ? [] : span.rows))
    return this.record.withAhead(db, rows, () => spans.map((span) => this.decide(db, span)))
  }

  private isKnown({ first, lines, count, size }: SpanText): boolean {
    const known = this.right.get(first)
    return known !== undefined && known.lines === lines && known.count === count && known.size === size
  }

  private decide(db: Connection, span: CheckedSpan): CheckedSpan | SpanFault {
    const { text, rows } = span
    if (this.isKnown(text)) return span
    const known = this.right.get(text.first)
    const what = this.findWrong(db, span, known)
    if (what !== undefined) return { what, writer: rows[0]?.writer ?? 0 }
    // In a long span few rows are looked up: stretches cover the rest.
    if (text.stretches === '') this.keep(text, known)
    return span
  }

  /** The fault in words; undefined for none. */
  private findWrong(db: Connection, { text, rows }: CheckedSpan, known: SpanText | undefined): string | undefined {
    const misplaced = findMisplaced(text, rows)
    if (misplaced !== undefined) return misplaced
    const lines = known?.lines.split('\n')
    const unknown = lines === undefined ? unsealedRows(text, rows) : rows.filter(({ line }, at) => line !== lines[at])
    const forged = this.record.findForged(db, unknown, marksIn(rows))
    return forged === undefined ? undefined : `${rowName(forged)} is not what its last commit wrote`
  }

  private keep(text: SpanText, known: SpanText | undefined): void {
    this.size += text.lines.length - (known?.lines.length ?? 0)
    if (this.size > MOST) {
      this.right.clear()
      this.size = text.lines.length
    }
    this.right.set(text.first, text)
  }
}

/** How many characters of checked rows to keep for comparison. */
const MOST = 8_000_000

/** Checks that all written rows are there, in sequence, and no others. */
function findMisplaced({ first, count, size }: SpanText, rows: readonly SpanRow[]): string | undefined {
  if (count !== rows.length) return 'A row of the file has two lines'
  const stranger = rows.find(({ writer }) => writer === 0)
  if (stranger !== undefined) return `No commit wrote row ${stranger.n} of the file`
  const gap = rows.findIndex(({ n }, at) => n !== first + at)
  if (gap >= 0) return `Row ${first + gap} of the file is missing`
  if (count < Math.max(size, 1)) return `Row ${first + count} of the file is missing`
  return count > size ? `No commit wrote row ${first + size} of the file` : undefined
}

/** Puts the rows of a span into the cache unless they are there. Gives the rows of their tree. */
export function cacheSpan(cache: RowCache, { text: { first }, rows }: CheckedSpan): CachedTree | undefined {
  const packed = rows[0]?.packed
  if (packed === undefined) return undefined
  if ('conversation' in packed) {
    const row = toConversation(packed)
    const tree = cache.tree(row.rootId)
    if (!tree.conversations.has(row.id)) cache.addConversation(row, first)
    return tree
  }
  if (!('turn' in packed)) return undefined
  const row = toTurn(packed)
  const tree = cache.tree(row.rootId)
  if (!tree.turns.has(row.id)) cacheMembers(cache, cache.addTurn(row, first), rows)
  return tree
}

function cacheMembers(cache: RowCache, turn: TurnCell, rows: readonly SpanRow[]): void {
  const places = new Map<number | Id, NodeCell>()
  for (const { n, packed } of rows) {
    turn.last = n
    if ('node' in packed) places.set(n % SPAN, cache.addNode(turn, toNode(packed, turn.row), n))
    else if ('link' in packed) cache.addLink(turn, toLink(packed, turn.row), n)
    else if ('edges' in packed) for (const ends of packed.edges) cacheEdge(turn, places, ends)
  }
}

/** Adds an edge to the nodes of this turn only: a node elsewhere is cached with its whole turn, or not at all. */
function cacheEdge({ row }: TurnCell, places: ReadonlyMap<number | Id, NodeCell>, [from, to, letter]: EdgeEnds): void {
  const [source, target] = [places.get(from), places.get(to)]
  const edge: Edge = {
    rootId: row.rootId,
    conversationId: row.conversationId,
    from: source?.row.id ?? String(from),
    to: target?.row.id ?? String(to),
    type: edgeType(letter) ?? 'sequence',
  }
  if (source !== undefined) source.edgesFrom = [...source.edgesFrom, edge]
  if (target !== undefined) target.edgesTo = [...target.edgesTo, edge]
}
