import { deriveIds } from '../../base/id.ts'
import { refusedOutcome } from '../../graph/conclude.ts'
import { textOf } from '../../graph/content.ts'
import type { Draft, NewNode } from '../../graph/draft.ts'
import { previewOf } from '../../graph/kinds.ts'
import type { TurnLimits } from '../../graph/limits.ts'
import { isStatus, type OutcomeRecord } from '../../graph/outcome.ts'
import type { Conversation, Id, Node, Turn } from '../../graph/rows.ts'
import { expansionIds } from '../../graph/tasks.ts'
import { newTurn } from '../turn/open-turn.ts'
import type { SessionCall, SessionDocument, SessionMessage, SessionTurn } from './session-document.ts'

export interface PastTurns {
  readonly document: SessionDocument
  /** The turn that continues the session: ids of its past turns derive from it. */
  readonly nextTurnId: Id
  readonly limits: TurnLimits
  /** The layers of the turn that continues the session: a fork of its past has no more. */
  readonly ceiling: Turn['ceiling']
}

/** Adds the past of a document to a new conversation, as turns that have ended. None of it runs again. */
export function addPastTurns(
  draft: Draft,
  conversation: Conversation,
  { document, nextTurnId, limits, ceiling }: PastTurns,
): void {
  document.turns.forEach((told, ordinal) => {
    const [id = '', ...nodeIds] = deriveIds(nextTurnId, `past/${ordinal}`, told.messages.length + 1)
    addPastTurn(draft, draft.conversation(conversation.id), { told, id, nodeIds, limits, ceiling })
  })
}

function addPastTurn(
  draft: Draft,
  conversation: Conversation,
  {
    told,
    id,
    nodeIds,
    ...bound
  }: Pick<PastTurns, 'limits' | 'ceiling'> & {
    readonly told: SessionTurn
    readonly id: Id
    readonly nodeIds: readonly Id[]
  },
): void {
  const endedAt = momentOf(told.ended_at) ?? draft.now
  const startedAt = momentOf(told.started_at) ?? endedAt
  const entryNodeId = nodeIds[nodeIds.length - 1] ?? id
  const turn: Turn = {
    ...newTurn(draft, conversation, { ...bound, id, entryNodeId, input: null, deadline: null, spend: null }),
    state: 'ended',
    createdAt: startedAt,
    startedAt,
    endedAt,
  }
  draft.addTurn(turn)
  draft.changeConversation(conversation, { turnCount: conversation.turnCount + 1 })
  const open: OpenCall[] = []
  let before: Node | undefined
  let answer: Node | undefined
  told.messages.forEach((message, at) => {
    const call = message.role === 'tool' ? open.shift() : undefined
    const id = call?.taskId ?? nodeIds[at] ?? turn.id
    const node = draft.addNode(turn, pastNode(draft, message, { id, endedAt, call }))
    if (before !== undefined) draft.addEdge(before, node, 'sequence')
    before = node
    if (message.role !== 'assistant') return
    answer = node
    open.push(...openCalls(node.id, message.calls ?? []))
  })
  draft.changeTurn(turn, { outcome: pastOutcome(told, turn, answer?.id ?? null) })
}

/** A call and its task: results come in the order of the calls. */
interface OpenCall {
  readonly call: SessionCall
  readonly taskId: Id
}

function openCalls(messageId: Id, calls: readonly SessionCall[]): OpenCall[] {
  const ids = expansionIds(messageId, calls.length)
  return calls.map((call, at) => ({ call, taskId: ids[at] ?? messageId }))
}

function pastNode(
  draft: Draft,
  message: SessionMessage,
  { id, endedAt, call: open }: { readonly id: Id; readonly endedAt: number; readonly call: OpenCall | undefined },
): NewNode {
  const { content } = message
  const kind = KINDS[message.role]
  const preview = previewOf(textOf(content), kind, draft.kinds)
  const made = { id, kind, preview, state: 'finished', endedAt, metadata: { restored: true } } as const
  switch (message.role) {
    case 'assistant': {
      const output = message.calls === undefined ? { content } : { content, calls: message.calls }
      return { ...made, purpose: 'answer', effect: 'idempotent', output }
    }
    case 'tool': {
      const call = open?.call ?? { id: message.call_id, name: message.name, input: null }
      return { ...made, effect: 'pure', input: { call }, output: { content, isError: message.is_error } }
    }
    case 'briefing':
      return { ...made, purpose: 'brief', effect: 'pure', input: { content } }
    default:
      return { ...made, effect: 'pure', input: { content } }
  }
}

const KINDS = {
  user: 'user_message',
  developer: 'developer_message',
  briefing: 'developer_message',
  assistant: 'agent_message',
  tool: 'task',
} as const

function pastOutcome({ status, error }: SessionTurn, turn: Turn, answerNodeId: Id | null): OutcomeRecord {
  const known = isStatus(status) ? status : 'completed'
  return {
    ...refusedOutcome('unavailable', ''),
    status: known,
    runId: turn.id,
    conversationId: turn.conversationId,
    answerNodeId,
    error: known === 'completed' ? null : { code: known, message: error ?? `The run ended: ${known}.` },
    durationMs: Math.max(0, (turn.endedAt ?? 0) - (turn.startedAt ?? 0)),
    retryable: false,
    advice: null,
  }
}

function momentOf(time: string | null): number | undefined {
  const at = time === null ? Number.NaN : Date.parse(time)
  return Number.isFinite(at) && at >= 0 ? at : undefined
}
