// The beginning of a turn: its row, its first nodes, and the moment it takes its lane.
//
// Owns:      the request for a turn, the nodes of its input and briefing, and turns that are put in by hand.
// Called by: `say`, `spawn`, `retry-child` and `wake` open turns with an input; `rules/history` begins turns without nodes.
// Must stay true:
//   - A lane has one running turn at most. Further ones are queued, and start in the commit that ends the one before.
//   - Limits, deadline, attributes and ceiling are frozen in the row: any process continues the turn by them.

import type { Json } from '../../base/json.ts'
import { stackCeilings } from '../../grant/ceiling.ts'
import { type Content, textOf } from '../../graph/content.ts'
import type { Draft } from '../../graph/draft.ts'
import { isRunnable, previewOf } from '../../graph/kinds.ts'
import { historyAfter } from '../../graph/lane.ts'
import { newTreePlaces, type Spending, type TreePlaces, type TurnLimits } from '../../graph/limits.ts'
import { copyOfTurn, USUAL_TURN } from '../../graph/rows.made.ts'
import type { Conversation, Id, Node, Turn, TurnHistory } from '../../graph/rows.ts'
import { newSpend } from './account.ts'

export interface TurnRequest {
  readonly turnId: Id
  /** One id per seed node: briefing (if any), user_message, agent_message. */
  readonly nodeIds: readonly Id[]
  readonly input: Json
  readonly content: Content
  /** The slots of the input, for the node that answers it. Opaque to the graph. */
  readonly asked?: Json | undefined
  /** A briefing that the agent reads before the input; null for none. */
  readonly briefing: string | TurnBriefing | null
  readonly limits: TurnLimits
  /** The spending limit; null for no limit here and above. */
  readonly money: Spending['limit'] | null
  /** How many delegations it and all below it may have at a time; left out: no limit. */
  readonly tree?: TreePlaces | null
  /** A moment the turn may not outlive, whatever its own limits say. */
  readonly deadline: number | null
  /** False keeps it queued although its lane is idle. */
  readonly mayStart: boolean
  /** No node of it runs before this moment. */
  readonly wakeAt?: number
  /** The run whose budget it continues. */
  readonly wokenBy?: Id
  /** The attributes of the request it serves. */
  readonly attributes?: Turn['attributes']
  /** The layers that bind this turn and everything it starts; see `Turn`. */
  readonly ceiling: Turn['ceiling']
  /** The hash of the request, where its caller gave it a key. */
  readonly requestHash?: Turn['requestHash']
}

/**
 * A message for the agent, with further messages that it did not hear itself; or one that a model call has to write. Text from
 * a host is data: the agent's model reads it as a user's message, never as a rule.
 */
export type TurnBriefing =
  | { readonly content: string; readonly messages?: readonly Json[]; readonly isHostData?: boolean }
  | { readonly summarize: string; readonly tokens: number }

/**
 * Adds one more round to a conversation: [developer_message or a call to brief ->] user_message -> agent_message. It starts at
 * once when its lane is idle, else it is queued and the commit that ends the running turn starts it.
 */
export function openTurn(draft: Draft, conversation: Conversation, request: TurnRequest): Turn {
  const first = isSummary(request.briefing) ? 0 : request.nodeIds.length - 1
  const entryNodeId = request.nodeIds[first] ?? request.turnId
  const turn = newTurn(draft, conversation, {
    id: request.turnId,
    entryNodeId,
    limits: request.limits,
    input: request.input,
    deadline: request.deadline,
    spend: request.money === null ? null : newSpend(request.money),
    tree: request.tree ?? null,
    wokenBy: request.wokenBy ?? null,
    attributes: request.attributes ?? null,
    ceiling: request.ceiling,
    requestHash: request.requestHash ?? null,
  })
  draft.addTurn(turn)
  draft.ownConversation(conversation).turnCount++
  const starts = request.mayStart && conversation.activeTurnId === null
  const messages = addSeedNodes(draft, turn, request)
  if (starts) startTurn(draft, draft.turn(turn.id))
  else draft.event(turn, null, { type: 'run-queued' })
  for (const message of messages) tellMessage(draft, turn, message)
  return draft.turn(turn.id)
}

export type NewTurn = Pick<Turn, 'id' | 'entryNodeId' | 'limits' | 'input' | 'deadline' | 'spend'> &
  Partial<Pick<Turn, 'wokenBy' | 'tree' | 'attributes' | 'history' | 'ceiling' | 'requestHash'>>

/** A turn that has not started and has no nodes yet. */
export function newTurn(draft: Draft, conversation: Conversation, given: NewTurn): Turn {
  const isFirst = conversation.turnCount === 0 && conversation.id === conversation.rootId
  const turn = copyOfTurn(USUAL_TURN, 1)
  turn.id = given.id
  turn.rootId = conversation.rootId
  turn.conversationId = conversation.id
  turn.laneId = conversation.id
  turn.ordinal = conversation.turnCount
  turn.state = 'queued'
  turn.input = given.input
  turn.limits = given.limits
  turn.deadline = given.deadline
  turn.spend = given.spend
  turn.tree = given.tree ?? null
  turn.wokenBy = given.wokenBy ?? null
  turn.attributes = given.attributes ?? null
  turn.requestHash = given.requestHash ?? null
  turn.history = given.history ?? (conversation.lane === null ? null : historyAfter(conversation))
  turn.afterSeq = isFirst ? 0 : draft.stored.lastSeq(conversation.rootId)
  turn.entryNodeId = given.entryNodeId
  turn.createdAt = draft.now
  if (given.ceiling !== undefined) turn.ceiling = given.ceiling
  return turn
}

function isSummary(briefing: TurnRequest['briefing']): briefing is Extract<TurnBriefing, { summarize: string }> {
  return typeof briefing === 'object' && briefing !== null && 'summarize' in briefing
}

function addSeedNodes(draft: Draft, turn: Turn, request: TurnRequest): Node[] {
  const ids = request.nodeIds
  const { briefing, wakeAt = null } = request
  const before = briefing === null ? undefined : addBriefing(draft, turn, { id: ids[0] ?? turn.id, briefing, wakeAt })
  const userId = ids[ids.length - 2] ?? turn.id
  const user = addMessage(draft, turn, { id: userId, kind: 'user_message', content: request.content })
  const answer = draft.addNode(turn, {
    id: ids[ids.length - 1] ?? turn.id,
    kind: 'agent_message',
    purpose: 'answer',
    effect: 'idempotent',
    blockers: 1,
    wakeAt,
    ...(request.asked === undefined ? {} : { metadata: { asked: request.asked } }),
  })
  if (before?.kind === 'developer_message') draft.addEdge(before, user, 'sequence')
  else if (before !== undefined) draft.addEdge(before, answer, 'dependency')
  draft.addEdge(user, answer, 'sequence')
  return before?.kind === 'developer_message' ? [before, user] : [user]
}

/** Adds a briefing as a text, or as a model call that writes it: without its success the agent is not called. */
function addBriefing(
  draft: Draft,
  turn: Turn,
  {
    id,
    briefing,
    wakeAt,
  }: { readonly id: Id; readonly wakeAt: number | null; readonly briefing: string | TurnBriefing },
): Node {
  if (isSummary(briefing)) {
    const { summarize, tokens } = briefing
    const input = { content: summarize, value: { tokens } }
    return draft.addNode(turn, {
      id,
      kind: 'agent_message',
      purpose: 'brief',
      effect: 'idempotent',
      blockers: 1,
      wakeAt,
      input,
    })
  }
  if (typeof briefing === 'string') return addMessage(draft, turn, { id, kind: 'developer_message', content: briefing })
  const { isHostData = false, ...told } = briefing
  return addMessage(draft, turn, { id, kind: 'developer_message', purpose: isHostData ? 'brief' : null, ...told })
}

interface SeedMessage {
  readonly id: Id
  readonly kind: 'developer_message' | 'user_message'
  readonly purpose?: 'brief' | null
  readonly content: Content
  readonly messages?: readonly Json[]
}

export function addMessage(draft: Draft, turn: Turn, message: SeedMessage): Node {
  const { id, kind, purpose = null, content, messages } = message
  return draft.addNode(turn, {
    id,
    kind,
    purpose,
    state: 'finished',
    effect: 'pure',
    input: messages === undefined ? { content } : { content, messages },
    preview: previewOf(textOf(content), kind, draft.kinds),
    endedAt: draft.now,
  })
}

export function tellMessage(draft: Draft, turn: Turn, node: Node): void {
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

/** Starts a queued turn: its clock runs, it takes its lane, its first node may run. */
function startTurn(draft: Draft, turn: Turn): Turn {
  const entry = draft.node(turn.entryNodeId)
  const ends = Math.max(draft.now, entry.wakeAt ?? 0) + turn.limits.wallMs
  const started = draft.ownTurn(turn)
  started.state = 'running'
  started.startedAt = draft.now
  started.deadline = turn.deadline === null ? ends : Math.min(turn.deadline, ends)
  draft.noteDue(started.deadline)
  const conversation = draft.ownConversation(draft.conversation(turn.conversationId))
  conversation.activeTurnId = turn.id
  draft.event(started, null, { type: 'run-start', agent: conversation.agent.name })
  const ready = draft.ownNode(entry)
  ready.blockers--
  if (isRunnable(ready, draft.now)) draft.claim(ready)
  else if (ready.wakeAt !== null) draft.noteDue(ready.wakeAt)
  return started
}

/** Starts the turn if its lane is free and the limits let it run. */
export function startIfIdle(draft: Draft, turn: Turn): void {
  if (turn.state !== 'queued') return
  const conversation = draft.conversation(turn.conversationId)
  if (conversation.activeTurnId !== null) return
  const link = conversation.type === 'sub_agent' ? draft.findLink(turn.id) : undefined
  if (link !== undefined && !link.released) return
  startTurn(draft, turn)
}

/** The bounds of a turn that is put in by hand. */
export interface TurnBounds {
  readonly limits: TurnLimits
  /** The spending limit; left out or null: no limit. */
  readonly money?: Spending['limit'] | null
  /** How many delegations it and all below it may have at a time; left out or null: no limit. */
  readonly treeLimit?: number | null
}

/** Who asks for a new turn. */
export interface Asked {
  /** The layers of whoever asks. They bind the new turn beside those of the turn it is made from (I1). */
  readonly caller: Turn['ceiling']
  /** The bounds of a turn under these layers. */
  readonly boundsUnder: (ceiling: Turn['ceiling']) => TurnBounds
}

export interface HandMadeTurn extends TurnBounds {
  readonly ceiling: Turn['ceiling']
  readonly input?: Json
  readonly attributes?: Turn['attributes']
  readonly history?: TurnHistory | null
}

/** Begins a turn without nodes; its lane must be idle. */
export function beginTurn(draft: Draft, conversation: Conversation, given: HandMadeTurn): Turn {
  const id = draft.freshId()
  const turn: Turn = {
    ...newTurn(draft, conversation, {
      id,
      entryNodeId: id,
      limits: given.limits,
      input: given.input ?? null,
      deadline: null,
      spend: given.money ? newSpend(given.money) : null,
      tree: newTreePlaces(given.treeLimit ?? null),
      attributes: given.attributes ?? null,
      ceiling: given.ceiling,
      ...(given.history === undefined ? {} : { history: given.history }),
    }),
    state: 'running',
    deadline: draft.now + given.limits.wallMs,
    startedAt: draft.now,
  }
  if (turn.deadline !== null) draft.noteDue(turn.deadline)
  draft.addTurn(turn)
  draft.changeConversation(conversation, { turnCount: conversation.turnCount + 1, activeTurnId: id })
  draft.event(turn, null, { type: 'run-start', agent: conversation.agent.name })
  return turn
}

/** Adds the layers of somebody who puts work into a turn that runs: the work has no more than they have (I1). */
export function bindTurn(draft: Draft, turn: Turn, caller: Turn['ceiling']): Turn {
  const ceiling = stackCeilings(turn.ceiling, caller)
  return ceiling === turn.ceiling ? turn : draft.changeTurn(turn, { ceiling })
}
