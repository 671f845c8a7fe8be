import { graphemesIn, widthOfGrapheme } from './width.ts'

/** Longest run of code units that is looked at for one column: marks that combine take none. */
const UNITS = 16

export interface Wrapped {
  readonly lines: readonly string[]
  /** How many characters did not fit into the rows. */
  readonly hidden: number
}

/** The text in lines of at most so many columns, at most so many of them. Never half a character. */
export function wrap(text: string, columns: number, most: number = Number.POSITIVE_INFINITY): Wrapped {
  const wrapping = new Wrapping(text, Math.max(1, columns))
  for (const grapheme of graphemesIn(text)) {
    wrapping.take(grapheme)
    if (wrapping.lines.length >= most) break
  }
  if (wrapping.lines.length < most) wrapping.endLine(text.length)
  return { lines: wrapping.lines.slice(0, most), hidden: text.length - wrapping.start }
}

class Wrapping {
  readonly lines: string[] = []
  /** Where the line in hand begins, and where what was taken ends. */
  start = 0
  private at = 0
  private width = 0
  /** Behind the last space of the line, and how wide the line is up to there. */
  private space = { at: 0, width: 0 }
  private readonly text: string
  private readonly columns: number

  constructor(text: string, columns: number) {
    this.text = text
    this.columns = columns
  }

  take(grapheme: string): void {
    const width = widthOfGrapheme(grapheme)
    if (this.isFull(grapheme, width)) this.breakLine()
    this.at += grapheme.length
    this.width += width
    if (grapheme === '\n') this.endLine(this.at)
    if (grapheme === ' ') this.space = { at: this.at, width: this.width }
  }

  endLine(end: number): void {
    if (end === this.start) return
    this.lines.push(this.text.slice(this.start, end).trimEnd())
    this.start = end
    this.width = 0
    this.space = { at: end, width: 0 }
  }

  private isFull(grapheme: string, width: number): boolean {
    if (grapheme === '\n') return false
    const isTooWide = grapheme !== ' ' && this.width + width > this.columns
    return isTooWide || this.at - this.start >= this.columns * UNITS
  }

  /** Behind a space, if there is one in its second half. */
  private breakLine(): void {
    const { at, width } = this.space
    if (at - this.start <= this.columns / 2) return this.endLine(this.at)
    const left = this.width - width
    this.endLine(at)
    this.width = left
  }
}
