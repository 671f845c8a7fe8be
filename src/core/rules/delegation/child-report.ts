import { type Json, truncateUtf8 } from '../../base/json.ts'
import { textOf } from '../../graph/content.ts'
import type { Draft } from '../../graph/draft.ts'
import type { Conversation, Id, Link, Node, NodeState, Turn } from '../../graph/rows.ts'
import { hostQuestionOf, questionOf } from '../turn/question-of.ts'
import { answerText } from './fold.ts'

export type ChildStatus = 'running' | 'awaiting_approval' | 'pending' | 'idle'

export interface ChildState {
  readonly status: ChildStatus
  readonly counts: { readonly pending: number; readonly running: number; readonly awaiting_approval: number }
  readonly leaf: { readonly node_id: Id; readonly state: NodeState } | null
}

/** How many open turns of a lane a status looks at. */
const MOST_OPEN = 50

/** Summarizes a child's activity from its rows. A waiting child counts as running. */
export function childState(draft: Draft, child: Conversation): ChildState {
  const turns = draft.stored.turnsOf(child.id, { limit: MOST_OPEN })
  const counts = { pending: 0, running: 0, awaiting_approval: 0 }
  for (const turn of turns) {
    if (draft.turn(turn.id).state === 'ended') continue
    for (const { state } of draft.openNodes(turn.id)) {
      if (state === 'pending' || state === 'awaiting_approval') counts[state]++
      else counts.running++
    }
  }
  return { status: statusOf(counts), counts, leaf: leafOf(draft, turns.at(-1)) }
}

function statusOf(counts: ChildState['counts']): ChildStatus {
  if (counts.running > 0) return 'running'
  if (counts.awaiting_approval > 0) return 'awaiting_approval'
  return counts.pending > 0 ? 'pending' : 'idle'
}

/** The newest node of the lane without a successor. */
function leafOf(draft: Draft, turn: Turn | undefined): ChildState['leaf'] {
  if (turn === undefined) return null
  const leaf = draft.nodesOf(turn.id).findLast(({ id }) => draft.edgesFrom(id).every(({ type }) => type === 'branch'))
  return leaf === undefined ? null : { node_id: leaf.id, state: leaf.state }
}

/** The name that the host gave it, else its agent's name. */
export function childName(child: Conversation): string {
  const { name } = (child.metadata['subagent'] ?? {}) as { readonly name?: unknown }
  return typeof name === 'string' ? name : child.agent.name
}

/** Reports one delegation to its host: how it ended, and the beginning of its answer. */
export function reportDelegation(draft: Draft, link: Link, shownBytes: number): { readonly [key: string]: Json } {
  const child = draft.conversation(link.childConversationId)
  const { outcome } = link
  const asked = outcome === null ? hostQuestionOf(draft, link) : undefined
  const text = wordsOf(draft, link)
  const shown = truncateUtf8(text, Math.min(shownBytes, MOST_SHOWN))
  return {
    child_conversation_id: child.id,
    name: childName(child),
    status: outcome === null ? childState(draft, child).status : 'idle',
    outcome: outcome?.status ?? null,
    ...(outcome === null || outcome.error === null ? {} : { error: outcome.error.message }),
    ...(text === '' ? {} : { text: shown }),
    ...(shown === text ? {} : { text_cut: true, text_chars: text.length }),
    ...(asked === undefined ? {} : { question: questionOf(asked)?.text ?? '' }),
    ...(outcome === null ? activityOf(draft, link.id) : {}),
  }
}

const MOST_SHOWN = 8_000

/** The final words of a delegation: the checked value where there is one. */
export function wordsOf(draft: Draft, { outcome }: Link): string {
  const said = outcome?.answerNodeId == null ? undefined : draft.findNode(outcome.answerNodeId)
  const output = outcome?.status === 'completed' ? (said?.output.value ?? null) : null
  return answerText({ output, text: textOf(said?.output.content ?? '') })
}

/** The last activity of a run, and whether it has been silent for too long. */
export function activityOf(draft: Draft, turnId: Id): { readonly last_activity: string; readonly stalled?: true } {
  let last = draft.turn(turnId).createdAt
  let isStalled = false
  for (const node of draft.nodesOf(turnId)) {
    last = Math.max(last, lastOf(node))
    isStalled ||= node.state === 'running' && node.metadata['stalled'] !== undefined
  }
  return { last_activity: new Date(last).toISOString(), ...(isStalled ? { stalled: true } : {}) }
}

function lastOf({ createdAt, startedAt, endedAt, metadata }: Node): number {
  const { since = 0 } = (metadata['stalled'] ?? {}) as { readonly since?: number }
  return Math.max(createdAt, startedAt ?? 0, endedAt ?? 0, since)
}
