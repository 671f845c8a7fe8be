import type { Clock } from '../base/clock.ts'
import { IdMap } from '../base/id-map.ts'
import type { Commit } from '../graph/commit.ts'
import type { Conversation, Id, Node } from '../graph/rows.ts'
import type { Store } from '../store/store.ts'
import { TreeFeed } from './feed.ts'
import { LiveNode } from './live-node.ts'

/** The feeds of a process: a tree has one while somebody reads it. Nodes that stream are known whether read or not. */
export class Feeds {
  private readonly store: Store
  private readonly clock: Clock
  private readonly trees: Map<Id, { readonly feed: TreeFeed; readers: number }> = new Map()
  private readonly live: IdMap<LiveNode> = new IdMap()
  /** Keeps the shape of streaming nodes known while none streams: see Ledger. */
  protected last: unknown

  /** Called when a node begins to stream. */
  onLive: () => void = () => undefined

  constructor(store: Store, clock: Clock) {
    this.store = store
    this.clock = clock
  }

  committed(commit: Commit): void {
    if (commit.rootId === null || this.trees.size === 0) return
    this.trees.get(commit.rootId)?.feed.publish(commit.events)
  }

  changed(): void {
    for (const { feed } of this.trees.values()) feed.changed()
  }

  /** Ends the readers of one tree. */
  closeTree(rootId: Id): void {
    this.trees.get(rootId)?.feed.close()
  }

  /** Ends all readers: nothing more is written or heard of here. */
  close(): void {
    for (const { feed } of [...this.trees.values()]) feed.close()
  }

  /** A tree's feed, with all that comes after an event, for one more reader; to be given back with `leave`. */
  enter(rootId: Id, after: number): TreeFeed {
    const known = this.trees.get(rootId)
    if (known !== undefined) {
      known.feed.reachBack(after)
      known.readers++
      return known.feed
    }
    const feed = new TreeFeed(this.store, rootId, { after, isLive: (nodeId) => this.live.has(nodeId) })
    this.trees.set(rootId, { feed, readers: 1 })
    for (const node of this.liveIn(rootId)) {
      for (const event of node.soFar(this.clock.now(), () => feed.nextLive())) feed.append(event)
      node.tree = feed
    }
    return feed
  }

  leave(rootId: Id): void {
    const tree = this.trees.get(rootId)
    if (tree === undefined || --tree.readers > 0) return
    this.trees.delete(rootId)
    for (const node of this.liveIn(rootId)) node.tree = null
  }

  /** Where a node streams to while it runs; to be ended with `endLive`. */
  beginLive(node: Node, conversation: Conversation): LiveNode {
    const isFirst = conversation.turnCount === 1
    const parentId = isFirst ? conversation.parentTurnId : (this.store.link(node.turnId)?.hostTurnId ?? null)
    const live = new LiveNode(node, conversation.path, parentId)
    if (this.trees.size > 0) live.tree = this.trees.get(node.rootId)?.feed ?? null
    this.live.set(node.id, live)
    this.last = live
    this.onLive()
    return live
  }

  endLive(node: Node): void {
    this.live.delete(node.id)
  }

  get isStreaming(): boolean {
    return this.live.size > 0
  }

  /** Nodes that streamed something other processes cannot see yet. */
  unwritten(): LiveNode[] {
    return this.live.values().filter(({ isUnwritten }) => isUnwritten)
  }

  private liveIn(rootId: Id): LiveNode[] {
    return this.live.values().filter(({ node }) => node.rootId === rootId)
  }
}
