import { afterAll, expect, test } from 'vitest'
import { type Budget, childLimits, limitsOf, moneyOf, smallerBudget } from '../../src/core/grant/budget.ts'
import { freezeLayer, readCeiling, stackCeilings } from '../../src/core/grant/ceiling.ts'
import { decide, explain, type Verdict } from '../../src/core/grant/decide.ts'
import {
  delegateLayer,
  EVERYTHING,
  type Grant,
  hasSameRules,
  type Layer,
  narrow,
  runtimeLayers,
  useLayer,
} from '../../src/core/grant/grant.ts'
import { BUILT_IN_PROFILES, profileLayer } from '../../src/core/grant/profile.ts'
import { readRequest } from '../../src/core/grant/request.ts'
import type { TurnLimits } from '../../src/core/graph/limits.ts'

import { figure } from '../crash/support/figure.ts'
import { isFull } from '../crash/support/full.ts'
import { Chance } from '../support/chance.ts'

/** How many chains each law is tried on. Mutants are tried on fewer; what is kept between nodes says nothing here. */
const CHAINS =
  Number(process.env['LEGATE_CHAINS']) || (isFull && process.env['LEGATE_FRESH'] !== '1' ? 2_000_000 : 6_000)

const severity: Record<Verdict, number> = { allow: 0, ask: 1, deny: 2 }

/** An agent of a chain, and how the one above it offers it. */
interface Level {
  readonly grant: Grant | undefined
  readonly budget: Budget | undefined
  readonly offered: Budget | undefined
  readonly profile: string | undefined
}

interface Chain {
  readonly runtime: readonly Layer[]
  /** The root first. */
  readonly levels: readonly Level[]
}

type Request = readonly [domain: string, name: string]

function law(name: string, check: (chance: Chance) => string | undefined): void {
  test(`${name}: ${CHAINS.toLocaleString('en')} chains`, () => {
    for (let seed = 1; seed <= CHAINS; seed++) {
      const broken = check(new Chance(seed))
      if (broken !== undefined) throw new Error(`seed ${seed}: ${broken}`)
    }
    laws.push(name)
  })
}

const laws: string[] = []

afterAll(() =>
  figure('laws of authority', `${laws.length} hold, each for ${CHAINS.toLocaleString('en-US')} random chains`),
)

law('I1: a child never has more than its host may pass on, at any depth, whatever it asks for', (chance) => {
  const { runtime, levels } = chainOf(chance)
  const request = requestOf(chance)
  let least = 0
  for (let depth = 0; depth < levels.length; depth++) {
    const layers = layersAt({ runtime, levels }, depth)
    const own = severityOf(layers, request)
    if (own < least) return `level ${depth} may ${request.join(':')}, and what is above it may not pass it on`
    least = Math.max(least, severityOf([...layers.slice(0, -1), passedOn(levels[depth])], request))
  }
  return undefined
})

law('I1: narrow never widens', (chance) => {
  const layers = layersOf(chance)
  const request = requestOf(chance)
  const more = narrow(layers, 'one more', grantOf(chance) ?? {})
  return severityOf(more, request) < severityOf(layers, request) ? request.join(':') : undefined
})

law('I2: the order of layers and of rules never matters', (chance) => {
  const layers = layersOf(chance)
  const request = requestOf(chance)
  const turned = chance.shuffled(layers).map((layer) => ({
    ...layer,
    allow: chance.shuffled(layer.allow),
    ask: chance.shuffled(layer.ask),
    deny: chance.shuffled(layer.deny),
    ...(layer.free === undefined ? {} : { free: chance.shuffled(layer.free) }),
  }))
  return same(layers, turned, request)
})

law('I2: saying it twice changes nothing', (chance) => {
  const layers = layersOf(chance)
  const frozen = layers.map(freezeLayer)
  if (stackCeilings(frozen, frozen.slice(0, 2)) !== frozen) return 'a layer that is there was stacked again'
  const twice = layers.flatMap((layer) => [
    layer,
    { ...layer, deny: [...layer.deny, ...layer.deny], ask: [...layer.ask, ...layer.ask] },
  ])
  return same(layers, twice, requestOf(chance))
})

law('I2: deny absorbs', (chance) => {
  const layers = layersOf(chance)
  const [domain, name] = requestOf(chance)
  const rule = `${domain}:${name}`
  const denying = useLayer('no', { ...grantOf(chance), deny: [rule] })
  const at = chance.below(layers.length + 1)
  return severityOf(layers.toSpliced(at, 0, denying), [domain, name]) === 2 ? undefined : rule
})

law('I2: ask never becomes allow, and nothing becomes less than a layer of it says', (chance) => {
  const layers = layersOf(chance)
  const request = requestOf(chance)
  const each = layers.map((layer) => severityOf([layer], request))
  const all = severityOf(layers, request)
  if (all !== Math.max(...each)) return `${request.join(':')} is ${all}, its layers say ${each.join(', ')}`
  const rule = `${request[0]}:${request[1]}`
  const asking = layers.map((layer, at) => (at === 0 ? { ...withoutFree(layer), ask: [...layer.ask, rule] } : layer))
  return severityOf(asking, request) === 0 ? `${rule} is asked for and allowed` : undefined
})

law('I2: what a layer leaves free answers no ask of another layer, and nothing that never asks', (chance) => {
  const layers = layersOf(chance)
  const request = requestOf(chance)
  const rule = `${request[0]}:${request[1]}`
  const other: Layer = { by: 'other', allow: EVERYTHING, ask: [rule], deny: [] }
  const at = chance.below(layers.length + 1)
  if (severityOf(layers.toSpliced(at, 0, other), request) === 0) return `${rule} is asked for by another and allowed`
  const strict: Layer = { by: 'strict', allow: EVERYTHING, ask: [], deny: [], neverAsks: true }
  return severityOf([...layers, other, strict], request) === 2 ? undefined : `${rule} is not asked and not denied`
})

law('I2: what is free is allowed where it is allowed without the ask, and nowhere else', (chance) => {
  const request = requestOf(chance)
  for (const layer of layersOf(chance)) {
    const decided = severityOf([layer], request)
    const [without, most] = [withoutFree(layer), { ...layer, ask: [] }].map((one) => severityOf([one], request))
    if (decided !== without && decided !== 0)
      return `${request.join(':')} is ${decided} with exceptions, ${without} without`
    if (decided === 0 && most !== 0) return `${request.join(':')} is allowed, and ${most} where nothing is asked for`
  }
  return undefined
})

law('I2: a decision is what a plain reading of the rules says, and explain says the same', (chance) => {
  const layers = layersOf(chance)
  const request = requestOf(chance)
  const read = Math.max(...layers.map((layer) => plainReading(layer, request)))
  const decided = severityOf(layers, request)
  if (decided !== read) return `${request.join(':')}: decided ${decided}, reads ${read}: ${JSON.stringify(layers)}`
  const explained = explain(layers, request.join(':'))
  return severity[explained.verdict] === decided ? undefined : `explain says ${explained.verdict}`
})

law('I1: budgets only shrink on the way down, in turns, calls, children, time, tokens and dollars', (chance) => {
  const { levels } = chainOf(chance)
  const app = budgetOf(chance)
  let above: (Budget | undefined)[] = [app]
  let limits = limitsOf([levels[0]?.budget, app])
  let money = moneyOf([levels[0]?.budget, app])
  for (const [at, host] of levels.slice(0, -1).entries()) {
    const child = levels[at + 1]
    above = [...above, smallerBudget(host.budget, child?.offered)]
    const next = childLimits([child?.budget, child?.offered, app], above, limits.depth)
    const broken =
      (next.depth > limits.depth ? 'depth' : undefined) ??
      overNamed(next, [...above, child?.budget]) ??
      overMoney(money, moneyOf([child?.budget, child?.offered, app, ...above]))
    if (broken !== undefined) return `${broken} grows at level ${at + 1}: ${JSON.stringify({ levels, app })}`
    limits = next
    money = moneyOf([child?.budget, child?.offered, app, ...above])
  }
  return undefined
})

law('I1: one more budget never raises a number, and the order of budgets never matters', (chance) => {
  const budgets = [budgetOf(chance), budgetOf(chance), budgetOf(chance)]
  const named = budgets.filter((budget) => budget !== undefined)
  const [before, after] = [limitsOf(named.slice(1)), limitsOf(named)]
  const raised = (Object.keys(before) as (keyof TurnLimits)[]).find(
    (key) => named.slice(1).some((budget) => budget[key] !== undefined) && after[key] > before[key],
  )
  if (raised !== undefined) return `${raised} is raised: ${JSON.stringify(named)}`
  const [a, b] = budgets
  if (JSON.stringify(smallerBudget(a, b)) !== JSON.stringify(smallerBudget(b, a))) return 'a and b is not b and a'
  if (JSON.stringify(limitsOf(chance.shuffled(named))) !== JSON.stringify(after)) return 'another order, other limits'
  return undefined
})

law('what is written down and read again says the same', (chance) => {
  const layers = layersOf(chance)
  const read = readCeiling(JSON.parse(JSON.stringify(layers.map(freezeLayer))))
  const request = requestOf(chance)
  const wrong = read.findIndex((layer, at) => {
    const before = layers[at]
    return before === undefined || !hasSameRules(before, layer) || !isSameBudget(before.budget, layer.budget)
  })
  if (wrong >= 0 || read.length !== layers.length) return `layer ${wrong} is another one`
  return same(layers, read, request)
})

test('the chains are worth something: every verdict is common, and so is each way to it', () => {
  const seen: Record<Verdict, number> = { allow: 0, ask: 0, deny: 0 }
  const reasons = new Set<string>()
  for (let seed = 1; seed <= 5_000; seed++) {
    const chance = new Chance(seed)
    const { verdict, reason } = decide(layersOf(chance), readRequest(requestOf(chance).join(':')))
    seen[verdict]++
    reasons.add(reason.replace(/level \d/, 'level').replace(/ \S*:.*$/, ''))
  }

  expect(Math.min(...Object.values(seen))).toBeGreaterThan(150)
  expect([...reasons]).toEqual(
    expect.arrayContaining(['every layer allows it', 'level asks for', 'level denies', 'no rule of level allows']),
  )
})

function withoutFree({ free: _, ...layer }: Layer): Layer {
  return layer
}

function same(a: readonly Layer[], b: readonly Layer[], request: Request): string | undefined {
  const [one, other] = [severityOf(a, request), severityOf(b, request)]
  return one === other ? undefined : `${request.join(':')} is ${one} and then ${other}: ${JSON.stringify(a)}`
}

function severityOf(layers: readonly Layer[], [domain, name]: Request): number {
  return severity[decide(layers, readRequest(`${domain}:${name}`)).verdict]
}

/** What binds the agent at this depth: as the runtime stacks it. */
function layersAt({ runtime, levels }: Chain, depth: number): readonly Layer[] {
  const above = levels.slice(0, depth).flatMap((host, at) => {
    const child = levels[at + 1]
    const offered = delegateLayer(`level ${at}`, host.grant, smallerBudget(host.budget, child?.offered))
    return child?.profile === undefined ? [offered] : [offered, profileLayer(child.profile, BUILT_IN_PROFILES)]
  })
  return [...runtime, ...above, useLayer(`level ${depth}`, levels[depth]?.grant)]
}

function passedOn(level: Level | undefined): Layer {
  return delegateLayer('it', level?.grant)
}

function layersOf(chance: Chance): readonly Layer[] {
  const chain = chainOf(chance)
  return layersAt(chain, chance.below(chain.levels.length))
}

const PROFILES = Object.keys(BUILT_IN_PROFILES)

function chainOf(chance: Chance): Chain {
  const levels = Array.from({ length: 1 + chance.below(4) }, () => ({
    grant: grantOf(chance),
    budget: budgetOf(chance),
    offered: budgetOf(chance),
    profile: chance.is(0.15) ? chance.pick(PROFILES) : undefined,
  }))
  return { runtime: runtimeLayers(grantOf(chance), budgetOf(chance)), levels }
}

const DOMAINS = ['tool', 'tool', 'agent', 'model', 'file.read', 'file.write', 'file.*', 'net', 'exec', 'secret']
const PATTERNS = ['*', '**', 'a', 'b', 'ab', 'a*', '*b', '*a*b*', 'a/**', 'a/*', '/x/**', '**/y', '/x/*/y', 'a:b', 'é']
/** Hosts and command lines as they are written when there is nothing to normalise. */
const HOST_PATTERNS = ['*', '**', 'a', 'b', 'ab', 'a*', '*b', '*a*b*', '*.a', 'b.a', 'c']
const PROGRAM_PATTERNS = ['*', 'a', 'b', 'ab', 'a *', 'a b', 'a*', '*b', 'a * c', '/x/*/y', '/x/z/y *']
const RULES = DOMAINS.flatMap((domain) => patternsOf(domain).map((pattern) => `${domain}:${pattern}`))
const HOST_NAMES = ['a', 'b', 'ab', 'aab', 'c', 'b.a', 'a.b.a', 'constructor']
const PROGRAM_NAMES = ['a', 'b', 'ab', 'a b', 'a b c', 'a c', '/x/z/y', '/x/z/y a', 'c', 'constructor']
const NAMES = ['a', 'b', 'ab', 'aab', 'a/b', 'a/b/c', '/x/y', '/x/z/y', '/x', '', 'c', 'a:b', 'é', 'constructor']

/** Mostly wide, with holes: else nearly everything would be denied, and little would be tried. */
function makeGrant(chance: Chance): Grant | undefined {
  if (chance.is(0.1)) return undefined
  const list = () => (chance.is(0.7) ? [...EVERYTHING, ...chance.some(RULES, 2)] : chance.some(RULES, 5))
  return {
    ...(chance.is(0.8) ? { use: list() } : {}),
    ...(chance.is(0.4) ? { delegate: list() } : {}),
    ...(chance.is(0.6) ? { ask: chance.some(RULES, 3) } : {}),
    ...(chance.is(0.3) ? { free: chance.some(RULES, 4) } : {}),
    ...(chance.is(0.3) ? { deny: chance.some(RULES, 2) } : {}),
  }
}

function requestOf(chance: Chance): Request {
  const domain = chance.pick(DOMAINS)
  const names = domain === 'net' ? HOST_NAMES : domain === 'exec' ? PROGRAM_NAMES : namesOf(domain)
  return [domain === 'file.*' ? 'file.delete' : domain, chance.pick(names)]
}

function patternsOf(domain: string): readonly string[] {
  if (domain.startsWith('file.')) return PATTERNS.filter((pattern) => pattern !== '*').map(asPath)
  return domain === 'net' ? HOST_PATTERNS : domain === 'exec' ? PROGRAM_PATTERNS : PATTERNS
}

function namesOf(domain: string): readonly string[] {
  return domain.startsWith('file.') ? NAMES.map(asPath) : NAMES
}

/** A path begins with a slash: a rule that does not can never match, and is refused. */
function asPath(text: string): string {
  return text.startsWith('/') || text.startsWith('**') ? text : `/${text}`
}

const NUMBERS = ['modelCalls', 'toolCalls', 'children', 'concurrency', 'depth', 'wallMs', 'tokens', 'usd'] as const

function makeBudget(chance: Chance): Budget | undefined {
  if (chance.is(0.4)) return undefined
  const named = NUMBERS.filter(() => chance.is(0.4)).map((key) => [key, 1 + chance.below(2_000)])
  return Object.fromEntries(named) as Budget
}

/** Chains are made of these, in any combination: to make each anew would take most of the time. */
const POOL = 4_096
const grants = pool(makeGrant)
const budgets = pool(makeBudget)

function pool<T>(make: (chance: Chance) => T): readonly T[] {
  const chance = new Chance(0)
  return Array.from({ length: POOL }, () => make(chance))
}

function grantOf(chance: Chance): Grant | undefined {
  return grants[chance.below(POOL)]
}

function budgetOf(chance: Chance): Budget | undefined {
  return budgets[chance.below(POOL)]
}

function overNamed(limits: TurnLimits, budgets: readonly (Budget | undefined)[]): string | undefined {
  return (Object.keys(limits) as (keyof TurnLimits)[]).find((key) =>
    budgets.some((budget) => key !== 'depth' && budget?.[key] !== undefined && limits[key] > budget[key]),
  )
}

function overMoney(host: ReturnType<typeof moneyOf>, child: ReturnType<typeof moneyOf>): string | undefined {
  for (const key of ['tokens', 'usd'] as const) {
    const most = host?.[key] ?? null
    if (most !== null && (child?.[key] ?? Number.POSITIVE_INFINITY) > most) return key
  }
  return undefined
}

function isSameBudget(a: Budget | undefined, b: Budget | undefined): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

/** What the rules mean, written another way: patterns are walked letter by letter, without a thought of speed. */
function plainReading({ allow, ask, deny, free = [] }: Layer, [domain, name]: Request): number {
  const speaks = (rules: readonly string[]) => rules.some((rule) => isAbout(rule, domain, name))
  if (speaks(deny)) return 2
  if (speaks(ask)) return speaks(free) && speaks(allow) ? 0 : 1
  if (speaks(allow)) return 0
  return domain === 'model' && !allow.some((rule) => rule.startsWith('model:')) ? 0 : 2
}

function isAbout(rule: string, domain: string, name: string): boolean {
  const [ruled = '', ...rest] = rule.split(':')
  const pattern = rest.join(':')
  if (!domain.startsWith('file.')) return ruled === domain && walk([...pattern], [...name], false)
  const isDomain = ruled === domain || ruled === 'file.*'
  return isDomain && (pattern === '**' || segments(pattern.split('/'), name.split('/')))
}

function segments(patterns: readonly string[], parts: readonly string[]): boolean {
  const [first, ...rest] = patterns
  if (first === undefined) return parts.length === 0
  if (first === '**') return segments(rest, parts) || (parts.length > 0 && segments(patterns, parts.slice(1)))
  const [part, ...others] = parts
  return part !== undefined && walk([...first], [...part], true) && segments(rest, others)
}

function walk(pattern: readonly string[], text: readonly string[], isSegment: boolean): boolean {
  const [first, ...rest] = pattern
  if (first === undefined) return text.length === 0
  const [letter, ...others] = text
  if (first !== '*') return first === letter && walk(rest, others, isSegment)
  return walk(rest, text, isSegment) || (text.length > 0 && walk(pattern, others, isSegment))
}
