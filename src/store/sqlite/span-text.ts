import { parseOwnJson } from '../../base/json.ts'
import { type Connection, type SqlRow, textOf } from './driver.ts'
import { type Packed, SPAN } from './rows.ts'

/** Rows that commits wrote, as they are stored. One text for all of them is read in half the time of one for each. */
export interface SpanText {
  readonly first: number
  /** A line for each: its number, that of the commit in the log that wrote it, and what it says; nothing if it is missing. */
  readonly lines: string
  /** How many rows there are, whoever wrote them. */
  readonly count: number
  /** Number and hash of each sealed stretch. */
  readonly stretches: string
}

/** No row has a line break in it: JSON writes it otherwise. */
const spanText = (first: string, end: string): string => `
    (SELECT CAST(group_concat(n || ' ' || writer || ' ' || coalesce(data, ''), char(10)) AS BLOB)
      FROM (SELECT seals.n, data, writer FROM seals LEFT JOIN rows ON rows.n = seals.n
        WHERE seals.n >= ${first} AND seals.n < ${end} ORDER BY seals.n)),
    (SELECT count(*) FROM rows WHERE n >= ${first} AND n < ${end}),
    (SELECT CAST(group_concat(n || ' ' || hash) AS BLOB) FROM stretches WHERE n >= ${first} AND n < ${end})`
const SPAN_TEXT = `SELECT ?1, ${spanText('?1', '?2')}`
const SPAN_TEXTS = `SELECT value, ${spanText('value', `value + ${SPAN}`)} FROM json_each(?)`

export function readSpanText(db: Connection, first: number, end: number): SpanText {
  return toSpanText(db.first(SPAN_TEXT, [first, end]) ?? [])
}

/** Of whole spans, named by their first rows: one query takes half the time of one for each. */
export function readSpanTexts(db: Connection, firsts: readonly number[]): SpanText[] {
  return db.all(SPAN_TEXTS, [JSON.stringify(firsts)]).map(toSpanText)
}

function toSpanText([first, lines, count, stretches]: SqlRow): SpanText {
  return { first: Number(first), lines: textOf(lines), count: Number(count), stretches: textOf(stretches) }
}

export interface SpanRow {
  readonly n: number
  readonly line: string
  /** What the row says; empty when it is missing. */
  readonly text: string
  /** Of what cannot be read: no edges, which no commit writes. */
  readonly packed: Packed
}

/** Rows that are the same as before are those of before. */
export function rowsIn({ lines }: SpanText, before: readonly SpanRow[]): readonly SpanRow[] {
  return lines.split('\n').map((line, at) => (before[at]?.line === line ? before[at] : rowIn(line)))
}

function rowIn(line: string): SpanRow {
  const writerAt = line.indexOf(' ') + 1
  const text = line.slice(line.indexOf(' ', writerAt) + 1)
  return { n: Number(line.slice(0, writerAt)), line, text, packed: packedIn(text) }
}

/** The number in the log of the commit that wrote it. Few are asked for it. */
export function writerOf({ line, text }: SpanRow): number {
  return Number(line.slice(line.indexOf(' '), line.length - text.length))
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
