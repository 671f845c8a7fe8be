/**
 * Does `pattern` match all of `text`? `*` stands for anything within a segment, `**` as a whole segment for any number of
 * segments; segments are separated by `/`. Time is at most segments of the pattern x length of the text: paths have few.
 */
export function matchPath(pattern: string, text: string): boolean {
  if (pattern === text || pattern === '**') return true
  if (!pattern.includes('*')) return false
  return matchSegments(pattern.split('/'), text.split('/'))
}

/** Matches a name, which has no segments: `*` stands for anything. `model:openai*` covers `openai/gpt-5`. In linear time. */
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

/** Looks for the parts between stars from left to right: the first place of a part is as good as any. */
function matchSegment(pattern: string, text: string): boolean {
  const begin = pattern.indexOf('*')
  if (begin === -1) return pattern === text
  const stop = pattern.lastIndexOf('*')
  const end = text.length - (pattern.length - stop - 1)
  // Most texts differ at their ends, so a long pattern is not split for them.
  if (begin > end || !text.startsWith(pattern.slice(0, begin)) || !text.endsWith(pattern.slice(stop + 1))) return false
  let at = begin
  for (const part of pattern.slice(begin + 1, stop).split('*')) {
    const found = part === '' ? at : findPart(text, part, at)
    if (found === -1 || found + part.length > end) return false
    at = found + part.length
  }
  return true
}

/** Works as `indexOf`, which may compare the whole part at each place; this takes linear time for a long part. */
function findPart(text: string, part: string, from: number): number {
  if (part.length <= SHORT_PART) return text.indexOf(part, from)
  const borders = bordersOf(part)
  let matched = 0
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at)
    while (matched > 0 && part.charCodeAt(matched) !== code) matched = borders[matched - 1] ?? 0
    if (part.charCodeAt(matched) === code) matched++
    if (matched === part.length) return at - matched + 1
  }
  return -1
}

const SHORT_PART = 32

/** For each prefix of the text, the length of its longest proper prefix that is also its suffix. */
function bordersOf(text: string): Uint32Array {
  const borders = new Uint32Array(text.length)
  let matched = 0
  for (let at = 1; at < text.length; at++) {
    const code = text.charCodeAt(at)
    while (matched > 0 && text.charCodeAt(matched) !== code) matched = borders[matched - 1] ?? 0
    if (text.charCodeAt(matched) === code) matched++
    borders[at] = matched
  }
  return borders
}
