import { conclude } from '../../graph/conclude.ts'
import { type Content, textOf } from '../../graph/content.ts'
import type { Draft } from '../../graph/draft.ts'
import { previewOf } from '../../graph/kinds.ts'
import type { TurnLimits } from '../../graph/limits.ts'
import { requireOpen } from '../../graph/refused.ts'
import type { Id, Node, Turn } from '../../graph/rows.ts'
import { newTurn } from './open-turn.ts'

export interface ObservedMessage {
  readonly role: 'user' | 'developer' | 'agent'
  readonly content: Content
}

const KINDS = { user: 'user_message', developer: 'developer_message', agent: 'agent_message' } as const

/**
 * Adds a message that asks for no answer, in a turn of its own that ends at once, so that it stands between the turns before
 * and after it whatever is running. Gives the id of its node.
 */
export function planObserve(
  draft: Draft,
  conversationId: Id,
  {
    message,
    ...bound
  }: {
    readonly message: ObservedMessage
    /** The limits of its turn, which spends nothing. */
    readonly limits: TurnLimits
    /** The layers of whoever says it: a turn that continues from it has no more. */
    readonly ceiling: Turn['ceiling']
  },
): Id {
  const conversation = draft.conversation(conversationId)
  requireOpen(conversation)
  const [turnId, nodeId] = [draft.freshId(), draft.freshId()]
  const turn: Turn = newTurn(draft, conversation, {
    id: turnId,
    entryNodeId: nodeId,
    ...bound,
    input: null,
    deadline: null,
    spend: null,
  })
  draft.addTurn(turn)
  draft.changeConversation(conversation, { turnCount: conversation.turnCount + 1 })
  draft.event(turn, null, { type: 'run-queued' })
  const node = addObserved(draft, turn, { id: nodeId, message })
  draft.event(turn, node.id, {
    type: 'message',
    role: message.role,
    purpose: node.purpose,
    content: message.content,
    state: 'finished',
    calls: [],
    streamed: null,
  })
  const outcome = conclude(draft.turn(turnId), [node], draft.now)
  draft.changeTurn(draft.turn(turnId), { state: 'ended', outcome, endedAt: draft.now })
  draft.event(turn, null, { type: 'run-end', status: outcome.status, outcome })
  return node.id
}

function addObserved(draft: Draft, turn: Turn, { id, message }: { id: Id; message: ObservedMessage }): Node {
  const { role, content } = message
  const kind = KINDS[role]
  return draft.addNode(turn, {
    id,
    kind,
    purpose: role === 'agent' ? 'answer' : null,
    state: 'finished',
    effect: 'pure',
    ...(role === 'agent' ? { output: { content } } : { input: { content } }),
    preview: previewOf(textOf(content), kind, draft.kinds),
    metadata: { observed: true },
    endedAt: draft.now,
  })
}
