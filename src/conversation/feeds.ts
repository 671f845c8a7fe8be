import type { Commit } from '../graph/commit.ts'
import type { Conversation, Id, Node } from '../graph/rows.ts'
import type { Store } from '../store/store.ts'
import { LiveNode, TreeFeed } from './feed.ts'

/** The feeds of a process: a tree has one while somebody reads it or a node of it streams. */
export class Feeds {
  private readonly store: Store
  private readonly trees: Map<Id, TreeFeed> = new Map()
  private readonly readers: Map<Id, number> = new Map()

  constructor(store: Store) {
    this.store = store
  }

  committed(commit: Commit): void {
    if (commit.rootId === null || this.trees.size === 0) return
    this.trees.get(commit.rootId)?.publish(commit.events)
  }

  changed(): void {
    for (const tree of this.trees.values()) tree.changed()
  }

  /** Ends all readers: nothing more is written or heard of here. */
  close(): void {
    for (const tree of [...this.trees.values()]) tree.close()
  }

  /** A tree's feed for one more reader; to be given back with `leave`. */
  enter(rootId: Id): TreeFeed {
    const tree = this.treeOf(rootId)
    this.readers.set(rootId, (this.readers.get(rootId) ?? 0) + 1)
    tree.open()
    return tree
  }

  leave(rootId: Id): void {
    const left = (this.readers.get(rootId) ?? 1) - 1
    if (left > 0) {
      this.readers.set(rootId, left)
      return
    }
    this.readers.delete(rootId)
    this.dropIdle(rootId)
  }

  /** Where a node streams to while it runs; to be ended with `endLive`. */
  beginLive(node: Node, conversation: Conversation): LiveNode {
    const tree = this.treeOf(node.rootId)
    const live = new LiveNode(tree, node, {
      conversationId: node.conversationId,
      turnId: node.turnId,
      nodeId: node.id,
      path: conversation.path,
      parentId:
        conversation.turnCount === 1 ? conversation.parentTurnId : (this.store.link(node.turnId)?.hostTurnId ?? null),
    })
    tree.liveNodes.set(node.id, live)
    return live
  }

  endLive(node: Node): void {
    const tree = this.trees.get(node.rootId)
    if (tree === undefined) return
    tree.liveNodes.delete(node.id)
    this.dropIdle(node.rootId)
  }

  /** Nodes that streamed something other processes cannot see yet. */
  *unwritten(): Generator<{ nodeId: Id; rootId: Id; live: LiveNode }> {
    for (const tree of this.trees.values()) {
      for (const [nodeId, live] of tree.liveNodes) {
        if (live.events.length > live.written) yield { nodeId, rootId: tree.rootId, live }
      }
    }
  }

  private treeOf(rootId: Id): TreeFeed {
    const known = this.trees.get(rootId)
    if (known !== undefined) return known
    const tree = new TreeFeed(this.store, rootId)
    this.trees.set(rootId, tree)
    return tree
  }

  private dropIdle(rootId: Id): void {
    if (this.readers.has(rootId)) return
    if (this.trees.get(rootId)?.liveNodes.size === 0) this.trees.delete(rootId)
  }
}
