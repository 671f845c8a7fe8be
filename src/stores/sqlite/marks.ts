// Marks: what the record of a commit says about each row that it wrote, and the seals that stand for many of them.
//
// Owns:      `RowMarks` (the mark a row must have), `CommitMarks` (the marks that commits have), `sealStretches` and `unseal`.
// Called by: `spans` when rows are read, `commit` when rows are written, `verify` for a whole file.
// Must stay true:
//   - A row that cannot be read gets a mark that no commit has, so it is never taken for a good one.
//   - A stretch of 128 rows is sealed with one hash only after its rows were compared with their commits.
//   - A commit that changes a sealed row removes the seal in the same transaction.

import { shortSha256 } from '../../core/base/hash.ts'
import { parseOwnJson } from '../../core/base/json.ts'
import type { Id } from '../../core/graph/rows.ts'
import { type EdgeEnds, edgeType, type PackedRow, SPAN, spanOf } from '../../core/store/codec/rows.ts'
import {
  countEdges,
  type EdgeCount,
  edgeMark,
  type Mark,
  memberText,
  type RowLetter,
  readMarks,
  rowMark,
  turnEdgesMark,
} from '../../core/store/commit-chain.ts'
import { type Connection, columnText, type SqlRow } from './driver.ts'

/** Reads the marks of commits. Keeps those of large commits, which are needed again soon: an imported tree has one commit. */
export class CommitMarks {
  private readonly large = new Map<number, Marks>()
  private ahead: ReadonlyMap<number, Marks> = NO_MARKS

  /** Reads the marks for these rows at once, and runs `ask` with them. */
  withAhead<T>(db: Connection, rows: readonly SpanRow[], ask: () => T): T {
    this.ahead = this.read(db, rows)
    try {
      return ask()
    } finally {
      this.ahead = NO_MARKS
    }
  }

  /** The first row that differs from its commit's mark. */
  findForged(db: Connection, rows: readonly SpanRow[], marks: RowMarks): SpanRow | undefined {
    const read = this.read(db, rows)
    return rows.find((row) => !isWritten(row, marks, read.get(row.writer) ?? this.known(row.writer)))
  }

  private known(writer: number): Marks | undefined {
    return this.ahead.get(writer) ?? this.large.get(writer)
  }

  /** The missing ones, by the number of the commit in the log. */
  private read(db: Connection, rows: readonly SpanRow[]): ReadonlyMap<number, Marks> {
    const wanted = new Set<number>()
    for (const { writer } of rows) if (this.known(writer) === undefined) wanted.add(writer)
    if (wanted.size === 0) return NO_MARKS
    const marks = new Map<number, Marks>()
    for (const [writer, text] of readCommits(db, wanted)) {
      const found = new Marks(text)
      marks.set(writer, found)
      if (found.isLarge) this.keep(writer, found)
    }
    return marks
  }

  private keep(writer: number, marks: Marks): void {
    if (this.large.size >= MOST_LARGE) this.large.clear()
    this.large.set(writer, marks)
  }
}

function isWritten(row: SpanRow, marks: RowMarks, written: Marks | undefined): boolean {
  if (written === undefined) return false
  const wanted = marks.of(row)
  if (!written.hasAll(wanted)) return false
  return !('edges' in row.packed) || written.hasNoOthers(wanted, () => marks.ofTurn(wanted))
}

const MOST_LARGE = 4
const NO_MARKS: ReadonlyMap<number, Marks> = new Map<number, Marks>()

type CommitText = readonly [writer: number, marks: string]

/** Reads neighbouring commits with one query. */
function readCommits(db: Connection, writers: ReadonlySet<number>): readonly CommitText[] {
  if (writers.size <= FEW) return [...writers].flatMap((n) => db.all(ONE, [n]).map(([marks]) => [n, columnText(marks)]))
  let [low, high] = [Number.MAX_SAFE_INTEGER, 0]
  for (const writer of writers) [low, high] = [Math.min(low, writer), Math.max(high, writer)]
  const isDense = writers.size > SOME && high - low < 2 * writers.size
  const [texts] = (isDense ? db.first(BETWEEN, [low, high]) : db.first(AMONG, [JSON.stringify([...writers])])) ?? []
  return parseOwnJson(`[${columnText(texts)}]`) as readonly CommitText[]
}

const FEW = 4
const SOME = 16
const ONE = 'SELECT CAST(marks AS BLOB) FROM commits WHERE n = ?'
const MARKS = 'SELECT CAST(group_concat(json_array(n, marks)) AS BLOB) FROM commits WHERE n'
const BETWEEN = `${MARKS} BETWEEN ? AND ?`
const AMONG = `${MARKS} IN (SELECT value FROM json_each(?))`

/** The marks of one commit. A mark contains a hash, so a search in the text finds it; where many are looked for, a set does. */
class Marks {
  readonly isLarge: boolean
  private readonly text: string
  private asked = 0
  private set: ReadonlySet<string> | undefined
  private counted: EdgeCount | undefined

  constructor(text: string) {
    this.text = text
    this.isLarge = text.length > LARGE
  }

  hasAll(wanted: readonly string[]): boolean {
    this.asked += wanted.length
    if (this.isLarge && this.asked > MANY) this.set ??= new Set((readMarks(this.text) ?? []).map(wholeMark))
    const { set, text } = this
    return wanted.every((mark) => (set === undefined ? text.includes(mark) : set.has(mark)))
  }

  /** True where these edges are all that the commit wrote for their turn, and none is repeated. */
  hasNoOthers(edges: readonly string[], turnMark: () => string): boolean {
    if (new Set(edges).size !== edges.length) return false
    this.counted ??= countEdges(this.text)
    const { edgeCount, saysTurns } = this.counted
    return edgeCount === edges.length || !saysTurns || this.hasAll([turnMark()])
  }
}

const LARGE = 4_000
const MANY = 200

function wholeMark({ key, hash }: Mark): string {
  return key === hash ? key : key + hash
}

/** Computes the marks that commits have for rows. Rows of a turn omit its id, and name its nodes by their places. */
export class RowMarks {
  private readonly turnId: Id
  private readonly names: NodeNames

  constructor(turnId: Id, names: NodeNames) {
    this.turnId = turnId
    this.names = names
  }

  /** Gives a mark that no commit has, for a row that cannot be read. */
  of({ text, packed }: SpanRow): readonly string[] {
    if ('edges' in packed) return Object.keys(packed).length === 1 ? this.ofEdges(packed.edges) : [NONE]
    const { letter, id } = nameIn(packed)
    return [rowMark(letter, id, letter === 'n' || letter === 'l' ? memberText(this.turnId, text) : text)]
  }

  /** The mark of all edges of the turn that one commit wrote. */
  ofTurn(edges: readonly string[]): string {
    return turnEdgesMark(this.turnId, edges)
  }

  private ofEdges(edges: readonly EdgeEnds[]): readonly string[] {
    return Array.isArray(edges) && edges.length > 0 ? edges.map((ends) => this.ofEdge(ends)) : [NONE]
  }

  private ofEdge(ends: EdgeEnds): string {
    const [from, to, letter] = Array.isArray(ends) ? ends : ['', '', '']
    const type = edgeType(letter)
    return type === undefined || !this.isOfTurn(from, to)
      ? NONE
      : edgeMark({ from: this.idOf(from), to: this.idOf(to), type })
  }

  /** An edge of this turn names at least one of its ends by its place. */
  private isOfTurn(from: number | Id, to: number | Id): boolean {
    const elsewhere = typeof from === 'number' ? to : from
    if (typeof elsewhere === 'number') return true
    return (typeof from === 'number' || typeof to === 'number') && !this.names.has(String(elsewhere))
  }

  private idOf(end: number | Id): Id {
    return typeof end === 'number' ? this.names.at(end) : String(end)
  }
}

const NONE = ' '

/** The marks of a whole span. */
export function marksIn(rows: readonly SpanRow[]): RowMarks {
  const head = rows[0]?.packed
  return new RowMarks(head !== undefined && 'turn' in head ? String(head.turn) : '', namesIn(rows))
}

/** The ids of the nodes of a turn. */
export interface NodeNames {
  /** Empty where there is no node. */
  at(place: number): Id
  has(id: Id): boolean
}

function namesIn(rows: readonly SpanRow[]): NodeNames {
  let byPlace: ReadonlyMap<number, Id> | undefined
  let all: ReadonlySet<Id> | undefined
  const places = () => {
    byPlace ??= new Map(rows.map(({ n, packed }) => [n % SPAN, 'node' in packed ? String(packed.node) : '']))
    return byPlace
  }
  return {
    at: (place) => places().get(place) ?? '',
    has: (id) => {
      all ??= new Set(places().values())
      return all.has(id)
    },
  }
}

interface RowName {
  readonly kind: string
  readonly letter: RowLetter
  readonly id: Id
}

function nameIn(packed: Exclude<PackedRow, { readonly edges: unknown }>): RowName {
  if ('node' in packed) return { kind: 'node', letter: 'n', id: String(packed.node) }
  if ('link' in packed) return { kind: 'link', letter: 'l', id: String(packed.link) }
  if ('turn' in packed) return { kind: 'turn', letter: 't', id: String(packed.turn) }
  return { kind: 'conversation', letter: 'c', id: String(packed.conversation) }
}

/** The name of a row, to begin a sentence. */
export function rowName({ n, packed }: SpanRow): string {
  if ('edges' in packed) return `Row ${n} of the file`
  const { kind, id } = nameIn(packed)
  return `The ${kind} ${id}`
}

/** The number of the first row of its stretch. The row of the turn itself, which most commits write, is in none. */
function stretchOf(n: number): number {
  const place = n % SPAN
  return n - ((place - 1) % STRETCH)
}

/** True where a changed row may be in a sealed stretch; `last` is the newest row of its turn. */
export function mayBeSealed(n: number, last: number): boolean {
  return n % SPAN > 0 && last - n >= STRETCH
}

/** Removes the seals of changed rows. */
export function unseal(db: Connection, numbers: Iterable<number>): void {
  for (const n of numbers) db.run('DELETE FROM stretches WHERE n = ?', [stretchOf(n)])
}

/** The rows of a span that are in no stretch, or differ from its seal. */
export function unsealedRows({ first, stretches }: SpanText, rows: readonly SpanRow[]): readonly SpanRow[] {
  if (stretches === '') return rows
  const isSealed = new Uint8Array(rows.length)
  for (const one of stretches.split(',')) {
    const [n, hash] = one.split(' ')
    const at = Number(n) - first
    const some = rows.slice(at, at + STRETCH)
    if (hashOf(some.map(({ line }) => line).join('\n')) === hash) isSealed.fill(1, at, at + STRETCH)
  }
  return rows.filter((_, at) => isSealed[at] === 0)
}

/** The newest row of a turn, before and after a commit. */
export interface Growth {
  readonly turnId: Id
  readonly before: number
  readonly last: number
}

/** Seals old rows when a new stretch begins. Leaves rows that differ from their commits to their readers. */
export function sealStretches(db: Connection, { turnId, before, last }: Growth): void {
  if (stretchOf(before) === stretchOf(last)) return
  const first = spanOf(last) * SPAN
  const [newest] = db.first('SELECT max(n) FROM stretches WHERE n > ? AND n < ?', [first, last]) ?? []
  const record = new CommitMarks()
  const end = stretchOf(before)
  for (let n = typeof newest === 'number' ? newest + STRETCH : first + 1; n < end; n += STRETCH) {
    const text = readStretch(db, n)
    const rows = rowsIn(text)
    const marks = new RowMarks(turnId, namesFor(db, first, rows))
    if (rows.length !== STRETCH || record.findForged(db, rows, marks) !== undefined) continue
    db.run('REPLACE INTO stretches (n, hash) VALUES (?, ?)', [n, hashOf(text.lines)])
  }
}

/** The sealed stretches of a span whose rows differ from the seal, by the numbers of their first rows. */
export function brokenStretches(db: Connection, first: number): readonly number[] {
  return db
    .all('SELECT n, CAST(hash AS BLOB) FROM stretches WHERE n >= ? AND n < ?', [first, first + SPAN])
    .filter(([n, hash]) => hashOf(readStretch(db, Number(n)).lines) !== columnText(hash))
    .map(([n]) => Number(n))
}

function readStretch(db: Connection, n: number): SpanText {
  return readSpanText(db, n, n + STRETCH)
}

/** The names of a stretch, and of the nodes elsewhere in its span that its edges lead to: those are read with one statement. */
function namesFor(db: Connection, first: number, rows: readonly SpanRow[]): NodeNames {
  const known = namesIn(rows)
  const elsewhere = readIds(db, first, missingIn(rows, known))
  return {
    at: (place) => known.at(place) || (elsewhere.get(place) ?? ''),
    has: (id) => known.has(id) || spanOf(readPlace(db, id)) === spanOf(first),
  }
}

/** The places that edges name and these rows do not have. */
function missingIn(rows: readonly SpanRow[], known: NodeNames): ReadonlySet<number> {
  const edges = rows.flatMap(({ packed }) => ('edges' in packed && Array.isArray(packed.edges) ? packed.edges : []))
  const ends = edges.flatMap((edge: EdgeEnds) => (Array.isArray(edge) ? edge : []))
  return new Set(ends.filter((end): end is number => typeof end === 'number' && known.at(end) === ''))
}

function readPlace(db: Connection, id: Id): number {
  const [n] = db.first("SELECT n FROM keys WHERE id = ? AND slot = 'n'", [id]) ?? []
  return Number(n ?? 0)
}

/** The ids of the nodes at these places of a span, as far as their rows can be read. */
function readIds(db: Connection, first: number, places: ReadonlySet<number>): ReadonlyMap<number, Id> {
  if (places.size === 0) return NO_IDS
  const numbers = [...places].map((place) => first + place)
  return new Map(db.all(NODE_IDS, [JSON.stringify(numbers)]).map(([n, id]) => [Number(n) - first, columnText(id)]))
}

const NO_IDS: ReadonlyMap<number, Id> = new Map()
const NODE_IDS = `SELECT n, CAST(data ->> '$.node' AS BLOB) FROM rows
  WHERE n IN (SELECT value FROM json_each(?)) AND json_valid(data) AND data ->> '$.node' IS NOT NULL`

function hashOf(lines: string): string {
  return shortSha256(lines)
}

/** Stored rows as one text, which is read in half the time of one text per row. */
export interface SpanText {
  readonly first: number
  /** A line for each row: its number, the number of the commit in the log that wrote it (0 for none), and its text. */
  readonly lines: string
  /** How many rows there are. */
  readonly count: number
  /** How many were written, according to the first of them; 0 if it does not tell. */
  readonly size: number
  /** Number and hash of each sealed stretch. */
  readonly stretches: string
}

/** Count, size and lines. No row contains a line break: JSON escapes it. */
const spanText = (first: string, end: string): string => `
  (SELECT CAST(count(*) || ' ' || coalesce(max(size), 0) || ' ' ||
      coalesce(group_concat(n || ' ' || coalesce(writer, 0) || ' ' || data, char(10)), '') AS BLOB)
    FROM (SELECT n, writer, size, data FROM rows WHERE n >= ${first} AND n < ${end} ORDER BY n))`
const SPAN_TEXT = `SELECT ?1, ${spanText('?1', '?2')}`
const SPAN_TEXTS = `SELECT value, ${spanText('value', `value + ${SPAN}`)} FROM json_each(?)`
const STRETCHES = "SELECT CAST(group_concat(n || ' ' || hash) AS BLOB) FROM stretches WHERE n >= ? AND n < ?"

export function readSpanText(db: Connection, first: number, end: number): SpanText {
  return toSpanText(db, db.first(SPAN_TEXT, [first, end]) ?? [])
}

/** Reads whole spans, named by their first rows: one query takes half the time of one per span. */
export function readSpanTexts(db: Connection, firsts: readonly number[]): SpanText[] {
  return db.all(SPAN_TEXTS, [JSON.stringify(firsts)]).map((row) => toSpanText(db, row))
}

function toSpanText(db: Connection, [n, bytes]: SqlRow): SpanText {
  const text = columnText(bytes)
  const sizeAt = text.indexOf(' ') + 1
  const linesAt = text.indexOf(' ', sizeAt) + 1
  const [first, count] = [Number(n), Number(text.slice(0, sizeAt))]
  const stretches = count > STRETCH ? columnText(db.first(STRETCHES, [first, first + SPAN])?.[0]) : ''
  return { first, lines: text.slice(linesAt), count, size: Number(text.slice(sizeAt, linesAt)), stretches }
}

/**
 * The number of rows in a stretch of a turn. After as many further rows, a stretch is compared with the record and sealed with
 * one hash: a long run then costs one hash per stretch, not per row.
 */
const STRETCH = 128

export interface SpanRow {
  readonly n: number
  /** The number in the log of the commit that wrote it; 0 for none. */
  readonly writer: number
  readonly line: string
  /** The text of the row. */
  readonly text: string
  /** The parsed row; for a row that cannot be read, an empty list of edges, which no commit writes. */
  readonly packed: PackedRow
}

export function rowsIn({ lines }: SpanText): readonly SpanRow[] {
  return lines === '' ? [] : lines.split('\n').map(rowIn)
}

function rowIn(line: string): SpanRow {
  const writerAt = line.indexOf(' ') + 1
  const textAt = line.indexOf(' ', writerAt) + 1
  const text = line.slice(textAt)
  const writer = Number(line.slice(writerAt, textAt))
  return { n: Number(line.slice(0, writerAt)), writer, line, text, packed: packedIn(text) }
}

function packedIn(text: string): PackedRow {
  try {
    const packed = parseOwnJson(text)
    return typeof packed === 'object' && packed !== null ? (packed as PackedRow) : NOTHING
  } catch {
    return NOTHING
  }
}

const NOTHING: PackedRow = { edges: [] }
