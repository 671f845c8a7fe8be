const WORKSPACE = '/workspace/'

/**
 * Patterns of ours as other programs write them, where `git *` is also `git` alone and `src` also all that is below it.
 * What it makes of a pattern may mean more: `convert` reads it again and tells.
 */
export function foreignPatterns(domain: string, patterns: readonly string[]): readonly string[] {
  if (domain === 'exec') return withoutTwins(patterns, ' *')
  if (!domain.startsWith('file.')) return patterns
  return [...new Set(withoutBelow(patterns).map(relative))]
}

/** `git` and `git *` are one. */
function withoutTwins(patterns: readonly string[], more: string): readonly string[] {
  return patterns.filter((pattern) => !patterns.includes(`${pattern}${more}`))
}

/** `src` and `src/**` are one. */
function withoutBelow(patterns: readonly string[]): readonly string[] {
  return patterns.filter((pattern) => !pattern.endsWith('/**') || !patterns.includes(pattern.slice(0, -3)))
}

function relative(pattern: string): string {
  if (pattern === '**') return '*'
  if (!pattern.startsWith(WORKSPACE)) return pattern
  const below = pattern.slice(WORKSPACE.length)
  const [, name] = /^\*\*\/([^/]+)$/.exec(below) ?? []
  return name ?? below
}
