import { flag, int, type Rules, readOptions, record } from '../base/options.ts'
import type { Id, Node } from '../graph/rows.ts'
import { questionOf } from '../graph/turn/question-of.ts'
import type { Store } from '../store/store.ts'
import { unlessTampered } from '../store/tampered.ts'

/** One question that waits: `runtime.answer(nodeId, { text })` answers it. */
export interface PendingQuestion {
  readonly nodeId: Id
  readonly runId: Id
  readonly conversationId: Id
  /** Agent names from the root to the one that asks. */
  readonly path: readonly string[]
  readonly text: string
  /** A host is told of it and may answer first; a person may too. */
  readonly to: 'host' | 'person'
  readonly since: number
  readonly expiresAt: number
}

export interface QuestionsQuery {
  /** Also those that a host was asked. Default: only what people are asked. */
  readonly toHosts?: boolean
  readonly limit?: number
  /** The last one of the page before. */
  readonly after?: Pick<PendingQuestion, 'nodeId' | 'expiresAt'>
}

const QUERY: Rules<QuestionsQuery> = { toHosts: flag, limit: int(0), after: record }

/** What is asked, over all trees and depths: those that expire first come first. */
export function questionsOf(store: Store, query: QuestionsQuery): PendingQuestion[] {
  const { toHosts = false, limit = 100, after } = readOptions('questions()', query, QUERY)
  const found: PendingQuestion[] = []
  let last = after === undefined ? undefined : { wakeAt: after.expiresAt, id: after.nodeId }
  while (found.length < limit) {
    const nodes = store.timed({ limit: PAGE, ...(last === undefined ? {} : { after: last }) })
    for (const node of nodes) {
      const question = unlessTampered(() => toQuestion(store, node))
      if (question !== undefined && (toHosts || question.to === 'person')) found.push(question)
      last = { wakeAt: node.wakeAt ?? 0, id: node.id }
    }
    if (nodes.length < PAGE) break
  }
  return found.slice(0, limit)
}

const PAGE = 256

function toQuestion(store: Store, node: Node): PendingQuestion | undefined {
  const question = node.wait?.on === 'question' ? questionOf(node) : undefined
  if (question === undefined) return undefined
  return {
    nodeId: node.id,
    runId: node.turnId,
    conversationId: node.conversationId,
    path: store.conversation(node.conversationId)?.path ?? [],
    text: question.text,
    to: question.to,
    since: question.since,
    expiresAt: node.wakeAt ?? 0,
  }
}
