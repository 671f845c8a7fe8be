import type { Draft } from './draft.ts'
import { stopNode } from './end-node.ts'
import type { CancelRequest, Id, Node, Turn } from './rows.ts'
import { settle } from './settle.ts'

/** How long a running node has to commit what it has before it is stopped without being asked again. */
export const CANCEL_GRACE_MS = 5_000

/**
 * Asks a run and its subtree to stop. What is not running is stopped by this commit, so nothing is released by it; what
 * runs is told by signal and has the grace to commit what it has. A second request changes nothing.
 */
export function planCancel(draft: Draft, turnId: Id, request: Omit<CancelRequest, 'at'>): void {
  const root = draft.findTurn(turnId)
  if (root === undefined) return
  const queue: [Turn, CancelRequest['cause']][] = [[root, request.cause]]
  for (let item = queue.pop(); item !== undefined; item = queue.pop()) {
    const [turn, cause] = item
    if (turn.state === 'ended' || turn.cancel !== null) continue
    stopTurn(draft, turn, { at: draft.now, cause, reason: request.reason })
    for (const link of draft.openLinks(turn.id)) {
      if (link.onParentClose === 'cancel') queue.push([draft.turn(link.id), 'parent'])
    }
  }
  settle(draft)
}

/** The code inside a node is gone: what it started and awaited is of no use to anybody. */
export function cancelCalled(draft: Draft, node: Node): void {
  for (const link of draft.openLinks(node.turnId)) {
    if (link.taskId !== node.id || link.mode !== 'called' || link.onParentClose !== 'cancel') continue
    planCancel(draft, link.id, { cause: 'parent', reason: 'What started it has ended.' })
  }
}

function stopTurn(draft: Draft, turn: Turn, cancel: CancelRequest): void {
  draft.changeTurn(turn, { cancel })
  draft.touchTurn(turn.id)
  for (const node of draft.openNodes(turn.id)) {
    if (node.state === 'running') {
      draft.aborted.push(node.id)
      draft.due(draft.now + CANCEL_GRACE_MS)
      continue
    }
    stopNode(draft, node, cancel.reason ?? 'The run was asked to stop.')
  }
}
