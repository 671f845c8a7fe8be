import { decide } from './decide.ts'
import { DEFAULT_USE, type Grant, useLayer } from './grant.ts'
import { matchName, matchPath } from './match.ts'
import { readRequest } from './request.ts'
import { readRule, splitRule } from './rule.ts'

export interface LintFinding {
  readonly problem: 'never_matters' | 'matches_nothing' | 'never_allowed'
  /** The rule, or the tool or agent that no rule allows. */
  readonly subject: string
  readonly message: string
}

/** The requests that a grant can be about, as far as known: `tool:search`, `agent:expert`, one each. */
export type KnownRequests = readonly string[]

/** Finds rules that can never matter, rules that match nothing known, and known requests that no rule allows. */
export function lint(grant: Grant, known: KnownRequests): LintFinding[] {
  return [...uselessRules(grant), ...unmatchedRules(grant, known), ...neverAllowed(grant, known)]
}

const LISTS = ['use', 'delegate', 'ask', 'free', 'deny'] as const

/** The lists that take precedence over a list. */
const STRICTER = { use: ['deny', 'ask'], delegate: ['deny', 'ask'], ask: ['deny'], free: ['deny'], deny: [] } as const

function uselessRules(grant: Grant): LintFinding[] {
  return LISTS.flatMap(
    (list) =>
      grant[list]?.flatMap((rule, at, rules): LintFinding[] => {
        const taken = takenBy(grant, list, rule)
        if (taken !== undefined) return [useless(`${list}: ${rule}`, `${taken} takes all of it`)]
        const idle = list === 'free' ? whyIdle(grant, rule) : undefined
        if (idle !== undefined) return [useless(`free: ${rule}`, idle)]
        const wider = rules.find((other, index) => covers(other, rule) && (index < at || !covers(rule, other)))
        return wider === undefined ? [] : [useless(`${list}: ${rule}`, `${wider} in the same list covers it`)]
      }) ?? [],
  )
}

/** Why an exception changes nothing: nobody would ask, or nothing allows it. */
function whyIdle({ use = DEFAULT_USE, delegate = use, ask = [] }: Grant, rule: string): string | undefined {
  if (!ask.some((asked) => mayMeet(asked, rule))) return 'no rule of ask matches it'
  return [...use, ...delegate].some((allowed) => mayMeet(allowed, rule)) ? undefined : 'use does not allow it'
}

function takenBy(grant: Grant, list: (typeof LISTS)[number], rule: string): string | undefined {
  const isFree = list !== 'free' && grant.free?.some((free) => mayMeet(free, rule)) === true
  for (const stricter of STRICTER[list]) {
    if (stricter === 'ask' && isFree) continue
    const taken = grant[stricter]?.find((other) => covers(other, rule))
    if (taken !== undefined) return `${stricter}: ${taken}`
  }
  return undefined
}

function useless(subject: string, why: string): LintFinding {
  return { problem: 'never_matters', subject, message: `${subject} can never matter: ${why}.` }
}

function unmatchedRules(grant: Grant, known: KnownRequests): LintFinding[] {
  const named = new Set(known.map((request) => splitRule(request).domain))
  return LISTS.flatMap(
    (list) =>
      grant[list]
        ?.filter((rule) => named.has(splitRule(rule).domain) && !known.some((request) => covers(rule, request)))
        .map((rule): LintFinding => {
          const subject = `${list}: ${rule}`
          return { problem: 'matches_nothing', subject, message: `${subject} matches nothing that this agent has.` }
        }) ?? [],
  )
}

function neverAllowed(grant: Grant, known: KnownRequests): LintFinding[] {
  const layer = useLayer('this grant', grant)
  return known.flatMap((request): LintFinding[] => {
    const { verdict, reason } = decide([layer], readRequest(request))
    if (verdict !== 'deny') return []
    return [{ problem: 'never_allowed', subject: request, message: `${request} is never allowed: ${reason}.` }]
  })
}

/** True where `rule` matches everything that `other` matches. Only a star covers a star of the other. */
export function covers(rule: string, other: string): boolean {
  const [a, b] = [readRule(rule), readRule(other)]
  if (a.trouble !== null || b.trouble !== null) return false
  const isPath = b.domain.startsWith('file.')
  if (a.domain !== b.domain && !(isPath && a.domain === 'file.*')) return false
  return isPath ? coversPath(a.pattern, b.pattern) : matchName(a.pattern, b.pattern)
}

/** True where something may match both. Uncertain cases count as true. */
export function mayMeet(rule: string, other: string): boolean {
  if (covers(rule, other) || covers(other, rule)) return true
  const [a, b] = [readRule(rule), readRule(other)]
  if (a.domain !== b.domain && a.domain !== 'file.*' && b.domain !== 'file.*') return false
  if (a.trouble !== null || b.trouble !== null) return true
  const [begin, start] = [beforeStar(a.pattern), beforeStar(b.pattern)]
  const isFixed = begin === a.pattern || start === b.pattern
  return !isFixed && (begin.startsWith(start) || start.startsWith(begin))
}

function beforeStar(pattern: string): string {
  return pattern.split('*', 1)[0] ?? ''
}

/** `**` matches no segment, and also more segments than the pattern can have: only another `**` covers both. */
function coversPath(pattern: string, other: string): boolean {
  if (pattern === '**' || pattern === other) return true
  if (!pattern.includes('*')) return false
  const [most, segments] = [pattern.split('/').length + 1, other.split('/')]
  const doubles = segments.filter((segment) => segment === '**').length
  if (most * (segments.length + doubles * most) > MOST_COMPARED) return false
  return (doubles === 0 ? [0] : [0, most]).every((count) => {
    const stars = Array.from({ length: count }, () => '*')
    return matchPath(pattern, segments.flatMap((segment) => (segment === '**' ? stars : [segment])).join('/'))
  })
}

/** The most pairs of segments to compare. Longer rules cover each other only where they are equal. */
const MOST_COMPARED = 2_000
