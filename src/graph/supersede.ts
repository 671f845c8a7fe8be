import type { Draft } from './draft.ts'
import { endNode } from './end-node.ts'
import { isEager } from './is-eager.ts'
import type { Delegated } from './outcome.ts'
import type { Id } from './rows.ts'
import { stopRuns } from './stop-runs.ts'

/** Children of items that the plan, as it ended, does not have are of no use to anybody. `settle` must follow. */
export function supersede(draft: Draft, turnId: Id, kept: readonly Delegated[]): void {
  for (const task of draft.openNodes(turnId)) {
    if (!isEager(task) || kept.some(({ taskId }) => taskId === task.id)) continue
    for (const link of task.wait?.refs ?? []) stopRuns(draft, link, { cause: 'cancelled', reason: SUPERSEDED })
    endNode(draft, draft.node(task.id), { state: 'stopped', failure: { code: 'superseded', message: SUPERSEDED } })
  }
}

const SUPERSEDED = 'Superseded: the plan ended without this item.'
