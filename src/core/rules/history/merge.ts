import { NotFoundError } from '../../base/error.ts'
import type { Draft } from '../../graph/draft.ts'
import { headOf, lineage } from '../../graph/lane.ts'
import { refused, requireIdle } from '../../graph/refused.ts'
import type { Conversation, Id, LanePlace } from '../../graph/rows.ts'
import { beginTurn } from '../turn/open-turn.ts'
import type { ChangeScope, RemakeResult } from './remake-turn.ts'
import { lastTurn } from './visibility.ts'

/**
 * Merges other lanes of the conversation into this one: an answer that knows this lane and everything said in the others since
 * they parted. The others stay as they are. Merging the same lanes for the same prompt again, with nothing new anywhere, finds
 * the same turn.
 */
export function planMerge(
  draft: Draft,
  {
    conversationId,
    laneIds,
    prompt,
    ...asked
  }: ChangeScope & {
    readonly laneIds: readonly Id[]
    /** The instruction for the merging answer; null for the default words. */
    readonly prompt: string | null
  },
): RemakeResult {
  const target = draft.conversation(conversationId)
  const unique = [...new Set(laneIds)]
  if (unique.length === 0) throw refused('not_related', 'Name at least one lane to merge.')
  const merges = unique.map((id) => sourceOf(draft, target, id))
  const nudge = prompt ?? PROMPT
  const same = mergedBefore(draft, target, merges, nudge)
  if (same !== undefined) return same
  requireIdle(draft, target)
  const history = { after: headOf(target), source: null, merges, fold: null }
  const turn = beginTurn(draft, target, {
    ...asked.boundsUnder(asked.caller),
    ceiling: asked.caller,
    input: { merges: unique },
    attributes: lastTurn(draft, target)?.attributes ?? null,
    history,
  })
  const node = draft.addNode(turn, {
    id: draft.freshId(),
    kind: 'agent_message',
    purpose: 'answer',
    effect: 'idempotent',
    input: { nudge },
    metadata: { source_lane_ids: unique },
  })
  draft.changeTurn(draft.turn(turn.id), { entryNodeId: node.id })
  draft.event(turn, node.id, { type: 'graph-change', change: 'merge', detail: { lane: target.id, lanes: unique } })
  draft.claim(node)
  return { turn: draft.turn(turn.id), nodeId: node.id }
}

const PROMPT = 'What was just shown was also said, in other lanes of this conversation. Bring all of it together.'

function sourceOf(draft: Draft, target: Conversation, laneId: Id): LanePlace {
  const lane = typeof laneId === 'string' ? draft.findConversation(laneId) : undefined
  if (lane === undefined || firstLane(draft, lane) !== firstLane(draft, target)) {
    throw new NotFoundError('not_found', `There is no lane ${laneId} of the conversation ${target.id}.`)
  }
  if (laneId === target.id) throw refused('not_related', `${laneId} cannot be merged into itself: name other lanes.`)
  const last = headOf(lane)
  const turn = draft.turnAt(laneId, last)
  if (turn === undefined) throw refused('not_related', `Nothing was said in ${laneId} since it was forked.`, { laneId })
  if (turn.state === 'ended') return { laneId, last }
  const message = `The turn ${turn.id} of ${laneId} is not over: wait until it is, then merge.`
  throw refused('busy', message, { laneId, runId: turn.id })
}

function firstLane(draft: Draft, { id }: Conversation): Id | undefined {
  const reader = { conversation: (one: Id) => draft.findConversation(one) }
  return lineage(reader, { laneId: id, last: 0 }).at(-1)?.laneId
}

function mergedBefore(
  draft: Draft,
  target: Conversation,
  merges: readonly LanePlace[],
  nudge: string,
): RemakeResult | undefined {
  const last = draft.turnAt(target.id, headOf(target))
  const known = last?.history?.merges ?? []
  const isSame =
    known.length === merges.length &&
    merges.every(({ laneId, last: at }) => known.some((one) => one.laneId === laneId && one.last === at))
  if (last === undefined || !isSame || !draft.nodesOf(last.id).some(({ input }) => input.nudge === nudge))
    return undefined
  return { turn: last, nodeId: last.entryNodeId }
}
