// Claims: who may write the result of a node.
//
// Owns:      taking runnable nodes for an engine, and the check of a claim.
// Called by: sweeps claim; every rule that stores the result of a running node begins with `heldNode`.
// Must stay true:
//   - Each claim has a greater epoch than the one before. A write with an older epoch changes nothing but an event (I4).
//   - `heldNode` gives undefined for a lost claim, and its caller then writes nothing.

import type { Json } from '../../base/json.ts'
import type { Draft } from '../../graph/draft.ts'
import { isRunnable } from '../../graph/kinds.ts'
import type { Effect, Id, Node } from '../../graph/rows.ts'

/** Claims the nodes that are still runnable, as far as the engine has workers. Gives their number. */
export function planClaim(draft: Draft, nodeIds: readonly Id[]): number {
  for (const id of nodeIds) {
    const node = draft.findNode(id)
    if (node !== undefined && isRunnable(node, draft.now)) draft.claim(node, true)
  }
  return draft.started.length
}

/** The right to write a node's result: the engine and the epoch of the claim it runs under. */
export interface Claim {
  readonly nodeId: Id
  /** The tree of the node. */
  readonly rootId: Id
  readonly engineId: Id
  readonly epoch: number
}

/**
 * The claimed node, if the claim still holds. Else the result comes too late: an event records that, nothing else changes (I4),
 * and the caller gets undefined.
 */
export function heldNode(draft: Draft, claim: Claim): Node | undefined {
  const node = draft.findNode(claim.nodeId)
  // Its run had ended, and somebody has deleted it.
  if (node === undefined) return undefined
  const held = node.epoch === claim.epoch && node.engineId === claim.engineId && node.state === 'running'
  if (held) return node
  draft.event(draft.turn(node.turnId), node.id, {
    type: 'late-result',
    reason: `the node is ${node.state}, epoch ${node.epoch}; the result was made under epoch ${claim.epoch}`,
  })
  return undefined
}

/** From here on the code of a message may have had its effect (I4). Undefined when the claim was lost. */
export function planBeginCode(draft: Draft, claim: Claim, effect: Effect): Node | undefined {
  const node = heldNode(draft, claim)
  return node === undefined ? undefined : draft.changeNode(node, { effect })
}

/** Keeps a value of the code of a message for when it runs again. Undefined when the claim was lost. */
export function planKeep(draft: Draft, claim: Claim, kept: Json): Node | undefined {
  const node = heldNode(draft, claim)
  return node === undefined ? undefined : draft.changeNode(node, { metadata: { ...node.metadata, kept } })
}
