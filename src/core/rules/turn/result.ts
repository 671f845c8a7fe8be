// The end of a node's run: its result, another try, or the loss of its process.
//
// Owns:      `planResult`, `planRetry` (a failure that may pass), `planHold` (a limit is
//            reached), `planRecover` (the engine is gone), `planForce` (it did not
//            stop when asked to) and `planWaitAgain` (the clock was set back).
// Called by: the code that runs nodes for results and tries; `engine/sweep` for the others; `audit/repair`.
// Must stay true:
//   - A node that may have had an effect is never run again: it is `uncertain` and shown (I4).
//   - Recovering and forcing raise the epoch, so a process that comes back late writes nothing.
//   - A node that waits for its next try is a row and holds no worker (I5).

import type { Draft } from '../../graph/draft.ts'
import { askerOf, isRunnable } from '../../graph/kinds.ts'
import type { Id, Node } from '../../graph/rows.ts'
import { releaseHold } from './account.ts'
import { cancelCalled } from './cancel.ts'
import { type Claim, heldNode } from './claim.ts'
import { endNode, interruptedEnd, type NodeEnd } from './end-node.ts'

/** Ends a claimed node. False when the claim was lost: the result is then recorded as late and changes nothing. */
export function planResult(draft: Draft, claim: Claim, end: NodeEnd): boolean {
  const node = heldNode(draft, claim)
  if (node === undefined) return false
  cancelCalled(draft, node)
  endNode(draft, draft.node(node.id), end)
  return true
}

/** Repeats a node later, after a failure that may pass. It waits as a row and holds no worker (I5). */
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
  draft.noteDue(retry.wakeAt)
  draft.event(turn, node.id, { type: 'retry', attempt: node.attempt + 1, wakeAt: retry.wakeAt, error: retry.error })
  return true
}

/** Puts a node off whose model call may not begin yet. It waits as a row, and no attempt of it is used. */
export function planHold(draft: Draft, claim: Claim, { until, why }: { until: number; why: string }): void {
  const node = heldNode(draft, claim)
  if (node === undefined) return
  const turn = draft.turn(node.turnId)
  releaseHold(draft, node.id)
  if (turn.cancel !== null || node.marks?.stop != null) {
    endNode(draft, draft.node(node.id), { state: 'stopped', failure: { code: 'stopped', message: why } })
    return
  }
  draft.changeNode(draft.node(node.id), { state: 'pending', engineId: null, startedAt: null, wakeAt: until })
  draft.dropBlock(node.id)
  draft.noteDue(until)
}

/** Lets a node that was put off try again now; false where it does not wait. */
export function planEndHold(draft: Draft, nodeId: Id): boolean {
  const node = draft.findNode(nodeId)
  if (node?.state !== 'pending' || node.wakeAt === null || node.wakeAt <= draft.now) return false
  const free = draft.changeNode(node, { wakeAt: null })
  if (isRunnable(free, draft.now)) draft.claim(free)
  return true
}

export interface LostClaim {
  /** Null for a node that runs without a claim. */
  readonly engineId: Id | null
  readonly reason: string
  /** The engine gave it back in good order: that does not count against the node. */
  readonly isClosed?: boolean
}

/** How often a node may lose its process before it is given up, so that a node that kills its worker stops doing so. */
export const MAX_RECOVERIES = 5

/**
 * Handles a claim whose engine is gone. A repeatable node runs again; one that may have had an effect is `uncertain` and shown,
 * never silently repeated (I4).
 */
export function planRecover(draft: Draft, nodeId: Id, lost: LostClaim): void {
  const node = draft.findNode(nodeId)
  if (node === undefined || node.state !== 'running' || node.engineId !== lost.engineId) return
  const recoveries = lost.isClosed ? node.recoveries : node.recoveries + 1
  releaseHold(draft, nodeId)
  recover(draft, draft.changeNode(draft.node(nodeId), { recoveries, epoch: node.epoch + 1 }), lost.reason)
}

/** Stops a node of a cancelled run that did not stop within the grace; its later writes are refused. */
export function planForce(draft: Draft, nodeId: Id): void {
  const node = draft.findNode(nodeId)
  if (node === undefined || node.state !== 'running' || !isAskedToStop(draft, node)) return
  draft.aborted.push(nodeId)
  interrupt(draft, draft.changeNode(node, { epoch: node.epoch + 1 }), 'It did not stop when asked to.')
}

function recover(draft: Draft, node: Node, reason: string): void {
  if (isAskedToStop(draft, node) || node.effect === 'effectful') return interrupt(draft, node, reason)
  if (node.recoveries > MAX_RECOVERIES && !isAwaiting(draft, node)) {
    const message = `Given up after its process was lost ${node.recoveries} times: ${reason}`
    cancelCalled(draft, node)
    return endNode(draft, node, { state: 'errored', failure: { code: 'dead_letter', message } })
  }
  const turn = draft.turn(node.turnId)
  draft.watchTurn(turn)
  draft.event(turn, node.id, {
    type: 'node-state',
    kind: node.kind,
    from: 'running',
    to: 'pending',
    reason,
  })
  draft.dropBlock(node.id)
  draft.claim(draft.changeNode(node, { state: 'pending', engineId: null, startedAt: null }))
}

/** Its code waits for a child or a person, who may take longer than many processes live: it is not given up meanwhile. */
function isAwaiting(draft: Draft, { id, turnId }: Node): boolean {
  if (draft.openLinks(turnId).some(({ taskId, mode }) => taskId === id && mode === 'called')) return true
  return draft.openNodes(turnId).some((node) => askerOf(node) === id)
}

function isAskedToStop(draft: Draft, { turnId, marks }: Node): boolean {
  return draft.turn(turnId).cancel !== null || (marks !== null && marks.stop !== null)
}

function interrupt(draft: Draft, node: Node, reason: string): void {
  cancelCalled(draft, node)
  endNode(draft, draft.node(node.id), interruptedEnd(node, reason))
}

/**
 * Reschedules a node that waits for its next try, in a tree whose last write lies in the future: the clock was set back. It
 * waits for the rest of its delay, not until the clock has caught up.
 */
export function planWaitAgain(draft: Draft, nodeId: Id, writtenAt: number): void {
  const node = draft.findNode(nodeId)
  if (node?.state !== 'pending' || node.wakeAt === null || node.wakeAt <= draft.now || writtenAt <= draft.now) return
  const wakeAt = draft.now + Math.max(0, node.wakeAt - writtenAt)
  draft.changeNode(node, { wakeAt })
  draft.noteDue(wakeAt)
  const message = 'The clock was set back: the next try comes after its delay all the same.'
  draft.event(draft.turn(node.turnId), node.id, { type: 'warning', message })
}
