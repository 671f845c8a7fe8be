// Values as JSON over several lines.
//
// Stays true: however deep or long a value is, its text takes time in proportion, and no recursion.

/** Deeper values stand on one line: their indents alone would be longer than they are. */
const MOST_INDENT = 32

interface Level {
  readonly items: Readonly<Record<string, unknown>>
  readonly names: readonly string[]
  readonly isList: boolean
  at: number
}

/** A value as JSON, as `JSON.stringify(value, null, 1)` writes it, or flat on one line; of a long one the first `most` characters. */
export function jsonText(value: unknown, most: number = Number.POSITIVE_INFINITY, isFlat = false): string {
  const breakAt = (depth: number) => (isFlat || depth > MOST_INDENT ? '' : `\n${' '.repeat(depth)}`)
  const levels: Level[] = []
  const parts: string[] = []
  let length = 0
  const put = (text: string) => {
    parts.push(text)
    length += text.length
  }
  put(begin(value, levels, most))
  for (let level = levels.at(-1); level !== undefined && length < most; level = levels.at(-1)) {
    const name = level.names[level.at]
    if (name === undefined) {
      levels.pop()
      put(`${breakAt(levels.length)}${level.isList ? ']' : '}'}`)
      continue
    }
    put(
      `${level.at === 0 ? '' : ','}${breakAt(levels.length)}${level.isList ? '' : `${JSON.stringify(name)}:${isFlat ? '' : ' '}`}`,
    )
    level.at++
    put(begin(level.items[name], levels, most))
  }
  const text = parts.join('')
  return text.length > most ? text.slice(0, most) : text
}

/** The text of a value, or how it begins; then its items come next. */
function begin(value: unknown, levels: Level[], most: number): string {
  if (typeof value === 'string') return JSON.stringify(value.length > most ? value.slice(0, most) : value)
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const isList = Array.isArray(value)
  const names = Object.keys(value)
  if (names.length === 0) return isList ? '[]' : '{}'
  levels.push({ items: value as Level['items'], names, isList, at: 0 })
  return isList ? '[' : '{'
}
