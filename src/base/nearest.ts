/** The word that was probably meant: one or two letters away, never the word itself. */
export function nearest(written: string, words: readonly string[]): string | undefined {
  if (written.length > 40 || words.includes(written)) return undefined
  const most = written.length < 5 ? 1 : 2
  const near = words.filter((word) => Math.abs(word.length - written.length) <= most)
  const [best] = near.map((word) => ({ word, steps: distance(written, word) })).sort((a, b) => a.steps - b.steps)
  return best !== undefined && best.steps <= most ? best.word : undefined
}

/** The words that are most alike, the best first: by the pairs of letters that they share. All, where there are no more. */
export function mostAlike(written: string, words: readonly string[], most: number): readonly string[] {
  if (words.length <= most) return words
  const pairs = pairsOf(written)
  const scored = words.map((word) => ({ word, score: likeness(pairs, pairsOf(word)) }))
  return scored
    .sort((a, b) => b.score - a.score)
    .slice(0, most)
    .map(({ word }) => word)
}

/** From 0 to 1. */
function likeness(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  let shared = 0
  for (const pair of b) if (a.has(pair)) shared++
  return (2 * shared) / Math.max(1, a.size + b.size)
}

/** Of a text beyond all names, its beginning says enough. */
function pairsOf(text: string): ReadonlySet<string> {
  const lower = ` ${text.slice(0, 100).toLowerCase()} `
  return new Set(Array.from({ length: lower.length - 1 }, (_, at) => lower.slice(at, at + 2)))
}

/** How many letters to insert, remove, replace or swap with their neighbour. */
function distance(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, index) => index)]
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) row.push(step(rows, row, { a, b, i, j }))
    rows.push(row)
  }
  return rows[a.length]?.[b.length] ?? 0
}

interface Step {
  readonly a: string
  readonly b: string
  readonly i: number
  readonly j: number
}

function step(rows: readonly number[][], row: readonly number[], { a, b, i, j }: Step): number {
  const at = (y: number, x: number): number => (y === i ? row[x] : rows[y]?.[x]) ?? 99
  const least = Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + Number(a[i - 1] !== b[j - 1]))
  const isSwap = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
  return isSwap && i > 1 && j > 1 ? Math.min(least, at(i - 2, j - 2) + 1) : least
}
