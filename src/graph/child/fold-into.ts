import type { Json } from '../../base/json.ts'
import { outputContent } from '../body.ts'
import type { Draft } from '../draft.ts'
import { type Outcome, type OutcomeRecord, withWords } from '../outcome.ts'
import { outcomeOf } from '../outcome-of.ts'
import type { Id, Link, Node, NodeOutput } from '../rows.ts'
import { type FoldFacts, fold } from './fold.ts'
import { openFactsOf, saidAndFound, withAbsent } from './fold-open.ts'

/** The child's end as the output of the task that waits for it. A text too long to show is kept as a body. */
export function foldInto(draft: Draft, task: Node, link: Link): NodeOutput {
  const outcome = link.outcome as OutcomeRecord
  const said = outcome.answerNodeId === null ? undefined : draft.findNode(outcome.answerNodeId)
  const notes = { response: said?.metadata['response'], all: () => saidAndFound(draft, link) }
  const { content, isError, metadata } = fold(factsOf(link), wholeOutcome(draft, outcome, said), notes)
  const subagent = { child_conversation_id: link.childConversationId, child_graph_id: link.childConversationId }
  const value = outcome.status === 'completed' ? said?.output.value : undefined
  const shown = outputContent(content, task.id)
  if (shown.body !== null) draft.addBody(shown.body)
  const isPlain = shown.body === null && value === undefined && !isError
  if (isPlain) return { content, metadata, subagent }
  return {
    ...shown.output,
    ...(value === undefined ? {} : { value }),
    ...(isError ? { isError } : {}),
    metadata,
    subagent,
  }
}

function factsOf(link: Link): FoldFacts {
  const open = link.contract === 'open' ? openFactsOf(link) : undefined
  if (open === undefined) return link
  return { ...link, delegationContext: { open: withAbsent(open, link) as unknown as Json } }
}

function wholeOutcome(draft: Draft, outcome: OutcomeRecord, said: Node | undefined): Outcome {
  if (outcome.delegations.length === 0) return withWords(outcome, said?.output ?? {})
  return outcomeOf({ node: (id: Id) => draft.findNode(id), turn: (id: Id) => draft.findTurn(id) }, outcome)
}
