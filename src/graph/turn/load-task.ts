import { deliver, newestLink, ownChild } from '../child/background.ts'
import { stopRuns } from '../child/stop-runs.ts'
import type { Draft } from '../draft.ts'
import type { Conversation, Id, Link, Node } from '../rows.ts'
import { type Claim, heldNode } from './claim.ts'
import { endNode } from './end-node.ts'
import { endedTask, expiredTask, isExpired, runningTask, taskLine } from './task-words.ts'
import { parkJoin } from './wait.ts'

export type TaskWish = 'wait' | 'peek' | 'cancel'

export interface LoadTask {
  readonly id: Id
  readonly wish: TaskWish
  /** How long a wait for a task at work may take; the task goes on after it. */
  readonly waitMs: number
}

/** A task of this host in the background: its result, now or when it ends; a look at it; or its stop. */
export function planLoadTask(draft: Draft, claim: Claim, { id, wish, waitMs }: LoadTask): 'done' | 'not_found' {
  const node = heldNode(draft, claim)
  if (node === undefined) return 'done'
  const link = taskOf(draft, node, id)
  if (link === undefined) return 'not_found'
  if (link.outcome !== null) {
    deliver(draft, link, node.id)
    end(draft, node, isExpired(draft, link) ? expiredTask(draft, link) : endedTask(draft, link))
  } else if (wish === 'peek') end(draft, node, runningTask(draft, link))
  else {
    const until = wish === 'wait' ? draft.now + waitMs : null
    parkJoin(draft, node, { refs: [link.id], join: 'settled', until, losers: 'leave', shows: 'task' })
    if (wish === 'cancel') stopRuns(draft, link.id, { cause: 'cancelled', reason: 'Its host stopped it.' })
  }
  return 'done'
}

/** Tasks that have ended and that nobody has read yet, one line each. */
export function finishedTasks(draft: Draft, { background }: Conversation): readonly string[] {
  const links = background.map((id) => draft.link(id))
  return links
    .filter(({ contract, outcome }) => contract === 'open' && outcome !== null)
    .filter((link) => !isExpired(draft, link))
    .map((link) => taskLine(draft, link))
}

/** I9: what is no task of this host is no task. */
function taskOf(draft: Draft, { conversationId }: Node, id: Id): Link | undefined {
  const child = ownChild(draft, conversationId, id)
  const link = child === undefined ? undefined : newestLink(draft, child)
  return link?.contract === 'open' && link.mode === 'background' ? link : undefined
}

function end(draft: Draft, node: Node, content: string): void {
  endNode(draft, node, { state: 'finished', output: { content } })
}
