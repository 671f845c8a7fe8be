import { stopBackground, stopRuns } from '../child/stop-runs.ts'
import type { Draft } from '../draft.ts'
import type { Conversation, Id, Turn } from '../rows.ts'
import { changeLane, laneOf } from './lane.ts'

/** No new turn begins in the lane. What is going on in it may finish, or is stopped. It is read as before. */
export function planArchive(draft: Draft, conversationId: Id, mode: 'finish' | 'cancel'): void {
  const lane = draft.conversation(conversationId)
  if (laneOf(lane).archivedAt === null) {
    changeLane(draft, lane, { archivedAt: draft.now })
    const turn = lastTurn(draft, lane)
    const detail = { lane: conversationId, mode }
    if (turn !== undefined) draft.event(turn, null, { type: 'graph-change', change: 'archive', detail })
  }
  if (mode === 'finish') return
  for (const { id } of openTurns(draft, conversationId)) {
    stopRuns(draft, id, ARCHIVED)
  }
  stopBackground(
    draft,
    lane.background.map((id) => draft.link(id)),
    ARCHIVED,
  )
}

const ARCHIVED = { cause: 'cancelled', reason: 'The lane was archived.' } as const

/** Its own, or the one that it was forked at. */
export function lastTurn(draft: Draft, { id, lane }: Conversation): Turn | undefined {
  const [own] = draft.stored.turnsOf(id, { limit: 1 })
  if (own !== undefined || lane?.from == null) return own
  return draft.findTurn(draft.findNode(lane.from.nodeId)?.turnId ?? '')
}

/** The running turn and all that are queued: the last of the lane. */
function openTurns(draft: Draft, laneId: Id): Turn[] {
  return draft.stored.turnsOf(laneId, { limit: MOST_OPEN }).filter(({ state }) => state !== 'ended')
}

const MOST_OPEN = 10_000
