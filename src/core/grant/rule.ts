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

const FILE_DOMAINS = ['file.list', 'file.read', 'file.write', 'file.delete']
/** The words with which a rule begins, but for `file.*`, which stands for those of files. */
export const RULE_DOMAINS: readonly string[] = ['tool', 'agent', 'model', 'exec', 'net', 'secret', ...FILE_DOMAINS]

/** The rules that a rule of `file.*` stands for; else the rule itself. */
export function rulesOneByOne(rule: string): string[] {
  const { domain, pattern } = splitRule(rule)
  return domain === 'file.*' ? FILE_DOMAINS.map((one) => `${one}:${pattern}`) : [rule]
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
  if (domain.startsWith('file.')) return { domain, pattern, trouble: pathTrouble(domain, pattern) }
  const key = domain === 'exec' ? keyOfPattern(pattern) : pattern
  return { domain, pattern: key ?? '', trouble: key === undefined ? 'has a quote that is not closed' : null }
}

/** Finds why no path can match a pattern. A path begins with a slash and has no empty part; `~` is of other programs. */
function pathTrouble(domain: string, pattern: string): string | null {
  if (canMatch(pattern)) return null
  const meant = meantPath(pattern)
  const hint = meant === undefined ? 'write a path such as' : 'write'
  const why = 'can never match: a path begins with a slash and has no empty part, ".", "..", "?" or "\\"'
  return `${why}: ${hint} ${domain}:${meant ?? '/workspace/src/**'}`
}

function canMatch(pattern: string): boolean {
  if (pattern === '**' || pattern === '/' || /^~(?:\/|$)/.test(pattern)) return true
  const [first = '', ...parts] = pattern.split('/')
  const isWhole = parts.length > 0 && /^\**$/.test(first)
  return isWhole && !parts.some((part) => part === '' || part === '.' || NEVER.test(part))
}

/** Matches signs that no name of a file has. */
const NEVER = /\.\.|[\p{Cc}?\\]/u

/** Spells a pattern as it was meant where that is clear: `./sec/` is `/workspace/sec/**`. Undefined where it is not. */
export function meantPath(pattern: string): string | undefined {
  if (pattern === '*') return '**'
  const plain = pattern.replaceAll(/\/(?:\.?\/)+/g, '/').replace(/^\.\//, '')
  const whole = plain.startsWith('/') || plain.startsWith('**') ? plain : `/workspace/${plain}`
  const meant = whole.replace(/(?:\/\*\*)?\/\.?$/, '/**')
  return canMatch(meant) && !pattern.startsWith('~') ? meant : undefined
}
