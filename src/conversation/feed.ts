import { type EventRow, type LiveEvent, type RunEvent, toEvent } from '../graph/event.ts'
import type { Id } from '../graph/rows.ts'
import type { Store } from '../store/store.ts'
import { pages } from './pages.ts'

/** Live events get the last whole number plus a fraction that grows by this. */
const FRACTION = 2 ** -20
/** Beyond this many buffered events, those of nodes that have ended are dropped: their message has it all. */
const BUFFER_LIMIT = 200_000

export interface FeedOptions {
  /** A durable event nobody wants, nor those before it. */
  readonly after: number
  /** Does the node stream in this process? */
  readonly isLive: (nodeId: Id) => boolean
}

/**
 * The events of one tree in this process: one buffer, any number of readers, each an index into it. Durable events come
 * from the commits, of this process or another; nothing here is needed to go on after a restart.
 */
export class TreeFeed {
  readonly rootId: Id
  /** The runtime was closed, or the tree deleted. */
  isClosed = false
  /** Changes when events were dropped from the buffer: an index found before is no longer good. */
  generation = 0
  /** The buffer has the durable events after this one. */
  private start: number
  /** The last durable event in the buffer. */
  private whole: number
  private fraction = 0
  private buffer: RunEvent[] = []
  private readonly wakers: Set<() => void> = new Set()
  /** The last block taken. */
  private lastBlock = 0
  private readonly store: Store
  private readonly isLive: (nodeId: Id) => boolean

  constructor(store: Store, rootId: Id, { after, isLive }: FeedOptions) {
    this.store = store
    this.rootId = rootId
    this.start = after
    this.whole = after
    this.isLive = isLive
    this.catchUp()
    this.takeBlocks()
  }

  /** Makes sure that the buffer has what came after this event. */
  reachBack(after: number): void {
    if (after >= this.start) return
    const missed: RunEvent[] = []
    for (const events of pages(this.store, this.rootId, { after, until: this.start }))
      missed.push(...events.map(toEvent))
    this.buffer = [...missed, ...this.buffer]
    this.start = after
    this.generation++
  }

  nextLive(): number {
    this.fraction = Math.min(this.fraction + FRACTION, 1 - FRACTION)
    return this.whole + this.fraction
  }

  append(event: LiveEvent): void {
    this.buffer.push(event)
    this.wake()
  }

  /** Events of a commit of this process. */
  publish(events: readonly EventRow[]): void {
    const last = events[events.length - 1]
    if (last === undefined) return
    const isNext = events[0]?.seq === this.whole + 1
    if (isNext) this.take(events, last.seq)
    else this.catchUp()
    this.wake()
  }

  /** Another process has written: take what is new. Of a tree that it deleted there is nothing more to come. */
  changed(): void {
    this.catchUp()
    this.takeBlocks()
    if (this.store.conversation(this.rootId) === undefined) this.isClosed = true
    this.wake()
  }

  /** The event at an index; undefined when it is still to come. */
  at(index: number): RunEvent | undefined {
    return this.buffer[index]
  }

  /** The index of the first event after a sequence number. */
  indexAfter(seq: number): number {
    let low = 0
    let high = this.buffer.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.buffer[middle]?.seq ?? 0) <= seq) low = middle + 1
      else high = middle
    }
    return low
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
    for (const event of events) this.buffer.push(toEvent(event))
    if (this.buffer.length > BUFFER_LIMIT) this.compact()
  }

  private catchUp(): void {
    for (const events of pages(this.store, this.rootId, { after: this.whole })) {
      this.take(events, events[events.length - 1]?.seq ?? this.whole)
    }
  }

  /** What nodes of other processes have streamed so far. */
  private takeBlocks(): void {
    if (!this.store.shared) return
    for (const block of this.store.blocks(this.rootId, this.lastBlock)) {
      this.lastBlock = block.n
      if (this.isLive(block.nodeId)) continue
      for (const event of block.events) this.buffer.push({ ...event, seq: this.nextLive() })
    }
  }

  private compact(): void {
    this.buffer = this.buffer.filter((event) => Number.isInteger(event.seq) || this.isLive(event.nodeId ?? ''))
    this.generation++
  }
}
