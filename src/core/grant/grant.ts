// Grants and layers: what users write, and the form in which it binds a run and everything below it.
//
// Owns:      the type of a grant, the kinds of layers made from it, and the check that refuses a useless rule.
// Called by: agent definitions and runtime options hold grants; `runtime/authority` stacks layers; `ceiling` freezes them.
// Must stay true (I1):
//   - Layers only stack: a child has all layers of its host, and its own grant can only narrow them.
//   - `delegate` binds children, `use` binds the agent itself, `ask`, `free` and `deny` bind both.
//   - A rule that could never match is refused: a typing mistake must not pass for a permission.

import { DefinitionError } from '../base/error.ts'
import type { Budget } from './budget.ts'
import { RULE_DOMAINS, readRule, splitRule } from './rule.ts'

/**
 * The permissions of an agent: `use` for itself, `delegate` for its children (default: as `use`). Rules read `domain:pattern`,
 * such as `tool:search`, `agent:*`, `model:openai/*`. `ask` and `deny` bind both.
 */
export interface Grant {
  /** Allows the agent itself. Default: `tool:*`, `agent:*`, `model:*`. */
  readonly use?: readonly string[]
  /** Allows the agents that it starts, within their own grants. Default: the same as `use`. */
  readonly delegate?: readonly string[]
  /** Requires a person's approval each time. Stronger than `use` and `delegate`. */
  readonly ask?: readonly string[]
  /**
   * Exceptions from `ask`: what matches needs no approval, where `use` allows it (for children: `delegate`). Answers the `ask` of
   * this grant alone.
   */
  readonly free?: readonly string[]
  /** Forbids it to the agent and to all agents below it. Stronger than all else. */
  readonly deny?: readonly string[]
}

/** One set of rules that takes part in a decision: plain data, so that it can be frozen into a child's ceiling. */
export interface Layer {
  /** Who set it, for explanations. */
  readonly by: string
  readonly allow: readonly string[]
  readonly ask: readonly string[]
  readonly deny: readonly string[]
  /** Requests that the layer's own `ask` does not ask for if `allow` names them. Left out if there are none. */
  readonly free?: readonly string[]
  /** The budget of the layer's owner: agents below may not have more. */
  readonly budget?: Budget
  /** The most that all runs of an owner may use on one day. */
  readonly perDay?: DayLimit
  /** The principal that asked for the run, where it is that principal's layer. */
  readonly principal?: string
  /** Denies every request that another layer would ask for. */
  readonly neverAsks?: true
  /** For an agent that was frozen with its own grant: the layer binds the agent alone or only its children. Left out: both. */
  readonly binds?: 'self' | 'below'
}

/** The limits of an owner's day: see `DayBudget`. */
export interface DayLimit {
  readonly owner: string
  readonly usd?: number
  readonly tokens?: number
  readonly runs?: number
  readonly bytes?: number
}

const DOMAINS: ReadonlySet<string> = new Set([...RULE_DOMAINS, 'file.*'])

/** Without a grant the toolkit is the limit: files, programs, hosts and secrets need a rule. */
export const DEFAULT_USE: readonly string[] = Object.freeze(['tool:*', 'agent:*', 'model:*'])
/** Allows everything, so that only other layers limit. */
export const EVERYTHING: readonly string[] = Object.freeze([...DEFAULT_USE, 'file.*:**', 'exec:*', 'net:*', 'secret:*'])
const NONE: readonly string[] = Object.freeze([])

/** The layer that binds an agent itself. It allows the secrets that the agent's code names. */
export function useLayer(by: string, grant: Grant | undefined, secrets: readonly string[] = NONE): Layer {
  const use = grant?.use ?? DEFAULT_USE
  // A star would allow others too.
  const named = secrets.filter((name) => !name.includes('*')).map((name) => `${SECRET}${name}`)
  const allow = named.length === 0 ? use : [...use, ...named]
  return withFree({ by, allow, ask: grant?.ask ?? NONE, deny: grant?.deny ?? NONE }, grant)
}

/** Most layers have no such list, and so no such key. */
function withFree(layer: Layer, grant: Grant | undefined): Layer {
  return grant?.free === undefined || grant.free.length === 0 ? layer : { ...layer, free: grant.free }
}

const SECRET = 'secret:'

/** True where a layer allows what an agent without a grant may do, and nothing else but secrets that its code names. */
export function isDefault({ allow }: Layer): boolean {
  const isMore = (rule: string, at: number) => at >= DEFAULT_USE.length && !rule.startsWith(SECRET)
  return DEFAULT_USE.every((rule, at) => allow[at] === rule) && !allow.some(isMore)
}

/**
 * A layer over somebody else's grant, which can only take away. Without `use` it starts from everything, so one that only
 * denies takes nothing else away. Every layer but an agent's own grant is of this kind.
 */
export function narrowingLayer(by: string, grant: Grant): Layer {
  return useLayer(by, fromEverything(grant))
}

/** The narrowing layer for children: `delegate`, else `use`, else everything. */
export function narrowingDelegateLayer(by: string, grant: Grant): Layer {
  return delegateLayer(by, fromEverything(grant))
}

function fromEverything(grant: Grant): Grant {
  return { ...grant, use: grant.use ?? EVERYTHING }
}

/** The layer that an agent puts on its children, whatever their own grant allows (I1). */
export function delegateLayer(by: string, grant: Grant | undefined, budget?: Budget): Layer {
  const allow = grant?.delegate ?? grant?.use ?? DEFAULT_USE
  const layer = withFree({ by, allow, ask: grant?.ask ?? NONE, deny: grant?.deny ?? NONE }, grant)
  return budget === undefined ? layer : { ...layer, budget }
}

/**
 * An agent's whole grant, to be frozen when it starts as a child: it can never do or pass on more than this later. Secrets that
 * its code names are for itself.
 */
export function ownLayers(by: string, grant: Grant | undefined, secrets: readonly string[] = NONE): readonly Layer[] {
  const own = useLayer(by, grant, secrets)
  if (grant?.delegate === undefined && secrets.length === 0) return [own]
  return [
    { ...own, binds: 'self' },
    { ...delegateLayer(by, grant), binds: 'below' },
  ]
}

/** The layers that the application puts on every run. A budget alone does not limit permissions. */
export function runtimeLayers(grant: Grant | undefined, budget: Budget | undefined): readonly Layer[] {
  if (grant === undefined && budget === undefined) return []
  const said = narrowingLayer('the runtime', grant ?? {})
  const layer = allowsNothing(said) ? { ...said, deny: [...said.deny, 'model:*'] } : said
  return [budget === undefined ? layer : { ...layer, budget }]
}

/** Silence about models lets them pass; an application that allows nothing and asks for nothing is not silent. */
function allowsNothing({ allow, ask }: Layer): boolean {
  return allow.length === 0 && ask.length === 0
}

/** Adds one layer: nothing that was denied before is allowed after. */
export function narrow(layers: readonly Layer[], by: string, grant: Grant): readonly Layer[] {
  checkGrant(grant, by)
  return [...layers, narrowingLayer(by, grant)]
}

/** True where two layers of one holder have equal rules. */
export function hasSameRules(a: Layer, b: Layer): boolean {
  if (a.by !== b.by || a.neverAsks !== b.neverAsks) return false
  const areSame = isSameList(a.allow, b.allow) && isSameList(a.ask, b.ask) && isSameList(a.deny, b.deny)
  return areSame && isSameList(a.free ?? NONE, b.free ?? NONE)
}

function isSameList(a: readonly string[], b: readonly string[]): boolean {
  return a === b || (a.length === b.length && a.every((rule, at) => rule === b[at]))
}

/** The most rules of one list: more than any file has. */
const MOST_LISTED = 2_000
/** The most characters of one list: it stands in the row of each run that it binds. */
const MOST_CHARACTERS = 100_000

/**
 * Refuses a rule that could never match anything, because a typing mistake must not pass for a permission, and a grant that is too
 * large to stand in many rows.
 */
export function checkGrant(grant: Grant, where: string): void {
  if (typeof grant !== 'object' || grant === null) refuse(`${where}: a grant is an object with lists of rules.`)
  for (const [key, rules] of Object.entries(grant)) {
    if (!['use', 'delegate', 'ask', 'free', 'deny'].includes(key)) {
      refuse(`${where}: a grant has use, delegate, ask, free and deny, not "${key}".`)
    }
    if (rules !== undefined && !Array.isArray(rules)) refuse(`${where}: grant.${key} must be a list of rules.`)
    requireShort(rules ?? [], `${where}: grant.${key}`)
    for (const rule of rules ?? []) checkRule(rule, where)
  }
}

function requireShort(rules: readonly unknown[], where: string): void {
  if (rules.length > MOST_LISTED) {
    refuse(`${where} has ${rules.length} rules, and may have ${MOST_LISTED}. Write patterns with a star.`)
  }
  const characters = rules.reduce<number>((sum, rule) => sum + String(rule).length, 0)
  if (characters > MOST_CHARACTERS) refuse(`${where} has at most ${MOST_CHARACTERS} characters.`)
}

function checkRule(rule: unknown, where: string): void {
  if (typeof rule !== 'string') refuse(`${where}: the rule ${JSON.stringify(rule)} must be a text.`)
  const { domain, pattern } = splitRule(rule)
  if (!DOMAINS.has(domain)) {
    refuse(`${where}: the rule "${rule}" must start with one of ${[...DOMAINS].join(', ')} and a colon.`)
  }
  if (pattern === '' || pattern !== pattern.trim()) {
    refuse(`${where}: the rule "${rule}" needs a pattern right after the colon, without spaces around it.`)
  }
  const { trouble } = readRule(rule)
  if (trouble !== null) refuse(`${where}: the rule "${rule}" ${trouble}.`)
}

/** True for a domain that requests can have. */
export function isDomain(domain: string): boolean {
  return DOMAINS.has(domain)
}

function refuse(message: string): never {
  throw new DefinitionError('definition', message)
}
