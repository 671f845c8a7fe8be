import { type Claim, heldNode } from './claim.ts'
import type { Draft } from './draft.ts'
import { endNode } from './end-node.ts'
import { lineOf } from './line.ts'
import type { Id, Money, Node, Spend, Turn } from './rows.ts'
import { settle } from './settle.ts'

/** Of each limit a tenth is kept for one call to wrap up. */
const USABLE = 0.9

const NOTHING: Money = { tokens: 0, usd: 0 }

export function newSpend(limit: Spend['limit']): Spend {
  return { limit, spent: NOTHING, held: NOTHING }
}

export type Reserved =
  /** The call may be made. */
  | { readonly verdict: 'ok' }
  /** Only a call to wrap up may be made: the node has become one. */
  | { readonly verdict: 'wrap_up'; readonly node: Node; readonly leftTokens: number }
  /** The node has ended, or was lost. */
  | { readonly verdict: 'over' }

/**
 * Holds back what a model call may cost, on the run and every run above it, before it is made: calls side by side cannot
 * spend the same money. Beyond a limit the call becomes the one to wrap up; beyond that the node ends.
 */
export function planReserve(draft: Draft, claim: Claim, estimate: Money): Reserved {
  const node = heldNode(draft, claim)
  if (node === undefined) return { verdict: 'over' }
  const isLast = node.purpose === 'wrap_up'
  const over = overLimit(draft, node.turnId, { estimate, isLast })
  if (over === undefined) {
    hold(draft, node, estimate)
    return { verdict: 'ok' }
  }
  draft.event(draft.turn(node.turnId), node.id, { type: 'budget', limit: over.limit, message: over.message })
  if (isLast || overLimit(draft, node.turnId, { estimate, isLast: true }) !== undefined) {
    endNode(draft, node, { state: 'errored', failure: { code: 'over_budget', message: over.message } })
    settle(draft)
    return { verdict: 'over' }
  }
  const left = leastLeft(draft, node.turnId)
  hold(draft, node, { tokens: Math.min(estimate.tokens, left.tokens), usd: Math.min(estimate.usd, left.usd) })
  const nudge = `${over.message} Sum up what you have and what is missing.`
  const metadata = { ...draft.node(node.id).metadata, limit: 'over_budget' }
  const wrapUp = draft.changeNode(draft.node(node.id), {
    purpose: 'wrap_up',
    input: { ...node.input, nudge },
    metadata,
  })
  return { verdict: 'wrap_up', node: wrapUp, leftTokens: left.tokens }
}

/** What was held back is released, and what was spent is counted, here and above. */
export function settleSpend(draft: Draft, nodeId: Id, spent: Money): void {
  const node = draft.findNode(nodeId)
  const held = node === undefined ? undefined : heldBy(node)
  if (node === undefined || held === undefined) return
  for (const turn of lineOf(draft, node.turnId)) {
    if (turn.spend === null) continue
    const { limit } = turn.spend
    draft.changeTurn(turn, {
      spend: { limit, spent: plus(turn.spend.spent, spent), held: minus(turn.spend.held, held) },
    })
  }
  const { held: _, ...metadata } = node.metadata
  draft.changeNode(node, { metadata })
}

/** An answer of which nobody tells what it used is taken to have used what was held back for it: none is free. */
export function settleAnswer(draft: Draft, nodeId: Id, told: Money): void {
  const node = draft.findNode(nodeId)
  const held = node === undefined ? undefined : heldBy(node)
  settleSpend(draft, nodeId, told.tokens > 0 || held === undefined ? told : held)
}

/** A call that came to nothing has cost nothing that is known of. */
export function releaseSpend(draft: Draft, nodeId: Id): void {
  settleSpend(draft, nodeId, NOTHING)
}

function hold(draft: Draft, node: Node, estimate: Money): void {
  for (const turn of lineOf(draft, node.turnId)) {
    if (turn.spend === null) continue
    draft.changeTurn(turn, { spend: { ...turn.spend, held: plus(turn.spend.held, estimate) } })
  }
  draft.changeNode(node, { metadata: { ...node.metadata, held: { tokens: estimate.tokens, usd: estimate.usd } } })
}

interface Over {
  readonly limit: string
  readonly message: string
}

interface PlannedCall {
  readonly estimate: Money
  /** The call to wrap up may use what was kept for it, as long as there is anything left. */
  readonly isLast: boolean
}

function overLimit(draft: Draft, turnId: Id, call: PlannedCall): Over | undefined {
  for (const turn of lineOf(draft, turnId)) {
    const over = overOf(draft, turn, call)
    if (over !== undefined) return over
  }
  return undefined
}

function overOf(draft: Draft, turn: Turn, { estimate, isLast }: PlannedCall): Over | undefined {
  if (turn.spend === null) return undefined
  const { limit, spent, held } = turn.spend
  for (const kind of ['tokens', 'usd'] as const) {
    const most = limit[kind]
    if (most === null) continue
    const used = spent[kind] + held[kind]
    const needed = isLast ? Math.min(estimate[kind], most * (1 - USABLE)) : estimate[kind]
    const isWithin = estimate[kind] <= most && used + needed <= (isLast ? most : most * USABLE)
    if (isWithin) continue
    const whose = draft.conversation(turn.conversationId).agent.name
    const said = kind === 'tokens' ? `${most} tokens` : `$${most}`
    return { limit: kind, message: `The budget of ${whose}, ${said}, is used up.` }
  }
  return undefined
}

/** What the tightest limit of the line leaves; without a limit, any amount. */
function leastLeft(draft: Draft, turnId: Id): Money {
  let [tokens, usd] = [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]
  for (const { spend } of lineOf(draft, turnId)) {
    if (spend === null) continue
    const { limit, spent, held } = spend
    if (limit.tokens !== null) tokens = Math.min(tokens, limit.tokens - spent.tokens - held.tokens)
    if (limit.usd !== null) usd = Math.min(usd, limit.usd - spent.usd - held.usd)
  }
  return { tokens, usd }
}

function heldBy({ metadata }: Node): Money | undefined {
  return metadata['held'] as Money | undefined
}

function plus(a: Money, b: Money): Money {
  return { tokens: a.tokens + b.tokens, usd: a.usd + b.usd }
}

function minus(a: Money, b: Money): Money {
  return { tokens: Math.max(0, a.tokens - b.tokens), usd: Math.max(0, a.usd - b.usd) }
}
