import type { Draft } from '../draft.ts'
import { headOf, isSkipped } from '../history/lane.ts'
import type { Conversation, Id, LanePlace, Link, Node, Turn } from '../rows.ts'

/** The session that a host means by an id. */
export interface MeantSession {
  readonly session: Conversation
  /** It has to be forked first, after the turn of this ordinal: the rest of it was said to another history of the host. */
  readonly forkAfter: number | null
}

/**
 * A host whose lane was forked or made anew knows sessions as they were then. Of a session and of all that were forked of
 * it, the one that its history was told of last is meant: as it is, if it is its own and has heard no more since; else it
 * is forked when it is first used. Undefined for what is not its own: nothing is told of it (I9).
 */
export function meantSession(draft: Draft, host: Turn, id: Id): MeantSession | undefined {
  const lane = draft.conversation(host.conversationId)
  const named = draft.findConversation(forkedAs(lane, id))
  if (named === undefined || named.type !== 'sub_agent') return undefined
  const isOwn = named.parentConversationId === lane.id
  if (lane.lane === null) return isOwn ? { session: named, forkAfter: null } : undefined
  if (!isOwn && !isInherited(draft, lane, named)) return undefined
  const told = lastTold(draft, host, familyOf(draft, named))
  if (told === undefined) return untold(draft, named, isOwn)
  const session = draft.conversation(told.conversationId)
  const known = lastKnown(draft, session, told)
  const isMeant = session.parentConversationId === lane.id && known === headOf(session)
  return { session, forkAfter: isMeant ? null : known }
}

/** A child that a lane has from where it was forked, while it has heard nothing since: it may be read, and is not told. */
export function inheritedChild(draft: Draft, host: Turn, id: Id): Conversation | undefined {
  const meant = meantSession(draft, host, id)
  return meant !== undefined && meant.forkAfter === headOf(meant.session) ? meant.session : undefined
}

/** The session that stands for the one of this id in a lane. The id may be any text a model said, also `__proto__`. */
export function forkedAs(lane: Conversation, id: Id): Id {
  const forks = forksOf(lane)
  return Object.hasOwn(forks, id) ? (forks[id] ?? id) : id
}

/** Sessions of this lane that stand for those it was told of. */
export function forksOf({ metadata }: Conversation): { readonly [id: Id]: Id } {
  const forks = metadata['forked_sessions']
  return typeof forks === 'object' && forks !== null && !Array.isArray(forks)
    ? (forks as { readonly [id: Id]: Id })
    : {}
}

/** Was it opened in a lane that this one comes from? */
function isInherited(draft: Draft, lane: Conversation, { parentConversationId }: Conversation): boolean {
  for (let at: Conversation | undefined = lane; at !== undefined; ) {
    if (at.id === parentConversationId) return true
    const from: LanePlace | null = at.lane?.from ?? null
    at = from === null ? undefined : draft.findConversation(from.laneId)
  }
  return false
}

/** The session that it and all others forked of it come from. */
function familyOf(draft: Draft, { id, lane }: Conversation): Id {
  const from = lane?.from == null ? undefined : draft.findConversation(lane.from.laneId)
  return from === undefined ? id : familyOf(draft, from)
}

/** The newest turn of a session of this family that a call in the host's history has started, itself or as a copy. */
function lastTold(draft: Draft, host: Turn, family: Id): Turn | undefined {
  for (const turn of turnsBack(draft, { laneId: host.laneId, last: host.ordinal })) {
    for (const { id, childConversationId } of linksKnown(draft, turn).toReversed()) {
      if (familyOf(draft, draft.conversation(childConversationId)) === family) return draft.turn(id)
    }
  }
  return undefined
}

/** Does the history of its host still tell of a delegation, itself or as a copy? */
export function isTold(draft: Draft, { id, hostConversationId, hostTurnId }: Link): boolean {
  const host = draft.conversation(hostConversationId)
  const { ordinal } = draft.turn(hostTurnId)
  if (!isSkipped(host, ordinal)) return true
  for (const turn of turnsBack(draft, { laneId: host.id, last: headOf(host) })) {
    if (linksKnown(draft, turn).some((link) => link.id === id)) return true
    if (turn.laneId !== host.id || turn.ordinal < ordinal) return false
  }
  return false
}

/** The delegations of a turn; of one made anew, also those whose results it has kept. */
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

/** The newest turn of a session that nobody was told of after this one: what it says by itself, its host knows. */
function lastKnown(draft: Draft, session: Conversation, told: Turn): number {
  let known: number | null = null
  for (const { id, ordinal, laneId } of turnsBack(draft, { laneId: session.id, last: headOf(session) })) {
    if (laneId !== session.id) break
    if (id === told.id) return known ?? ordinal
    known = draft.findLink(id) === undefined ? (known ?? ordinal) : null
  }
  return told.ordinal
}

/** The host's history tells nothing of it: what calls have started in it was said to another one. */
function untold(draft: Draft, session: Conversation, isOwn: boolean): MeantSession | undefined {
  for (const { id, ordinal, laneId } of turnsBack(draft, { laneId: session.id, last: headOf(session) })) {
    if (laneId !== session.id) break
    if (draft.findLink(id) !== undefined) continue
    return { session, forkAfter: isOwn && ordinal === headOf(session) ? null : ordinal }
  }
  return isOwn ? { session, forkAfter: -1 } : undefined
}

const MOST_BACK = 10_000

/** The turns of a history from a place back, over the lanes it comes from. */
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
