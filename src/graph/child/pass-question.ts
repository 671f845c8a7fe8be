import type { Draft } from '../draft.ts'
import type { Conversation, Node } from '../rows.ts'
import { pauseClocks } from '../turn/pause.ts'
import { hostQuestionOf, questionOf } from '../turn/question-of.ts'

/**
 * A root host that is idle will not answer by itself: what its children ask it is asked of a person from now on, while
 * whose clock stands still. In a later turn the host may answer still.
 */
export function passQuestions(draft: Draft, { type, activeTurnId, background }: Conversation): void {
  if (type !== 'user' || activeTurnId !== null) return
  for (const id of background) {
    const link = draft.link(id)
    const asked = link.outcome === null ? hostQuestionOf(draft, link) : undefined
    if (asked !== undefined) pass(draft, asked)
  }
}

function pass(draft: Draft, asked: Node): void {
  const question = questionOf(asked)
  if (question?.to !== 'host') return
  draft.changeNode(asked, { metadata: { ...asked.metadata, question: { ...question, to: 'person', passed: true } } })
  pauseClocks(draft, asked.turnId)
  const { text } = question
  draft.event(draft.turn(asked.turnId), asked.id, {
    type: 'question',
    to: 'person',
    text,
    expiresAt: asked.wakeAt ?? 0,
  })
}
