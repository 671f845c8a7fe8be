import { messageOf } from '../base/error.ts'
import type { Layer } from './grant.ts'
import { matchName, matchPath } from './match.ts'
import { type Rule, splitRule } from './rule.ts'

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
 * ask beats allow, and order never matters (I2). Rules that cannot be read deny.
 */
export function decide(layers: readonly Layer[], domain: string, name: string): Decision {
  const known = decisions.get(layers)
  const last = known?.get(name)
  if (last !== undefined && last.domain === domain) return last.decision
  const decision = strictest(layers, domain, name)
  if (known === undefined) decisions.set(layers, new Map([[name, { domain, decision }]]))
  else keep(known, [name, { domain, decision }], MOST_DECISIONS)
  return decision
}

/** Layers are never changed, and mostly asked for the same again. */
const decisions: WeakMap<readonly Layer[], Map<string, Known>> = new WeakMap()
const MOST_DECISIONS = 64

interface Known {
  readonly domain: string
  readonly decision: Decision
}

/** What is known stays within bounds: rather than too much it is nothing. */
function keep<T>(known: Map<string, T>, [name, value]: readonly [string, T], most: number): void {
  if (known.size >= most) known.clear()
  known.set(name, value)
}

function strictest(layers: readonly Layer[], domain: string, name: string): Decision {
  let worst = ALLOWED
  try {
    for (const layer of layers) {
      const { verdict, rule } = voiceOf(layer, domain, name)
      if (verdict === 'deny') return { verdict, by: layer.by, reason: reasonOf(layer.by, rule, `${domain}:${name}`) }
      if (verdict === 'ask' && worst.verdict === 'allow') {
        worst = { verdict, by: layer.by, reason: `${layer.by} asks for ${rule}` }
      }
    }
  } catch (error) {
    return { verdict: 'deny', by: null, reason: `the rules cannot be read: ${messageOf(error)}` }
  }
  return worst
}

/** What one layer says, and by which rule; null when it is for want of one. */
export interface Voice {
  readonly verdict: Verdict
  readonly rule: string | null
}

/** A layer without any `model:` rule says nothing about models. */
export function voiceOf(layer: Layer, domain: string, name: string): Voice {
  const denied = findRule(layer.deny, domain, name)
  if (denied !== undefined) return { verdict: 'deny', rule: denied }
  const asked = findRule(layer.ask, domain, name)
  if (asked !== undefined) return { verdict: 'ask', rule: asked }
  const allowed = findRule(layer.allow, domain, name)
  if (allowed !== undefined) return { verdict: 'allow', rule: allowed }
  if (domain === 'model' && !layer.allow.some((rule) => rule.startsWith('model:'))) return SILENT
  return { verdict: 'deny', rule: null }
}

const SILENT: Voice = { verdict: 'allow', rule: null }

function reasonOf(by: string, rule: string | null, request: string): string {
  return rule === null ? `no rule of ${by} allows ${request}` : `${by} denies ${rule}`
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

/** Rules are few and asked for on every call. */
const known: Map<string, Rule> = new Map()
const MOST_KNOWN = 10_000

function parsed(rule: string): Rule {
  const found = known.get(rule)
  if (found !== undefined) return found
  const made = splitRule(rule)
  keep(known, [rule, made], MOST_KNOWN)
  return made
}
