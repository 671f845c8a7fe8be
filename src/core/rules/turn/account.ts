import type { Draft } from '../../graph/draft.ts'
import type { Money, Spending } from '../../graph/limits.ts'
import { runsUpward } from '../../graph/reader.ts'
import type { Id, Node } from '../../graph/rows.ts'

/**
 * The share of a limit that ordinary calls may use. The last tenth is reserved for one call of the run itself to wrap up: no
 * child may spend it.
 */
export const USABLE = 0.9

const NOTHING: Money = { tokens: 0, usd: 0 }

export function newSpend(limit: Spending['limit']): Spending {
  return { limit, spent: NOTHING, held: NOTHING }
}

/** Releases the amount held back and counts the amount spent, here and above. */
export function countSpending(draft: Draft, nodeId: Id, spent: Money): void {
  const node = draft.findNode(nodeId)
  const held = node === undefined ? undefined : heldBy(node)
  if (node === undefined || held === undefined) return
  for (const turn of runsUpward(draft, node.turnId)) {
    if (turn.spend === null) continue
    const { limit } = turn.spend
    draft.changeTurn(turn, {
      spend: { limit, spent: plus(turn.spend.spent, spent), held: minus(turn.spend.held, held) },
    })
  }
  const { held: _, ...metadata } = node.metadata
  draft.changeNode(node, { metadata })
}

/** An answer without usage counts as having used the whole amount held back: none is free. */
export function countAnswer(draft: Draft, nodeId: Id, told: Money): void {
  const node = draft.findNode(nodeId)
  const held = node === undefined ? undefined : heldBy(node)
  countSpending(draft, nodeId, told.tokens > 0 || held === undefined ? told : held)
}

/** Releases the hold of a call that failed: it has no known cost. */
export function releaseHold(draft: Draft, nodeId: Id): void {
  countSpending(draft, nodeId, NOTHING)
}

/** Holds back the possible cost of a call, on the run and every run above it. */
export function hold(draft: Draft, node: Node, estimate: Money): void {
  for (const turn of runsUpward(draft, node.turnId)) {
    if (turn.spend === null) continue
    draft.changeTurn(turn, { spend: { ...turn.spend, held: plus(turn.spend.held, estimate) } })
  }
  draft.changeNode(node, { metadata: { ...node.metadata, held: { tokens: estimate.tokens, usd: estimate.usd } } })
}

/** The amount that the tightest limit upwards leaves to a run; without a limit, any amount. */
export function leastLeft(draft: Draft, turnId: Id): Money {
  let [tokens, usd] = [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]
  for (const { id, spend } of runsUpward(draft, turnId)) {
    if (spend === null) continue
    const { limit, spent, held } = spend
    const share = id === turnId ? 1 : USABLE
    if (limit.tokens !== null) tokens = Math.min(tokens, limit.tokens * share - spent.tokens - held.tokens)
    if (limit.usd !== null) usd = Math.min(usd, limit.usd * share - spent.usd - held.usd)
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

/** Stops the clocks of the run and of all above it while a person is asked. */
export function pauseClocks(draft: Draft, turnId: Id): void {
  for (const turn of runsUpward(draft, turnId)) {
    if (turn.state === 'ended') continue
    const leftMs = turn.paused?.leftMs ?? (turn.deadline === null ? null : turn.deadline - draft.now)
    draft.changeTurn(turn, { paused: { asks: (turn.paused?.asks ?? 0) + 1, leftMs }, deadline: null })
  }
}

/** Restarts the clocks where no other question is open. */
export function resumeClocks(draft: Draft, turnId: Id): void {
  for (const turn of runsUpward(draft, turnId)) {
    if (turn.paused === null) continue
    const { asks, leftMs } = turn.paused
    if (asks > 1) draft.changeTurn(turn, { paused: { asks: asks - 1, leftMs } })
    else draft.changeTurn(turn, { paused: null, deadline: leftMs === null ? null : draft.now + leftMs })
    draft.watchTurn(turn)
  }
}
