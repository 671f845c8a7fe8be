export interface Rule {
  readonly domain: string
  readonly pattern: string
}

/** `domain:pattern`; the pattern may hold colons. */
export function splitRule(rule: string): Rule {
  const colon = rule.indexOf(':')
  return { domain: rule.slice(0, Math.max(0, colon)), pattern: rule.slice(colon + 1) }
}
