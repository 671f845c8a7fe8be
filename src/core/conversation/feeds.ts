// Live events: one feed for each tree that somebody reads, and the streams of running nodes. `conversation/follow` reads a feed,
// `agent/step/call` streams into it, commits publish durable events to it, and `conversation/blocks` copies streams elsewhere.
//
// Stays true:
// - A feed is a buffer, never the record: after a restart, readers continue from the log.
// - Durable events have whole sequence numbers, in the order of their commits; live ones have fractions in between.
// - Any number of readers share one buffer, each with its own index. A tree without readers has no feed.
// - The buffer is bounded, however long the tree is: who is further behind reads durable events from the store.

import type { Clock } from '../base/clock.ts'
import { IdMap } from '../base/collections.ts'
import type { KeptAlive } from '../base/keep-shape.ts'
import { after, type Later } from '../base/maybe.ts'
import type { Commit, StoredBlock } from '../graph/commit.ts'
import { type EventRow, type LiveEvent, type RunEvent, toEvent } from '../graph/event.ts'
import type { TreeReader } from '../graph/reader.ts'
import type { Conversation, Id, Node } from '../graph/rows.ts'
import { isThere, lookAtNodes, nearTree } from '../store/look.ts'
import type { Store } from '../store/store.ts'
import { LiveNode } from './live-node.ts'
import { takePages } from './pages.ts'

/**
 * The feeds of a process: a tree has one while somebody reads it. Streaming nodes are known whether anybody reads them
 * or not.
 */
export class Feeds {
  private readonly store: Store
  private readonly clock: Clock
  private readonly engineId: () => Id
  private readonly trees: Map<Id, { readonly feed: TreeFeed; readers: number }> = new Map()
  private readonly live: IdMap<LiveNode> = new IdMap()
  /** The node that began to stream last. */
  protected last: KeptAlive
  /** The reader that came last. */
  lastReader: KeptAlive

  /** Called when a node begins to stream. */
  onLive: () => void = () => undefined

  constructor(store: Store, clock: Clock, engineId: () => Id) {
    this.store = store
    this.clock = clock
    this.engineId = engineId
  }

  /** Does anybody in this process read events? */
  get hasReaders(): boolean {
    return this.trees.size > 0
  }

  committed(commit: Commit): void {
    if (commit.rootId === null) return
    this.trees.get(commit.rootId)?.feed.publish(commit.events)
  }

  async changed(rootId?: Id): Promise<void> {
    for (const [id, { feed }] of [...this.trees.entries()]) if (id === (rootId ?? id)) await feed.changed()
  }

  /** Ends the readers of one tree. */
  closeTree(rootId: Id): void {
    this.trees.get(rootId)?.feed.close()
  }

  /** Ends all readers: this process writes and receives nothing more. */
  close(): void {
    for (const { feed } of [...this.trees.values()]) feed.close()
  }

  /** Gives a tree's feed to one more reader: see `TreeFeed.start`. `last` is its last event. Return it with `leave`. */
  enter(rootId: Id, from: number, last: number): Later<TreeFeed> {
    const known = this.trees.get(rootId)
    const feed = known?.feed ?? this.begin(rootId, isFarBack(from, last) ? last : from)
    if (known === undefined) this.trees.set(rootId, { feed, readers: 1 })
    else known.readers++
    return after(this.load(feed, from), () => {
      this.joinStreams(feed)
      return feed
    })
  }

  private begin(rootId: Id, from: number): TreeFeed {
    return new TreeFeed(this.store, rootId, {
      after: from,
      isLive: (nodeId) => this.live.has(nodeId),
      isElsewhere: (node) => this.isElsewhere(node),
    })
  }

  /** True when this process has claimed the node. */
  isOwn({ engineId }: Node): boolean {
    return engineId === this.engineId()
  }

  now(): number {
    return this.clock.now()
  }

  /** True when another process runs the node: then a claim that this one has lost says nothing more. */
  private isElsewhere(node: Node): boolean {
    if (this.isOwn(node)) return false
    const lost = this.live.get(node.id)
    if (lost !== undefined) lost.tree = null
    this.live.delete(node.id)
    return true
  }

  /** A reader whose feed cannot be loaded leaves it again. */
  private load(feed: TreeFeed, from: number): Later<void> {
    const failed = (error: unknown): never => {
      this.leave(feed.rootId)
      throw error
    }
    try {
      const loaded = feed.reachBack(from)
      return loaded instanceof Promise ? loaded.catch(failed) : loaded
    } catch (error) {
      return failed(error)
    }
  }

  /** Lets the nodes that stream in this process write to a feed, beginning with everything they have streamed so far. */
  private joinStreams(feed: TreeFeed): void {
    for (const node of this.liveIn(feed.rootId)) {
      if (node.tree === feed || this.trees.get(feed.rootId)?.feed !== feed) continue
      for (const event of node.soFar(this.clock.now(), () => feed.nextLive())) feed.append(event)
      node.tree = feed
    }
  }

  leave(rootId: Id): void {
    const tree = this.trees.get(rootId)
    if (tree === undefined || --tree.readers > 0) return
    this.trees.delete(rootId)
    tree.feed.empty()
    for (const node of this.liveIn(rootId)) node.tree = null
  }

  /** Returns the sink that a node streams to while it runs. End it with `endLive`. */
  beginLive({
    tree,
    node,
    conversation,
  }: {
    readonly tree: TreeReader
    readonly node: Node
    readonly conversation: Conversation
  }): LiveNode {
    const isFirst = conversation.turnCount === 1
    const parentId = isFirst ? conversation.parentTurnId : (tree.link(node.turnId)?.hostTurnId ?? null)
    const live = new LiveNode(node, conversation.path, parentId)
    const feed = this.trees.size > 0 ? this.trees.get(node.rootId)?.feed : undefined
    // A feed that is still loading takes up the stream when it has.
    if (feed?.isLoaded === true) live.tree = feed
    this.live.set(node.id, live)
    this.last = live
    this.onLive()
    return live
  }

  endLive({ id, epoch }: Node): void {
    if (this.live.get(id)?.node.epoch === epoch) this.live.delete(id)
  }

  get isStreaming(): boolean {
    return this.live.size > 0
  }

  /** The nodes with streamed text that other processes cannot see yet. */
  unwritten(): LiveNode[] {
    return this.live.values().filter(({ isUnwritten }) => isUnwritten)
  }

  /** The nodes of a tree that stream in this process. */
  liveIn(rootId: Id): LiveNode[] {
    return this.live.values().filter(({ node }) => node.rootId === rootId)
  }
}

/** Live events get the last whole number plus a fraction that grows by this step. */
const FRACTION = 2 ** -20
/**
 * Beyond this many buffered events, live ones of ended nodes are dropped, whose message holds all of it, and the oldest durable
 * ones, which are in the store.
 */
const BUFFER_LIMIT = 200_000
/** A reader that is further back than this begins with pages from the store, which nobody keeps. */
const FAR_BACK = 2_000

function isFarBack(from: number, last: number): boolean {
  return last - from > FAR_BACK
}

export interface TreeFeedOptions {
  /** Nobody wants this durable event, nor those before it. */
  readonly after: number
  /** True when the node streams in this process. */
  readonly isLive: (nodeId: Id) => boolean
  /** True when another process runs the node. */
  readonly isElsewhere: (node: Node) => boolean
}

/**
 * The events of one tree in this process: one buffer, any number of readers, each with an index into it. Durable events
 * come from the commits of this process or another; a restart needs nothing of it.
 */
export class TreeFeed {
  readonly rootId: Id
  /** Set when the runtime was closed, or the tree deleted. */
  isClosed = false
  /** Changes when the buffer drops events: indexes found before are then invalid. */
  generation = 0
  /** True when the buffer holds all events that were there when its first reader came. */
  isLoaded = false
  /** Readers load one after the other. */
  private loading: Promise<void> | undefined
  /** The buffer holds the durable events after this one; those before it are in the store. */
  start: number
  /** The nodes that stream in other processes, as far as their blocks were read. */
  readonly streams: Map<Id, LiveNode> = new Map()
  /** Once the buffer has dropped durable events, earlier ones are never put before it. */
  private isCut = false
  private limit = BUFFER_LIMIT
  /** The last durable event in the buffer. */
  private whole: number
  private fraction = 0
  private buffer: RunEvent[] = []
  private readonly wakers: Set<() => void> = new Set()
  /** The last block that was read. */
  private lastBlock = 0
  private readonly store: Store
  private readonly options: TreeFeedOptions

  constructor(store: Store, rootId: Id, options: TreeFeedOptions) {
    this.store = store
    this.rootId = rootId
    this.start = options.after
    this.whole = options.after
    this.options = options
  }

  /** Resolves when the buffer holds everything after this event, unless that is far back. */
  reachBack(from: number): Later<void> {
    const loaded = this.loading === undefined ? this.load(from) : this.loading.then(() => this.load(from))
    if (!(loaded instanceof Promise)) return loaded
    const loading = loaded
      .catch(() => undefined)
      .finally(() => {
        if (this.loading === loading) this.loading = undefined
      })
    this.loading = loading
    return loaded
  }

  private load(from: number): Later<void> {
    return after(this.isLoaded ? undefined : this.loadFirst(), () => this.loadBack(from))
  }

  private loadFirst(): Later<void> {
    return after(this.catchUp(), () =>
      after(this.takeBlocks(), () => {
        this.isLoaded = true
      }),
    )
  }

  private loadBack(from: number): Later<void> {
    if (from >= this.start || this.isCut || isFarBack(from, this.start)) return undefined
    const missed: RunEvent[] = []
    const take = (events: readonly EventRow[]) => {
      for (const event of events) missed.push(toEvent(event))
    }
    return after(takePages(this.store, this.rootId, { after: from, until: this.start, take }), () => {
      this.buffer = [...missed, ...this.buffer]
      this.start = from
      this.generation++
    })
  }

  nextLive(): number {
    this.fraction = Math.min(this.fraction + FRACTION, 1 - FRACTION)
    return this.whole + this.fraction
  }

  append(event: LiveEvent): void {
    this.buffer.push(event)
    this.wake()
  }

  /** Adds the events of a commit of this process. */
  publish(events: readonly EventRow[]): void {
    const last = events[events.length - 1]
    if (last === undefined) return
    const isNext = events[0]?.seq === this.whole + 1
    if (isNext) this.take(events, last.seq)
    else if (last.seq > this.whole) this.catchUpLater()
    this.wake()
  }

  private catchUpLater(): void {
    const done = this.catchUp()
    // Events that cannot be read now are read with the next commit.
    if (done instanceof Promise) done.then(() => this.wake()).catch(() => undefined)
  }

  /** Called when another process has written: reads the new events. If it deleted the tree, the feed closes. */
  async changed(): Promise<void> {
    if (!this.isLoaded) return
    await this.catchUp()
    await this.takeBlocks()
    if (!(await isThere(this.store, this.rootId))) this.isClosed = true
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

  /** Ends the feed and wakes everybody who waits. */
  close(): void {
    this.isClosed = true
    this.wake()
  }

  /** Lets go of its events but one: nobody reads it any more. */
  empty(): void {
    this.buffer = this.buffer.slice(-1)
    this.generation++
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
    if (this.buffer.length > this.limit) this.compact()
  }

  /** Reads the events that are new in the store. This process may publish some of them meanwhile. */
  private catchUp(): Later<void> {
    const take = (rows: readonly EventRow[]) => after(this.reach(rows), () => this.takeUnknown(rows))
    return takePages(this.store, this.rootId, { after: this.whole, take })
  }

  /** Whoever reads an event may read its rows: they are in reach before the event is. */
  private reach(events: readonly EventRow[]): Later<unknown> {
    const known = this.store.known?.(this.rootId)?.lastSeq(this.rootId) ?? 0
    return known >= (events.at(-1)?.seq ?? 0) ? undefined : nearTree(this.store, this.rootId)
  }

  private takeUnknown(events: readonly EventRow[]): void {
    const unknown = events.filter(({ seq }) => seq > this.whole)
    const last = unknown.at(-1)
    if (last !== undefined) this.take(unknown, last.seq)
  }

  /** Reads the streams of nodes in other processes. A block whose node has ended meanwhile, or runs anew, says nothing. */
  private takeBlocks(): Later<void> {
    if (!this.store.shared) return undefined
    return after(this.store.blocks(this.rootId, this.lastBlock), (blocks) => {
      if (blocks.length === 0 && this.streams.size === 0) return undefined
      const ids = [...blocks.map(({ nodeId }) => nodeId), ...this.streams.keys()]
      return after(lookAtNodes(this.store, this.rootId, ids), (nodes) => {
        for (const block of blocks) if (block.n > this.lastBlock) this.takeBlock(block, nodes.get(block.nodeId))
        for (const id of ids) if (!isRun(nodes.get(id), this.streams.get(id)?.node)) this.streams.delete(id)
      })
    })
  }

  private takeBlock(block: StoredBlock, node: Node | undefined): void {
    this.lastBlock = block.n
    if (!isRun(node, block) || !this.options.isElsewhere(node)) return
    const old = this.streams.get(node.id)
    const [first] = block.events
    if (first === undefined) return
    const stream = old !== undefined && isRun(old.node, node) ? old : new LiveNode(node, first.path, first.parentId)
    this.streams.set(node.id, stream)
    for (const event of block.events) {
      stream.keep(event)
      this.buffer.push({ ...event, seq: this.nextLive() })
    }
  }

  private compact(): void {
    const isKept = ({ seq, nodeId }: RunEvent) => Number.isInteger(seq) || this.isStreaming(nodeId ?? '')
    this.buffer = this.buffer.filter(isKept)
    if (this.buffer.length > BUFFER_LIMIT / 2) this.cut()
    // Whatever had to stay is not looked at again with every commit.
    this.limit = Math.max(BUFFER_LIMIT, this.buffer.length * 2)
    this.generation++
  }

  /** Drops the older half of the durable events. */
  private cut(): void {
    const durable = this.buffer.filter(({ seq }) => Number.isInteger(seq))
    const last = durable[durable.length >> 1]?.seq
    if (last === undefined) return
    this.buffer = this.buffer.filter(({ seq }) => seq > last || !Number.isInteger(seq))
    this.start = last
    this.isCut = true
  }

  private isStreaming(nodeId: Id): boolean {
    return this.streams.has(nodeId) || this.options.isLive(nodeId)
  }
}

/** True while a claim of a node is the one that runs it. */
function isRun(node: Node | undefined, of: { readonly epoch: number } | undefined): node is Node {
  return node?.state === 'running' && node.epoch === of?.epoch
}
