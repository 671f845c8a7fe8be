import { sha256 } from '../../base/hash.ts'
import { canonicalJson, type Json } from '../../base/json.ts'
import type { Draft } from '../../graph/draft.ts'
import type { Conversation, Id, Link, Node } from '../../graph/rows.ts'

/** The question of a waiting node. */
export interface NodeQuestion {
  readonly text: string
  /** Who was asked. */
  readonly asked: 'host' | 'person'
  /** Who must answer: a person also where a host cannot be asked, or did not answer. */
  readonly to: 'host' | 'person' | 'outside'
  readonly since: number
  /** The node that told the host; null while none has. */
  readonly told: Id | null
  /** Set when its root host is idle: a person is asked, and the host may still answer. */
  readonly passed?: true
  /** Set where the call is executed elsewhere: who does it (null: the owner of the tree), and the schema of the result. */
  readonly outside?: { readonly by: string | null; readonly schema: Json }
  /** Set when it is over: who answered what, and when. */
  readonly answered?: { readonly by: string; readonly text: string; readonly at: number }
}

/** The hash of a question, which an answer may name. */
export function questionHash({ text }: Pick<NodeQuestion, 'text'>): string {
  return sha256(canonicalJson(['question', text]))
}

export function questionOf({ metadata }: Node): NodeQuestion | undefined {
  return metadata['question'] as NodeQuestion | undefined
}

/** The open question of a delegation's child to its host. */
export function hostQuestionOf(draft: Draft, { id }: Link): Node | undefined {
  return draft.openNodes(id).find((node) => {
    const question = openQuestion(node)
    return question?.to === 'host' || question?.passed === true
  })
}

/** The open question of a conversation's own run to whoever started it, which may be code. */
export function startersQuestion(draft: Draft, { activeTurnId }: Conversation): Node | undefined {
  return draft.openNodes(activeTurnId ?? '').find((node) => openQuestion(node)?.asked === 'host')
}

function openQuestion(node: Node): NodeQuestion | undefined {
  return node.state === 'waiting' && node.wait?.on === 'question' ? questionOf(node) : undefined
}

/** The open question of a delegation's child, if the host has not heard it yet. */
export function unreportedQuestion(draft: Draft, link: Link): Node | undefined {
  const node = hostQuestionOf(draft, link)
  return node !== undefined && questionOf(node)?.told === null ? node : undefined
}

/** True where somebody outside has to answer before the node continues: a person, or who executes the call. */
export function asksPerson(node: Node): boolean {
  const to = openQuestion(node)?.to
  return to === 'person' || to === 'outside'
}

export function markReported(draft: Draft, asked: Node, by: Id): void {
  const question = questionOf(asked)
  if (question === undefined) return
  draft.changeNode(asked, { metadata: { ...asked.metadata, question: { ...question, told: by } } })
}
