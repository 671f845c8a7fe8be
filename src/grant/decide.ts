import type { Layer } from './grant.ts'
import { matchName, matchPath } from './match.ts'

export type Verdict = 'allow' | 'ask' | 'deny'

export interface Decision {
  readonly verdict: Verdict
  /** The layer that decided; null when all allow. */
  readonly by: string | null
  readonly reason: string
}

const ALLOWED: Decision = Object.freeze({ verdict: 'allow', by: null, reason: 'every layer allows it' })

/**
 * The one place that decides (I8). Every layer is asked and the strictest answer wins; silence denies, deny beats ask,
 * ask beats allow, and order never matters (I2). A layer without any `model:` rule says nothing about models.
 */
export function decide(layers: readonly Layer[], domain: string, name: string): Decision {
  let worst = ALLOWED
  for (const layer of layers) {
    const decision = decideLayer(layer, domain, name)
    if (decision.verdict === 'deny') return decision
    if (decision.verdict === 'ask' && worst.verdict === 'allow') worst = decision
  }
  return worst
}

function decideLayer(layer: Layer, domain: string, name: string): Decision {
  const denied = findRule(layer.deny, domain, name)
  if (denied !== undefined) return { verdict: 'deny', by: layer.by, reason: `${layer.by} denies ${denied}` }
  const asked = findRule(layer.ask, domain, name)
  if (asked !== undefined) return { verdict: 'ask', by: layer.by, reason: `${layer.by} asks for ${asked}` }
  if (findRule(layer.allow, domain, name) !== undefined) return ALLOWED
  if (domain === 'model' && !layer.allow.some((rule) => rule.startsWith('model:'))) return ALLOWED
  return { verdict: 'deny', by: layer.by, reason: `no rule of ${layer.by} allows ${domain}:${name}` }
}

function findRule(rules: readonly string[], domain: string, name: string): string | undefined {
  const isPath = domain.startsWith('file.')
  for (const rule of rules) {
    const { domain: ruled, pattern } = parsed(rule)
    if (ruled !== domain && !(isPath && ruled === 'file.*')) continue
    if (isPath ? matchPath(pattern, name) : matchName(pattern, name)) return rule
  }
  return undefined
}

interface Rule {
  readonly domain: string
  readonly pattern: string
}

/** Rules are few and asked for on every call. */
const known: Map<string, Rule> = new Map()
const MOST_KNOWN = 10_000

function parsed(rule: string): Rule {
  const found = known.get(rule)
  if (found !== undefined) return found
  const colon = rule.indexOf(':')
  const made = { domain: rule.slice(0, Math.max(0, colon)), pattern: rule.slice(colon + 1) }
  if (known.size >= MOST_KNOWN) known.clear()
  known.set(rule, made)
  return made
}
