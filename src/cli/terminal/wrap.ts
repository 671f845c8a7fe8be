import { graphemes, widthOfGrapheme } from './width.ts'

/** Longest run of code units that is looked at for one column: marks that combine take none. */
const UNITS = 16

export interface Wrapped {
  readonly lines: readonly string[]
  /** How many characters did not fit into the rows. */
  readonly hidden: number
}

/** The text in lines of at most so many columns, at most so many of them. Never half a character. */
export function wrap(text: string, columns: number, most: number = Number.POSITIVE_INFINITY): Wrapped {
  const lines: string[] = []
  let rest = text
  while (rest !== '' && lines.length < most) {
    const line = firstLine(rest, Math.max(1, columns))
    lines.push(line.trimEnd())
    rest = rest.slice(line.length)
  }
  return { lines, hidden: rest.length }
}

/** Ends behind a space, if there is one in its second half. */
function firstLine(text: string, columns: number): string {
  const piece = text.slice(0, columns * UNITS)
  let [width, end, space] = [0, 0, 0]
  for (const { segment } of graphemes.segment(piece)) {
    if (segment === '\n') return text.slice(0, end + 1)
    width += widthOfGrapheme(segment)
    if (width > columns && segment !== ' ') return text.slice(0, space > columns / 2 ? space : end || segment.length)
    end += segment.length
    if (segment === ' ') space = end
  }
  return piece
}
