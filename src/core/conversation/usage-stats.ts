import { type OptionRules, oneOf, readOptions } from '../base/options.ts'
import { addUsage, NO_USAGE, type Usage } from '../graph/content.ts'
import type { EventRow } from '../graph/event.ts'
import type { TreeReader } from '../graph/reader.ts'
import type { Conversation, Id, Turn } from '../graph/rows.ts'
import { costOf } from '../model/named/prices.ts'
import { look } from '../store/look.ts'
import type { Store } from '../store/store.ts'

export interface UsageQuery {
  /** Calls that ended at this moment or later, in milliseconds since 1970. */
  readonly since?: number
  /** Calls that ended before this moment. */
  readonly until?: number
  /** `lane` (default): counts calls of this lane only; `tree`: also those of all lanes and children of its tree. */
  readonly of?: 'lane' | 'tree'
}

/** The usage of some model calls. */
export interface UsageSum {
  readonly calls: number
  readonly usage: Usage
  /** The share of the input that came from a cache, from 0 to 1. */
  readonly cacheHitRate: number
  /** US dollars; null when the price of one of the models is unknown. */
  readonly usd: number | null
}

export interface UsageStats {
  readonly total: UsageSum
  readonly byModel: { readonly [model: string]: UsageSum }
  /** By the day they ended, `2026-03-05` in UTC. */
  readonly byDay: { readonly [day: string]: UsageSum }
  /** By lane, and by conversation of children. */
  readonly byLane: { readonly [laneId: Id]: UsageSum }
}

/**
 * Counts each call once, whatever happened to its node since. It reads only the relevant parts of the log: those in
 * which turns of the lane were open, or for a tree the events since then.
 */
export async function usageStats(store: Store, lane: LanePlace, query: UsageQuery): Promise<UsageStats> {
  const { since, until, of } = checked(query)
  const { id: laneId, rootId } = lane
  const total = new Sums()
  const [byModel, byDay, byLane] = [new Sums(), new Sums(), new Sums()]
  // Nearly everything in a tree happens while its root works.
  const isAll = of === 'tree' || (laneId === rootId && since === Number.NEGATIVE_INFINITY)
  const events = isAll
    ? newestEvents(store, rootId, await look(store, rootId, (tree) => tree.lastSeq(rootId)), since)
    : turnEvents(store, rootId, await look(store, rootId, (tree) => turnsSince(tree, laneId, { since, until })))
  for await (const { body, at, conversationId } of events) {
    if (body.type !== 'usage' || at < since || at >= until || (of === 'lane' && conversationId !== laneId)) continue
    total.add('all', body)
    byModel.add(body.model, body)
    byDay.add(new Date(at).toISOString().slice(0, 10), body)
    byLane.add(conversationId, body)
  }
  return { total: total.get('all'), byModel: byModel.all(), byDay: byDay.all(), byLane: byLane.all() }
}

/** A conversation or lane, and the root of its tree. */
type LanePlace = Pick<Conversation, 'id' | 'rootId'>

const PAGE = 1_000

/** Reads backward to the first page on which everything is older. */
async function* newestEvents(
  store: Store,
  rootId: Id,
  /** The number of its last event. */
  last: number,
  since: number,
): AsyncGenerator<EventRow, void> {
  for (let end = last; end > 0; end -= PAGE) {
    const after = Math.max(0, end - PAGE)
    const events = await store.events(rootId, after, end - after)
    yield* events
    if (events.every(({ at }) => at < since)) return
  }
}

interface Span {
  readonly since: number
  readonly until: number
}

/**
 * The turns of a lane that may have events in this time. Turns run one after another: before a page of turns that are
 * all too old, all others are too, even if the clock was set back.
 */
function turnsSince(tree: TreeReader, laneId: Id, span: Span): Turn[] {
  const found: Turn[] = []
  for (let last = Number.MAX_SAFE_INTEGER; last >= 0; ) {
    const turns = tree.turnsOf(laneId, { last, limit: 100 })
    for (const turn of turns) if (isWithin(turn, span)) found.push(turn)
    // A turn that never started may have ended long before the turns it queued behind.
    if (turns.every((turn) => isBefore(turn, span)) && turns.some(({ startedAt }) => startedAt !== null)) return found
    last = (turns[0]?.ordinal ?? 0) - 1
  }
  return found
}

function isWithin(turn: Turn, span: Span): boolean {
  return turn.endedAt === null || (!isBefore(turn, span) && Math.min(...momentsOf(turn)) < span.until)
}

function isBefore(turn: Turn, { since }: Span): boolean {
  return turn.endedAt !== null && Math.max(...momentsOf(turn)) < since
}

/** In any order: the clock may have been set back while it ran. */
function momentsOf({ createdAt, startedAt, endedAt }: Turn): number[] {
  return [createdAt, startedAt ?? createdAt, endedAt ?? createdAt]
}

const QUERY: OptionRules<UsageQuery> = { since: moment, until: moment, of: oneOf('lane', 'tree') }

function moment(value: unknown): string | null {
  return typeof value === 'number' && !Number.isNaN(value) ? null : 'milliseconds since 1970'
}

function checked(query: UsageQuery): Required<UsageQuery> {
  const given = readOptions('usageStats()', query, QUERY)
  const { since = Number.NEGATIVE_INFINITY, until = Number.POSITIVE_INFINITY, of = 'lane' } = given
  return { since, until, of }
}

interface Call {
  readonly usage: Usage
  readonly model: string
}

class Sums {
  private readonly sums: Map<string, { calls: number; usage: Usage; usd: number | null }> = new Map()

  add(key: string, { usage, model }: Call): void {
    const sum = this.sums.get(key) ?? { calls: 0, usage: NO_USAGE, usd: 0 }
    const cost = costOf(usage, model)
    const usd = sum.usd === null || cost === null ? null : sum.usd + cost
    this.sums.set(key, { calls: sum.calls + 1, usage: addUsage(sum.usage, usage), usd })
  }

  get(key: string): UsageSum {
    const { calls, usage, usd } = this.sums.get(key) ?? { calls: 0, usage: NO_USAGE, usd: 0 }
    const cacheHitRate = usage.inputTokens === 0 ? 0 : usage.cacheReadTokens / usage.inputTokens
    return { calls, usage, cacheHitRate, usd }
  }

  all(): { readonly [key: string]: UsageSum } {
    return Object.fromEntries([...this.sums.keys()].sort().map((key) => [key, this.get(key)]))
  }
}

/** The stored events of turns of one tree. Reads only the parts of the log in which one of them was open. */
async function* turnEvents(store: Store, rootId: Id, turns: readonly Turn[]): AsyncGenerator<EventRow, void> {
  const sweep = new Sweep(turns)
  const wanted = new Set(turns.map(({ id }) => id))
  while (sweep.goesOn()) {
    const events = await store.events(rootId, sweep.at, sweep.limit)
    if (events.length === 0) return
    for (const event of events) if (wanted.has(event.runId)) yield event
    sweep.take(events)
  }
}

/** A short turn has about ten events. */
const FIRST_PAGE = 32
const LARGEST_PAGE = 1_000

/** The place in the log to read next. */
class Sweep {
  at = 0
  limit = FIRST_PAGE / 2
  /** Sorted, the next to begin last. */
  private readonly waiting: Turn[]
  private readonly open = new Set<Id>()
  private readonly ended = new Set<Id>()

  constructor(turns: readonly Turn[]) {
    this.waiting = turns.toSorted((a, b) => b.afterSeq - a.afterSeq)
  }

  /** Moves to the next part. Returns false when there is none. */
  goesOn(): boolean {
    this.limit = Math.min(this.limit * 2, LARGEST_PAGE)
    for (let next = this.next(); next !== undefined; next = this.next()) this.begin(next)
    return this.open.size > 0
  }

  take(events: readonly EventRow[]): void {
    this.at = events.at(-1)?.seq ?? this.at
    for (const { runId, body } of events) {
      if (body.type !== 'run-end') continue
      this.ended.add(runId)
      this.open.delete(runId)
    }
  }

  /** The next turn that had begun here; where none is open, the next one. */
  private next(): Turn | undefined {
    const isHere = this.open.size === 0 || (this.waiting.at(-1)?.afterSeq ?? 0) <= this.at
    return isHere ? this.waiting.pop() : undefined
  }

  private begin({ id, afterSeq }: Turn): void {
    if (this.ended.has(id)) return
    this.open.add(id)
    if (afterSeq <= this.at) return
    this.at = afterSeq
    this.limit = FIRST_PAGE
  }
}
