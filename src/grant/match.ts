/**
 * Does `pattern` match all of `text`? `*` stands for anything within a segment, `**` as a whole segment for any number
 * of segments; segments are separated by `/`. Time is at most length of pattern x length of text, whatever they hold.
 */
export function matchPath(pattern: string, text: string): boolean {
  if (pattern === text || pattern === '**') return true
  if (!pattern.includes('*')) return false
  return matchSegments(pattern.split('/'), text.split('/'))
}

/** The same for a name, which has no segments: `*` stands for anything. `model:openai*` covers `openai/gpt-5`. */
export function matchName(pattern: string, text: string): boolean {
  return pattern === '*' || pattern === text || (pattern.includes('*') && matchSegment(pattern, text))
}

function matchSegments(patterns: readonly string[], segments: readonly string[]): boolean {
  let at = 0
  let star = -1
  let retryFrom = 0
  let p = 0
  while (at < segments.length) {
    const pattern = patterns[p]
    if (pattern === '**') {
      star = p++
      retryFrom = at
    } else if (pattern !== undefined && matchSegment(pattern, segments[at] as string)) {
      p++
      at++
    } else if (star >= 0) {
      p = star + 1
      at = ++retryFrom
    } else return false
  }
  while (patterns[p] === '**') p++
  return p === patterns.length
}

function matchSegment(pattern: string, text: string): boolean {
  let at = 0
  let star = -1
  let retryFrom = 0
  let p = 0
  while (at < text.length) {
    if (pattern[p] === '*') {
      star = p++
      retryFrom = at
    } else if (pattern[p] === text[at]) {
      p++
      at++
    } else if (star >= 0) {
      p = star + 1
      at = ++retryFrom
    } else return false
  }
  while (pattern[p] === '*') p++
  return p === pattern.length
}
