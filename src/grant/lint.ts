import { covers } from './cover.ts'
import { decide } from './decide.ts'
import { type Grant, useLayer } from './grant.ts'
import { readRequest } from './request.ts'
import { splitRule } from './rule.ts'

export interface Finding {
  readonly problem: 'never_matters' | 'matches_nothing' | 'never_allowed'
  /** The rule, or the tool or agent that no rule allows. */
  readonly subject: string
  readonly message: string
}

/** What a grant is about, as far as it is known: `tool:search`, `agent:expert`, one each. */
export type KnownRequests = readonly string[]

/** Rules that can never matter, rules that match nothing there is, and what is there and never allowed. */
export function lint(grant: Grant, known: KnownRequests): Finding[] {
  return [...uselessRules(grant), ...unmatchedRules(grant, known), ...neverAllowed(grant, known)]
}

const LISTS = ['use', 'delegate', 'ask', 'deny'] as const

/** What is heard before a list. */
const STRICTER = { use: ['deny', 'ask'], delegate: ['deny', 'ask'], ask: ['deny'], deny: [] } as const

function uselessRules(grant: Grant): Finding[] {
  return LISTS.flatMap(
    (list) =>
      grant[list]?.flatMap((rule, at, rules): Finding[] => {
        const taken = takenBy(grant, list, rule)
        if (taken !== undefined) return [useless(`${list}: ${rule}`, `${taken} takes all of it`)]
        const wider = rules.find((other, index) => covers(other, rule) && (index < at || !covers(rule, other)))
        return wider === undefined ? [] : [useless(`${list}: ${rule}`, `${wider} in the same list covers it`)]
      }) ?? [],
  )
}

function takenBy(grant: Grant, list: (typeof LISTS)[number], rule: string): string | undefined {
  for (const stricter of STRICTER[list]) {
    const taken = grant[stricter]?.find((other) => covers(other, rule))
    if (taken !== undefined) return `${stricter}: ${taken}`
  }
  return undefined
}

function useless(subject: string, why: string): Finding {
  return { problem: 'never_matters', subject, message: `${subject} can never matter: ${why}.` }
}

function unmatchedRules(grant: Grant, known: KnownRequests): Finding[] {
  const named = new Set(known.map((request) => splitRule(request).domain))
  return LISTS.flatMap(
    (list) =>
      grant[list]
        ?.filter((rule) => named.has(splitRule(rule).domain) && !known.some((request) => covers(rule, request)))
        .map((rule): Finding => {
          const subject = `${list}: ${rule}`
          return { problem: 'matches_nothing', subject, message: `${subject} matches nothing that this agent has.` }
        }) ?? [],
  )
}

function neverAllowed(grant: Grant, known: KnownRequests): Finding[] {
  const layer = useLayer('this grant', grant)
  return known.flatMap((request): Finding[] => {
    const { verdict, reason } = decide([layer], readRequest(request))
    if (verdict !== 'deny') return []
    return [{ problem: 'never_allowed', subject: request, message: `${request} is never allowed: ${reason}.` }]
  })
}
