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
  const shown = typeof folded.content === 'string' ? outputText(folded.content, task.id) : null
  if (shown?.body) draft.addBody(shown.body)
  const output: NodeOutput = {
    ...(shown?.output ?? { content: folded.content }),
    ...(value === undefined ? {} : { value }),
    ...(folded.isError ? { isError: true } : {}),
    subagent: child,
  }
  return { output, metadata: { ...task.metadata, ...folded.metadata } }
}
