import { InputError } from '../base/error.ts'
import { anything, flag, int, list, number, type OptionRules, readOptions, text } from '../base/options.ts'
import { fitting, jsonBytes } from '../base/page/json-bytes.ts'
import { PageRoom } from '../base/page/room.ts'
import {
  ancestorsOf,
  buildTranscript,
  collectContext,
  type TranscriptLine,
  type TranscriptOptions,
} from '../graph/context.ts'
import { DURABLE_EVENTS, type DurableEvent, type DurableEventType, type EventRow, toEvent } from '../graph/event.ts'
import { ALL_TURNS, CONTEXT_TURNS, type Kinds } from '../graph/kinds.ts'
import { rangeOf } from '../graph/lane.ts'
import type { TreeReader } from '../graph/reader.ts'
import type { Conversation, Id, Node, Turn } from '../graph/rows.ts'
import type { Store } from '../store/store.ts'
import { onlyOneCursor, positiveNumber, wholeNumber } from './page-limits.ts'
import { pages } from './pages.ts'

export interface TurnPageQuery {
  /** The most turns of the page. Default 50. */
  readonly limitTurns?: number
  /** Turns older than this one. */
  readonly beforeRunId?: Id
  /** Turns newer than this one. */
  readonly afterRunId?: Id
  /** True: shows deleted nodes too. */
  readonly includeDeleted?: boolean
  /** The most bytes of rows to read for the page, which has one turn in any case. Default: no limit. */
  readonly maxBytes?: number
}

export interface TranscriptPage {
  readonly runIds: readonly Id[]
  /** Cursors for the pages on both sides; null when the page is empty. */
  readonly beforeRunId: Id | null
  readonly afterRunId: Id | null
  readonly transcript: readonly TranscriptLine[]
  /** Set where the page ended at its bytes: how many of the turns that were asked for are left to read, from the cursor on. */
  readonly turnsLeft?: number
}

export interface MessagePageQuery {
  /** The most messages of the page. Default 50. */
  readonly limit?: number
  /** Older messages than this one. */
  readonly before?: Id
  /** Newer messages than this one. */
  readonly after?: Id
  /** The most bytes of rows to read for the page, which has one message in any case. Default: no limit. */
  readonly maxBytes?: number
}

/** Messages of a conversation, oldest first. */
export interface MessagePage {
  readonly messages: readonly TranscriptLine[]
  /** The `before` of the next page, or its `after` where the page was asked for with `after`; null where there is none. */
  readonly next: Id | null
}

export interface EventPageQuery {
  /** The most events of the page. Default 200. */
  readonly limit?: number
  /** The sequence number after which the page begins. */
  readonly after?: number
  /** The node whose events to give. Default: all nodes. */
  readonly nodeId?: Id
  /** The types of events to give. Default: all types. */
  readonly types?: readonly DurableEventType[]
}

/** `bounds.ts` reads the limits, which may be digits in a text. */
export const TURN_PAGE: OptionRules<TurnPageQuery> = {
  limitTurns: anything,
  beforeRunId: text,
  afterRunId: text,
  includeDeleted: flag,
  maxBytes: int(1),
}
const MESSAGE_PAGE: OptionRules<MessagePageQuery> = { limit: anything, before: text, after: text, maxBytes: int(1) }
const EVENT_PAGE: OptionRules<EventPageQuery> = { limit: anything, after: number(), nodeId: text, types: list }

function knownEvent(type: DurableEventType): DurableEventType {
  if (DURABLE_EVENTS.includes(type)) return type
  throw new InputError(
    'invalid_input',
    `There is no event "${type}" in the record. There are: ${DURABLE_EVENTS.join(', ')}.`,
  )
}

/**
 * The most turns read for one page of messages, and events for one page of events. A page may be shorter because of it.
 */
const MOST_SCANNED = 2_000
const NO_LIMIT = Number.POSITIVE_INFINITY

/**
 * The transcript of one conversation, page by page. It never reads more than the page needs, however long the
 * conversation is.
 */
export class ConversationPages {
  private readonly tree: TreeReader
  private readonly id: Id
  private readonly kinds: Kinds

  constructor(tree: TreeReader, id: Id, kinds: Kinds) {
    this.tree = tree
    this.id = id
    this.kinds = kinds
  }

  transcript(query: TurnPageQuery): TranscriptPage {
    readOptions('transcript()', query, TURN_PAGE)
    const { maxBytes } = query
    const room = maxBytes === undefined ? undefined : new PageRoom(maxBytes)
    const turns = room === undefined ? this.turns(query) : this.turnsWithin(query, room)
    const lines = turns.map((turn) => this.linesOf(turn, query))
    const seen = turns.filter((_, at) => (lines[at]?.length ?? 0) > 0)
    // Cursors name turns with lines; where a page ended at its bytes, the turns read are a page, whatever they show.
    const named = maxBytes === undefined ? seen : turns
    return {
      runIds: seen.map(({ id }) => id),
      beforeRunId: named[0]?.id ?? null,
      afterRunId: named.at(-1)?.id ?? null,
      transcript: lines.flat(),
      ...(room?.isFull
        ? { turnsLeft: wholeNumber(query.limitTurns ?? CONTEXT_TURNS, 'limitTurns') - turns.length }
        : {}),
    }
  }

  /** The turns of a page whose rows fit: the newest of them, or, after a turn, the oldest. */
  turnsWithin(query: TurnPageQuery, room: PageRoom): readonly Turn[] {
    const limit = wholeNumber(query.limitTurns ?? CONTEXT_TURNS, 'limitTurns')
    const isForward = query.afterRunId !== undefined
    const found: Turn[] = []
    for (let at = query; found.length < limit; ) {
      const [turn] = this.turns({ ...at, limitTurns: 1 })
      if (turn === undefined || !this.takeRows(turn, room)) break
      if (isForward) found.push(turn)
      else found.unshift(turn)
      at = isForward ? { afterRunId: turn.id } : { beforeRunId: turn.id }
    }
    return found
  }

  /** The lines that led to a node, without its siblings: its causes within the latest turns. */
  transcriptFor(nodeId: Id, options: { readonly limitTurns?: number; readonly limit?: number }): TranscriptLine[] {
    readOptions('transcriptFor(nodeId, options)', options, { limitTurns: anything, limit: anything })
    const limitTurns = wholeNumber(options.limitTurns ?? CONTEXT_TURNS, 'limitTurns')
    const node = this.own(nodeId)
    if (limitTurns < 1 || node === undefined) return []
    const before = ancestorsOf(this.tree, node)
    const context = collectContext(this.tree, node, limitTurns)
    const causes = context.filter(({ id, turnId }) => turnId !== node.turnId || before.has(id))
    const lines = buildTranscript([...causes, node], this.kinds)
    return options.limit === undefined ? lines : lines.slice(-positiveNumber(options.limit, 'limit'))
  }

  context(nodeId: Id, options: { readonly limitTurns?: number }): Node[] {
    readOptions('contextFor(nodeId, options)', options, { limitTurns: anything })
    const limitTurns = options.limitTurns === undefined ? ALL_TURNS : positiveNumber(options.limitTurns, 'limitTurns')
    const node = this.own(nodeId)
    return node === undefined ? [] : [...collectContext(this.tree, node, limitTurns), node]
  }

  messages(query: MessagePageQuery): MessagePage {
    const { limit = 50, before, after, maxBytes } = readOptions('messagePage()', query, MESSAGE_PAGE)
    onlyOneCursor(before, after)
    const cursor = before ?? after
    const place = { at: cursor === undefined ? undefined : this.cursorNode(cursor), isForward: after !== undefined }
    return this.messagesAt(place, positiveNumber(limit, 'limit'), maxBytes ?? NO_LIMIT)
  }

  private messagesAt(
    {
      at,
      isForward,
    }: {
      /** The message on whose other side the page begins; undefined for the newest. */
      readonly at: Node | undefined
      readonly isForward: boolean
    },
    most: number,
    maxBytes: number,
  ): MessagePage {
    const [rows, shown] = [new PageRoom(maxBytes), new PageRoom(maxBytes)]
    // In the order of reading, which is backward unless the page is one after a message.
    const found: TranscriptLine[] = []
    let scanned = 0
    for (const turn of this.scan(at, isForward)) {
      scanned++
      if (!this.takeRows(turn, rows) && found.length > 0) break
      const lines = beyond(this.linesOf(turn), at, isForward)
      found.push(...fitting(isForward ? lines : lines.reverse(), shown))
      if (found.length >= most || shown.isFull) break
    }
    const hasMore = found.length >= most || rows.isFull || shown.isFull || scanned >= MOST_SCANNED
    const page = found.slice(0, most)
    const next = hasMore ? (page.at(-1)?.nodeId ?? null) : null
    return { messages: isForward ? page : page.reverse(), next }
  }

  /** The rows of a turn take their bytes whole, though a page shows few of them: false where they do not fit. */
  private takeRows(turn: Turn, room: PageRoom): boolean {
    return room.left === NO_LIMIT || room.take(jsonBytes(this.tree.nodesOf(turn.id), room.left))
  }

  async events(store: Store, query: EventPageQuery): Promise<DurableEvent[]> {
    const { limit = 200, after = 0, nodeId, types } = readOptions('eventPage()', query, EVENT_PAGE)
    const most = positiveNumber(limit, 'limit')
    const wanted = types === undefined ? undefined : new Set<string>(types.map(knownEvent))
    const isWanted = (row: EventRow) =>
      (nodeId === undefined ? row.conversationId === this.id : row.nodeId === nodeId) &&
      (wanted?.has(row.body.type) ?? true)
    const found: DurableEvent[] = []
    for await (const row of this.scanEvents(store, Math.max(0, after))) {
      if (isWanted(row)) found.push(toEvent(row))
      if (found.length === most) break
    }
    return found
  }

  private async *scanEvents(store: Store, after: number): AsyncGenerator<EventRow> {
    const rootId = this.tree.conversation(this.id)?.rootId ?? this.id
    let scanned = 0
    for await (const rows of pages(store, rootId, { after })) {
      for (const row of rows) {
        if (scanned++ >= MOST_SCANNED) return
        yield row
      }
    }
  }

  /** The active turns of a page, oldest first. */
  turns({ limitTurns = CONTEXT_TURNS, beforeRunId, afterRunId }: TurnPageQuery): readonly Turn[] {
    onlyOneCursor(beforeRunId, afterRunId)
    const limit = wholeNumber(limitTurns, 'limitTurns')
    const row = this.tree.conversation(this.id)
    if (row === undefined || limit < 1) return []
    if (afterRunId !== undefined) {
      return turnsForward(this.tree, row, { first: this.cursorTurn(afterRunId).ordinal + 1, limit })
    }
    const last = beforeRunId === undefined ? row.turnCount - 1 : this.cursorTurn(beforeRunId).ordinal - 1
    return turnsBackward(this.tree, row, { last, limit })
  }

  /** Walks the turns from a node's turn on, in either direction. */
  private *scan(at: Node | undefined, isForward: boolean): Generator<Turn> {
    const row = this.tree.conversation(this.id)
    if (row === undefined) return
    const start = at === undefined ? undefined : this.tree.turn(at.turnId)?.ordinal
    let ordinal = start ?? row.turnCount - 1
    for (let scanned = 0; scanned < MOST_SCANNED && ordinal >= 0; scanned++) {
      const [turn] = isForward
        ? turnsForward(this.tree, row, { first: ordinal, limit: 1 })
        : turnsBackward(this.tree, row, { last: ordinal, limit: 1 })
      if (turn === undefined) return
      yield turn
      ordinal = turn.ordinal + (isForward ? 1 : -1)
    }
  }

  private linesOf(turn: Turn, options: TranscriptOptions = {}): TranscriptLine[] {
    return buildTranscript(this.tree.nodesOf(turn.id), this.kinds, options)
  }

  private own(nodeId: Id): Node | undefined {
    const node = this.tree.node(nodeId)
    return node?.conversationId === this.id ? node : undefined
  }

  private cursorTurn(turnId: Id): Turn {
    const turn = this.tree.turn(turnId)
    if (turn?.conversationId === this.id) return turn
    throw new InputError('invalid_input', `The cursor ${turnId} is no turn of this conversation.`)
  }

  private cursorNode(nodeId: Id): Node {
    const node = this.own(nodeId)
    if (node !== undefined) return node
    throw new InputError('invalid_input', `The cursor ${nodeId} is no message of this conversation.`)
  }
}

/** The lines on the wanted side of a node; all of them where the node is not among them. */
function beyond(lines: TranscriptLine[], at: Node | undefined, isForward: boolean): TranscriptLine[] {
  const index = at === undefined ? -1 : lines.findIndex(({ nodeId }) => nodeId === at.id)
  if (index < 0) return lines
  return isForward ? lines.slice(index + 1) : lines.slice(0, index)
}

type Turns = Pick<TreeReader, 'turnsOf'>

/** The newest active turns of a lane, up to an ordinal, oldest first. */
export function turnsBackward(
  tree: Turns,
  row: Conversation,
  { last, limit }: { last: number; limit: number },
): Turn[] {
  const found: Turn[] = []
  for (let at = last; at >= 0 && found.length < limit; ) {
    const range = rangeOf(row.lane, at)
    if (range !== undefined) {
      at = range[0] - 1
      continue
    }
    const first = (row.lane?.skips.findLast(([, to]) => to < at)?.[1] ?? -1) + 1
    const turns = tree.turnsOf(row.id, { last: at, limit: Math.min(limit - found.length, at - first + 1) })
    if (turns.length === 0) return found
    found.unshift(...turns)
    at = (turns[0]?.ordinal ?? 0) - 1
  }
  return found
}

/** The oldest active turns of a lane, from an ordinal on, oldest first. */
export function turnsForward(
  tree: Turns,
  row: Conversation,
  { first, limit }: { first: number; limit: number },
): Turn[] {
  const found: Turn[] = []
  for (let at = first; at < row.turnCount && found.length < limit; ) {
    const range = rangeOf(row.lane, at)
    if (range !== undefined) {
      at = range[1] + 1
      continue
    }
    const end = row.lane?.skips.find(([from]) => from > at)?.[0] ?? row.turnCount
    const last = Math.min(end - 1, at + limit - found.length - 1)
    const turns = tree.turnsOf(row.id, { last, limit: last - at + 1 })
    if (turns.length === 0) return found
    found.push(...turns)
    at = (turns.at(-1)?.ordinal ?? last) + 1
  }
  return found
}
