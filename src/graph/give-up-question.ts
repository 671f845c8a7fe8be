import type { Draft } from './draft.ts'
import { endNode } from './end-node.ts'
import { hostQuestionOf } from './question-of.ts'
import type { Link, Node } from './rows.ts'

/** A question that nobody will answer ends with these words, and its child goes on. */
export function giveUpQuestion(draft: Draft, asked: Node, why: string): void {
  draft.event(draft.turn(asked.turnId), asked.id, { type: 'answer', by: 'nobody', text: '' })
  const content = `${why} Go on with what you know, and say in your answer what you would have needed.`
  endNode(draft, asked, { state: 'finished', output: { content, isError: true } })
}

/** A host that has said its last word and waits only for children that wait for its answer will not give one. */
export function giveUpQuestions(draft: Draft, held: readonly Link[]): void {
  const asked = held.flatMap((link) => hostQuestionOf(draft, link) ?? [])
  if (asked.length < held.length) return
  for (const question of asked) giveUpQuestion(draft, question, 'Whoever gave you this task does not answer any more.')
}
