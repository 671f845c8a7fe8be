import { matchName, matchPath } from './match.ts'
import { readRule } from './rule.ts'

/** Does `rule` match everything that `other` matches? A star of the other is covered only by a star. */
export function covers(rule: string, other: string): boolean {
  const [a, b] = [readRule(rule), readRule(other)]
  if (a.trouble !== null || b.trouble !== null) return false
  const isPath = b.domain.startsWith('file.')
  if (a.domain !== b.domain && !(isPath && a.domain === 'file.*')) return false
  return isPath ? coversPath(a.pattern, b.pattern) : matchName(a.pattern, b.pattern)
}

/** May there be something that both match? What cannot be told counts as yes. */
export function mayMeet(rule: string, other: string): boolean {
  if (covers(rule, other) || covers(other, rule)) return true
  const [a, b] = [readRule(rule), readRule(other)]
  if (a.domain !== b.domain && a.domain !== 'file.*' && b.domain !== 'file.*') return false
  if (a.trouble !== null || b.trouble !== null) return true
  const [begin, start] = [beforeStar(a.pattern), beforeStar(b.pattern)]
  const isFixed = begin === a.pattern || start === b.pattern
  return !isFixed && (begin.startsWith(start) || start.startsWith(begin))
}

function beforeStar(pattern: string): string {
  return pattern.split('*', 1)[0] ?? ''
}

/** `**` stands for no segment, and for more than the pattern can have: only another `**` matches both. */
function coversPath(pattern: string, other: string): boolean {
  if (pattern === '**' || pattern === other) return true
  if (!pattern.includes('*')) return false
  const [most, segments] = [pattern.split('/').length + 1, other.split('/')]
  const doubles = segments.filter((segment) => segment === '**').length
  if (most * (segments.length + doubles * most) > MOST_COMPARED) return false
  return (doubles === 0 ? [0] : [0, most]).every((count) => {
    const stars = Array.from({ length: count }, () => '*')
    return matchPath(pattern, segments.flatMap((segment) => (segment === '**' ? stars : [segment])).join('/'))
  })
}

/** Segments with segments. Of rules that are longer it is not told that one covers the other, unless it is the same. */
const MOST_COMPARED = 2_000
