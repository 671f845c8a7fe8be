import type { Draft } from './draft.ts'
import { openTurn, type TurnRequest } from './open-turn.ts'
import type { Conversation, Id, Turn } from './rows.ts'

export type NewConversation = Pick<Conversation, 'id' | 'agent' | 'ceiling'> & Partial<Conversation>

/** An input for a conversation, which is made when it is not there yet. A repeated say finds its turn. */
export function planSay(draft: Draft, conversation: NewConversation, request: TurnRequest): Turn {
  const existing = draft.findTurn(request.turnId)
  if (existing !== undefined) return existing
  const row = draft.findConversation(conversation.id) ?? addRoot(draft, conversation)
  return openTurn(draft, row, request)
}

function addRoot(draft: Draft, conversation: NewConversation): Conversation {
  const row = newConversation(conversation, conversation.id, draft.now)
  draft.addConversation(row)
  return row
}

export function newConversation(given: NewConversation, rootId: Id, now: number): Conversation {
  return {
    id: given.id,
    version: 1,
    rootId,
    type: given.type ?? 'user',
    depth: given.depth ?? 0,
    agent: given.agent,
    path: given.path ?? [given.agent.name],
    parentConversationId: given.parentConversationId ?? null,
    parentTurnId: given.parentTurnId ?? null,
    parentTaskId: given.parentTaskId ?? null,
    owner: given.owner ?? null,
    title: given.title ?? null,
    metadata: given.metadata ?? {},
    ceiling: given.ceiling,
    groups: given.groups ?? null,
    activeTurnId: null,
    turnCount: 0,
    createdAt: now,
  }
}
