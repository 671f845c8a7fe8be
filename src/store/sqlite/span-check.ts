import { CommitMarks } from './commit-marks.ts'
import type { Connection } from './driver.ts'
import { marksIn, nameOf } from './row-marks.ts'
import { rowsIn, type SpanRow, type SpanText } from './span-text.ts'
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
  private readonly right = new Map<number, SpanText>()
  private readonly record = new CommitMarks()
  private size = 0

  /** The span, where all rows are what was written, none is missing and none was added. */
  check(db: Connection, text: SpanText): ReadSpan | WrongSpan {
    return this.decide(db, { text, rows: rowsIn(text) })
  }

  /** The same of several, whose commits are read together. */
  checkAll(db: Connection, texts: readonly SpanText[]): (ReadSpan | WrongSpan)[] {
    const spans = texts.map((text) => ({ text, rows: rowsIn(text) }))
    const rows = spans.flatMap((span) => (this.isKnown(span.text) || span.text.stretches !== '' ? [] : span.rows))
    return this.record.withAhead(db, rows, () => spans.map((span) => this.decide(db, span)))
  }

  private isKnown({ first, lines, count, size }: SpanText): boolean {
    const known = this.right.get(first)
    return known !== undefined && known.lines === lines && known.count === count && known.size === size
  }

  private decide(db: Connection, span: ReadSpan): ReadSpan | WrongSpan {
    const { text, rows } = span
    if (this.isKnown(text)) return span
    const known = this.right.get(text.first)
    const what = this.findWrong(db, span, known)
    if (what !== undefined) return { what, writer: rows[0]?.writer ?? 0 }
    // Of a long one few rows are to be looked up: its stretches say the rest.
    if (text.stretches === '') this.keep(text, known)
    return span
  }

  /** In words; undefined when nothing is wrong. */
  private findWrong(db: Connection, { text, rows }: ReadSpan, known: SpanText | undefined): string | undefined {
    const misplaced = findMisplaced(text, rows)
    if (misplaced !== undefined) return misplaced
    const lines = known?.lines.split('\n')
    const unknown = lines === undefined ? unsealedRows(text, rows) : rows.filter(({ line }, at) => line !== lines[at])
    const forged = this.record.findForged(db, unknown, marksIn(rows))
    return forged === undefined ? undefined : `${nameOf(forged)} is not what its last commit wrote`
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

/** Characters of rows that are kept to compare with. */
const MOST = 8_000_000

/** All that were written are there, one after the other, and no others. */
function findMisplaced({ first, count, size }: SpanText, rows: readonly SpanRow[]): string | undefined {
  if (count !== rows.length) return 'A row of the file has two lines'
  const stranger = rows.find(({ writer }) => writer === 0)
  if (stranger !== undefined) return `No commit wrote row ${stranger.n} of the file`
  const gap = rows.findIndex(({ n }, at) => n !== first + at)
  if (gap >= 0) return `Row ${first + gap} of the file is missing`
  if (count < Math.max(size, 1)) return `Row ${first + count} of the file is missing`
  return count > size ? `No commit wrote row ${first + size} of the file` : undefined
}
