// What is drawn of long texts, and what is held back until somebody asks for it.

/** How much of something is not drawn. */
export interface HeldSize {
  readonly lines: number
  readonly characters: number
}

export interface FoldedRow {
  readonly name: string
  readonly text: string
}

export interface Folded {
  readonly rows: readonly FoldedRow[]
  /** Null where all of it is drawn. */
  readonly held: HeldSize | null
}

/** So much is drawn before somebody asks for more: it fits on one screen. */
const MOST_LINES = 30
const MOST_CHARACTERS = 2_400

/** The rows that are drawn first. What is over is counted, to the last line. */
export function foldRows(rows: readonly FoldedRow[]): Folded {
  const shown: FoldedRow[] = []
  let [lines, characters] = [MOST_LINES, MOST_CHARACTERS]
  let [heldLines, heldCharacters] = [0, 0]
  for (const { name, text } of rows) {
    const end = lines <= 0 || characters <= 0 ? 0 : endOf(text, lines, characters - name.length)
    if (end > 0 || (text === '' && lines > 0)) {
      shown.push({ name: name.slice(0, characters), text: text.slice(0, end) })
      heldCharacters += Math.max(0, name.length - characters)
    } else heldCharacters += name.length
    const rest = text.length - end
    if (rest > 0) {
      heldLines += linesIn(text, end)
      heldCharacters += rest
    }
    lines -= rest > 0 ? MOST_LINES : linesIn(text, 0)
    characters -= name.length + end
  }
  const isWhole = heldCharacters === 0
  return { rows: shown, held: isWhole ? null : { lines: Math.max(1, heldLines), characters: heldCharacters } }
}

/** Where a text is cut: after so many lines or characters. */
function endOf(text: string, lines: number, characters: number): number {
  if (characters <= 0) return 0
  let at = -1
  for (let line = 0; line < lines; line++) {
    const next = text.indexOf('\n', at + 1)
    if (next === -1) return Math.min(text.length, characters)
    if (next >= characters) return characters
    at = next
  }
  return at
}

function linesIn(text: string, from: number): number {
  let lines = 1
  for (let at = text.indexOf('\n', from + 1); at !== -1; at = text.indexOf('\n', at + 1)) lines++
  return lines
}

/** Pieces of a long text, cut at the ends of lines where there are any. The browser lays out only those in sight. */
export function piecesOf(text: string): string[] {
  const pieces: string[] = []
  let from = 0
  while (text.length - from > PIECE) {
    const end = text.lastIndexOf('\n', from + PIECE)
    const isLine = end > from
    const to = isLine ? end : from + PIECE
    pieces.push(text.slice(from, to))
    from = isLine ? to + 1 : to
  }
  pieces.push(text.slice(from))
  return pieces
}

const PIECE = 8_000
