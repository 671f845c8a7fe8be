import type { Draft } from '../../graph/draft.ts'
import type { Conversation, Id, Link } from '../../graph/rows.ts'
import type { Claim } from '../turn/claim.ts'
import { forkedAs } from './session.ts'

/** Lists a background delegation in its host's conversation until the host has heard its end. */
export function keepInBackground(draft: Draft, link: Link): void {
  const host = draft.conversation(link.hostConversationId)
  if (host.background.includes(link.id)) return
  draft.changeConversation(host, { background: [...host.background, link.id] })
}

/** Records which node received the outcome, exactly once: the rows of link and host change together. */
export function deliver(draft: Draft, link: Link, to: Id): Link {
  const current = draft.link(link.id)
  leaveBackground(draft, current)
  return current.deliveredTo === null ? draft.changeLink(current, { deliveredTo: to }) : current
}

/** Takes a delegation off the host's list: nobody will report its end unasked. */
export function leaveBackground(draft: Draft, link: Link): void {
  const host = draft.conversation(link.hostConversationId)
  if (!host.background.includes(link.id)) return
  draft.changeConversation(host, { background: host.background.filter((id) => id !== link.id) })
}

/** Background delegations that have ended and whose host has not heard it yet. */
export function unreported(draft: Draft, { background }: Conversation): Link[] {
  return background
    .map((id) => draft.link(id))
    .filter(({ outcome, deliveredTo, wake }) => outcome !== null && deliveredTo === null && wake === 'auto')
}

/**
 * Finds a child conversation that this host's own delegations made. Any other id, known or not, is no child (I9): only its row
 * is read.
 */
export function ownChild(draft: Draft, hostId: Id, childId: Id): Conversation | undefined {
  const child = draft.findConversation(forkedAs(draft.conversation(hostId), childId))
  return child?.type === 'sub_agent' && child.parentConversationId === hostId ? child : undefined
}

/** The newest delegation to a child, which calls about the child refer to. */
export function newestLink(draft: Draft, child: Conversation): Link | undefined {
  for (const turn of draft.stored.turnsOf(child.id, { limit: LATEST }).toReversed()) {
    const link = draft.findLink(turn.id)
    if (link !== undefined) return link
  }
  return undefined
}

/** Open delegations to a child, the running one first. */
export function openLinksTo(draft: Draft, child: Conversation): Link[] {
  const active = child.activeTurnId === null ? undefined : draft.findTurn(child.activeTurnId)
  const queued = draft.stored.queuedTurn(child.id)
  const first = Math.min(active?.ordinal ?? child.turnCount, queued?.ordinal ?? child.turnCount)
  const turns = first < child.turnCount ? draft.stored.turnsOf(child.id, { limit: child.turnCount - first }) : []
  return turns.flatMap(({ id }) => {
    const link = draft.findLink(id)
    return link === undefined || link.outcome !== null ? [] : [link]
  })
}

/** How many turns of a child to look through: turns that nobody delegated, put in by hand, are few. */
const LATEST = 20

/**
 * Records that a running node has been silent since then, or speaks again (null). Its host sees it in reports about its
 * children; readers of the host's run get one event.
 */
export function planStalled(draft: Draft, { nodeId, epoch }: Claim, since: number | null): void {
  const node = draft.findNode(nodeId)
  if (node?.state !== 'running' || node.epoch !== epoch) return
  const { stalled: _, ...metadata } = node.metadata
  draft.changeNode(node, { metadata: since === null ? metadata : { ...metadata, stalled: { since } } })
  if (since === null) return
  const turn = draft.turn(node.turnId)
  const link = draft.findLink(turn.id)
  draft.event(link === undefined ? turn : draft.turn(link.hostTurnId), link?.taskId ?? node.id, {
    type: 'stalled',
    agent: draft.conversation(turn.conversationId).agent.name,
    childConversationId: turn.conversationId,
    childRunId: turn.id,
    lastActivityAt: since,
  })
}
