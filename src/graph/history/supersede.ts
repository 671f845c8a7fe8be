import { isEager } from '../child/is-eager.ts'
import { stopRuns } from '../child/stop-runs.ts'
import type { Draft } from '../draft.ts'
import type { Delegated } from '../outcome.ts'
import type { Id } from '../rows.ts'
import { endNode } from '../turn/end-node.ts'

/** Children of items that the plan, as it ended, does not have are of no use to anybody. */
export function supersede(draft: Draft, turnId: Id, kept: readonly Delegated[]): void {
  for (const task of draft.openNodes(turnId)) {
    if (!isEager(task) || kept.some(({ taskId }) => taskId === task.id)) continue
    for (const link of task.wait?.refs ?? []) stopRuns(draft, link, { cause: 'cancelled', reason: SUPERSEDED })
    endNode(draft, draft.node(task.id), { state: 'stopped', failure: { code: 'superseded', message: SUPERSEDED } })
  }
}

const SUPERSEDED = 'Superseded: the plan ended without this item.'
