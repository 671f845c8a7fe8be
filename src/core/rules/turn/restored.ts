// A tree that came back from a backup: it does not know what was done after the backup.
//
// Owns:      what becomes of the open nodes of such a tree.
// Called by: `audit/restored`, once after a store was restored, while no process works on it.
// Must stay true:
//   - A call that may have taken effect after the backup is `uncertain` and shown, never silently done (again) (I4).
//   - No claim of before holds: a process that is still alive somewhere writes nothing.
//   - A request or question that waits for a person goes on waiting: nothing happens before somebody decides.

import type { Draft } from '../../graph/draft.ts'
import type { Id, Node } from '../../graph/rows.ts'
import { endNode, interruptedEnd } from './end-node.ts'
import { planRecover } from './result.ts'

/** The report of a restore in one tree. */
export interface RestoredNodes {
  /** Calls that are uncertain now. */
  readonly uncertain: readonly Id[]
  /** Claims of processes that are gone with the store of before. */
  readonly claims: number
  /** Requests that wait for a person, who may have allowed them after the backup. */
  readonly asked: readonly Id[]
}

/** Takes all claims of these turns away, and doubts each effect that they were about to have. */
export function planRestored(draft: Draft, turnIds: readonly Id[], reason: string): RestoredNodes {
  const open = turnIds.flatMap((id) => draft.openNodes(id))
  const running = open.filter(({ state }) => state === 'running')
  // The last ones first: a call that comes after another is in doubt itself, before the end of the other skips or frees it.
  for (const { id } of open.toReversed()) takeBack(draft, draft.node(id), reason)
  const first = turnIds.map((id) => draft.turn(id)).find(({ state }) => state !== 'ended')
  if (first !== undefined) draft.event(first, null, { type: 'warning', message: reason })
  const after = open.map(({ id }) => draft.node(id))
  return {
    uncertain: after.flatMap(({ id, state }) => (state === 'uncertain' ? id : [])),
    claims: running.length,
    asked: after.flatMap(({ id, state }) => (state === 'awaiting_approval' ? id : [])),
  }
}

function takeBack(draft: Draft, node: Node, reason: string): void {
  if (node.endedAt !== null) return
  const { id, state, engineId, epoch } = node
  if (state === 'running') return planRecover(draft, id, { engineId, reason, isClosed: true })
  const raised = draft.changeNode(node, { epoch: epoch + 1 })
  if (state !== 'pending' || node.effect !== 'effectful') return
  // It may have been claimed, and done, after the backup.
  endNode(draft, draft.changeNode(raised, { state: 'running' }), interruptedEnd(raised, reason))
}
