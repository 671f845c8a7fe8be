import type { LiveBody, LiveEvent } from '../graph/event.ts'
import type { Id, Node } from '../graph/rows.ts'
import type { TreeFeed } from './feed.ts'

type Said = { -readonly [Key in keyof LiveBody]: LiveBody[Key] } & { text?: string; callId?: string }

/** A running node that streams. Readers get each delta as it comes; what was streamed before they came, as one. */
export class LiveNode {
  readonly node: Node
  /** Set while somebody reads the tree. */
  tree: TreeFeed | null = null
  /** Something was streamed that readers in other processes have not seen. */
  isUnwritten = false
  private readonly path: readonly string[]
  private readonly parentId: Id | null
  /** Neighbours of one kind as one. */
  private readonly said: Said[] = []

  constructor(node: Node, path: readonly string[], parentId: Id | null) {
    this.node = node
    this.path = path
    this.parentId = parentId
  }

  emit(body: LiveBody, at: number): void {
    this.isUnwritten = true
    this.keep(body)
    if (this.tree !== null) this.tree.append(this.event(body, this.tree.nextLive(), at))
  }

  /** All that was streamed so far. */
  soFar(at: number, nextSeq: () => number): LiveEvent[] {
    return this.said.map((body) => this.event(body as LiveBody, nextSeq(), at))
  }

  private keep(body: LiveBody): void {
    const last = this.said[this.said.length - 1]
    if (last !== undefined && last.text !== undefined && 'text' in body && isSameStream(last, body)) {
      last.text += body.text
      return
    }
    this.said.push(body.type === 'text-delta' ? { type: 'text-delta', text: body.text } : { ...body })
  }

  /** Text comes by the thousand: its event is written out. */
  private event(body: LiveBody, seq: number, at: number): LiveEvent {
    const { node, path, parentId } = this
    const { conversationId, turnId, id: nodeId } = node
    if (body.type === 'text-delta') {
      return { seq, at, conversationId, turnId, nodeId, path, parentId, type: 'text-delta', text: body.text }
    }
    return { seq, at, conversationId, turnId, nodeId, path, parentId, ...body }
  }
}

function isSameStream(a: Said, b: LiveBody): boolean {
  if (a.type !== b.type) return false
  return b.type !== 'tool-input-delta' || a.callId === b.callId
}
