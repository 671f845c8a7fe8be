import type { Draft } from '../draft.ts'
import type { Id } from '../rows.ts'

/**
 * A node that waits for its next try, in a tree that was last written at a time which is still to come: the clock was set
 * back. It waits for what was left of its delay then, and not until the clock has caught up.
 */
export function planWaitAgain(draft: Draft, nodeId: Id, writtenAt: number): void {
  const node = draft.findNode(nodeId)
  if (node?.state !== 'pending' || node.wakeAt === null || node.wakeAt <= draft.now || writtenAt <= draft.now) return
  const wakeAt = draft.now + Math.max(0, node.wakeAt - writtenAt)
  draft.changeNode(node, { wakeAt })
  draft.due(wakeAt)
  const message = 'The clock was set back: the next try comes after its delay all the same.'
  draft.event(draft.turn(node.turnId), node.id, { type: 'warning', message })
}
