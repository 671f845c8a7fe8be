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

/** A rule with its pattern as requests are compared with it. */
export interface ReadRule extends Rule {
  /** Why it cannot be meant as it stands; null for a good one. */
  readonly trouble: string | null
}

export function readRule(rule: string): ReadRule {
  const found = known.get(rule)
  if (found !== undefined) return found
  const made = readNow(rule)
  // Rather than too much, nothing is known.
  if (known.size >= MOST_KNOWN) known.clear()
  if (rule.length <= LONGEST_KNOWN) known.set(rule, made)
  return made
}

/** Rules are few and asked for on every call. */
const known: Map<string, ReadRule> = new Map()
const MOST_KNOWN = 10_000
const LONGEST_KNOWN = 4_096

function readNow(rule: string): ReadRule {
  const { domain, pattern } = splitRule(rule)
  if (domain === 'net') return { domain, ...hostPattern(pattern) }
  const key = domain === 'exec' ? keyOfPattern(pattern) : pattern
  return { domain, pattern: key ?? '', trouble: key === undefined ? 'has a quote that is not closed' : null }
}
