import type { Json } from '../../base/json.ts'
import type { Conversation, Id, Node, NodeOutput } from '../../graph/rows.ts'
import { packEnd, toWhole } from './end-parts.ts'

/** The task of a delegation says in its metadata and in its output who its child is: both are written as one `child`. */
export function childOf({ output, metadata }: Node): Id | undefined {
  const id = output.subagent?.child_conversation_id
  if (Array.isArray(output.metadata?.['outcome'])) return undefined
  return id !== undefined && names(output.subagent, id) && names(metadata['subagent'], id) ? id : undefined
}

/** What is to be written of the metadata beside `child`; undefined for nothing. */
export function metadataBeside({ subagent, ...others }: Node['metadata']): Node['metadata'] | undefined {
  return isEmpty(others) ? undefined : others
}

export function outputBeside({ subagent, ...others }: NodeOutput, child: Id): NodeOutput | undefined {
  const { metadata } = others
  if (metadata !== undefined) return { ...others, metadata: packEnd(metadata, child) }
  return isEmpty(others) ? undefined : others
}

export function metadataWith(metadata: Node['metadata'], child: Id): Node['metadata'] {
  return { ...metadata, subagent: subagentOf(child) }
}

export function outputWith(output: NodeOutput, child: Id): NodeOutput {
  const { metadata } = output
  const subagent = subagentOf(child)
  return metadata === undefined ? { ...output, subagent } : { ...output, metadata: toWhole(metadata, child), subagent }
}

/** Whether a conversation says of itself only what its other fields say too. */
export function isUsualMetadata(row: Conversation): boolean {
  const { metadata, agent, parentConversationId, parentTaskId } = row
  if (parentTaskId === null) return isEmpty(metadata)
  const origin = fieldsOf(metadata['subagent'])
  return (
    Object.keys(metadata).length === 1 &&
    Object.keys(origin).length === 4 &&
    origin['name'] === agent.name &&
    origin['parent_conversation_id'] === parentConversationId &&
    origin['parent_graph_id'] === parentConversationId &&
    origin['spawned_from_node_id'] === parentTaskId
  )
}

export function usualMetadata({ agent, parentConversationId, parentTaskId }: Conversation): Conversation['metadata'] {
  if (parentTaskId === null) return {}
  const name = agent.name
  const parent = { parent_conversation_id: parentConversationId, parent_graph_id: parentConversationId }
  return { subagent: { name, ...parent, spawned_from_node_id: parentTaskId } }
}

function names(value: unknown, id: Id): boolean {
  const fields = fieldsOf(value)
  const isSame = fields['child_conversation_id'] === id && fields['child_graph_id'] === id
  return isSame && Object.keys(fields).length === 2
}

function subagentOf(id: Id): NonNullable<NodeOutput['subagent']> {
  return { child_conversation_id: id, child_graph_id: id }
}

export function isEmpty(fields: object): boolean {
  for (const _ in fields) return false
  return true
}

const NONE = {}

function fieldsOf(value: unknown): { readonly [key: string]: Json } {
  return typeof value === 'object' && value !== null ? (value as { readonly [key: string]: Json }) : NONE
}
