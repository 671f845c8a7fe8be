import type { Draft } from '../draft.ts'
import type { Id, Node } from '../rows.ts'
import { isRunnable } from '../states.ts'

/** Takes the nodes that are still runnable, as far as the engine has workers; gives how many it took. */
export function planClaim(draft: Draft, nodeIds: readonly Id[]): number {
  for (const id of nodeIds) {
    const node = draft.findNode(id)
    if (node !== undefined && isRunnable(node, draft.now)) draft.claim(node)
  }
  return draft.started.length
}

/** The right to write a node's result: the engine and the epoch of the claim it runs under. */
export interface Claim {
  readonly nodeId: Id
  readonly engineId: Id
  readonly epoch: number
}

/**
 * The claimed node, if the claim still holds. Else the result comes too late: that is noted and nothing else changes
 * (I4), and the caller gets undefined.
 */
export function heldNode(draft: Draft, claim: Claim): Node | undefined {
  const node = draft.findNode(claim.nodeId)
  // Its run was over, and somebody has deleted it.
  if (node === undefined) return undefined
  const held = node.epoch === claim.epoch && node.engineId === claim.engineId && node.state === 'running'
  if (held) return node
  draft.event(draft.turn(node.turnId), node.id, {
    type: 'late-result',
    reason: `the node is ${node.state}, epoch ${node.epoch}; the result was made under epoch ${claim.epoch}`,
  })
  return undefined
}
