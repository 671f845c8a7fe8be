import { deriveIds } from '../../base/id.ts'
import { forksOf, type MeantSession } from '../child/meant-session.ts'
import { renameHeld } from '../child/session.ts'
import type { Draft } from '../draft.ts'
import type { Conversation, Id, Node } from '../rows.ts'
import { newConversation } from '../turn/say.ts'
import { PLAIN_LANE } from './lane.ts'

/** The id that a session has once a task has forked it. */
function forkedSessionId(taskId: Id): Id {
  return deriveIds(taskId, 'session', 1)[0] ?? taskId
}

/** The session as its host knows it, to go on with; the one it comes from stays as it is. */
export function forkSession(draft: Draft, task: Node, { session, forkAfter }: MeantSession): Conversation {
  const host = draft.conversation(task.conversationId)
  const id = forkedSessionId(task.id)
  const { closed_at: _, ...metadata } = session.metadata
  const subagent = { ...(metadata['subagent'] as object), ...parentOf(host, task) }
  const last = forkAfter ?? -1
  const nodeId = draft.nodesOf(draft.turnAt(session.id, last)?.id ?? '').at(-1)?.id ?? task.id
  const forked = newConversation(
    {
      id,
      type: 'sub_agent',
      agent: session.agent,
      depth: host.depth + 1,
      path: session.path,
      parentConversationId: host.id,
      parentTurnId: task.turnId,
      parentTaskId: task.id,
      owner: session.owner,
      title: session.title,
      metadata: { ...metadata, subagent },
      ceiling: session.ceiling,
      groups: session.groups,
      lane: { ...PLAIN_LANE, from: { laneId: session.id, nodeId, last } },
    },
    session.rootId,
    draft.now,
  )
  draft.addConversation(forked)
  const named = Object.entries(forksOf(host)).filter(([, to]) => to === session.id)
  const forks = { ...forksOf(host), ...Object.fromEntries([...named.map(([from]) => [from, id]), [session.id, id]]) }
  draft.changeConversation(host, { metadata: { ...host.metadata, forked_sessions: forks } })
  renameHeld(draft, draft.conversation(host.id), { from: session.id, to: id })
  return forked
}

function parentOf(host: Conversation, task: Node) {
  return { parent_conversation_id: host.id, parent_graph_id: host.id, spawned_from_node_id: task.id }
}
