// Spawning: a task starts its child, in one commit.
//
// Owns:      the refusals by depth, number and session, the child's conversation, turn and link, and the parking of its task.
// Called by: `delegation/spawn`, the one function that starts children (I8), also for children that start in the commit of an
//            answer; `eager` for items of a plan.
// Must stay true:
//   - The child's ids derive from the task, so a repeated spawn finds the child it made before: exactly one, whatever crashed.
//   - A waiting host is a row (I5): the task is parked in the commit that starts the child.
//   - A child is bound by the frozen layers of its host's conversation and turn (I1). A session is bound by everything that
//     bound its conversation before, and each of its turns by the turn of its host that asked for it.
//   - A session that is not the caller's own answers like one that does not exist (I9).

import { deriveIds } from '../../base/id.ts'
import { canonicalJson, type Json } from '../../base/json.ts'
import type { Own } from '../../base/keep-shape.ts'
import { ceilingBelow, stackCeilings } from '../../grant/ceiling.ts'
import type { Content } from '../../graph/content.ts'
import type { Draft } from '../../graph/draft.ts'
import { type Forward, forwardOf, sameForward, withForward } from '../../graph/event.ts'
import { changedAccount, type Spending, type TurnLimits } from '../../graph/limits.ts'
import { originOf, subagentOf } from '../../graph/outcome.ts'
import { copyOfLink, USUAL_LINK } from '../../graph/rows.made.ts'
import type { AgentRef, Conversation, Id, Link, Node, NodeOutput, Turn } from '../../graph/rows.ts'
import { type Claim, heldNode } from '../turn/claim.ts'
import { endNode } from '../turn/end-node.ts'
import { openTurn, type TurnBriefing } from '../turn/open-turn.ts'
import { newConversation } from '../turn/say.ts'
import { deliver, keepInBackground } from './background.ts'
import { foldInto } from './fold.ts'
import { mayRun, takePlace, treeBelow } from './release.ts'
import {
  beginSession,
  forkSession,
  isClosed,
  isOwnDocument,
  isOwnersDocument,
  type ResolvedSession,
  resolveSession,
  type SessionPlan,
  sessionFault,
  sessionToClose,
  unknownSession,
} from './session.ts'
import { parkJoin, watchHosts } from './wait.ts'

export interface SpawnRequest {
  readonly claim: Claim
  /** Derived from the task and what its call is known by: see `childIds`. */
  readonly ids: ChildIds
  readonly mode: Link['mode']
  readonly contract: Link['contract']
  readonly agent: AgentRef
  readonly hostName: string
  readonly toolName: string
  readonly input: Json
  readonly content: Content
  readonly asked?: Json | undefined
  readonly briefing: string | TurnBriefing | null
  readonly delegationContext: Json
  /** The layers of the child's conversation. Its turn takes over those of its host's turn. */
  readonly ceiling: readonly Json[]
  readonly limits: TurnLimits
  readonly money: Spending['limit'] | null
  readonly onParentClose: Link['onParentClose']
  /** How many delegations the child and all below it may have at a time; left out: no limit of its own. */
  readonly treeLimit?: number | null
  readonly keyed?: Link['keyed']
  readonly retry?: Link['retry']
  /** The child conversation to continue; null for a new one. */
  readonly sessionId: Id | null
  /** True where all delegations of this tool in the host's conversation share one child conversation. */
  readonly isShared: boolean
  /** How a host that does not wait learns of the child's end: see Link. */
  readonly wake: Link['wake']
  /** After how long a call that waits for its child continues without it; null for never. */
  readonly promoteAfterMs: number | null
  /** For mode `background`. */
  readonly background: BackgroundSpawn | null
  /** The settings of a conversation that its host can continue; left out for other children. */
  readonly session?: SessionPlan | undefined
  /** Which of its events its host's readers see; left out: all. */
  readonly forward?: Forward | null
}

export interface BackgroundSpawn {
  /** The metadata of a new conversation, instead of that of an ordinary child. */
  readonly metadata: Conversation['metadata'] | null
  readonly title: string | null
  /** The result with which the task ends at once; null when its code continues or it waits. */
  readonly result: NodeOutput | null
  /** Set when the task waits for the child: the longest time. */
  readonly wait: { readonly timeoutMs: number | null } | null
}

export type SpawnOutcome = { readonly link: Link } | SpawnRefusal | { readonly lost: true }

interface SpawnRefusal {
  readonly refused: 'depth' | 'children' | 'session' | 'stopped' | 'changed'
  readonly reason: string
}

/**
 * Starts the child and parks its host in one commit: conversation, turn, seed nodes, link, waiting task. The child's ids derive
 * from the task, so a repeated spawn finds the child it made before (exactly one, whatever crashed).
 */
export function planSpawn(draft: Draft, request: SpawnRequest, claim = request.claim): SpawnOutcome {
  const task = heldNode(draft, claim)
  if (task === undefined) return { lost: true }
  const { ids } = request
  const known = draft.findLink(ids.turn)
  if (known !== undefined && !isSame(draft, known, request)) {
    return { refused: 'changed', reason: 'this call asked for something else before it was interrupted' }
  }
  if (known !== undefined) return { link: attach(draft, task, { link: known, request }) }
  const host = draft.turn(task.turnId)
  const refused = task.marks?.stop == null ? spawnRefusal(draft, host, request) : STOPPED
  return refused ?? { link: startChild(draft, task, request) }
}

/** Starts a child that passed all checks. */
export function startChild(draft: Draft, task: Node, request: SpawnRequest): Link {
  const { ids } = request
  const host = draft.turn(task.turnId)
  if (request.mode === 'parked') draft.unclaim(task)
  const meant = findSession(draft, host, request)
  const newChild = { task, host, ids, request: withSession(draft, task, { request, meant }) }
  const link = addLink(draft, newChild)
  const child = childConversation(draft, newChild)
  if (request.isShared) keepSession(draft, host, { toolName: request.toolName, id: child.id })
  openTurn(draft, child, {
    turnId: ids.turn,
    nodeIds: request.briefing === null ? ids.nodes.slice(1) : ids.nodes,
    input: request.input,
    content: request.content,
    asked: request.asked,
    briefing: request.briefing,
    limits: request.limits,
    deadline: host.deadline,
    money: request.money,
    tree: treeBelow(host, request.treeLimit ?? null),
    mayStart: link.released,
    ceiling: ceilingBelow(host.ceiling),
  })
  if (ids.requestHash !== undefined) draft.ownTurn(draft.turn(ids.turn)).requestHash = ids.requestHash
  leaveTask(draft, task, { link, request })
  return draft.link(link.id)
}

export interface ChildIds {
  /** The request of the call, if code gave the call a key; left out for all others. */
  readonly requestHash?: string
  readonly turn: Id
  readonly conversation: Id
  readonly nodes: readonly Id[]
}

/** The ids of the child of a task. One task starts several only by code: `delegation/call-ids` names the calls of code. */
export function childIds(taskId: Id, call: number | string): ChildIds {
  const [turn = '', conversation = '', ...nodes] = deriveIds(taskId, `child/${call}`, 5)
  return { turn, conversation, nodes }
}

/** Records that code inside a task has the child's outcome. */
export function planDeliver(draft: Draft, linkId: Id): void {
  const link = draft.link(linkId)
  if (link.deliveredTo === null) deliver(draft, link, link.taskId)
}

export function spawnRefusal(draft: Draft, host: Turn, request: SpawnRequest): SpawnRefusal | undefined {
  const { account, limits } = host
  if (host.cancel !== null) return { refused: 'stopped', reason: 'this run was asked to stop' }
  const depth = draft.conversation(host.conversationId).depth + 1
  if (depth > limits.depth) {
    return {
      refused: 'depth',
      reason: `${depth > 1 ? 'Subagents cannot create other subagents: ' : ''}delegation is ${depth} deep and the limit is ${limits.depth}. Do this work yourself`,
    }
  }
  if (account.children >= limits.children) {
    return {
      refused: 'children',
      reason: `this run has started ${account.children} subagents, its limit. Use what they gave`,
    }
  }
  const reason = sessionRefusal(draft, host, { request, meant: findSession(draft, host, request) })
  return reason === undefined ? undefined : { refused: 'session', reason }
}

/** Leaves an event of a delegation that a limit refused: else nobody who looks at the run could tell. */
export function tellLimit(draft: Draft, { claim, agent }: SpawnRequest, { refused, reason }: SpawnRefusal): void {
  if (refused !== 'children' && refused !== 'depth') return
  const task = heldNode(draft, claim)
  if (task === undefined) return
  const message = `The delegation to "${agent.name}" was refused: ${reason.split('. ')[0]}.`
  draft.event(draft.turn(task.turnId), task.id, { type: 'budget', limit: refused, message })
}

const STOPPED: SpawnRefusal = { refused: 'stopped', reason: 'this call was asked to stop' }

interface SessionRequest {
  readonly request: SpawnRequest
  readonly meant: ResolvedSession | undefined
}

/** The session that the call names, or the conversation of this tool's earlier delegations, if its agent is unchanged. */
function findSession(draft: Draft, host: Turn, request: SpawnRequest): ResolvedSession | undefined {
  const { sessionId, isShared, toolName, agent } = request
  if (sessionId !== null) return ownSession(resolveSession(draft, host, sessionId), agent.name)
  const known = isShared ? keptSession(draft.conversation(host.conversationId), toolName) : undefined
  const meant = known === undefined ? undefined : ownSession(resolveSession(draft, host, known), agent.name)
  return meant === undefined || isClosed(meant.session) ? undefined : meant
}

/** I9: a session of another host, of another agent and an unknown one all give the same answer. */
function ownSession(meant: ResolvedSession | undefined, agentName: string): ResolvedSession | undefined {
  return meant?.session.agent.name === agentName ? meant : undefined
}

function withSession(draft: Draft, task: Node, { request, meant }: SessionRequest): SpawnRequest {
  // A session of another conversation of the owner begins anew, as a copy of its past.
  if (meant === undefined && isCopied(draft, draft.turn(task.turnId), request)) return { ...request, sessionId: null }
  if (meant === undefined) return request
  const session = meant.forkAfter === null ? meant.session : forkSession(draft, task, meant)
  return session.id === request.sessionId ? request : { ...request, sessionId: session.id }
}

function keepSession(draft: Draft, host: Turn, { toolName, id }: { toolName: string; id: Id }): void {
  const conversation = draft.conversation(host.conversationId)
  const sessions = sessionsOf(conversation)
  if (keptSession(conversation, toolName) === id) return
  draft.changeConversation(conversation, {
    metadata: { ...conversation.metadata, sessions: { ...sessions, [toolName]: id } },
  })
}

function keptSession(conversation: Conversation, toolName: string): Id | undefined {
  const sessions = sessionsOf(conversation)
  return Object.hasOwn(sessions, toolName) ? sessions[toolName] : undefined
}

function sessionsOf({ metadata }: Conversation): { readonly [toolName: string]: Id } {
  return (metadata['sessions'] ?? {}) as { readonly [toolName: string]: Id }
}

function sessionRefusal(draft: Draft, host: Turn, { request, meant }: SessionRequest): string | undefined {
  const { sessionId, session } = request
  if (sessionId === null) return session === undefined ? undefined : noRoom(draft, host, request)
  const isCopy = meant === undefined && isCopied(draft, host, request)
  if (meant === undefined && !isCopy && !isDocumented(draft, host, request)) {
    const words = unknownSession(draft.conversation(host.conversationId), session?.scope ?? 'host', sessionId)
    return `${words}. Leave session_id out to start one`
  }
  const fault = session === undefined ? undefined : sessionFault(draft, asHostKnows(draft, host, meant), session)
  if (fault !== undefined) return `${fault}. Leave session_id out to start another`
  return isCopy ? noRoom(draft, host, request) : undefined
}

/** Reopens a session that was closed after the lane was forked: for the lane it is open. */
function asHostKnows(draft: Draft, host: Turn, meant: ResolvedSession | undefined): Conversation | undefined {
  if (meant === undefined || meant.forkAfter === null) return meant?.session
  const { closed_at: closedAt, ...metadata } = meant.session.metadata
  const { createdAt } = draft.conversation(host.conversationId)
  return typeof closedAt === 'number' && closedAt >= createdAt ? { ...meant.session, metadata } : meant.session
}

/** True where its rows are missing and its document shows that it belongs to this conversation. */
function isDocumented(draft: Draft, host: Turn, { agent, hostName, session, sessionId }: SpawnRequest): boolean {
  const document = session?.isElsewhere === true ? null : (session?.document ?? null)
  if (document === null || draft.findConversation(sessionId ?? '') !== undefined) return false
  return isOwnDocument(draft.conversation(host.conversationId), { document, agentName: agent.name, hostName })
}

/** True where its document belongs to another conversation of the same owner. */
function isCopied(draft: Draft, host: Turn, request: SpawnRequest): boolean {
  const { agent, session, sessionId } = request
  if (sessionId === null || session === undefined || isDocumented(draft, host, request)) return false
  return isOwnersDocument(draft.conversation(host.conversationId), session, agent.name)
}

function noRoom(draft: Draft, host: Turn, { toolName, session }: SpawnRequest): string | undefined {
  if (session === undefined) return undefined
  const way = sessionToClose(draft, draft.conversation(host.conversationId), { tool: toolName, max: session.max })
  return typeof way === 'string' ? way : undefined
}

/** A repeated delegation must be the original one: its child may not answer another question. */
function isSame(draft: Draft, link: Link, request: SpawnRequest): boolean {
  if (link.agentName !== request.agent.name) return false
  return canonicalJson(draft.turn(link.id).input) === canonicalJson(request.input)
}

interface NewChild {
  readonly task: Node
  readonly host: Turn
  readonly request: SpawnRequest
  readonly ids: ChildIds
}

function childConversation(draft: Draft, { task, host, request, ids }: NewChild): Conversation {
  const known = request.sessionId === null ? undefined : draft.findConversation(request.sessionId)
  if (known !== undefined) return continueSession(draft, known, request)
  const parent = draft.conversation(host.conversationId)
  const child = newConversation(
    {
      id: request.sessionId ?? ids.conversation,
      type: 'sub_agent',
      depth: parent.depth + 1,
      agent: request.agent,
      path: parent.path.concat(request.agent.name),
      parentConversationId: parent.id,
      parentTurnId: host.id,
      parentTaskId: task.id,
      owner: parent.owner,
      ceiling: stackCeilings(request.ceiling, request.session?.ceiling ?? NO_LAYERS),
      title: request.background?.title ?? null,
      metadata: withForward(
        request.background?.metadata ?? {
          subagent: originOf(request.agent.name, parent.id, task.id),
        },
        request.forward ?? null,
      ),
    },
    parent.rootId,
    draft.now,
  )
  draft.addConversation(child)
  if (request.session === undefined) return child
  const { toolName, session, limits } = request
  beginSession(draft, child, {
    tool: toolName,
    plan: session,
    nextTurnId: ids.turn,
    limits,
    ceiling: ceilingBelow(host.ceiling),
  })
  return draft.conversation(child.id)
}

const NO_LAYERS: readonly Json[] = []

/** Continues a session: everything that bound its conversation binds it still, and the new offer too. */
function continueSession(draft: Draft, session: Conversation, request: SpawnRequest): Conversation {
  const ceiling = stackCeilings(session.ceiling, request.ceiling)
  const forwarded = sameForward(forwardOf(session), request.forward ?? null)
  if (ceiling === session.ceiling && forwarded) return session
  const metadata = forwarded ? session.metadata : withForward(session.metadata, request.forward ?? null)
  return draft.changeConversation(session, { ceiling, metadata })
}

function addLink(draft: Draft, { task, host, request, ids }: NewChild): Link {
  const link = copyOfLink(USUAL_LINK, 1)
  link.id = ids.turn
  link.rootId = host.rootId
  link.taskId = task.id
  link.hostTurnId = host.id
  link.hostConversationId = host.conversationId
  link.childConversationId = request.sessionId ?? ids.conversation
  link.contract = request.contract
  link.agentName = request.agent.name
  link.hostName = request.hostName
  link.toolName = request.toolName
  link.depth = draft.conversation(host.conversationId).depth + 1
  link.mode = request.mode
  link.wake = request.wake
  link.onParentClose = request.onParentClose
  link.keyed = request.keyed ?? null
  link.retry = request.retry ?? null
  link.delegationContext = request.delegationContext
  return addDelegation(draft, host, link)
}

interface StartedChild {
  readonly link: Link
  readonly request: SpawnRequest
}

/** Decides what the delegating task does now: park, wait, end or continue. */
function leaveTask(draft: Draft, task: Node, { link, request }: StartedChild): void {
  if (link.mode === 'parked') return park(draft, task, { link, request })
  const child = subagentOf(link.childConversationId)
  const { result = null, wait = null } = request.background ?? {}
  const { metadata } = draft.node(task.id)
  const named = draft.changeNode(task, { metadata: { ...metadata, subagent: child } })
  if (wait !== null) {
    const until = wait.timeoutMs === null ? null : draft.now + wait.timeoutMs
    parkJoin(draft, named, { refs: [link.id], join: 'settled', until, losers: 'leave' })
  } else if (result !== null) endNode(draft, named, { state: 'finished', output: { ...result, subagent: child } })
}

/** A parked task holds no worker: it waits as a row until its child's end commit answers it (I5). */
function park(draft: Draft, task: Node, { link, request }: StartedChild): void {
  const { promoteAfterMs } = request
  const until = promoteAfterMs === null ? null : draft.now + promoteAfterMs
  if (until !== null) draft.noteDue(until)
  const child = subagentOf(link.childConversationId)
  draft.changeNode(task, {
    state: 'waiting',
    engineId: null,
    wait: { on: 'children', refs: [link.id], join: 'all', until },
    wakeAt: until,
    metadata: isPlain(task) ? { subagent: child } : { ...task.metadata, subagent: child },
    output: { subagent: child },
  })
  if (draft.turn(link.id).state !== 'queued') return
  watchHosts(draft, task.turnId)
}

/** Joins a task that runs again after a crash with the child it already started. */
function attach(draft: Draft, task: Node, { link, request }: StartedChild): Link {
  if (link.mode !== 'parked') return link
  if (link.outcome === null) {
    park(draft, task, { link, request })
    return link
  }
  endNode(draft, task, { state: 'finished', output: foldInto(draft, task, link) })
  return draft.changeLink(link, { deliveredTo: task.id })
}

/** Plain metadata is the usual case and is set without a copy, so that all rows stay alike (base/keep-shape). */
function isPlain({ metadata }: Node): boolean {
  for (const _ in metadata) return false
  return true
}

/** Adds a delegation to a run: counts it, records its event, and lets it run or queues it. */
export function addDelegation(draft: Draft, host: Turn, link: Own<Link>): Link {
  const { account } = host
  const { keyed } = link
  const released = mayRun(draft, host, keyed)
  link.ordinal = account.children
  link.released = released
  draft.addLink(link)
  if (link.mode === 'background') keepInBackground(draft, link)
  const isPassed = released || (keyed !== null && account.nextRelease === account.children)
  draft.changeTurn(host, {
    account: changedAccount(account, {
      children: account.children + 1,
      live: released ? account.live + 1 : account.live,
      nextRelease: isPassed ? account.nextRelease + 1 : account.nextRelease,
    }),
  })
  if (keyed !== null || host.tree !== null) takePlace(draft, link)
  draft.event(draft.turn(host.id), link.taskId, {
    type: 'delegation-start',
    agent: link.agentName,
    tool: link.toolName,
    childConversationId: link.childConversationId,
    childRunId: link.id,
  })
  return link
}
