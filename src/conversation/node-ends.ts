import { onAbort } from '../base/abort.ts'
import { IdMap } from '../base/id-map.ts'
import type { Commit } from '../graph/commit.ts'
import type { Id, Node } from '../graph/rows.ts'
import type { Store } from '../store/store.ts'

type Tell = (node: Node) => void

/** What code in this process waits for nodes to end. Only a notice: the end itself is in the node's row. */
export class NodeEnds {
  private readonly store: Store
  private readonly waiters: IdMap<Tell> = new IdMap()

  constructor(store: Store) {
    this.store = store
  }

  /** The node when it has ended; null as soon as the signal aborts. For one waiter at a time. */
  waitUnless(nodeId: Id, signal: AbortSignal): Promise<Node | null> {
    const node = this.store.node(nodeId)
    if (node !== undefined && node.endedAt !== null) return Promise.resolve(node)
    return new Promise((resolve) => {
      const leave = onAbort(signal, () => {
        this.waiters.delete(nodeId)
        resolve(null)
      })
      this.waiters.set(nodeId, (ended) => {
        leave()
        resolve(ended)
      })
    })
  }

  committed({ nodes }: Commit): void {
    if (this.waiters.size === 0) return
    for (const node of nodes) if (node.endedAt !== null) this.tell(node)
  }

  /** Another process has written. */
  changed(): void {
    for (const [nodeId] of [...this.waiters.entries()]) {
      const node = this.store.node(nodeId)
      if (node !== undefined && node.endedAt !== null) this.tell(node)
    }
  }

  private tell(node: Node): void {
    const waiter = this.waiters.get(node.id)
    this.waiters.delete(node.id)
    waiter?.(node)
  }
}
