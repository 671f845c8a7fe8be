// Sessions: conversations with a subagent that a host's model continues by a `session_id`.
//
// Owns:      which session an id means (`resolveSession`), the words for one that is not the caller's (`unknownSession`), the
//            list of open sessions in the host's metadata, and which session is closed for want of room.
// Called by: `rules/delegation/spawn` before a child starts, `delegation/background/start-child`, `conversation`, and
//            `agent/request/build-request`, which lists open sessions for the model.
// Must stay true (I9):
//   - A session that is not the caller's gives the same words as one that does not exist.
//   - A lane that was forked knows a session as it was then: the session is forked on first use, never shared.
//   - A closed session stays readable, and nobody can continue it.

import { deriveIds } from '../../base/id.ts'
import type { Json } from '../../base/json.ts'
import type { Draft } from '../../graph/draft.ts'
import { headOf, isSkipped, PLAIN_LANE } from '../../graph/lane.ts'
import type { TreeReader } from '../../graph/reader.ts'
import type { Conversation, Id, LanePlace, Link, Node, Turn } from '../../graph/rows.ts'
import { newConversation } from '../turn/say.ts'
import { addPastTurns, type PastTurns } from './restore-session.ts'
import type { SessionDocument } from './session-document.ts'

/** A session as its host's conversation lists it. */
export interface ListedSession {
  readonly id: Id
  /** The tool that continues it. */
  readonly tool: string
  /** How long it may be idle; null for ever. */
  readonly ttlMs: number | null
}

/** The settings that a host gives to the sessions of one subagent. */
export interface SessionPlan {
  readonly ttlMs: number | null
  /** How many of them may be open at once in a conversation of the host. */
  readonly max: number | null
  readonly scope: 'host' | 'owner'
  /** The document of the requested session, where its rows are missing or belong to another conversation. */
  readonly document: SessionDocument | null
  /** True where its rows exist elsewhere: it can be copied, but not restored under its id. */
  readonly isElsewhere: boolean
  /** The layers that bind the original: a copy stays bound by them. */
  readonly ceiling: readonly Json[]
}

/** How many sessions a conversation lists: the newest. Older ones can still be continued. */
const MOST_LISTED = 64

/** The open sessions of a conversation, the newest last. */
function heldSessions({ metadata }: Conversation): readonly ListedSession[] {
  const list = metadata[KEY]
  return Array.isArray(list) ? list.flatMap(readHeld) : []
}

const KEY = 'held_sessions'

function readHeld(value: Json): ListedSession[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return []
  const { id, tool, ttl_ms: ttlMs } = value
  if (typeof id !== 'string' || typeof tool !== 'string') return []
  return [{ id, tool, ttlMs: typeof ttlMs === 'number' ? ttlMs : null }]
}

function putHeld(draft: Draft, conversation: Conversation, held: readonly ListedSession[]): void {
  const list = held
    .slice(-MOST_LISTED)
    .map(({ id, tool, ttlMs }) => (ttlMs === null ? { id, tool } : { id, tool, ttl_ms: ttlMs }))
  draft.changeConversation(conversation, { metadata: { ...conversation.metadata, [KEY]: list } })
}

/** Replaces a session in the list by its fork. */
function renameHeld(draft: Draft, host: Conversation, { from, to }: { from: Id; to: Id }): void {
  const held = heldSessions(host)
  if (!held.some(({ id }) => id === from)) return
  putHeld(
    draft,
    host,
    held.map((one) => (one.id === from ? { ...one, id: to } : one)),
  )
}

/** Sets up a new conversation that its host can continue: lists it, and adds its known past. */
export function beginSession(
  draft: Draft,
  child: Conversation,
  { tool, plan, ...next }: Omit<PastTurns, 'document'> & { readonly tool: string; readonly plan: SessionPlan },
): void {
  const host = draft.conversation(child.parentConversationId ?? '')
  const way = sessionToClose(draft, host, { tool, max: plan.max })
  if (way !== null && typeof way !== 'string') closeSession(draft, way)
  const current = draft.conversation(host.id)
  putHeld(draft, current, [...heldSessions(current), { id: child.id, tool, ttlMs: plan.ttlMs }])
  const { document } = plan
  if (document === null) return
  if (document.session_id !== child.id) {
    draft.changeConversation(child, { metadata: { ...child.metadata, copied_from: document.session_id } })
  }
  addPastTurns(draft, draft.conversation(child.id), { document, ...next })
}

/** Tells why a host cannot continue its own session; undefined when it can. Only its document may be known. */
export function sessionFault(draft: Draft, session: Conversation | undefined, plan: SessionPlan): string | undefined {
  const { ttlMs, document } = plan
  const id = session?.id ?? document?.session_id ?? ''
  const isOver = session === undefined ? (document?.closed_at ?? null) !== null : isClosed(session)
  if (isOver) return `the session ${id} was closed`
  if (session?.lane != null && session.lane.archivedAt !== null) return `the session ${id} was archived`
  const usedAt = Date.parse(document?.updated_at ?? '')
  const idle = session === undefined ? draft.now - usedAt : idleMs(draft.stored, session, draft.now)
  // A document without a time of last use may be of any age.
  const isFresh = ttlMs === null || idle <= ttlMs
  return isFresh ? undefined : `the session ${id} has expired`
}

/** How long nobody has used it; 0 while it works. */
function idleMs(reader: TreeReader, { id, activeTurnId, createdAt }: Conversation, now: number): number {
  if (activeTurnId !== null) return 0
  const last = lastTurn(reader, id)
  if (last !== undefined && last.state !== 'ended') return 0
  return now - (last?.endedAt ?? createdAt)
}

function lastTurn(reader: TreeReader, id: Id): Turn | undefined {
  return reader.turnsOf(id, { limit: 1 })[0]
}

/**
 * The session to close before another can start: the one that was idle longest. A text when none can be closed; null when there
 * is room.
 */
export function sessionToClose(
  draft: Draft,
  host: Conversation,
  { tool, max }: { tool: string; max: number | null },
): Conversation | string | null {
  if (max === null) return null
  const open = openSessions(draft.stored, host, draft.now).filter((held) => held.tool === tool)
  if (open.length < max) return null
  const idle = open.filter(({ isBusy }) => !isBusy).sort((a, b) => a.usedAt - b.usedAt)[0]
  if (idle !== undefined) return draft.conversation(idle.id)
  return `${max} sessions are open, the limit, and all are busy. Go on in one of them, or wait`
}

export function isClosed({ metadata }: Conversation): boolean {
  return metadata['closed_at'] !== undefined
}

/** Closes a session: it stays readable, and nobody can continue it. */
export function closeSession(draft: Draft, session: Conversation): void {
  if (isClosed(session)) return
  draft.changeConversation(session, { metadata: { ...session.metadata, closed_at: draft.now } })
  const host = session.parentConversationId === null ? undefined : draft.findConversation(session.parentConversationId)
  if (host === undefined) return
  const held = heldSessions(host)
  if (held.some(({ id }) => id === session.id))
    putHeld(
      draft,
      host,
      held.filter(({ id }) => id !== session.id),
    )
}

export interface OpenSession {
  readonly id: Id
  readonly tool: string
  readonly agent: string
  readonly turns: number
  /** The first request to it. */
  readonly about: string
  readonly isBusy: boolean
  readonly usedAt: number
  readonly expiresAt: number | null
}

/** The sessions of a conversation that can be continued, the newest last. */
export function openSessions(reader: TreeReader, host: Conversation, now: number): OpenSession[] {
  return heldSessions(host).flatMap((held) => {
    const session = reader.conversation(held.id)
    if (session === undefined || isClosed(session)) return []
    const idle = idleMs(reader, session, now)
    if (held.ttlMs !== null && idle > held.ttlMs) return []
    const usedAt = now - idle
    return [
      {
        id: held.id,
        tool: held.tool,
        agent: session.agent.name,
        turns: session.turnCount,
        about: firstWords(reader, held.id),
        isBusy: idle === 0 && (session.activeTurnId !== null || lastTurn(reader, held.id)?.state !== 'ended'),
        usedAt,
        expiresAt: held.ttlMs === null ? null : usedAt + held.ttlMs,
      },
    ]
  })
}

const LONGEST_ABOUT = 80

function firstWords(reader: TreeReader, id: Id): string {
  const [first] = reader.turnsOf(id, { last: 0, limit: 1 })
  const input = first?.input
  const message = typeof input === 'object' && input !== null && !Array.isArray(input) ? input['message'] : input
  const words = typeof message === 'string' ? message.replace(/\s+/g, ' ').trim() : ''
  return words.length > LONGEST_ABOUT ? `${words.slice(0, LONGEST_ABOUT - 1).trimEnd()}…` : words
}

const MOST_TOLD = 20

/**
 * Lists open sessions for a model that no longer sees its earlier turns; null when there are none. The text changes only when
 * sessions open or close, so that providers can cache it.
 */
export function sessionsText(reader: TreeReader, host: Conversation, now: number): string | null {
  const open = openSessions(reader, host, now).slice(-MOST_TOLD)
  if (open.length === 0) return null
  const lines = open.map(({ tool, id, about }) => `- ${tool}: session_id ${id}${about === '' ? '' : ` ("${about}")`}`)
  return `Earlier turns of this conversation are not shown. These sessions with other agents are open; pass their session_id to go on with one:\n${lines.join('\n')}`
}

/** I9: true where this conversation may continue a document's session: only the one that began it, under its owner. */
export function isOwnDocument(
  host: Conversation,
  { document, agentName, hostName }: { document: SessionDocument; agentName: string; hostName: string },
): boolean {
  if (document.closed_at !== null || document.agent !== agentName || document.owner !== host.owner) return false
  return document.host?.agent === hostName && document.host.conversation_id === host.id
}

/** I9: true where it may continue a copy of a document's session: only under the same owner, and never without one. */
export function isOwnersDocument(
  { owner }: Conversation,
  { scope, document }: SessionPlan,
  agentName: string,
): boolean {
  if (scope !== 'owner' || owner === null || document === null) return false
  return document.owner === owner && document.agent === agentName && document.host !== null
}

/** Refuses every session that is not the caller's in the same words, which name the scope of the search. */
export function unknownSession({ owner }: Conversation, scope: SessionPlan['scope'], id: Id): string {
  if (scope === 'host') return `there is no session ${id} in this conversation`
  if (owner !== null) return `there is no session ${id} of this owner`
  return `there is no session ${id} in this conversation, and it has no owner whose other sessions could be meant`
}

/** The session that a host's id refers to. */
export interface ResolvedSession {
  readonly session: Conversation
  /** The ordinal of the turn after which it must be forked first: its later turns belong to another history of the host. */
  readonly forkAfter: number | null
}

/**
 * Resolves a session id. A host whose lane was forked or made anew knows sessions as they were then. Among a session and all
 * its forks, the id refers to the one that the host's history mentions last: used as it is, if it is the host's own and has had
 * no turn since; else forked on first use. Undefined for a session that is not its own: nothing is revealed about it (I9).
 */
export function resolveSession(draft: Draft, host: Turn, id: Id): ResolvedSession | undefined {
  const lane = draft.conversation(host.conversationId)
  const named = draft.findConversation(forkedAs(lane, id))
  if (named === undefined || named.type !== 'sub_agent') return undefined
  const isOwn = named.parentConversationId === lane.id
  if (lane.lane === null) return isOwn ? { session: named, forkAfter: null } : undefined
  if (!isOwn && !isInherited(draft, lane, named)) return undefined
  const told = lastMentioned(draft, host, familyOf(draft, named))
  if (told === undefined) return resolveUnmentioned(draft, named, isOwn)
  const session = draft.conversation(told.conversationId)
  const known = lastKnown(draft, session, told)
  const isMeant = session.parentConversationId === lane.id && known === headOf(session)
  return { session, forkAfter: isMeant ? null : known }
}

/**
 * A child that a lane inherits from its fork, as long as it has had no turn since: the lane may read it, and hears nothing from
 * it.
 */
export function inheritedChild(draft: Draft, host: Turn, id: Id): Conversation | undefined {
  const meant = resolveSession(draft, host, id)
  return meant !== undefined && meant.forkAfter === headOf(meant.session) ? meant.session : undefined
}

/** The session that replaces the one of this id in a lane. The id may be any text of a model, also `__proto__`. */
export function forkedAs(lane: Conversation, id: Id): Id {
  const forks = forksOf(lane)
  return Object.hasOwn(forks, id) ? (forks[id] ?? id) : id
}

/** The forks that replace sessions in this lane. */
function forksOf({ metadata }: Conversation): { readonly [id: Id]: Id } {
  const forks = metadata['forked_sessions']
  return typeof forks === 'object' && forks !== null && !Array.isArray(forks)
    ? (forks as { readonly [id: Id]: Id })
    : {}
}

/** True where the session was opened in a lane that this one comes from. */
function isInherited(draft: Draft, lane: Conversation, { parentConversationId }: Conversation): boolean {
  for (let at: Conversation | undefined = lane; at !== undefined; ) {
    if (at.id === parentConversationId) return true
    const from: LanePlace | null = at.lane?.from ?? null
    at = from === null ? undefined : draft.findConversation(from.laneId)
  }
  return false
}

/** The id of the session that it and all its forks come from. */
function familyOf(draft: Draft, { id, lane }: Conversation): Id {
  const from = lane?.from == null ? undefined : draft.findConversation(lane.from.laneId)
  return from === undefined ? id : familyOf(draft, from)
}

/** The newest turn of a session of this family that a call in the host's history started, directly or as a copy. */
function lastMentioned(draft: Draft, host: Turn, family: Id): Turn | undefined {
  for (const turn of turnsBack(draft, { laneId: host.laneId, last: host.ordinal })) {
    for (const { id, childConversationId } of linksKnown(draft, turn).toReversed()) {
      if (familyOf(draft, draft.conversation(childConversationId)) === family) return draft.turn(id)
    }
  }
  return undefined
}

/** True where the host's history still holds a delegation, directly or as a copy. */
export function isMentioned(draft: Draft, { id, hostConversationId, hostTurnId }: Link): boolean {
  const host = draft.conversation(hostConversationId)
  const { ordinal } = draft.turn(hostTurnId)
  if (!isSkipped(host, ordinal)) return true
  for (const turn of turnsBack(draft, { laneId: host.id, last: headOf(host) })) {
    if (linksKnown(draft, turn).some((link) => link.id === id)) return true
    if (turn.laneId !== host.id || turn.ordinal < ordinal) return false
  }
  return false
}

/** The delegations of a turn; for a turn made anew, also those whose results it kept. */
function linksKnown(draft: Draft, turn: Turn): readonly Link[] {
  const own = draft.linksOf(turn.id)
  if (turn.history?.source == null) return own
  return [...draft.nodesOf(turn.id).flatMap((node) => linksCopied(draft, node)), ...own]
}

function linksCopied(draft: Draft, { metadata }: Node): Link[] {
  let original: Node | undefined
  for (let of = metadata['copyOf']; typeof of === 'string'; of = original?.metadata['copyOf']) {
    original = draft.findNode(of)
  }
  if (original === undefined) return []
  const { id, turnId } = original
  return draft.linksOf(turnId).filter(({ taskId }) => taskId === id)
}

/** The last turn of a session before any that the host does not know. Turns without a call of a host count as known. */
function lastKnown(draft: Draft, session: Conversation, told: Turn): number {
  let known: number | null = null
  for (const { id, ordinal, laneId } of turnsBack(draft, { laneId: session.id, last: headOf(session) })) {
    if (laneId !== session.id) break
    if (id === told.id) return known ?? ordinal
    known = draft.findLink(id) === undefined ? (known ?? ordinal) : null
  }
  return told.ordinal
}

/** Resolves a session that the host's history does not mention: its delegated turns belong to another history. */
function resolveUnmentioned(draft: Draft, session: Conversation, isOwn: boolean): ResolvedSession | undefined {
  for (const { id, ordinal, laneId } of turnsBack(draft, { laneId: session.id, last: headOf(session) })) {
    if (laneId !== session.id) break
    if (draft.findLink(id) !== undefined) continue
    return { session, forkAfter: isOwn && ordinal === headOf(session) ? null : ordinal }
  }
  return isOwn ? { session, forkAfter: -1 } : undefined
}

const MOST_BACK = 10_000

/** Yields the turns of a history backwards from a place, over the lanes it comes from. */
function* turnsBack(draft: Draft, place: LanePlace): Generator<Turn> {
  let { laneId, last } = place
  for (let steps = 0; steps < MOST_BACK; steps++) {
    if (last < 0) {
      const from = draft.findConversation(laneId)?.lane?.from ?? null
      if (from === null) return
      ;({ laneId, last } = from)
      continue
    }
    const turn = draft.turnAt(laneId, last)
    if (turn === undefined) return
    yield turn
    last = turn.history?.after ?? turn.ordinal - 1
  }
}

/** The id of a session that a task forks. */
function forkedSessionId(taskId: Id): Id {
  return deriveIds(taskId, 'session', 1)[0] ?? taskId
}

/** Forks the session at the state that its host knows; the original stays as it is. */
export function forkSession(draft: Draft, task: Node, { session, forkAfter }: ResolvedSession): Conversation {
  const host = draft.conversation(task.conversationId)
  const id = forkedSessionId(task.id)
  const { closed_at: _, ...metadata } = session.metadata
  const subagent = { ...(metadata['subagent'] as object), ...parentOf(host, task) }
  const last = forkAfter ?? -1
  const nodeId = draft.nodesOf(draft.turnAt(session.id, last)?.id ?? '').at(-1)?.id ?? task.id
  const forked = newConversation(
    {
      id,
      type: 'sub_agent',
      agent: session.agent,
      depth: host.depth + 1,
      path: session.path,
      parentConversationId: host.id,
      parentTurnId: task.turnId,
      parentTaskId: task.id,
      owner: session.owner,
      title: session.title,
      metadata: { ...metadata, subagent },
      ceiling: session.ceiling,
      groups: session.groups,
      lane: { ...PLAIN_LANE, from: { laneId: session.id, nodeId, last } },
    },
    session.rootId,
    draft.now,
  )
  draft.addConversation(forked)
  const named = Object.entries(forksOf(host)).filter(([, to]) => to === session.id)
  const forks = { ...forksOf(host), ...Object.fromEntries([...named.map(([from]) => [from, id]), [session.id, id]]) }
  draft.changeConversation(host, { metadata: { ...host.metadata, forked_sessions: forks } })
  renameHeld(draft, draft.conversation(host.id), { from: session.id, to: id })
  return forked
}

function parentOf(host: Conversation, task: Node) {
  return { parent_conversation_id: host.id, parent_graph_id: host.id, spawned_from_node_id: task.id }
}
