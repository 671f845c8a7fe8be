import type { Draft } from '../draft.ts'
import { headOf } from '../history/lane.ts'
import type { Conversation, Id, LanePlace, Link, Turn } from '../rows.ts'

/** The session that a host means by an id. */
export interface MeantSession {
  readonly session: Conversation
  /** It has to be forked first, after the turn of this ordinal: the rest of it was said to another history of the host. */
  readonly forkAfter: number | null
}

/**
 * A host whose lane was forked or made anew knows sessions as they were then. One of its own that goes on from there is
 * meant as it is; one of the lane it comes from, or that has heard more since, is forked when it is first used. Undefined
 * for what is not its own: nothing is told of it (I9).
 */
export function meantSession(draft: Draft, host: Turn, id: Id): MeantSession | undefined {
  const lane = draft.conversation(host.conversationId)
  const session = draft.findConversation(forkedAs(lane, id))
  if (session === undefined || session.type !== 'sub_agent') return undefined
  const isOwn = session.parentConversationId === lane.id
  if (lane.lane === null) return isOwn ? { session, forkAfter: null } : undefined
  if (!isOwn && !isInherited(draft, lane, session)) return undefined
  const head = headOf(session)
  const known = lastKnown(draft, host, session)
  if (known === undefined) return isOwn ? { session, forkAfter: null } : undefined
  return { session, forkAfter: isOwn && known === head ? null : known }
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

/** The newest turn of a session that its host's history tells of; undefined when it tells of none. */
function lastKnown(draft: Draft, host: Turn, session: Conversation): number | undefined {
  for (const turn of turnsBack(draft, { laneId: session.id, last: headOf(session) })) {
    if (turn.laneId !== session.id) return -1
    const link = draft.findLink(turn.id)
    if (link === undefined || isKnown(draft, host, link)) return turn.ordinal
  }
  return undefined
}

/** Is the call that made this delegation in the history of a host's turn, itself or as a copy? */
function isKnown(draft: Draft, host: Turn, link: Link): boolean {
  const made = draft.findTurn(link.hostTurnId)
  if (made === undefined) return false
  for (const turn of turnsBack(draft, { laneId: host.laneId, last: host.ordinal })) {
    if (turn.id === made.id) return true
    if (turn.history?.source != null && hasCopy(draft, turn, link.taskId)) return true
    if (turn.laneId === made.laneId && turn.ordinal < made.ordinal) return false
  }
  return false
}

function hasCopy(draft: Draft, turn: Turn, taskId: Id): boolean {
  return draft.nodesOf(turn.id).some((node) => {
    for (let of = node.metadata['copyOf']; typeof of === 'string'; of = draft.findNode(of)?.metadata['copyOf']) {
      if (of === taskId) return true
    }
    return false
  })
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
