import { cancelCalled } from '../child/cancel.ts'
import type { Draft } from '../draft.ts'
import { type Claim, heldNode } from './claim.ts'
import { endNode, type NodeEnd } from './end-node.ts'

/** A claimed node ended. False when the claim was lost: the result is then noted as late and changes nothing. */
export function planResult(draft: Draft, claim: Claim, end: NodeEnd): boolean {
  const node = heldNode(draft, claim)
  if (node === undefined) return false
  cancelCalled(draft, node)
  endNode(draft, draft.node(node.id), end)
  return true
}

/** A failure that may pass: the same node again, later. It waits as a row and holds no worker (I5). */
export function planRetry(
  draft: Draft,
  claim: Claim,
  retry: { readonly wakeAt: number; readonly error: string },
): boolean {
  const node = heldNode(draft, claim)
  if (node === undefined) return false
  const turn = draft.turn(node.turnId)
  if (turn.cancel !== null || node.marks?.stop != null) {
    endNode(draft, node, { state: 'stopped', failure: { code: 'stopped', message: retry.error } })
    return true
  }
  draft.watchTurn(turn)
  draft.changeNode(node, {
    state: 'pending',
    engineId: null,
    startedAt: null,
    wakeAt: retry.wakeAt,
    attempt: node.attempt + 1,
  })
  draft.dropBlock(node.id)
  draft.due(retry.wakeAt)
  draft.event(turn, node.id, { type: 'retry', attempt: node.attempt + 1, wakeAt: retry.wakeAt, error: retry.error })
  return true
}
