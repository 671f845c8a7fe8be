import { cancelCalled } from '../child/cancel.ts'
import { askerOf } from '../child/is-eager.ts'
import type { Draft } from '../draft.ts'
import type { Id, Node } from '../rows.ts'
import { endNode, interruptedEnd } from './end-node.ts'
import { releaseSpend } from './spend.ts'

export interface LostClaim {
  /** Null for a node that runs without a claim. */
  readonly engineId: Id | null
  readonly reason: string
  /** The engine gave it back in good order: that does not count against the node. */
  readonly isClosed?: boolean
}

/** A node whose process was lost this often is given up, so that one that kills its worker does not do so for ever. */
export const MAX_RECOVERIES = 5

/**
 * A claim is gone with its engine. What may run again does; what may have had an effect is `uncertain` and shown, never
 * silently repeated (I4).
 */
export function planRecover(draft: Draft, nodeId: Id, lost: LostClaim): void {
  const node = draft.findNode(nodeId)
  if (node === undefined || node.state !== 'running' || node.engineId !== lost.engineId) return
  const recoveries = lost.isClosed ? node.recoveries : node.recoveries + 1
  releaseSpend(draft, nodeId)
  recover(draft, draft.changeNode(draft.node(nodeId), { recoveries, epoch: node.epoch + 1 }), lost.reason)
}

/** A node of a cancelled run did not stop within the grace: it is stopped here, and what it still writes is refused. */
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
