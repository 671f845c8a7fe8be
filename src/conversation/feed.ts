import type { LiveBlock } from '../graph/commit.ts'
import {
  type EventPlace,
  type EventRow,
  type LiveBody,
  type LiveEvent,
  type RunEvent,
  toEvent,
} from '../graph/event.ts'
import type { Id, Node } from '../graph/rows.ts'
import type { Store } from '../store/store.ts'

/** Live events get the last whole number plus a fraction that grows by this. */
const FRACTION = 2 ** -20
const PAGE = 1_000
/** Beyond this many buffered events, those of nodes that have ended are dropped: their message has it all. */
const BUFFER_LIMIT = 200_000

/** What a running node has streamed so far in this process. */
export class LiveNode {
  readonly events: LiveEvent[] = []
  readonly epoch: number
  /** How many of `events` are in the block that other processes read. */
  written = 0
  private readonly tree: TreeFeed
  private readonly place: Omit<EventPlace, 'seq' | 'at'>

  constructor(tree: TreeFeed, node: Node, place: Omit<EventPlace, 'seq' | 'at'>) {
    this.tree = tree
    this.epoch = node.epoch
    this.place = place
  }

  emit(body: LiveBody, at: number): void {
    const { conversationId, turnId, nodeId, path, parentId } = this.place
    const event: LiveEvent = { seq: this.tree.nextLive(), at, conversationId, turnId, nodeId, path, parentId, ...body }
    this.events.push(event)
    this.tree.append(event)
  }
}

/**
 * The events of one tree in this process: one buffer, any number of readers, each an index into it. Durable events come
 * from the commits, of this process or another; nothing here is needed to go on after a restart.
 */
export class TreeFeed {
  readonly rootId: Id
  readonly liveNodes: Map<Id, LiveNode> = new Map()
  /** The last durable event the buffer holds or starts after. */
  private whole: number
  private fraction = 0
  private buffer: RunEvent[] = []
  /** How many events were dropped from the front of the buffer. */
  private dropped = 0
  private readonly wakers: Set<() => void> = new Set()
  private readonly seenInBlock: Map<Id, { epoch: number; chars: number }> = new Map()
  private readonly store: Store
  private buffering = false
  /** The runtime was closed. */
  isClosed = false

  constructor(store: Store, rootId: Id) {
    this.store = store
    this.rootId = rootId
    this.whole = store.lastSeq(rootId)
  }

  /** Begins to keep events for readers: all durable ones, and the live ones of nodes that still run. */
  open(): void {
    if (this.buffering) return
    this.buffering = true
    this.whole = 0
    this.catchUp()
    for (const node of this.liveNodes.values()) this.buffer.push(...node.events)
    this.buffer.sort((a, b) => a.seq - b.seq)
  }

  nextLive(): number {
    this.fraction = Math.min(this.fraction + FRACTION, 1 - FRACTION)
    return this.whole + this.fraction
  }

  append(event: LiveEvent): void {
    if (!this.buffering) return
    this.buffer.push(event)
    this.wake()
  }

  /** Events of a commit of this process. */
  publish(events: readonly EventRow[]): void {
    const last = events[events.length - 1]
    if (last === undefined) return
    const isNext = events[0]?.seq === this.whole + 1
    if (this.buffering && !isNext) this.catchUp()
    else this.take(events, last.seq)
    this.wake()
  }

  /** Another process has written: take what is new. */
  changed(): void {
    if (!this.buffering) return
    const before = this.dropped + this.buffer.length
    this.catchUp()
    for (const block of this.store.blocks(this.rootId)) this.takeBlock(block)
    if (this.dropped + this.buffer.length > before) this.wake()
  }

  /** The event at an absolute position; undefined when it is still to come. A position that was dropped moves on. */
  at(position: number): { event: RunEvent; next: number } | undefined {
    const index = Math.max(position - this.dropped, 0)
    const event = this.buffer[index]
    return event === undefined ? undefined : { event, next: this.dropped + index + 1 }
  }

  /** There is nothing more to come: whoever waits is told. */
  close(): void {
    this.isClosed = true
    this.wake()
  }

  onMore(run: () => void): () => void {
    this.wakers.add(run)
    return () => this.wakers.delete(run)
  }

  private wake(): void {
    for (const run of this.wakers) run()
  }

  private take(events: readonly EventRow[], lastSeq: number): void {
    this.whole = lastSeq
    this.fraction = 0
    if (!this.buffering) return
    for (const event of events) this.buffer.push(toEvent(event))
    if (this.buffer.length > BUFFER_LIMIT) this.compact()
  }

  private catchUp(): void {
    for (;;) {
      const events = this.store.events(this.rootId, this.whole, PAGE)
      const last = events[events.length - 1]
      if (last === undefined) return
      this.take(events, last.seq)
    }
  }

  private takeBlock(block: LiveBlock): void {
    if (this.liveNodes.has(block.nodeId)) return
    const seen = this.seenInBlock.get(block.nodeId)
    const known = seen?.epoch === block.epoch ? seen.chars : 0
    let chars = 0
    for (const event of block.events) {
      const text = 'text' in event ? event.text : ''
      const size = Math.max(text.length, 1)
      const fresh = chars + size - Math.max(known, chars)
      chars += size
      if (fresh <= 0) continue
      const seq = this.nextLive()
      this.buffer.push(text === '' ? { ...event, seq } : ({ ...event, seq, text: text.slice(-fresh) } as LiveEvent))
    }
    this.seenInBlock.set(block.nodeId, { epoch: block.epoch, chars })
  }

  private compact(): void {
    const before = this.buffer.length
    this.buffer = this.buffer.filter((event) => Number.isInteger(event.seq) || this.liveNodes.has(event.nodeId ?? ''))
    this.dropped += before - this.buffer.length
  }
}
