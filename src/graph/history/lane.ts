import type { Draft } from '../draft.ts'
import type { Conversation, LaneFacts, TurnHistory } from '../rows.ts'

export const PLAIN_LANE: LaneFacts = {
  from: null,
  newest: null,
  before: null,
  skips: [],
  fold: null,
  archivedAt: null,
}

export function laneOf({ lane }: Conversation): LaneFacts {
  return lane ?? PLAIN_LANE
}

export function changeLane(draft: Draft, { id }: Conversation, patch: Partial<LaneFacts>): Conversation {
  const conversation = draft.conversation(id)
  return draft.changeConversation(conversation, { lane: { ...laneOf(conversation), ...patch } })
}

/** The ordinal of the last turn that counts; -1 for none. */
export function headOf({ turnCount, lane }: Conversation): number {
  const last = lane?.skips.at(-1)
  return last !== undefined && last[1] === turnCount - 1 ? last[0] - 1 : turnCount - 1
}

/** Has another turn taken its place? */
export function isSkipped({ lane }: Pick<Conversation, 'lane'>, ordinal: number): boolean {
  return rangeOf(lane, ordinal) !== undefined
}

/** The replaced turns among which one is. */
export function rangeOf(lane: LaneFacts | null, ordinal: number): readonly [number, number] | undefined {
  return lane?.skips.find(([from, to]) => from <= ordinal && ordinal <= to)
}

/** The ranges with one more, joined where they touch. */
export function withSkip(skips: LaneFacts['skips'], [from, to]: readonly [number, number]): LaneFacts['skips'] {
  const apart = skips.filter(([a, b]) => b < from - 1 || a > to + 1)
  const joined = skips.filter(([a, b]) => b >= from - 1 && a <= to + 1)
  const start = Math.min(from, ...joined.map(([a]) => a))
  const end = Math.max(to, ...joined.map(([, b]) => b))
  return [...apart, [start, end] as const].sort(([a], [b]) => a - b)
}

/** Of a turn that is added to the lane now; null when it comes after the turn before it, as most do. */
export function historyAfter(conversation: Conversation): TurnHistory | null {
  if (conversation.lane === null) return null
  const after = headOf(conversation)
  return after === conversation.turnCount - 1 ? null : { after, source: null, merges: [], fold: null }
}
