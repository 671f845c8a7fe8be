import { type Slash, writtenPattern } from '../agent-file/patterns.ts'

/**
 * Patterns of ours as other programs write them, where `git *` is also `git` alone and `src` also all that is below it.
 * What it makes of a pattern may mean more: `convert` reads it again and tells.
 */
export function foreignPatterns(domain: string, patterns: readonly string[], slash: Slash): readonly string[] {
  if (domain === 'exec') return withoutTwins(patterns, ' *')
  if (!domain.startsWith('file.')) return patterns
  const meant = patterns.filter((pattern) => pattern !== TOP || patterns.length === 1)
  return [...new Set(withoutBelow(meant).map((pattern) => writtenPattern(pattern, slash)))]
}

/** Comes along with each list of what may be listed. */
const TOP = '/workspace'

/** `git` and `git *` are one. */
function withoutTwins(patterns: readonly string[], more: string): readonly string[] {
  return patterns.filter((pattern) => !patterns.includes(`${pattern}${more}`))
}

/** `src` and `src/**` are one. */
function withoutBelow(patterns: readonly string[]): readonly string[] {
  return patterns.filter((pattern) => !pattern.endsWith('/**') || !patterns.includes(pattern.slice(0, -3)))
}
