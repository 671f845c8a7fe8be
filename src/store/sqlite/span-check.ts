import { CommitMarks } from './commit-marks.ts'
import type { Connection } from './driver.ts'
import { marksIn, nameOf } from './row-marks.ts'
import { rowsIn, type SpanRow, type SpanText, writerOf } from './span-text.ts'
import { unsealedRows } from './stretches.ts'

/** A span whose rows are what was written. */
export interface ReadSpan {
  readonly text: SpanText
  readonly rows: readonly SpanRow[]
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
  check(db: Connection, text: SpanText): ReadSpan | WrongSpan {
    return this.decide(db, this.parse(text))
  }

  /** The same of several, whose commits are read together. */
  checkAll(db: Connection, texts: readonly SpanText[]): (ReadSpan | WrongSpan)[] {
    const spans = texts.map((text) => this.parse(text))
    const rows = spans.flatMap((span) => (this.isKnown(span) || span.text.stretches !== '' ? [] : span.rows))
    return this.record.withAhead(db, rows, () => spans.map((span) => this.decide(db, span)))
  }

  private parse(text: SpanText): ReadSpan {
    const known = this.right.get(text.first)
    if (known !== undefined && known.text.lines === text.lines && known.text.count === text.count) return known
    return { text, rows: rowsIn(text, known?.rows ?? []) }
  }

  private isKnown(span: ReadSpan): boolean {
    return this.right.get(span.text.first) === span
  }

  private decide(db: Connection, span: ReadSpan): ReadSpan | WrongSpan {
    if (this.isKnown(span)) return span
    const { text } = span
    const known = this.right.get(text.first)
    const what = this.findWrong(db, span, known)
    if (what !== undefined) return { what, writer: span.rows[0] === undefined ? 0 : writerOf(span.rows[0]) }
    // Of a long one few rows are to be looked up: its stretches say the rest.
    if (text.stretches === '') this.keep(span, known)
    return span
  }

  /** In words; undefined when nothing is wrong. */
  private findWrong(db: Connection, { text, rows }: ReadSpan, known: ReadSpan | undefined): string | undefined {
    const misplaced = findMisplaced(text, rows)
    if (misplaced !== undefined) return misplaced
    const unknown = known === undefined ? unsealedRows(text, rows) : rows.filter((row, at) => row !== known.rows[at])
    const forged = this.record.findForged(db, unknown, marksIn(rows))
    return forged === undefined ? undefined : `${nameOf(forged)} is not what its last commit wrote`
  }

  private keep(span: ReadSpan, known: ReadSpan | undefined): void {
    this.size += span.text.lines.length - (known?.text.lines.length ?? 0)
    if (this.size > MOST) {
      this.right.clear()
      this.size = span.text.lines.length
    }
    this.right.set(span.text.first, span)
  }
}

/** Characters of rows that are kept to compare with. */
const MOST = 8_000_000

/** All that were written are there, one after the other, and no others. */
function findMisplaced({ first, count, size }: SpanText, rows: readonly SpanRow[]): string | undefined {
  if (count !== rows.length) return 'A row of the file has two lines'
  const stranger = rows.find((row) => writerOf(row) === 0)
  if (stranger !== undefined) return `No commit wrote row ${stranger.n} of the file`
  const gap = rows.findIndex(({ n }, at) => n !== first + at)
  if (gap >= 0) return `Row ${first + gap} of the file is missing`
  if (count < size) return `Row ${first + count} of the file is missing`
  return count > size ? `No commit wrote row ${first + size} of the file` : undefined
}
