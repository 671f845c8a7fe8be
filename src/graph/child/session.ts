import type { Json } from '../../base/json.ts'
import type { Draft } from '../draft.ts'
import type { Reader } from '../reader.ts'
import type { Conversation, Id, Turn, TurnLimits } from '../rows.ts'
import { addPastTurns } from './restore-session.ts'
import type { SessionDocument } from './session-document.ts'

/** A session as the conversation that started it lists it. */
export interface HeldSession {
  readonly id: Id
  /** The tool it is gone on with. */
  readonly tool: string
  /** How long it may lie idle; null for ever. */
  readonly ttlMs: number | null
}

/** What a host says of the sessions of one of its subagents. */
export interface SessionPlan {
  readonly ttlMs: number | null
  /** How many of them may be open at once in a conversation of the host. */
  readonly max: number | null
  readonly scope: 'host' | 'owner'
  /** What is known of the session that is asked for where its rows are not, or are another conversation's. */
  readonly document: SessionDocument | null
  /** Its rows are there: it can be copied, and not be read back under its id. */
  readonly isElsewhere: boolean
  /** What binds it there: a copy stays bound by it. */
  readonly ceiling: readonly Json[]
}

/** A conversation lists its newest sessions; older ones can still be gone on with. */
const MOST_LISTED = 64

/** The sessions a conversation has started and not closed, the newest last. */
function heldSessions({ metadata }: Conversation): readonly HeldSession[] {
  const list = metadata[KEY]
  return Array.isArray(list) ? list.flatMap(readHeld) : []
}

const KEY = 'held_sessions'

function readHeld(value: Json): HeldSession[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return []
  const { id, tool, ttl_ms: ttlMs } = value
  if (typeof id !== 'string' || typeof tool !== 'string') return []
  return [{ id, tool, ttlMs: typeof ttlMs === 'number' ? ttlMs : null }]
}

function putHeld(draft: Draft, conversation: Conversation, held: readonly HeldSession[]): void {
  const list = held
    .slice(-MOST_LISTED)
    .map(({ id, tool, ttlMs }) => (ttlMs === null ? { id, tool } : { id, tool, ttl_ms: ttlMs }))
  draft.changeConversation(conversation, { metadata: { ...conversation.metadata, [KEY]: list } })
}

/** A session that was forked is listed instead of the one it comes from. */
export function renameHeld(draft: Draft, host: Conversation, { from, to }: { from: Id; to: Id }): void {
  const held = heldSessions(host)
  if (!held.some(({ id }) => id === from)) return
  putHeld(
    draft,
    host,
    held.map((one) => (one.id === from ? { ...one, id: to } : one)),
  )
}

export interface NewSession {
  readonly tool: string
  readonly plan: SessionPlan
  readonly nextTurnId: Id
  readonly limits: TurnLimits
}

/** A new conversation that its host can go on with: listed, and with all that is known of what was said in it. */
export function beginSession(draft: Draft, child: Conversation, { tool, plan, nextTurnId, limits }: NewSession): void {
  const host = draft.conversation(child.parentConversationId ?? '')
  const way = sessionInTheWay(draft, host, { tool, max: plan.max })
  if (way !== null && typeof way !== 'string') closeSession(draft, way)
  const current = draft.conversation(host.id)
  putHeld(draft, current, [...heldSessions(current), { id: child.id, tool, ttlMs: plan.ttlMs }])
  const { document } = plan
  if (document === null) return
  if (document.session_id !== child.id) {
    draft.changeConversation(child, { metadata: { ...child.metadata, copied_from: document.session_id } })
  }
  addPastTurns(draft, draft.conversation(child.id), { document, nextTurnId, limits })
}

/** Why a session of one's own cannot be gone on with; undefined when it can. It may be known by its document only. */
export function sessionFault(draft: Draft, session: Conversation | undefined, plan: SessionPlan): string | undefined {
  const { ttlMs, document } = plan
  const id = session?.id ?? document?.session_id ?? ''
  const isOver = session === undefined ? (document?.closed_at ?? null) !== null : isClosed(session)
  if (isOver) return `the session ${id} was closed`
  if (session?.lane != null && session.lane.archivedAt !== null) return `the session ${id} was archived`
  const usedAt = Date.parse(document?.updated_at ?? '')
  const idle = session === undefined ? draft.now - usedAt : idleMs(draft.stored, session, draft.now)
  // A document that does not say when it was used last may be of any age.
  const isFresh = ttlMs === null || idle <= ttlMs
  return isFresh ? undefined : `the session ${id} has expired`
}

/** How long nobody has used it; 0 while it works. */
function idleMs(reader: Reader, { id, activeTurnId, createdAt }: Conversation, now: number): number {
  if (activeTurnId !== null) return 0
  const last = lastTurn(reader, id)
  if (last !== undefined && last.state !== 'ended') return 0
  return now - (last?.endedAt ?? createdAt)
}

function lastTurn(reader: Reader, id: Id): Turn | undefined {
  return reader.turnsOf(id, { limit: 1 })[0]
}

/**
 * Which session must be closed before one more can be started: the one that was idle longest. In words when none can be;
 * null when there is room.
 */
export function sessionInTheWay(
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

/** It can be read as before, and not gone on with. */
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
  /** What it was asked first. */
  readonly about: string
  readonly isBusy: boolean
  readonly usedAt: number
  readonly expiresAt: number | null
}

/** The sessions of a conversation that can be gone on with, the newest last. */
export function openSessions(reader: Reader, host: Conversation, now: number): OpenSession[] {
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

function firstWords(reader: Reader, id: Id): string {
  const [first] = reader.turnsOf(id, { last: 0, limit: 1 })
  const input = first?.input
  const message = typeof input === 'object' && input !== null && !Array.isArray(input) ? input['message'] : input
  const words = typeof message === 'string' ? message.replace(/\s+/g, ' ').trim() : ''
  return words.length > LONGEST_ABOUT ? `${words.slice(0, LONGEST_ABOUT - 1).trimEnd()}…` : words
}

const MOST_TOLD = 20

/**
 * What a model whose earlier turns are not shown to it must know to go on with its subagents; null when it holds nothing.
 * Changes only when sessions come and go, so that providers can cache it.
 */
export function sessionsText(reader: Reader, host: Conversation, now: number): string | null {
  const open = openSessions(reader, host, now).slice(-MOST_TOLD)
  if (open.length === 0) return null
  const lines = open.map(({ tool, id, about }) => `- ${tool}: session_id ${id}${about === '' ? '' : ` ("${about}")`}`)
  return `Earlier turns of this conversation are not shown. These sessions with other agents are open; pass their session_id to go on with one:\n${lines.join('\n')}`
}

/** I9: may this conversation go on with what a document tells of? Only the one that began it, under its owner. */
export function isOwnDocument(
  host: Conversation,
  { document, agentName, hostName }: { document: SessionDocument; agentName: string; hostName: string },
): boolean {
  if (document.closed_at !== null || document.agent !== agentName || document.owner !== host.owner) return false
  return document.host?.agent === hostName && document.host.conversation_id === host.id
}

/** I9: may it go on with a copy of what a document tells of? Only under the same owner, and never without one. */
export function isOwnersDocument(
  { owner }: Conversation,
  { scope, document }: SessionPlan,
  agentName: string,
): boolean {
  if (scope !== 'owner' || owner === null || document === null) return false
  return document.owner === owner && document.agent === agentName && document.host !== null
}

/** Every session that cannot be meant is refused in the same words, which say where it was looked for. */
export function unknownSession({ owner }: Conversation, scope: SessionPlan['scope'], id: Id): string {
  if (scope === 'host') return `there is no session ${id} in this conversation`
  if (owner !== null) return `there is no session ${id} of this owner`
  return `there is no session ${id} in this conversation, and it has no owner whose other sessions could be meant`
}
