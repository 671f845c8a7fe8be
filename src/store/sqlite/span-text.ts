import { parseOwnJson } from '../../base/json.ts'
import { type Connection, type SqlRow, textOf } from './driver.ts'
import { type Packed, SPAN } from './rows.ts'

/** Rows that commits wrote, as they are stored. One text for all of them is read in half the time of one for each. */
export interface SpanText {
  readonly first: number
  /** A line for each: its number, that of the commit in the log that wrote it (0 for none), and what it says. */
  readonly lines: string
  /** How many rows there are. */
  readonly count: number
  /** How many were written, as the first of them says; 0 if it does not. */
  readonly size: number
  /** Number and hash of each sealed stretch. */
  readonly stretches: string
}

/** Count, size and lines. No row has a line break in it: JSON writes it otherwise. */
const spanText = (first: string, end: string): string => `
  (SELECT CAST(count(*) || ' ' || coalesce(max(size), 0) || ' ' ||
      coalesce(group_concat(n || ' ' || coalesce(writer, 0) || ' ' || data, char(10)), '') AS BLOB)
    FROM (SELECT n, writer, size, data FROM rows WHERE n >= ${first} AND n < ${end} ORDER BY n))`
const SPAN_TEXT = `SELECT ?1, ${spanText('?1', '?2')}`
const SPAN_TEXTS = `SELECT value, ${spanText('value', `value + ${SPAN}`)} FROM json_each(?)`
const STRETCHES = "SELECT group_concat(n || ' ' || hash) FROM stretches WHERE n >= ? AND n < ?"

export function readSpanText(db: Connection, first: number, end: number): SpanText {
  return toSpanText(db, db.first(SPAN_TEXT, [first, end]) ?? [])
}

/** Of whole spans, named by their first rows: one query takes half the time of one for each. */
export function readSpanTexts(db: Connection, firsts: readonly number[]): SpanText[] {
  return db.all(SPAN_TEXTS, [JSON.stringify(firsts)]).map((row) => toSpanText(db, row))
}

function toSpanText(db: Connection, [n, bytes]: SqlRow): SpanText {
  const text = textOf(bytes)
  const sizeAt = text.indexOf(' ') + 1
  const linesAt = text.indexOf(' ', sizeAt) + 1
  const [first, count] = [Number(n), Number(text.slice(0, sizeAt))]
  const stretches = count > STRETCH ? textOf(db.first(STRETCHES, [first, first + SPAN])?.[0]) : ''
  return { first, lines: text.slice(linesAt), count, size: Number(text.slice(sizeAt, linesAt)), stretches }
}

/**
 * A stretch is so many rows of a turn, one after the other. When they have been left alone for as many more, they are held
 * against the record and sealed with one hash: a long run is read at the price of a hash for each stretch, not each row.
 */
export const STRETCH = 128

export interface SpanRow {
  readonly n: number
  /** The number in the log of the commit that wrote it; 0 for none. */
  readonly writer: number
  readonly line: string
  /** What the row says. */
  readonly text: string
  /** Of what cannot be read: no edges, which no commit writes. */
  readonly packed: Packed
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

function packedIn(text: string): Packed {
  try {
    const packed = parseOwnJson(text)
    return typeof packed === 'object' && packed !== null ? (packed as Packed) : NOTHING
  } catch {
    return NOTHING
  }
}

const NOTHING: Packed = { edges: [] }
