/** The word that was probably meant: one or two letters away, never the word itself. */
export function nearest(written: string, words: readonly string[]): string | undefined {
  if (written.length > 40 || words.includes(written)) return undefined
  const most = written.length < 5 ? 1 : 2
  return words.find((word) => Math.abs(word.length - written.length) <= most && distance(written, word) <= most)
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
