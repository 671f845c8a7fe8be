import type { Draft } from '../../graph/draft.ts'
import { CANCEL_GRACE_MS } from '../../graph/kinds.ts'
import { nodeThatCounts, refused } from '../../graph/refused.ts'
import type { Id, Node } from '../../graph/rows.ts'
import { stopRuns } from '../turn/cancel.ts'
import { endNode } from '../turn/end-node.ts'
import { NO_MARKS } from './retry-node.ts'

export interface StopRequest {
  readonly conversationId: Id
  readonly reason: string | null
}

/**
 * Stops one node, the children it waits for and all nodes behind it; the rest of its turn continues. A running node gets a
 * signal and keeps its partial result. A node that has ended, or was asked before, stays as it is.
 */
export function planStop(draft: Draft, nodeId: Id, { conversationId, reason }: StopRequest): void {
  const node = nodeThatCounts(draft, conversationId, nodeId)
  if (node.endedAt !== null || node.marks?.stop != null) return
  requireBegun(draft, node)
  const why = reason ?? 'It was asked to stop.'
  if (node.state === 'running') return askToStop(draft, node, why)
  const refs = node.wait?.on === 'children' ? node.wait.refs : []
  for (const link of draft.openLinks(node.turnId)) {
    if (refs.includes(link.id) && link.taskId === nodeId) stopRuns(draft, link.id, { cause: 'cancelled', reason: why })
  }
  tell(draft, node, { change: 'stop', reason: why })
  endNode(draft, draft.node(nodeId), { state: 'stopped', failure: { code: 'stopped', message: why } })
}

/** Its own process sees the request at once, another process when it looks; after the grace the node is stopped anyway. */
function askToStop(draft: Draft, node: Node, reason: string): void {
  draft.changeNode(node, { marks: { ...NO_MARKS, ...node.marks, stop: { at: draft.now, reason } } })
  draft.aborted.push(node.id)
  draft.noteDue(draft.now + CANCEL_GRACE_MS)
  tell(draft, node, { change: 'stop', reason })
}

function tell(draft: Draft, { id, turnId }: Node, { change, reason }: { change: string; reason: string }): void {
  draft.event(draft.turn(turnId), id, { type: 'graph-change', change, detail: { node: id, reason } })
}

/** Skips a node that has not begun: nodes after it in sequence continue, nodes that depend on it are skipped too. */
export function planSkip(draft: Draft, nodeId: Id, { conversationId, reason }: StopRequest): void {
  const node = nodeThatCounts(draft, conversationId, nodeId)
  if (node.state === 'skipped') return
  if (node.state !== 'pending' && node.state !== 'awaiting_approval') {
    const instead = node.endedAt === null ? 'Stop it instead.' : 'Exclude it to keep it from models.'
    throw refused(
      'wrong_state',
      `The node ${nodeId} is ${node.state}: only what has not begun is skipped. ${instead}`,
      { nodeId, state: node.state },
    )
  }
  requireBegun(draft, node)
  const failure = { code: 'skipped_by_hand', message: reason ?? 'It was left out.' }
  tell(draft, node, { change: 'skip', reason: failure.message })
  endNode(draft, node, { state: 'skipped', failure })
}

function requireBegun(draft: Draft, { id, turnId }: Node): void {
  if (draft.turn(turnId).state === 'running') return
  throw refused('wrong_state', `The turn ${turnId} of ${id} has not begun: cancel the run instead.`, {
    nodeId: id,
    runId: turnId,
  })
}
