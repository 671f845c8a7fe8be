import { parseOwnJson } from '../../base/json.ts'
import { type Connection, textOf } from './driver.ts'
import type { Packed } from './rows.ts'

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
const SPAN_TEXT = `SELECT CAST(group_concat(n || ' ' || writer || ' ' || coalesce(data, ''), char(10)) AS BLOB),
    (SELECT count(*) FROM rows WHERE n >= ?1 AND n < ?2),
    (SELECT CAST(group_concat(n || ' ' || hash) AS BLOB) FROM stretches WHERE n >= ?1 AND n < ?2)
  FROM (SELECT seals.n, data, writer FROM seals LEFT JOIN rows ON rows.n = seals.n
    WHERE seals.n >= ?1 AND seals.n < ?2 ORDER BY seals.n)`

export function readSpanText(db: Connection, first: number, end: number): SpanText {
  const [lines, count, stretches] = db.first(SPAN_TEXT, [first, end]) ?? []
  return { first, lines: textOf(lines), count: Number(count), stretches: textOf(stretches) }
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
