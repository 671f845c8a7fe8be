// The decision: allow, ask or deny a request under a stack of layers.
//
// Owns:      `decide`, the only place that decides (I8), and `explain`, which shows the answer of every layer.
// Called by: `tool/permit` before each call and each child, `tool/toolkit` for the tools that a model is offered, and
//            `files/access` for each path.
// Must stay true (I2):
//   - A missing rule denies. Deny beats ask, ask beats allow, in every layer; the order of layers and rules never matters.
//   - `free` of a layer answers the asks of that layer alone, and only for what the layer allows.
//   - One more layer never allows more.
//   - A file that decides which programs git runs is written only where a rule names it.
//   - A rule that cannot be read denies. Decisions are cached per stack, and stacks never change.

import { InputError, messageOf } from '../base/error.ts'
import { DEFAULT_USE, isDefault, isDomain, type Layer } from './grant.ts'
import { guardedName, guardedPlace, hasNamed, isCoveredBy, isNaming, isUnlimited } from './guarded.ts'
import { matchName, matchPath } from './match.ts'
import { type Request, readRequest, requestText } from './request.ts'
import { type ParsedRule, readRule, splitRule } from './rule.ts'

export type Verdict = 'allow' | 'ask' | 'deny'

export interface Decision {
  readonly verdict: Verdict
  /** The layer that decided; null when all allow. */
  readonly by: string | null
  readonly reason: string
}

const ALLOWED: Decision = Object.freeze({ verdict: 'allow', by: null, reason: 'every layer allows it' })

/**
 * The one place that decides (I8). It asks every layer, and the strictest answer wins; silence denies, deny beats ask, ask
 * beats allow but for what the same layer leaves free, and order never matters (I2). Rules that cannot be read deny.
 */
export function decide(layers: readonly Layer[], request: Request): Decision {
  const { domain, name, shown, anywhere, plain } = request
  const known = decisions.get(layers)
  const last = known?.get(name)
  // Requests of one name may differ in what rules see of them: a program also without the variables that its definition sets.
  const isKnown = last?.domain === domain && last.shown === shown && last.anywhere === anywhere && last.plain === plain
  if (last !== undefined && isKnown) return last.decision
  const made = { domain, shown, anywhere, plain, decision: strictest(layers, request) }
  if (known === undefined) decisions.set(layers, new Map([[name, made]]))
  else keep(known, [name, made], MOST_DECISIONS)
  return made.decision
}

/** True where a layer denies all of a domain. Then no request of that domain is allowed. */
export function isForbidden(layers: readonly Layer[], domain: string): boolean {
  const known = forbidden.get(layers) ?? new Set(layers.flatMap(({ deny }) => deny.flatMap(wholeDomain)))
  forbidden.set(layers, known)
  return known.has(domain) || (domain.startsWith('file.') && known.has('file.*'))
}

/** False where a layer allows nothing of a domain, also after a person was asked: then no request of it is ever allowed. */
export function mayEver(layers: readonly Layer[], domain: string): boolean {
  if (isForbidden(layers, domain)) return false
  const isOf = (rule: string) => {
    const named = splitRule(rule).domain
    return named === domain || (named === 'file.*' && domain.startsWith('file.'))
  }
  return layers.every(({ allow, ask }) => allow.some(isOf) || ask.some(isOf))
}

const forbidden: WeakMap<readonly Layer[], ReadonlySet<string>> = new WeakMap()

function wholeDomain(rule: string): readonly string[] {
  const { domain, pattern, trouble } = readRule(rule)
  const isPath = domain.startsWith('file.')
  return trouble !== null || pattern === '**' || (pattern === '*' && !isPath) ? [domain] : []
}

/** Decisions made before. Layers never change, and mostly get the same requests again. */
const decisions: WeakMap<readonly Layer[], Map<string, CachedDecision>> = new WeakMap()
const MOST_DECISIONS = 64

interface CachedDecision extends Pick<Request, 'domain' | 'shown' | 'anywhere' | 'plain'> {
  readonly decision: Decision
}

/** Bounds a cache: clears it when it is full. */
function keep<T>(known: Map<string, T>, [name, value]: readonly [string, T], most: number): void {
  if (known.size >= most) known.clear()
  known.set(name, value)
}

function strictest(layers: readonly Layer[], request: Request): Decision {
  let worst = ALLOWED
  try {
    for (const layer of layers) {
      const { verdict, rule } = askLayer(layer, request)
      if (verdict === 'deny') return { verdict, by: layer.by, reason: reasonOf(layer, rule, request) }
      if (verdict === 'ask' && worst.verdict === 'allow') {
        worst = { verdict, by: layer.by, reason: `${layer.by} asks for ${rule}` }
      }
    }
  } catch (error) {
    return { verdict: 'deny', by: null, reason: `the rules cannot be read: ${messageOf(error)}` }
  }
  const guarded = guardedName(request)
  if (guarded !== undefined && !layers.some((layer) => hasNamed(layer, request, [guarded]))) {
    return { verdict: 'deny', by: null, reason: `no rule names ${requestText(request)}${adviceOnGuarded(request)}` }
  }
  return worst.verdict === 'ask' ? denyUnlessAskable(layers, worst) : worst
}

function adviceOnGuarded(request: Request): string {
  return `: it may decide which programs git runs, so a rule must name it, such as ${ruleFor(request)}`
}

/** The narrowest rule that people would write. */
function ruleFor(request: Request): string {
  if (guardedName(request) !== undefined) return `${request.domain}:${guardedPlace(request)}/**`
  return requestText(request).replace(/^(file\.\w+:\/[^/]+)\/.*$/s, '$1/**')
}

/** Turns an ask into a denial where a layer forbids asking. */
function denyUnlessAskable(layers: readonly Layer[], asked: Decision): Decision {
  const strict = layers.find(({ neverAsks }) => neverAsks === true)
  if (strict === undefined) return asked
  return { verdict: 'deny', by: strict.by, reason: `${asked.reason}, and ${strict.by} denies what would be asked for` }
}

/** The answer of one layer with the rule that gave it; null where no rule matched. */
export interface LayerAnswer {
  readonly verdict: Verdict
  readonly rule: string | null
  /** The rule that would ask, where `rule` is one of `free`. */
  readonly insteadOf?: string
}

/** A layer without any `model:` rule abstains from models. */
export function askLayer(layer: Layer, request: Request): LayerAnswer {
  const denied = findRule(layer.deny, request, true)
  if (denied !== undefined) return { verdict: 'deny', rule: denied }
  const guarded = guardedName(request)
  if (guarded !== undefined && !isUnlimited(layer) && !hasNamed(layer, request, [guarded]))
    return { verdict: 'deny', rule: null }
  const asked = findRule(layer.ask, request, true)
  const allowed = findRule(layer.allow, request, false)
  if (asked !== undefined) {
    const free = allowed === undefined ? undefined : freeRule(layer, request)
    return free === undefined ? { verdict: 'ask', rule: asked } : { verdict: 'allow', rule: free, insteadOf: asked }
  }
  if (allowed !== undefined) return { verdict: 'allow', rule: allowed }
  if (request.domain === 'model' && !layer.allow.some((rule) => rule.startsWith('model:'))) return SILENT
  return { verdict: 'deny', rule: null }
}

/** The rule that makes the layer's `ask` unnecessary. What decides which programs git runs must be named by it. */
function freeRule({ free }: Layer, request: Request): string | undefined {
  if (free === undefined) return undefined
  const guarded = guardedName(request)
  return free.find((rule) => {
    if (!isMatch(readRule(rule), request, false)) return false
    if (guarded !== undefined) return isNaming(rule, request, [guarded])
    return !rule.includes('*') || isCoveredBy(rule, request)
  })
}

const SILENT: LayerAnswer = { verdict: 'allow', rule: null }

/** Why a layer denies requests: a rule of it, or none. */
export function reasonOf(layer: Layer, rule: string | null, ...requests: readonly Request[]): string {
  if (rule !== null) return `${layer.by} denies ${rule}`
  const text = `no rule of ${layer.by} allows ${requests.map(requestText).join(' and ')}`
  if (isDefault(layer)) return text + adviceFor(requests)
  const guarded = requests.find((request) => guardedName(request) !== undefined)
  return text + secretAdvice(requests) + (guarded === undefined ? '' : adviceOnGuarded(guarded))
}

/** Names the missing rules to an application that has no grant yet. */
function adviceFor(requests: readonly Request[]): string {
  const rules = [...DEFAULT_USE, ...requests.map(ruleFor)].map((one) => `'${one}'`)
  return `; without a grant it has no files, programs, hosts or secrets. Give it one: grant: { use: [${rules.join(', ')}] }`
}

/** Names the rule that lets a secret pass: most grants were written for programs and hosts alone. */
function secretAdvice(requests: readonly Request[]): string {
  const missing = requests.filter(({ domain }) => domain === 'secret').map((one) => `'${requestText(one)}'`)
  return missing.length === 0 ? '' : `; to let a secret pass, add ${missing.join(' and ')} to its rules`
}

function findRule(rules: readonly string[], request: Request, isRestricting: boolean): string | undefined {
  return rules.find((rule) => isMatch(readRule(rule), request, isRestricting))
}

/** A rule that cannot be read restricts its whole domain, and allows nothing. */
function isMatch(rule: ParsedRule, request: Request, isRestricting: boolean): boolean {
  const { domain, name, key = name, anywhere = key, plain } = request
  const isPath = domain.startsWith('file.')
  if (rule.domain !== domain && !(isPath && rule.domain === 'file.*')) return false
  if (rule.trouble !== null) return isRestricting
  if (isPath) return matchPath(rule.pattern, key)
  if (matchName(rule.pattern, key)) return true
  if (plain !== undefined && matchName(rule.pattern, plain)) return true
  return isRestricting && anywhere !== key && matchName(rule.pattern, anywhere)
}

/** A decision with the answer of every layer. */
export interface Explanation extends Decision {
  /** The request, such as `tool:deploy`. */
  readonly request: string
  readonly answers: readonly (LayerAnswer & { readonly by: string })[]
  /** The whole decision in words, one layer a line. */
  readonly text: string
}

/** Explains why a request is allowed, asked for or denied: which layer, which rule, who set it. Decides as `decide` does. */
export function explain(layers: readonly Layer[], asked: string): Explanation {
  checkDomain(asked)
  const read = readRequest(asked)
  const request = requestText(read)
  const decision = decide(layers, read)
  const answers = layers.map((layer) => ({ by: layer.by, ...safely(() => askLayer(layer, read)) }))
  const lines = answers.map((answer) => `  ${answer.by}: ${words(answer)}`)
  return {
    ...decision,
    request,
    answers,
    text: [`${request}: ${decision.verdict}, ${decision.reason}`, ...lines].join('\n'),
  }
}

/** Refuses a domain that does not exist: no rule could match, so any answer would mislead. */
function checkDomain(asked: string): void {
  if (typeof asked === 'string' && isDomain(splitRule(asked).domain)) return
  const message = `${JSON.stringify(asked)} is not a request: write one such as tool:deploy, agent:expert, model:*, exec:git status, net:example.com, secret:TOKEN or file.read:/workspace/a.txt.`
  throw new InputError('invalid_input', message)
}

function words({ verdict, rule, insteadOf }: LayerAnswer): string {
  if (insteadOf !== undefined) return `allow by free ${rule}, an exception from ask ${insteadOf}`
  if (rule !== null) return `${verdict} by ${rule}`
  return verdict === 'allow' ? 'says nothing' : `${verdict}, no rule allows it`
}

/** Rules that cannot be read deny. */
export function safely(ask: () => LayerAnswer): LayerAnswer {
  try {
    return ask()
  } catch {
    return { verdict: 'deny', rule: null }
  }
}
