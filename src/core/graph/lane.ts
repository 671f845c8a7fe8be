// Lanes: the lines of turns in a conversation, and the history that a turn can see.
//
// Owns:      the walk back over turns, forks, merges and summaries.
// Called by: `context` collects what a model sees; `rules/history` changes lanes; audits compare them.
// Must stay true:
//   - Turns are never changed into others. `skips` of the lane says which ordinals no longer count, `history` of a turn what
//     it follows, so going back is one row written again.
//   - A walk costs as much as it gives, however long the lanes are.

import type { Draft } from './draft.ts'
import { ALL_TURNS } from './kinds.ts'
import type { TreeReader } from './reader.ts'
import type { Conversation, Fold, Id, LaneFacts, LanePlace, Node, Turn, TurnHistory } from './rows.ts'

/** The rounds before a turn that its model may be shown. */
export interface Rounds {
  /** The latest rounds, oldest first. */
  readonly turns: readonly Turn[]
  /** Summaries of older rounds, oldest first. */
  readonly summaries: readonly Id[]
}

const NO_ROUNDS: Rounds = { turns: [], summaries: [] }

/**
 * Collects the latest rounds that led to a turn: first those of its own lane, without replaced ones, then those of the lane it
 * was forked from; where lanes were merged, those of each. The cost is that of the result, however long the lanes are.
 */
export function roundsBefore(reader: TreeReader, turn: Turn, limit: number): Rounds {
  if (limit < 1 || turn.history?.fold?.before === null) return NO_ROUNDS
  const walk = new Walk(reader, limit)
  walk.merged(turn)
  const rest = walk.back({ laneId: turn.laneId, last: beforeOf(turn) })
  return { turns: walk.found.reverse(), summaries: rest === undefined ? [] : summariesUpTo(reader, rest) }
}

/** Collects the latest rounds up to a place of a lane. */
export function roundsUpTo(reader: TreeReader, place: LanePlace, limit: number): Rounds {
  if (limit < 1) return NO_ROUNDS
  const walk = new Walk(reader, limit)
  const rest = walk.back(place)
  return { turns: walk.found.reverse(), summaries: rest === undefined ? [] : summariesUpTo(reader, rest) }
}

/** Counts the earlier rounds that a turn's model does not see and that no summary covers. Reads only the rounds it does see. */
export function roundsLeftOut(reader: TreeReader, turn: Turn, limit: number): number {
  if (limit === ALL_TURNS || turn.history?.fold?.before === null) return 0
  const walk = new Walk(reader, limit)
  if (limit > 0) walk.merged(turn)
  const rest = walk.back({ laneId: turn.laneId, last: beforeOf(turn) })
  return rest === undefined ? 0 : countUpTo(reader, rest)
}

/** Counts the rounds of a lane up to one, and of the lanes it was forked from, that count and that no summary covers. */
function countUpTo(reader: TreeReader, place: LanePlace): number {
  let count = 0
  for (const { laneId, last } of lineage(reader, place)) {
    const lane = reader.conversation(laneId)?.lane ?? null
    let at = last
    // The walk ends where another turn has taken over since.
    for (; rangeOf(lane, at) !== undefined; count++) at = beforeOf(turnAt(reader, laneId, at) ?? NO_TURN)
    for (const { ordinal, before: start } of foldsOf(reader, laneId)) {
      if (ordinal > at) continue
      count += countBetween(lane, ordinal + 1, at)
      if (start === null) return count
      at = start
    }
    count += countBetween(lane, 0, at)
  }
  return count
}

const NO_TURN: Pick<Turn, 'ordinal' | 'history'> = { ordinal: 0, history: null }

function countBetween(lane: LaneFacts | null, first: number, last: number): number {
  const skipped = (lane?.skips ?? []).map(([from, to]) => Math.min(to, last) - Math.max(from, first) + 1)
  return Math.max(
    0,
    skipped.reduce((left, one) => left - Math.max(0, one), last - first + 1),
  )
}

/** The ordinal of the turn before one in its lane; null where a summary covers everything before. */
function before(turn: Pick<Turn, 'ordinal' | 'history'>): number | null {
  const { history } = turn
  if (history === null) return turn.ordinal - 1
  return history.fold === null ? history.after : history.fold.before
}

function beforeOf(turn: Pick<Turn, 'ordinal' | 'history'>): number {
  return before(turn) ?? -1
}

/** The lanes that a turn's lane comes from, each with its last turn that counts. */
export function lineage(reader: Pick<TreeReader, 'conversation'>, place: LanePlace): LanePlace[] {
  const line: LanePlace[] = []
  for (let at: LanePlace | null = place; at !== null && line.length < MOST_LANES; ) {
    line.push({ laneId: at.laneId, last: at.last })
    at = reader.conversation(at.laneId)?.lane?.from ?? null
  }
  return line
}

const MOST_LANES = 1_000

const LARGEST_PORTION = 1_024

class Walk {
  /** Newest first. */
  readonly found: Turn[] = []
  private readonly reader: TreeReader
  private readonly limit: number
  /** How many turns to read next. It starts small, because a summary may cover everything before them. */
  private portion = 32
  /** Lanes, each up to a turn, whose turns another walk collects. */
  private others: readonly LanePlace[] = []
  /** The turns that were found, from the first merge on: only then a turn can come twice. */
  private seen: Set<Id> | undefined

  constructor(reader: TreeReader, limit: number) {
    this.reader = reader
    this.limit = limit
  }

  /** Walks back until the limit. Gives the place where it stopped; undefined when it took everything. */
  back(start: LanePlace): LanePlace | undefined {
    let { laneId, last } = start
    for (;;) {
      if (last < 0) {
        const from = this.reader.conversation(laneId)?.lane?.from ?? null
        if (from === null) return undefined
        ;({ laneId, last } = from)
        continue
      }
      if (this.found.length >= this.limit) return { laneId, last }
      const next = this.run(laneId, last)
      if (next === null) return undefined
      last = next
    }
  }

  /** Takes consecutive turns of one lane. Gives the ordinal to continue with, or null at the end. */
  private run(laneId: Id, start: number): number | null {
    let last = start
    const limit = Math.min(this.limit - this.found.length, this.portion)
    this.portion = Math.min(this.portion * 2, LARGEST_PORTION)
    const turns = this.reader.turnsOf(laneId, { last, limit })
    for (const turn of turns.toReversed()) {
      if (turn.ordinal !== last) return last
      if (this.others.some((other) => isBefore(this.reader, turn, other))) return null
      this.take(turn)
      this.merged(turn)
      const next = before(turn)
      if (next === null) return null
      last = next
      if (this.found.length >= this.limit) return last
    }
    return turns.length === 0 ? null : last
  }

  /** A turn of a lane that was merged more than once stays where it was read first. */
  private take(turn: Turn): void {
    const { found, seen } = this
    if (seen?.has(turn.id) === true)
      found.splice(
        found.findIndex(({ id }) => id === turn.id),
        1,
      )
    seen?.add(turn.id)
    found.push(turn)
  }

  /**
   * Inserts merged lanes just before the turn that merged them, shared turns once. A turn with a summary needs none: the
   * summary covers them.
   */
  merged(turn: Turn): void {
    if (turn.history === null || turn.history.fold !== null) return
    const { merges } = turn.history
    if (merges.length > 0) this.seen ??= new Set(this.found.map(({ id }) => id))
    const above = this.others
    for (const [at, place] of [...merges.entries()].toReversed()) {
      const known = [{ laneId: turn.laneId, last: beforeOf(turn) }, ...merges.slice(0, at)]
      this.others = [...above, ...known.flatMap((one) => lineage(this.reader, one))]
      this.back(place)
    }
    this.others = above
  }
}

/** True where a turn belongs to the history that ends at a place of its own lane. */
function isBefore(reader: TreeReader, { laneId, ordinal }: Turn, place: LanePlace): boolean {
  if (laneId !== place.laneId || ordinal > place.last) return false
  const lane = reader.conversation(laneId)
  if (lane === undefined || !isSkipped(lane, place.last)) return lane === undefined || !isSkipped(lane, ordinal)
  // The history ends where another turn has taken over since, so only a walk can tell.
  let at = place.last
  while (at > ordinal) {
    const turn = turnAt(reader, laneId, at)
    if (turn === undefined) return false
    at = turn.history?.after ?? turn.ordinal - 1
  }
  return at === ordinal
}

/** The summaries of a lane up to a turn, and of the lanes it was forked from; none is dropped for its age. */
function summariesUpTo(reader: TreeReader, place: LanePlace): Id[] {
  const found: Id[] = []
  for (const { laneId, last } of lineage(reader, place)) {
    for (const { ordinal, summaryId, before: start } of foldsOf(reader, laneId)) {
      if (ordinal > last) continue
      found.push(summaryId)
      if (start === null) return found.reverse()
    }
  }
  return found.reverse()
}

/** Yields the summaries that count in a lane, the newest first, each with the turn where it ends. */
function* foldsOf(reader: TreeReader, laneId: Id): Generator<Fold & { readonly ordinal: number }> {
  let at = reader.conversation(laneId)?.lane?.fold ?? null
  for (let steps = 0; at !== null && steps < MOST_SUMMARIES; steps++) {
    const fold = turnAt(reader, laneId, at)?.history?.fold
    if (fold == null) return
    yield { ...fold, ordinal: at }
    at = fold.previous
  }
}

const MOST_SUMMARIES = 1_000

export function turnAt(reader: TreeReader, laneId: Id, ordinal: number): Turn | undefined {
  const [turn] = ordinal < 0 ? [] : reader.turnsOf(laneId, { last: ordinal, limit: 1 })
  return turn?.ordinal === ordinal ? turn : undefined
}

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

/** True where another turn has replaced it. */
export function isSkipped({ lane }: Pick<Conversation, 'lane'>, ordinal: number): boolean {
  return rangeOf(lane, ordinal) !== undefined
}

/** The range of replaced turns that holds this ordinal. */
export function rangeOf(lane: LaneFacts | null, ordinal: number): readonly [number, number] | undefined {
  return lane?.skips.find(([from, to]) => from <= ordinal && ordinal <= to)
}

/** Adds a range, and joins ranges that touch. */
export function withSkip(skips: LaneFacts['skips'], [from, to]: readonly [number, number]): LaneFacts['skips'] {
  const apart = skips.filter(([a, b]) => b < from - 1 || a > to + 1)
  const joined = skips.filter(([a, b]) => b >= from - 1 && a <= to + 1)
  const start = Math.min(from, ...joined.map(([a]) => a))
  const end = Math.max(to, ...joined.map(([, b]) => b))
  return [...apart, [start, end] as const].sort(([a], [b]) => a - b)
}

/** The history of a turn that is added to the lane now; null in the usual case, where it follows the turn before it. */
export function historyAfter(conversation: Conversation): TurnHistory | null {
  if (conversation.lane === null) return null
  const after = headOf(conversation)
  return after === conversation.turnCount - 1 ? null : { after, source: null, merges: [], fold: null }
}

/** True where another version counts instead. */
export function isReplaced({ marks }: Node): boolean {
  return marks !== null && marks.replacedBy !== null
}

export function isDeleted({ marks }: Node): boolean {
  return marks !== null && marks.deletedAt !== null
}

/** True where a result led to a node (I9): it is of the node's own lane, or of those the lane comes from, up to the fork. */
export function isOwnResult(reader: TreeReader, node: Pick<Node, 'conversationId'>, task: Node): boolean {
  if (task.conversationId === node.conversationId) return true
  const ordinal = reader.turn(task.turnId)?.ordinal ?? Number.POSITIVE_INFINITY
  const [own, ...above] = lineage(reader, { laneId: node.conversationId, last: 0 })
  if (above.some(({ laneId, last }) => laneId === task.laneId && ordinal <= last)) return true
  return [own, ...above].some((place) => place !== undefined && hasCopy(reader, place.laneId, task))
}

/** True where a lane that was forked in the middle of a turn holds a copy of the task. */
function hasCopy(reader: TreeReader, laneId: string, task: Node): boolean {
  const first = turnAt(reader, laneId, 0)
  if (first?.history?.source !== task.turnId) return false
  return reader.nodesOf(first.id).some(({ metadata }) => metadata['copyOf'] === task.id)
}
