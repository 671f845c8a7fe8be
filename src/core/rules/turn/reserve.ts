import type { Draft } from '../../graph/draft.ts'
import { isSideCall } from '../../graph/kinds.ts'
import type { Money, Spending } from '../../graph/limits.ts'
import { runsUpward } from '../../graph/reader.ts'
import type { Id, Node, Turn } from '../../graph/rows.ts'
import { hold, leastLeft, USABLE } from './account.ts'
import { type Claim, heldNode } from './claim.ts'
import { endNode } from './end-node.ts'

/** The cost of a call: its question as estimated, and an answer of variable length. */
export interface CallCost {
  readonly question: Money
  /** The fewest tokens that the call needs, and the most that it may take. */
  readonly answer: { readonly least: number; readonly most: number }
  /** The price of the answer. */
  readonly usdPerToken: number
}

export type Reservation =
  /** The call may be made, with an answer of at most this many tokens: no more is held back for it. */
  | { readonly verdict: 'ok'; readonly answerTokens: number }
  /** Only a call to wrap up may be made: the node has become one. */
  | { readonly verdict: 'wrap_up'; readonly node: Node; readonly answerTokens: number }
  /** The node has ended, or its claim was lost. */
  | { readonly verdict: 'over' }

/**
 * Holds back the possible cost of a model call, on the run and every run above it, before it is made: parallel calls cannot
 * spend the same money. Beyond a limit the call becomes the one to wrap up; beyond that the node ends.
 */
export function planReserve(draft: Draft, claim: Claim, cost: CallCost): Reservation {
  const node = heldNode(draft, claim)
  if (node === undefined) return { verdict: 'over' }
  const isLast = node.purpose === 'wrap_up'
  const last = { estimate: costWith(cost, 1), isLast: true }
  const over = overLimit(draft, node.turnId, isLast ? last : { estimate: costWith(cost, cost.answer.least), isLast })
  if (over === undefined) {
    const answerTokens = isLast ? lastTokens(draft, node.turnId, cost) : answerTokensOf(draft, node.turnId, cost)
    hold(draft, node, isLast ? atMostLeft(draft, node.turnId, cost) : costWith(cost, answerTokens))
    return { verdict: 'ok', answerTokens }
  }
  draft.event(draft.turn(node.turnId), node.id, { type: 'budget', limit: over.limit, message: over.message })
  // A call to brief or to sum up has nothing to wrap up.
  if (isLast || isSideCall(node) || overLimit(draft, node.turnId, last) !== undefined) {
    endNode(draft, node, { state: 'errored', failure: { code: 'over_budget', message: over.message } })
    return { verdict: 'over' }
  }
  const answerTokens = lastTokens(draft, node.turnId, cost)
  hold(draft, node, atMostLeft(draft, node.turnId, cost))
  const nudge = `${over.message} Sum up what you have and what is missing.`
  const metadata = { ...draft.node(node.id).metadata, limit: 'over_budget', limitReason: over.message }
  const wrapUp = draft.changeNode(draft.node(node.id), {
    purpose: 'wrap_up',
    input: { ...node.input, nudge },
    metadata,
  })
  return { verdict: 'wrap_up', node: wrapUp, answerTokens }
}

function costWith({ question, usdPerToken }: CallCost, answerTokens: number): Money {
  return { tokens: question.tokens + answerTokens, usd: question.usd + answerTokens * usdPerToken }
}

/** A quarter of the remaining tokens, so that parallel calls find room too; never less than the call needs. */
function answerTokensOf(draft: Draft, turnId: Id, cost: CallCost): number {
  const { least, most } = cost.answer
  const wanted = Math.max(least, Math.min(most, Math.floor(tokensLeft(draft, turnId, cost) / 4)))
  const isWithin = overLimit(draft, turnId, { estimate: costWith(cost, wanted), isLast: false }) === undefined
  return isWithin ? wanted : least
}

/** The call to wrap up gets everything that is left, if that pays for the question and a token of an answer. */
function lastTokens(draft: Draft, turnId: Id, cost: CallCost): number {
  const left = Math.max(tokensLeft(draft, turnId, cost), keptTokens(draft.turn(turnId), cost))
  return Math.max(1, Math.min(cost.answer.most, Math.floor(left)))
}

/**
 * The wrap-up reserve of a host, for an answer of that size: parallel calls that cost more than was held for them may have used
 * it up.
 */
function keptTokens({ spend, account }: Turn, { usdPerToken }: CallCost): number {
  if (spend === null || account.children === 0) return 0
  const { limit, spent, held } = spend
  const isTaken = (kind: keyof Money) => spent[kind] + held[kind] > (limit[kind] ?? Number.POSITIVE_INFINITY) * USABLE
  if (!isTaken('tokens') && !isTaken('usd')) return 0
  const byPrice = limit.usd === null || usdPerToken === 0 ? Number.POSITIVE_INFINITY : limit.usd / usdPerToken
  return Math.min(limit.tokens ?? Number.POSITIVE_INFINITY, byPrice) * (1 - USABLE)
}

function atMostLeft(draft: Draft, turnId: Id, cost: CallCost): Money {
  const left = leastLeft(draft, turnId)
  const { tokens, usd } = costWith(cost, lastTokens(draft, turnId, cost))
  const most = (amount: number, room: number) => (room > 0 ? Math.min(amount, room) : amount)
  return { tokens: most(tokens, left.tokens), usd: most(usd, left.usd) }
}

/** Tokens that are left for an answer after the question is paid. */
function tokensLeft(draft: Draft, turnId: Id, { question, usdPerToken }: CallCost): number {
  const left = leastLeft(draft, turnId)
  const tokens = left.tokens - question.tokens
  return usdPerToken > 0 ? Math.min(tokens, (left.usd - question.usd) / usdPerToken) : tokens
}

interface LimitExcess {
  readonly limit: string
  readonly message: string
}

interface PlannedCall {
  readonly estimate: Money
  /**
   * True for the call to wrap up: it may use its run's reserve while anything is left of it; a host's also when its children
   * used the reserve up, because their results are paid for.
   */
  readonly isLast: boolean
}

function overLimit(draft: Draft, turnId: Id, call: PlannedCall): LimitExcess | undefined {
  for (const turn of runsUpward(draft, turnId)) {
    const over = overOf(draft, turn, { ...call, isLast: call.isLast && turn.id === turnId })
    if (over !== undefined) return over
  }
  return undefined
}

function overOf(draft: Draft, turn: Turn, { estimate, isLast }: PlannedCall): LimitExcess | undefined {
  if (turn.spend === null) return undefined
  const { limit, spent, held } = turn.spend
  const isHost = turn.account.children > 0
  for (const kind of ['tokens', 'usd'] as const) {
    const most = limit[kind]
    if (most === null) continue
    const used = spent[kind] + held[kind]
    const isWithin = isLast ? estimate[kind] <= most && (used < most || isHost) : used + estimate[kind] <= most * USABLE
    if (isWithin) continue
    const whose = draft.conversation(turn.conversationId).agent.name
    return { limit: kind, message: overText(whose, amountsOf(kind, turn.spend, estimate)) }
  }
  return undefined
}

type Amounts = { readonly [of in 'limit' | 'needed' | 'used' | 'held' | 'left']: string }

function amountsOf(kind: keyof Money, { limit, spent, held }: Spending, estimate: Money): Amounts {
  const most = limit[kind] ?? 0
  const shown = kind === 'tokens' ? (amount: number) => `${Math.ceil(amount)}` : dollars
  return {
    limit: kind === 'tokens' ? `${most} tokens` : `$${most}`,
    needed: shown(estimate[kind]),
    used: shown(spent[kind]),
    held: shown(held[kind]),
    left: shown(Math.max(0, most - spent[kind] - held[kind])),
  }
}

function dollars(amount: number): string {
  return `$${Number(amount.toFixed(4))}`
}

function overText(whose: string, { limit, needed, used, held, left }: Amounts): string {
  return `The budget of ${whose}, ${limit}, has no room for a call of about ${needed}: ${used} used, ${held} held back, ${left} left.`
}
