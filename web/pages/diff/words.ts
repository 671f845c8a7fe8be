/** A piece of a text, and whether the other text lacks it. */
export interface Piece {
  readonly text: string
  readonly isOwn: boolean
}

/** Beyond this many comparisons two texts are shown as different altogether. */
const MOST_PAIRS = 250_000

/** Marks in each of two texts the words that the other one lacks. */
export function compareWords(first: string, second: string): readonly [readonly Piece[], readonly Piece[]] {
  const [one, two] = [wordsOf(first), wordsOf(second)]
  if (one.length * two.length > MOST_PAIRS) return [[{ text: first, isOwn: true }], [{ text: second, isOwn: true }]]
  const { kept, keptOther } = commonWords(one, two)
  return [joined(one, kept), joined(two, keptOther)]
}

function wordsOf(text: string): readonly string[] {
  return text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? []
}

/** The longest line of words that both have, by the places of its words. */
function commonWords(one: readonly string[], two: readonly string[]) {
  const width = two.length + 1
  const lengths = new Uint16Array((one.length + 1) * width)
  const at = (row: number, column: number) => lengths[row * width + column] ?? 0
  for (let row = one.length - 1; row >= 0; row--) {
    for (let column = two.length - 1; column >= 0; column--) {
      lengths[row * width + column] =
        one[row] === two[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1))
    }
  }
  const kept = new Set<number>()
  const keptOther = new Set<number>()
  for (let row = 0, column = 0; row < one.length && column < two.length; ) {
    if (one[row] === two[column]) {
      kept.add(row++)
      keptOther.add(column++)
    } else if (at(row + 1, column) >= at(row, column + 1)) row++
    else column++
  }
  return { kept, keptOther }
}

function joined(words: readonly string[], kept: ReadonlySet<number>): readonly Piece[] {
  const pieces: { text: string; isOwn: boolean }[] = []
  for (const [at, text] of words.entries()) {
    const isOwn = !kept.has(at)
    const last = pieces.at(-1)
    if (last !== undefined && last.isOwn === isOwn) last.text += text
    else pieces.push({ text, isOwn })
  }
  return pieces
}
