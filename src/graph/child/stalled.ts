import type { Draft } from '../draft.ts'
import type { Claim } from '../turn/claim.ts'

/**
 * A running node has been silent since then, or is silent no more (null). Its host reads it where it looks at its
 * children; whoever follows the host's run is told once.
 */
export function planStalled(draft: Draft, { nodeId, epoch }: Claim, since: number | null): void {
  const node = draft.findNode(nodeId)
  if (node?.state !== 'running' || node.epoch !== epoch) return
  const { stalled: _, ...metadata } = node.metadata
  draft.changeNode(node, { metadata: since === null ? metadata : { ...metadata, stalled: { since } } })
  if (since === null) return
  const turn = draft.turn(node.turnId)
  const link = draft.findLink(turn.id)
  draft.event(link === undefined ? turn : draft.turn(link.hostTurnId), link?.taskId ?? node.id, {
    type: 'stalled',
    agent: draft.conversation(turn.conversationId).agent.name,
    childConversationId: turn.conversationId,
    childRunId: turn.id,
    lastActivityAt: since,
  })
}
