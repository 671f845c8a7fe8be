import type { Draft } from '../draft.ts'
import { supersede } from '../history/supersede.ts'
import type { CancelRequest, Id, Node } from '../rows.ts'
import { endNode } from '../turn/end-node.ts'
import { askerOf } from './is-eager.ts'
import { stopRuns } from './stop-runs.ts'

/**
 * Asks a run and its subtree to stop. What is not running is stopped by this commit, so nothing is released by it; what
 * runs is told by signal and has the grace to commit what it has. A second request changes nothing.
 */
export function planCancel(draft: Draft, turnId: Id, request: Omit<CancelRequest, 'at'>): void {
  stopRuns(draft, turnId, request)
}

/** The code inside a node is gone: what it started and awaited is of no use to anybody. */
export function cancelCalled(draft: Draft, node: Node): void {
  if (node.kind === 'agent_message') {
    supersede(draft, node.turnId, NONE)
    giveUpAsking(draft, node)
  }
  for (const link of draft.openLinks(node.turnId)) {
    if (link.taskId !== node.id || link.mode !== 'called' || link.onParentClose !== 'cancel') continue
    planCancel(draft, link.id, { cause: 'parent', reason: 'What started it has ended.' })
  }
}

/** Nobody is left to hear the answers. */
function giveUpAsking(draft: Draft, { id, turnId }: Node): void {
  for (const task of draft.openNodes(turnId)) {
    if (askerOf(task) === id) endNode(draft, task, { state: 'stopped', failure: GIVEN_UP })
  }
}

const GIVEN_UP = { code: 'stopped', message: 'What asked it has ended.' }

const NONE: readonly never[] = []
