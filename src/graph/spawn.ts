import { deriveIds } from '../base/id.ts'
import { canonicalJson, type Json } from '../base/json.ts'
import { type Claim, heldNode } from './claim.ts'
import type { Content } from './content.ts'
import { changedAccount } from './copy.ts'
import type { Draft } from './draft.ts'
import { endNode } from './end-node.ts'
import { foldInto } from './fold-into.ts'
import { openTurn, type TurnBriefing } from './open-turn.ts'
import type { AgentRef, Conversation, Id, Link, Node, Spend, Turn, TurnLimits } from './rows.ts'
import { newConversation, stacked } from './say.ts'
import { settle } from './settle.ts'

export interface SpawnRequest {
  readonly claim: Claim
  /** Derived from the task and which of its delegations this is: see `childIds`. */
  readonly ids: ChildIds
  readonly mode: Link['mode']
  readonly contract: Link['contract']
  readonly agent: AgentRef
  readonly hostName: string
  readonly toolName: string
  readonly input: Json
  readonly content: Content
  readonly briefing: string | TurnBriefing | null
  readonly delegationContext: Json
  readonly ceiling: readonly Json[]
  readonly limits: TurnLimits
  readonly money: Spend['limit'] | null
  readonly onParentClose: Link['onParentClose']
  /** A child conversation to go on with; null for a new one. */
  readonly sessionId: Id | null
  /** One child conversation for all delegations of this tool in the host's conversation. */
  readonly isShared: boolean
}

export type Spawned =
  | { readonly link: Link }
  | { readonly refused: 'depth' | 'children' | 'session' | 'stopped' | 'changed'; readonly reason: string }
  | { readonly lost: true }

/**
 * The child and the waiting of its host in one commit: conversation, turn, seed nodes, link, task parked. The child's ids
 * come from the task, so a repeated spawn finds the child it made before (exactly one, whatever crashed).
 */
export function planSpawn(draft: Draft, request: SpawnRequest): Spawned {
  const task = heldNode(draft, request.claim)
  if (task === undefined) return { lost: true }
  const { ids } = request
  const known = draft.findLink(ids.turn)
  if (known !== undefined && !isSame(draft, known, request)) {
    return { refused: 'changed', reason: 'this call asked for something else before it was interrupted' }
  }
  if (known !== undefined) return { link: attach(draft, task, known) }
  const host = draft.turn(task.turnId)
  const refused = refusal(draft, host, request)
  if (refused !== undefined) return refused
  const making = { task, host, ids, request: request.isShared ? withSession(draft, host, request) : request }
  const link = addLink(draft, making)
  const child = childConversation(draft, making)
  if (request.isShared) keepSession(draft, host, { toolName: request.toolName, id: child.id })
  openTurn(draft, child, {
    turnId: ids.turn,
    nodeIds: request.briefing === null ? ids.nodes.slice(1) : ids.nodes,
    input: request.input,
    content: request.content,
    briefing: request.briefing,
    limits: request.limits,
    deadline: host.deadline,
    money: request.money,
    mayStart: link.released,
  })
  park(draft, task, link)
  return { link }
}

export interface ChildIds {
  readonly turn: Id
  readonly conversation: Id
  readonly nodes: readonly Id[]
}

export function childIds(taskId: Id, ordinal: number): ChildIds {
  const [turn = '', conversation = '', ...nodes] = deriveIds(taskId, `child/${ordinal}`, 5)
  return { turn, conversation, nodes }
}

/** Code inside a task has the child's outcome now. */
export function planDeliver(draft: Draft, linkId: Id): void {
  const link = draft.link(linkId)
  if (link.deliveredTo === null) draft.changeLink(link, { deliveredTo: link.taskId })
}

function refusal(draft: Draft, host: Turn, request: SpawnRequest): Spawned | undefined {
  const { account, limits } = host
  if (host.cancel !== null) return { refused: 'stopped', reason: 'this run was asked to stop' }
  const depth = draft.conversation(host.conversationId).depth + 1
  if (depth > limits.depth) {
    return {
      refused: 'depth',
      reason: `delegation is ${depth} deep and the limit is ${limits.depth}. Do this work yourself`,
    }
  }
  if (account.children >= limits.children) {
    return {
      refused: 'children',
      reason: `this run has started ${account.children} subagents, its limit. Use what they gave`,
    }
  }
  if (request.sessionId !== null && !isOwnSession(draft, host, request)) {
    return { refused: 'session', reason: `there is no session ${request.sessionId}. Leave session_id out to start one` }
  }
  return undefined
}

/** The conversation that this tool's earlier delegations made here, if its agent is still the same. */
function withSession(draft: Draft, host: Turn, request: SpawnRequest): SpawnRequest {
  const known = sessionsOf(draft.conversation(host.conversationId))[request.toolName]
  const agent = known === undefined ? undefined : draft.findConversation(known)?.agent.name
  return known !== undefined && agent === request.agent.name ? { ...request, sessionId: known } : request
}

function keepSession(draft: Draft, host: Turn, { toolName, id }: { toolName: string; id: Id }): void {
  const conversation = draft.conversation(host.conversationId)
  const sessions = sessionsOf(conversation)
  if (sessions[toolName] === id) return
  draft.changeConversation(conversation, {
    metadata: { ...conversation.metadata, sessions: { ...sessions, [toolName]: id } },
  })
}

function sessionsOf({ metadata }: Conversation): { readonly [toolName: string]: Id } {
  return (metadata['sessions'] ?? {}) as { readonly [toolName: string]: Id }
}

/** I9: a session of another host, agent or nobody are all the same answer. */
function isOwnSession(draft: Draft, host: Turn, request: SpawnRequest): boolean {
  const session = draft.findConversation(request.sessionId ?? '')
  return session?.parentConversationId === host.conversationId && session.agent.name === request.agent.name
}

/** A repeated delegation must be the one it was: its child may not answer another question. */
function isSame(draft: Draft, link: Link, request: SpawnRequest): boolean {
  if (link.agentName !== request.agent.name) return false
  return canonicalJson(draft.turn(link.id).input) === canonicalJson(request.input)
}

interface Making {
  readonly task: Node
  readonly host: Turn
  readonly request: SpawnRequest
  readonly ids: ChildIds
}

function childConversation(draft: Draft, { task, host, request, ids }: Making): Conversation {
  if (request.sessionId !== null) return continued(draft, draft.conversation(request.sessionId), request)
  const parent = draft.conversation(host.conversationId)
  const child = newConversation(
    {
      id: ids.conversation,
      type: 'sub_agent',
      depth: parent.depth + 1,
      agent: request.agent,
      path: [...parent.path, request.agent.name],
      parentConversationId: parent.id,
      parentTurnId: host.id,
      parentTaskId: task.id,
      owner: parent.owner,
      ceiling: request.ceiling,
      metadata: {
        subagent: {
          name: request.agent.name,
          parent_conversation_id: parent.id,
          parent_graph_id: parent.id,
          spawned_from_node_id: task.id,
        },
      },
    },
    parent.rootId,
    draft.now,
  )
  draft.addConversation(child)
  return child
}

/** A session is bound by all that bound it before, and by how it is asked for now. */
function continued(draft: Draft, session: Conversation, request: SpawnRequest): Conversation {
  const ceiling = stacked(session.ceiling, request.ceiling)
  return ceiling === session.ceiling ? session : draft.changeConversation(session, { ceiling })
}

function addLink(draft: Draft, { task, host, request, ids }: Making): Link {
  const { account, limits } = host
  const released = account.live < limits.concurrency && account.nextRelease === account.children
  const childConversationId = request.sessionId ?? ids.conversation
  const link: Link = {
    id: ids.turn,
    version: 1,
    rootId: host.rootId,
    taskId: task.id,
    hostTurnId: host.id,
    hostConversationId: host.conversationId,
    childConversationId,
    ordinal: account.children,
    contract: request.contract,
    agentName: request.agent.name,
    hostName: request.hostName,
    toolName: request.toolName,
    depth: draft.conversation(host.conversationId).depth + 1,
    mode: request.mode,
    onParentClose: request.onParentClose,
    released,
    delegationContext: request.delegationContext,
    outcome: null,
    deliveredTo: null,
  }
  draft.addLink(link)
  draft.changeTurn(host, {
    account: changedAccount(account, {
      children: account.children + 1,
      live: released ? account.live + 1 : account.live,
      nextRelease: released ? account.nextRelease + 1 : account.nextRelease,
    }),
  })
  draft.event(host, task.id, {
    type: 'delegation-start',
    agent: link.agentName,
    tool: link.toolName,
    childConversationId,
    childRunId: link.id,
  })
  return link
}

/** A parked task holds no worker: it waits as a row until its child's end commit answers it (I5). */
function park(draft: Draft, task: Node, link: Link): void {
  if (link.mode !== 'parked') return
  const child = { child_conversation_id: link.childConversationId, child_graph_id: link.childConversationId }
  draft.changeNode(task, {
    state: 'waiting',
    engineId: null,
    wait: { on: 'children', refs: [link.id], join: 'all', until: null },
    metadata: task.metadata['approvedBy'] === undefined ? { subagent: child } : { ...task.metadata, subagent: child },
    output: { subagent: child },
  })
}

/** The task was run again after a crash and its child is already there. */
function attach(draft: Draft, task: Node, link: Link): Link {
  if (link.mode !== 'parked') return link
  if (link.outcome === null) {
    park(draft, task, link)
    return link
  }
  endNode(draft, task, { state: 'finished', output: foldInto(draft, task, link) })
  settle(draft)
  return draft.changeLink(link, { deliveredTo: task.id })
}
