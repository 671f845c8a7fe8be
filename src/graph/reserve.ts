import { type Claim, heldNode } from './claim.ts'
import type { Draft } from './draft.ts'
import { endNode } from './end-node.ts'
import { lineOf } from './line.ts'
import type { Id, Money, Node, Turn } from './rows.ts'
import { settle } from './settle.ts'
import { hold, leastLeft } from './spend.ts'

/** Of each limit a tenth is kept for one call to wrap up. */
const USABLE = 0.9

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
