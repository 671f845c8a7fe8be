import type { Block } from './blocks.ts'

/**
 * Blocks under their titles, a blank line between them, with `last` as the title that the answer stands under. A line
 * of data that looks like a title or like whose turn it is gets a backslash, so that data cannot open a block.
 */
export function joinBlocks(blocks: readonly Block[], last: string, roles: readonly string[] = []): string {
  const guard = guardOf([...blocks.map(({ title }) => title), last], roles)
  const texts = blocks.map(({ title, text }) => `[${title}]:\n${guard(text)}\n`)
  return [...texts, `[${last}]:`].join('\n')
}

function guardOf(titles: readonly string[], roles: readonly string[]): (text: string) => string {
  const known = new Set([...titles.map((title) => `[${title}]`), ...roles].map(fold))
  return (text) => text.replace(/^.+$/gm, (line) => (known.has(fold(line)) ? line.replace(/\S/, '\\$&') : line))
}

/** A line without what a reader overlooks: space around it, the colon at its end, capitals. */
function fold(line: string): string {
  if (line.length > longestLine) return line
  let end = line.length
  while (/[\s:]/.test(line[end - 1] ?? '')) end--
  return line.slice(0, end).trim().toLowerCase()
}

const longestLine = 1_000
