import type { RunEvent } from '../../graph/event.ts'
import { isDeleted, isReplaced } from '../../graph/lane.ts'
import type { Conversation, Node } from '../../graph/rows.ts'
import { answerEvent, resultEvent } from '../../rules/turn/end-node.ts'

/** Whether people see the node: it was neither made anew nor deleted. */
export function isShown(node: Node): boolean {
  return !isReplaced(node) && !isDeleted(node)
}

/** Makes events for nodes without any: they were copied from another turn, or restored with their session. */
export function untoldEvents(nodes: readonly Node[], conversation: Conversation): RunEvent[] {
  return nodes.filter(isShown).flatMap((node) => untold(node, conversation))
}

function untold(node: Node, { path }: Conversation): RunEvent[] {
  if (node.metadata['copyOf'] === undefined && node.metadata['restored'] !== true) return []
  const place = eventPlace(node, path)
  if (node.kind === 'agent_message') return [{ ...place, ...answerEvent(node, null) }]
  const { call } = node.input
  if (node.kind !== 'task' || call === undefined) return []
  return [
    { ...place, type: 'tool-call', call, effect: node.effect, delegates: false },
    { ...place, ...resultEvent(node) },
  ]
}

/** Where an event that is made for a node happened. */
export function eventPlace({ id, conversationId, turnId, endedAt, createdAt }: Node, path: readonly string[]) {
  return { seq: 0, at: endedAt ?? createdAt, conversationId, runId: turnId, nodeId: id, path, parentId: null }
}
