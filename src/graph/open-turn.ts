import type { Json } from '../base/json.ts'
import { type Content, NO_USAGE, textOf } from './content.ts'
import type { Draft } from './draft.ts'
import { previewOf } from './kinds.ts'
import type { Account, Conversation, Id, Node, Spend, Turn, TurnLimits } from './rows.ts'
import { newSpend } from './spend.ts'
import { startTurn } from './start-turn.ts'

export interface TurnRequest {
  readonly turnId: Id
  /** One id per seed node: briefing (if any), user_message, agent_message. */
  readonly nodeIds: readonly Id[]
  readonly input: Json
  readonly content: Content
  /** What the agent is told before the input; null for nothing. */
  readonly briefing: string | null
  readonly limits: TurnLimits
  /** What it may spend; null for no limit here and above. */
  readonly money: Spend['limit'] | null
  /** A moment the turn may not outlive, whatever its own limits say. */
  readonly deadline: number | null
  /** False keeps it queued although its lane is idle. */
  readonly mayStart: boolean
}

/**
 * One more round in a conversation: [developer_message ->] user_message -> agent_message. It starts at once when its
 * lane is idle, else it is queued and the commit that ends the running turn starts it.
 */
export function openTurn(draft: Draft, conversation: Conversation, request: TurnRequest): Turn {
  const entryNodeId = request.nodeIds[request.nodeIds.length - 1] ?? request.turnId
  const turn = newTurn(draft, conversation, {
    id: request.turnId,
    entryNodeId,
    limits: request.limits,
    input: request.input,
    deadline: request.deadline,
    spend: request.money === null ? null : newSpend(request.money),
  })
  draft.addTurn(turn)
  draft.changeConversation(conversation, { turnCount: conversation.turnCount + 1 })
  const starts = request.mayStart && conversation.activeTurnId === null
  const messages = addSeedNodes(draft, turn, request)
  if (starts) startTurn(draft, draft.turn(turn.id))
  else draft.event(turn, null, { type: 'run-queued' })
  for (const message of messages) tellMessage(draft, turn, message)
  return draft.turn(turn.id)
}

export type NewTurn = Pick<Turn, 'id' | 'entryNodeId' | 'limits' | 'input' | 'deadline' | 'spend'>

/** A turn that has not started and holds nothing yet. */
export function newTurn(draft: Draft, conversation: Conversation, given: NewTurn): Turn {
  const isFirst = conversation.turnCount === 0 && conversation.depth === 0
  return {
    id: given.id,
    version: 1,
    rootId: conversation.rootId,
    conversationId: conversation.id,
    laneId: conversation.id,
    ordinal: conversation.turnCount,
    state: 'queued',
    input: given.input,
    limits: given.limits,
    account: EMPTY_ACCOUNT,
    deadline: given.deadline,
    paused: null,
    spend: given.spend,
    cancel: null,
    outcome: null,
    nodeCount: 0,
    entryNodeId: given.entryNodeId,
    afterSeq: isFirst ? 0 : draft.stored.lastSeq(conversation.rootId),
    createdAt: draft.now,
    startedAt: null,
    endedAt: null,
  }
}

const EMPTY_ACCOUNT: Account = {
  modelCalls: 0,
  toolCalls: 0,
  children: 0,
  live: 0,
  nextRelease: 0,
  usage: NO_USAGE,
  uncertain: [],
}

function addSeedNodes(draft: Draft, turn: Turn, request: TurnRequest): Node[] {
  const ids = request.nodeIds
  let before: Node | undefined
  if (request.briefing !== null) {
    before = addMessage(draft, turn, { id: ids[0] ?? turn.id, kind: 'developer_message', content: request.briefing })
  }
  const userId = ids[ids.length - 2] ?? turn.id
  const user = addMessage(draft, turn, { id: userId, kind: 'user_message', content: request.content })
  if (before !== undefined) draft.addEdge(before, user, 'sequence')
  const answer = draft.addNode(turn, {
    id: turn.entryNodeId,
    kind: 'agent_message',
    purpose: 'answer',
    effect: 'idempotent',
    blockers: 1,
  })
  draft.addEdge(user, answer, 'sequence')
  return before === undefined ? [user] : [before, user]
}

interface SeedMessage {
  readonly id: Id
  readonly kind: 'developer_message' | 'user_message'
  readonly content: Content
}

function addMessage(draft: Draft, turn: Turn, { id, kind, content }: SeedMessage): Node {
  return draft.addNode(turn, {
    id,
    kind,
    state: 'finished',
    effect: 'pure',
    input: { content },
    preview: previewOf(textOf(content), kind, draft.kinds),
    endedAt: draft.now,
  })
}

function tellMessage(draft: Draft, turn: Turn, node: Node): void {
  draft.event(turn, node.id, {
    type: 'message',
    role: node.kind === 'user_message' ? 'user' : 'developer',
    purpose: null,
    content: node.input.content ?? '',
    state: 'finished',
    calls: [],
    streamed: null,
  })
}
