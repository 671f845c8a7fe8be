import { cannotGoOn } from '../child/free-host.ts'
import type { Draft } from '../draft.ts'
import type { Link, Node } from '../rows.ts'
import { endNode } from './end-node.ts'
import { hostQuestionOf } from './question-of.ts'

/** A question that nobody will answer ends with these words, and its child goes on. */
export function giveUpQuestion(draft: Draft, asked: Node, why: string): void {
  draft.event(draft.turn(asked.turnId), asked.id, { type: 'answer', by: 'nobody', text: '' })
  const content = `${why} Go on with what you know, and say in your answer what you would have needed.`
  endNode(draft, asked, { state: 'finished', output: { content, isError: true } })
}

/**
 * A host that has said its last word and waits only for children that wait for its answer, or for their room, will not
 * give one. It is looked at again for what else they ask.
 */
export function giveUpQuestions(draft: Draft, held: readonly Link[]): void {
  if (!held.every((link) => cannotGoOn(draft, link))) return
  for (const link of held) {
    const asked = hostQuestionOf(draft, link)
    if (asked === undefined) continue
    giveUpQuestion(draft, asked, 'Whoever gave you this task does not answer any more.')
    draft.touchTurn(link.hostTurnId)
  }
}
