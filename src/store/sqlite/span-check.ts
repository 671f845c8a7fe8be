import { parseOwnJson } from '../../base/json.ts'
import type { Id } from '../../graph/rows.ts'
import { edgeMark, type Mark, memberText, type RowLetter, readMarks, rowMark } from '../tree-chain.ts'
import type { Connection, SqlRow } from './driver.ts'
import { type EdgeEnds, edgeType, type Packed, SPAN } from './rows.ts'

/** All rows of a span that a commit wrote, with the number of that commit in the log; no data where the row is missing. */
export const ROWS_OF_SPAN = `SELECT seals.n, data, writer FROM seals LEFT JOIN rows ON rows.n = seals.n
  WHERE seals.n >= ? AND seals.n < ? ORDER BY seals.n`

/** A span as it is read. */
export interface ReadSpan {
  readonly first: number
  readonly rows: readonly SqlRow[]
  /** What its rows say, as soon as somebody has asked. */
  packed?: readonly Packed[]
}

/** What is wrong with a span, and a commit of its tree. */
export interface WrongSpan {
  readonly what: string
  readonly writer: number
}

/**
 * Holds rows that are read from the file against the record of the commits that wrote them. What was found right is not
 * looked up again as long as it stays the same.
 */
export class SpanCheck {
  private readonly right = new Map<number, ReadSpan>()
  private readonly record = new CommitMarks()
  private size = 0

  /** The span, where all rows are what was written, none is missing and none was added; the one that is known, if it is. */
  check(db: Connection, span: ReadSpan): ReadSpan | WrongSpan {
    const known = this.right.get(span.first)
    if (known !== undefined && isSame(known.rows, span.rows)) return known
    const found = this.findWrong(db, span, known)
    if (found !== undefined) return { what: found, writer: Number(span.rows[0]?.[2]) }
    this.keep(span, known)
    return span
  }

  /** In words; undefined when nothing is wrong. */
  private findWrong(db: Connection, { first, rows }: ReadSpan, known: ReadSpan | undefined): string | undefined {
    const [count] = db.first(COUNT, [first, first + SPAN]) ?? []
    const stranger = count === rows.length ? undefined : db.first(STRANGER, [first, first + SPAN])
    if (stranger !== undefined) return `No commit wrote ${nameOf(stranger)}`
    const there = rows.filter(([, data]) => data !== null)
    if (there.length < rows.length) return `A row of ${nameOf(there[0])} is missing`
    const before = new Map(known?.rows.map((row) => [row[0], row]))
    const unknown = rows.filter((row) => !isSameRow(row, before.get(row[0] ?? 0)))
    const marks = this.record.find(db, unknown)
    const span = new SpanNames(rows)
    const forged = unknown.find((row) => marks.get(Number(row[2]))?.hasAll(span.marksOf(row)) !== true)
    return forged === undefined ? undefined : `${capital(nameOf(forged))} is not what its last commit wrote`
  }

  private keep(span: ReadSpan, known: ReadSpan | undefined): void {
    this.size += sizeOf(span) - (known === undefined ? 0 : sizeOf(known))
    if (this.size > MOST) {
      this.right.clear()
      this.size = sizeOf(span)
    }
    this.right.set(span.first, span)
  }
}

/** Characters of rows that are kept to compare with. */
const MOST = 8_000_000

function sizeOf({ rows }: ReadSpan): number {
  return rows.reduce((sum, [, text]) => sum + String(text).length, 0)
}

function isSame(known: readonly SqlRow[], rows: readonly SqlRow[]): boolean {
  return known.length === rows.length && rows.every((row, at) => isSameRow(row, known[at]))
}

function isSameRow([n, text, writer]: SqlRow, known: SqlRow | undefined): boolean {
  return known !== undefined && known[0] === n && known[2] === writer && known[1] === text
}

const MARKS = 'SELECT n, marks FROM commits WHERE n IN (SELECT value FROM json_each(?))'

/** What commits wrote. Those that wrote much are asked again soon: an imported tree has one commit. */
class CommitMarks {
  private readonly large = new Map<number, Marks>()

  find(db: Connection, rows: readonly SqlRow[]): ReadonlyMap<number, Marks> {
    const marks = new Map(this.large)
    const wanted = new Set(rows.map(([, , writer]) => Number(writer)).filter((writer) => !marks.has(writer)))
    if (wanted.size === 0) return marks
    for (const [writer, text] of readMarksOf(db, wanted)) {
      const found = new Marks(String(text))
      marks.set(Number(writer), found)
      if (found.isLarge) this.keep(Number(writer), found)
    }
    return marks
  }

  private keep(writer: number, marks: Marks): void {
    if (this.large.size >= MOST_LARGE) this.large.clear()
    this.large.set(writer, marks)
  }
}

const MOST_LARGE = 4

/** Commits that lie side by side are read as they lie. */
function readMarksOf(db: Connection, writers: ReadonlySet<number>): readonly SqlRow[] {
  const [low, high] = [...writers].reduce(([a, b], n) => [Math.min(a, n), Math.max(b, n)], [Infinity, 0])
  if (writers.size > FEW && high - low < 2 * writers.size) return db.all(MARKS_BETWEEN, [low, high])
  return db.all(MARKS, [JSON.stringify([...writers])])
}

const FEW = 16
const MARKS_BETWEEN = 'SELECT n, marks FROM commits WHERE n BETWEEN ? AND ?'

/** What one commit wrote. A mark has a hash: it is found in the text as it is, and in a set where many are looked for. */
class Marks {
  readonly isLarge: boolean
  private readonly text: string
  private asked = 0
  private set: ReadonlySet<string> | undefined

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
}

const LARGE = 4_000
const MANY = 200

function wholeMark({ key, hash }: Mark): string {
  return key === hash ? key : key + hash
}

const LETTERS: Readonly<Record<string, RowLetter | 'e'>> = {
  conversation: 'c',
  turn: 't',
  node: 'n',
  link: 'l',
  edges: 'e',
}

interface RowName {
  readonly kind: string
  readonly letter: RowLetter | 'e'
  readonly id: Id
}

/** What a row says that it is, in its first field; undefined for what was never written. */
function readName([, data]: SqlRow): RowName | undefined {
  const text = String(data)
  const colon = text.startsWith('{"') ? text.indexOf('":', 2) : -1
  const kind = text.slice(2, Math.max(2, colon))
  const letter = Object.hasOwn(LETTERS, kind) ? LETTERS[kind] : undefined
  if (letter === undefined || letter === 'e') return letter === undefined ? undefined : { kind, letter, id: '' }
  const id = readId(text, colon + 2)
  return id === undefined ? undefined : { kind, letter, id }
}

function readId(text: string, start: number): Id | undefined {
  const end = text.indexOf('",', start + 1)
  const id = text.charAt(start) === '"' && end > 0 ? text.slice(start + 1, end) : undefined
  if (id === undefined || !(id.includes('\\') || id.includes('"'))) return id
  const [literal = '""'] = /^"(?:[^"\\]|\\.)*"/.exec(text.slice(start)) ?? []
  return String(parseOwnJson(literal))
}

function nameOf(row: SqlRow | undefined): string {
  const name = row === undefined ? undefined : readName(row)
  if (name === undefined) return `row ${String(row?.[0])} of the file`
  return name.kind === 'edges' ? 'the edges of a turn' : `the ${name.kind} ${name.id}`
}

const COUNT = 'SELECT count(*) FROM rows WHERE n >= ? AND n < ?'
const STRANGER = `SELECT n, data FROM rows WHERE n >= ? AND n < ?
  AND NOT EXISTS (SELECT 1 FROM seals WHERE seals.n = rows.n) LIMIT 1`

/** The ids of a span, which its rows name by their places. */
class SpanNames {
  private readonly turnId: Id
  private readonly names = new Map<number, RowName>()

  constructor(rows: readonly SqlRow[]) {
    for (const row of rows) {
      const name = readName(row)
      if (name !== undefined) this.names.set(Number(row[0]) % SPAN, name)
    }
    this.turnId = this.names.get(0)?.letter === 't' ? (this.names.get(0)?.id ?? '') : ''
  }

  /** What its commit must have; a mark that none has for what cannot be read. */
  marksOf([n, data]: SqlRow): readonly string[] {
    const name = this.names.get(Number(n) % SPAN)
    const text = String(data)
    if (name === undefined) return NEVER
    const { letter, id } = name
    if (letter === 'e') return this.edgeMarks(text)
    return [rowMark(letter, id, letter === 'n' || letter === 'l' ? memberText(this.turnId, text) : text)]
  }

  private edgeMarks(text: string): readonly string[] {
    const list = edgesOf(text)
    return list.length === 0 ? NEVER : list.map((ends) => this.edgeMark(ends))
  }

  private edgeMark(ends: EdgeEnds): string {
    const [from, to, letter] = Array.isArray(ends) ? ends : ['', '', '']
    const type = edgeType(letter)
    return type === undefined ? NONE : edgeMark({ from: this.idAt(from), to: this.idAt(to), type })
  }

  private idAt(end: number | Id): Id {
    return typeof end === 'number' ? (this.names.get(end)?.id ?? '') : String(end)
  }
}

const NONE = ' '
const NEVER: readonly string[] = [NONE]

function edgesOf(text: string): readonly EdgeEnds[] {
  try {
    const { edges } = parseOwnJson(text) as { readonly edges?: unknown }
    return Array.isArray(edges) ? edges : []
  } catch {
    return []
  }
}

function capital(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1)
}
