// The width of texts on a terminal.
//
// Owns:      how many columns a text takes, and cutting, padding and wrapping it to a number of columns.
// Called by: every screen and list of the command line.
// Must stay true:
//   - A text that others wrote takes the columns that a terminal gives it, also with wide, combining and hidden characters.
//   - The time it takes is in proportion to the text.

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })
/** Code units segmented at once: the cost grows with their square. */
const PIECE = 128
const ASCII = /^[ -~]*$/
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f680}-\u{1f6ff}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|\ufe0f/u
const INVISIBLE = /^[\p{M}\p{Cf}\p{Cc}\u115f-\u11ff]+$/u

/** Counts the terminal columns of a text: two for wide characters, none for combining marks. */
export function widthOf(text: string): number {
  if (ASCII.test(text)) return text.length
  let width = 0
  for (const grapheme of graphemesIn(text)) width += widthOfGrapheme(grapheme)
  return width
}

/** Splits a text into what a person sees as characters. One longer than a piece comes in several parts. */
function* graphemesIn(text: string): Generator<string> {
  let at = 0
  while (at < text.length) {
    if (isAlone(text, at)) yield text.charAt(at++)
    else at = yield* graphemesOfPiece(text, at)
  }
}

/** Tells whether an ASCII character stands alone: only a carriage return joins the next one. */
function isAlone(text: string, at: number): boolean {
  const code = text.charCodeAt(at)
  return code < 0x80 && code !== 0x0d && !(text.charCodeAt(at + 1) >= 0x80)
}

/** Yields the characters of one piece and returns where they end: the last one may continue after the piece. */
function* graphemesOfPiece(text: string, from: number): Generator<string, number> {
  let [at, last] = [from, '']
  for (const { segment } of graphemes.segment(text.slice(from, from + PIECE))) {
    if (last !== '') yield last
    at += last.length
    last = segment
  }
  if (at > from && from + PIECE < text.length) return at
  yield last
  return at + last.length
}

/** Cuts a text to at most so many columns, with `…` for the missing end. Never splits a character. */
export function cut(text: string, columns: number): string {
  if (columns <= 0) return ''
  if (text.length <= columns && ASCII.test(text)) return text
  let width = 0
  let fits = ''
  for (const grapheme of graphemesIn(text)) {
    width += widthOfGrapheme(grapheme)
    if (width > columns) return `${fits.trimEnd()}…`
    // One column is kept for the sign that something is missing.
    if (width < columns) fits += grapheme
  }
  return text
}

/** Cuts the front of a text and keeps its end, with `…` before it. */
export function cutFront(text: string, columns: number): string {
  if (columns <= 0) return ''
  if (widthOf(text) <= columns) return text
  const all = [...graphemesIn(text)]
  let [width, from] = [0, all.length]
  while (from > 0) {
    const more = widthOfGrapheme(all[from - 1] ?? '')
    // One column is kept for the sign that something is missing.
    if (width + more > columns - 1) break
    width += more
    from--
  }
  return `…${all.slice(from).join('').trimStart()}`
}

/** Pads or cuts a text to exactly so many columns. */
export function pad(text: string, columns: number): string {
  const shown = cut(text, columns)
  return shown + ' '.repeat(Math.max(0, columns - widthOf(shown)))
}

export function padLeft(text: string, columns: number): string {
  const shown = cut(text, columns)
  return ' '.repeat(Math.max(0, columns - widthOf(shown))) + shown
}

function widthOfGrapheme(grapheme: string): number {
  if (WIDE.test(grapheme)) return 2
  return INVISIBLE.test(grapheme) ? 0 : 1
}

/** The most code units examined for one column: combining marks take none. */
const UNITS = 16

export interface WrappedText {
  readonly lines: readonly string[]
  /** The number of characters that did not fit. */
  readonly hidden: number
}

/** Wraps a text into lines of at most so many columns, and at most so many lines. Never splits a character. */
export function wrap(text: string, columns: number, most: number = Number.POSITIVE_INFINITY): WrappedText {
  const wrapping = new Wrapping(text, Math.max(1, columns))
  for (const grapheme of graphemesIn(text)) {
    wrapping.take(grapheme)
    if (wrapping.lines.length >= most) break
  }
  if (wrapping.lines.length < most) wrapping.endLine(text.length)
  return { lines: wrapping.lines.slice(0, most), hidden: text.length - wrapping.start }
}

/**
 * Wraps a text whose lines have signs, such as `+ ` and `- ` of a change. The rest of a long line begins with its sign and `…`, so that
 * none looks like a line of its own.
 */
export function wrapSigned(text: string, columns: number, most: number = Number.POSITIVE_INFINITY): WrappedText {
  if (!text.includes('\n')) return wrap(text, columns, most)
  const lines: string[] = []
  let left = text.length
  for (const line of text.split('\n')) {
    if (lines.length >= most) break
    const first = wrap(line, columns, 1)
    const rest = wrap(line.slice(line.length - first.hidden), columns - 2, most - lines.length - 1)
    const sign = /^[+-] /.test(line) ? line.charAt(0) : ' '
    lines.push(first.lines[0] ?? '')
    if (first.hidden > 0) lines.push(...rest.lines.map((part) => `${sign}…${part}`))
    left -= line.length + 1 - (first.hidden > 0 ? rest.hidden : 0)
    if (first.hidden > 0 && rest.hidden > 0) break
  }
  return { lines, hidden: Math.max(0, left) }
}

class Wrapping {
  readonly lines: string[] = []
  /** Where the current line begins, and how far the text is consumed. */
  start = 0
  private at = 0
  private width = 0
  /** The position after the last space of the line, and the width up to there. */
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

  /** Breaks after a space, if there is one in the second half of the line. */
  private breakLine(): void {
    const { at, width } = this.space
    if (at - this.start <= this.columns / 2) return this.endLine(this.at)
    const left = this.width - width
    this.endLine(at)
    this.width = left
  }
}
