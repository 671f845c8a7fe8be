import { hostPattern } from './host.ts'
import { keyOfPattern } from './words.ts'

export interface Rule {
  readonly domain: string
  readonly pattern: string
}

/** `domain:pattern`; the pattern may hold colons. */
export function splitRule(rule: string): Rule {
  const colon = rule.indexOf(':')
  return { domain: rule.slice(0, Math.max(0, colon)), pattern: rule.slice(colon + 1) }
}

/** A rule with its pattern in the form that requests are compared with. */
export interface ParsedRule extends Rule {
  /** Why the rule must be a mistake; null for a good one. */
  readonly trouble: string | null
}

export function readRule(rule: string): ParsedRule {
  const found = known.get(rule)
  if (found !== undefined) return found
  const made = readNow(rule)
  // A full cache is cleared.
  if (known.size >= MOST_KNOWN) known.clear()
  if (rule.length <= LONGEST_KNOWN) known.set(rule, made)
  return made
}

/** A cache: rules are few and every call reads them. */
const known: Map<string, ParsedRule> = new Map()
const MOST_KNOWN = 10_000
const LONGEST_KNOWN = 4_096

function readNow(rule: string): ParsedRule {
  const { domain, pattern } = splitRule(rule)
  if (domain === 'net') return { domain, ...hostPattern(pattern) }
  const key = domain === 'exec' ? keyOfPattern(pattern) : pattern
  return { domain, pattern: key ?? '', trouble: key === undefined ? 'has a quote that is not closed' : null }
}
