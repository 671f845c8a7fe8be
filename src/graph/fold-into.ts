import type { Json } from '../base/json.ts'
import { outputText } from './body.ts'
import type { Draft } from './draft.ts'
import { fold } from './fold.ts'
import { type OutcomeRecord, withWords } from './outcome.ts'
import type { Link, Node, NodeOutput } from './rows.ts'

/** The child's end as output and metadata of the task that waits for it. A text too long to show is kept as a body. */
export function foldInto(draft: Draft, task: Node, link: Link): Pick<Node, 'output' | 'metadata'> {
  const outcome = link.outcome as OutcomeRecord
  const said = outcome.answerNodeId === null ? undefined : draft.findNode(outcome.answerNodeId)
  const folded = fold(link, withWords(outcome, said?.output ?? {}))
  const child = { child_conversation_id: link.childConversationId, child_graph_id: link.childConversationId }
  const value = outcome.status === 'completed' ? said?.output.value : undefined
  const shown =
    typeof folded.content === 'string'
      ? outputText(folded.content, task.id)
      : { output: { content: folded.content }, body: null }
  if (shown.body !== null) draft.addBody(shown.body)
  const output: { -readonly [Key in keyof NodeOutput]: NodeOutput[Key] } = shown.output
  if (value !== undefined) output.value = value
  if (folded.isError) output.isError = true
  output.subagent = child
  return { output, metadata: mergedMetadata(task.metadata, folded.metadata) }
}

function mergedMetadata(own: Node['metadata'], folded: Node['metadata']): Node['metadata'] {
  const merged: { [key: string]: Json } = {}
  for (const key in own) merged[key] = own[key] as Json
  for (const key in folded) merged[key] = folded[key] as Json
  return merged
}
