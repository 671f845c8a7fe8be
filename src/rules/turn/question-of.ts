import type { Draft } from '../../graph/draft.ts'
import type { Conversation, Id, Link, Node } from '../../graph/rows.ts'

/** What a waiting node has asked. */
export interface Question {
  readonly text: string
  /** Whom it was meant for. */
  readonly asked: 'host' | 'person'
  /** Who is awaited: a person too where a host cannot be asked, or did not answer. */
  readonly to: 'host' | 'person'
  readonly since: number
  /** The node of the host that it was told by; null while it was not. */
  readonly told: Id | null
  /** Its root host is idle: a person is awaited, and the host may still answer. */
  readonly passed?: true
}

export function questionOf({ metadata }: Node): Question | undefined {
  return metadata['question'] as Question | undefined
}

/** What the child of a delegation asks its host, while it waits for the answer. */
export function hostQuestionOf(draft: Draft, { id }: Link): Node | undefined {
  return draft.openNodes(id).find((node) => {
    const question = openQuestion(node)
    return question?.to === 'host' || question?.passed === true
  })
}

/** What a conversation's own run asks whoever started it, which may be code, while it waits for the answer. */
export function startersQuestion(draft: Draft, { activeTurnId }: Conversation): Node | undefined {
  return draft.openNodes(activeTurnId ?? '').find((node) => openQuestion(node)?.asked === 'host')
}

function openQuestion(node: Node): Question | undefined {
  return node.state === 'waiting' && node.wait?.on === 'question' ? questionOf(node) : undefined
}

/** The same, if the host does not know of it yet. */
export function untoldQuestion(draft: Draft, link: Link): Node | undefined {
  const node = hostQuestionOf(draft, link)
  return node !== undefined && questionOf(node)?.told === null ? node : undefined
}

/** Does a person have to answer before the node goes on? */
export function asksPerson(node: Node): boolean {
  return openQuestion(node)?.to === 'person'
}

export function markTold(draft: Draft, asked: Node, by: Id): void {
  const question = questionOf(asked)
  if (question === undefined) return
  draft.changeNode(asked, { metadata: { ...asked.metadata, question: { ...question, told: by } } })
}
