import { childName } from '../child/child-report.ts'
import { answerWait, isJoin } from '../child/join.ts'
import { outputOf } from '../child/output-of.ts'
import { promote } from '../child/promote.ts'
import type { Draft } from '../draft.ts'
import type { Id, Link } from '../rows.ts'
import { giveUpQuestion } from './give-up-question.ts'
import { tellNext } from './question.ts'

/** A waiting node's time is over: it goes on without what it waited for, which goes on too. Rows only. */
export function planTimeUp(draft: Draft, nodeId: Id): void {
  const node = draft.findNode(nodeId)
  if (node?.state !== 'waiting' || node.wakeAt === null || node.wakeAt > draft.now) return
  if (node.wait?.on === 'question') {
    giveUpQuestion(draft, node, 'Nobody answered in time.')
    tellNext(draft, node)
  } else if (isJoin(node)) answerWait(draft, node, { status: 'timed_out' })
  else for (const id of node.wait?.refs ?? []) goOnBehind(draft, draft.link(id))
}

function goOnBehind(draft: Draft, link: Link): void {
  const id = link.childConversationId
  const hint = link.wake === null ? '' : ` subagent_wait, subagent_result and subagent_cancel take its id.`
  promote(
    draft,
    link,
    outputOf({
      ok: true,
      status: 'promoted',
      child_conversation_id: id,
      name: childName(draft.conversation(id)),
      advice: `It takes longer than this call waits and goes on in the background. You will be told of its end.${hint}`,
    }),
  )
}
