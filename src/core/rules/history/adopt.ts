import type { Draft } from '../../graph/draft.ts'
import { changeLane, isSkipped, laneOf, withSkip } from '../../graph/lane.ts'
import { nodeThatCounts, refused, requireIdle, requireWord } from '../../graph/refused.ts'
import type { Conversation, Id, LaneFacts, Node, Turn } from '../../graph/rows.ts'
import { uncover } from '../turn/compaction.ts'
import { type ChangeScope, leaveChildren, mentionedChildren } from './remake-turn.ts'

/**
 * Returns to a replaced answer, with all turns that led to it. The answers set aside for it can be adopted again. An answer
 * that counts already stays as it is.
 */
export function planAdopt(
  draft: Draft,
  nodeId: Id,
  { conversationId, background }: Pick<ChangeScope, 'conversationId' | 'background'>,
): void {
  const node = nodeThatCounts(draft, conversationId, nodeId)
  const turn = draft.turn(node.turnId)
  const lane = draft.conversation(turn.laneId)
  requireWord(node)
  requireLeaf(draft, node)
  if (!isSkipped(lane, turn.ordinal)) return
  requireIdle(draft, lane)
  requireNoFollower(draft, turn)
  const line = lineOf(draft, lane, turn)
  const common = { before: line.at(-1) ?? -1, previous: laneOf(lane).fold }
  const fold = uncover(draft, lane, { last: turn.ordinal, fold: common })
  const told = mentionedChildren(draft, lane.id)
  changeLane(draft, lane, { skips: skipsFor(lane, line), fold })
  leaveChildren(draft, told, background)
  draft.event(turn, nodeId, { type: 'graph-change', change: 'adopt', detail: { node: nodeId, turn: turn.id } })
}

function requireLeaf(draft: Draft, { id, state, kind }: Node): void {
  if (state !== 'finished') {
    throw refused('wrong_state', `The node ${id} is ${state}: only an answer that finished is adopted.`, {
      nodeId: id,
      state,
    })
  }
  const follower = draft.edgesFrom(id).find(({ type }) => type !== 'branch')?.to
  if (follower === undefined && draft.kinds.get(kind)?.leaf === true) return
  const message = `${id} is not the last word of its turn: adopt the answer of that turn, or fork at ${id}.`
  throw refused('has_followers', message, { nodeId: id, by: follower ?? null })
}

/** Refuses a turn with later turns built on it: adopt those by their own answers. */
function requireNoFollower(draft: Draft, turn: Turn): void {
  const later = draft.stored.turnsOf(turn.laneId, { limit: MOST_LATER }).filter(({ ordinal }) => ordinal > turn.ordinal)
  const follower = later.find((one) => beforeOf(one) === turn.ordinal)
  if (follower === undefined) return
  const message = `The turn ${follower.id} was built on ${turn.id}: adopt its answer, or fork at this one.`
  throw refused('has_followers', message, { runId: turn.id, by: follower.id })
}

const MOST_LATER = 1_000

function beforeOf({ ordinal, history }: Turn): number {
  return history?.after ?? ordinal - 1
}

/** The turns from this one back to the first that counts already. */
function lineOf(draft: Draft, lane: Conversation, turn: Turn): number[] {
  const line = [turn.ordinal]
  for (let at = beforeOf(turn); at >= 0; ) {
    line.push(at)
    if (!isSkipped(lane, at)) return line
    const earlier = draft.turnAt(lane.id, at)
    if (earlier === undefined) return line
    at = beforeOf(earlier)
  }
  return [...line, -1]
}

function skipsFor(lane: Conversation, line: readonly number[]): LaneFacts['skips'] {
  const common = line.at(-1) ?? -1
  let skips: LaneFacts['skips'] = laneOf(lane).skips.filter(([from]) => from < common)
  let next = lane.turnCount
  for (const at of line) {
    if (at + 1 <= next - 1) skips = withSkip(skips, [at + 1, next - 1])
    next = at
  }
  return skips
}
