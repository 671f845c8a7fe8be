import type { EventPlace, LiveBody, LiveEvent } from '../graph/event.ts'
import type { Id, Node } from '../graph/rows.ts'
import type { TreeFeed } from './feed.ts'

/** A running node that streams. Readers get each delta as it comes; what was streamed before they came, as one. */
export class LiveNode {
  readonly node: Node
  /** Set while somebody reads the tree. */
  tree: TreeFeed | null = null
  /** Something was streamed that readers in other processes have not seen. */
  isUnwritten = false
  private readonly path: readonly string[]
  private readonly parentId: Id | null
  private readonly said: LiveBody[] = []

  constructor(node: Node, path: readonly string[], parentId: Id | null) {
    this.node = node
    this.path = path
    this.parentId = parentId
  }

  emit(body: LiveBody, at: number): void {
    this.isUnwritten = true
    keep(this.said, body)
    if (this.tree !== null) this.tree.append(this.event(body, this.tree.nextLive(), at))
  }

  /** All that was streamed so far, neighbours of one kind as one event. */
  soFar(at: number, nextSeq: () => number): LiveEvent[] {
    return this.said.map((body) => this.event(body, nextSeq(), at))
  }

  private event(body: LiveBody, seq: number, at: number): LiveEvent {
    const { conversationId, turnId, id } = this.node
    const place: EventPlace = { seq, at, conversationId, turnId, nodeId: id, path: this.path, parentId: this.parentId }
    return { ...place, ...body }
  }
}

function keep(said: LiveBody[], body: LiveBody): void {
  const last = said[said.length - 1]
  if (last !== undefined && 'text' in last && 'text' in body && isSameStream(last, body)) {
    said[said.length - 1] = { ...last, text: last.text + body.text }
    return
  }
  said.push(body)
}

function isSameStream(a: LiveBody, b: LiveBody): boolean {
  if (a.type !== b.type) return false
  return a.type !== 'tool-input-delta' || (b.type === 'tool-input-delta' && a.callId === b.callId)
}
