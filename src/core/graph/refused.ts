import { ConflictError, NotFoundError } from '../base/error.ts'
import type { Draft } from './draft.ts'
import type { Conversation, Id, Node, Turn } from './rows.ts'

/** Why a change of history is refused. Stable: `error.details.reason`. */
export type HistoryRefusal =
  | 'archived'
  | 'busy'
  | 'cycle'
  | 'delegated'
  | 'deleted'
  | 'has_followers'
  | 'inside_summary'
  | 'is_last'
  | 'key_used'
  | 'later_turns'
  | 'no_text'
  | 'not_related'
  | 'open_calls'
  | 'replaced'
  | 'used'
  | 'wrong_kind'
  | 'wrong_state'

/** Makes the error. The message says why the change is impossible and what is possible. */
export function refused(reason: HistoryRefusal, message: string, details: Readonly<Record<string, unknown>> = {}) {
  return new ConflictError('conflict', message, { details: { reason, ...details } })
}

/** Finds a node of this lane that still counts. */
export function nodeThatCounts(draft: Draft, conversationId: Id, nodeId: Id): Node {
  const node = typeof nodeId === 'string' ? draft.findNode(nodeId) : undefined
  if (node === undefined || node.conversationId !== conversationId) {
    throw new NotFoundError('not_found', `There is no node ${nodeId} in the conversation ${conversationId}.`)
  }
  const by = node.marks?.replacedBy ?? null
  if (by === null) return node
  throw refused('replaced', `The node ${nodeId} was replaced by ${by}: name that one.`, { nodeId, by })
}

/** Refuses a call that sums up: it was made for another node, and nothing continues from it. */
export function requireWord({ id, purpose }: Node): void {
  if (purpose !== 'summarize') return
  const message = `The node ${id} sums up what another call reads: name that one, or take the summary back with uncompress.`
  throw refused('wrong_kind', message, { nodeId: id })
}

export function turnOf(draft: Draft, conversationId: Id, turnId: Id): Turn {
  const turn = typeof turnId === 'string' ? draft.findTurn(turnId) : undefined
  if (turn !== undefined && turn.conversationId === conversationId) return turn
  throw new NotFoundError('not_found', `There is no turn ${turnId} in the conversation ${conversationId}.`)
}

/** Requires an idle lane, with no running and no queued turn: its history may then change, and a turn may begin at once. */
export function requireIdle(draft: Draft, conversation: Conversation): void {
  requireOpen(conversation)
  const open = conversation.activeTurnId ?? draft.queuedTurn(conversation.id)?.id
  if (open === undefined) return
  const message = `The turn ${open} of ${conversation.id} is not over: wait until it is, or cancel it.`
  throw refused('busy', message, { runId: open })
}

/** Refuses another request under the key of a run. */
export function requireSame({ id, requestHash }: Turn, asked: string | null): void {
  if (requestHash === asked) return
  const message = `The key of the run ${id} stands for another request: use a new key, or ask for the same again.`
  throw new ConflictError('conflict', message, { details: { runId: id } })
}

export function requireOpen({ id, lane }: Conversation): void {
  if (lane === null || lane.archivedAt === null) return
  throw refused('archived', `The lane ${id} is archived: no new turn begins in it. Fork it to go on from it.`, {
    laneId: id,
  })
}

/** Refuses a turn that a host delegated: the host has its outcome, and a change would contradict it. */
export function requireOwn(draft: Draft, { id }: Turn): void {
  const link = draft.findLink(id)
  if (link === undefined) return
  const message = `The turn ${id} was delegated and its end was told: retry the task ${link.taskId} of its host, or fork here.`
  throw refused('delegated', message, { taskId: link.taskId })
}
