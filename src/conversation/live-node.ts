import type { Clock } from '../base/clock.ts'
import type { LiveBody, LiveEvent } from '../graph/event.ts'
import type { Id, Node } from '../graph/rows.ts'
import type { TreeFeed } from './feed.ts'

type Said = { -readonly [Key in keyof LiveBody]: LiveBody[Key] } & { text?: string; callId?: string }

/** `whole` things were said; of the last one, so many characters. */
interface Mark {
  readonly whole: number
  readonly characters: number
}

/** A running node that streams. Readers get each delta as it comes; what was streamed before they came, as one. */
export class LiveNode {
  readonly node: Node
  /** Set while somebody reads the tree. */
  tree: TreeFeed | null = null
  private readonly path: readonly string[]
  private readonly parentId: Id | null
  /** Neighbours of one kind as one. */
  private readonly said: Said[] = []
  /** Up to where readers in other processes can see it. */
  private written: Mark = { whole: 0, characters: 0 }

  constructor(node: Node, path: readonly string[], parentId: Id | null) {
    this.node = node
    this.path = path
    this.parentId = parentId
  }

  emit(body: LiveBody, clock: Clock): void {
    this.keep(body)
    if (this.tree !== null) this.tree.append(this.event(body, this.tree.nextLive(), clock.now()))
  }

  /** All that was streamed so far. */
  soFar(at: number, nextSeq: () => number): LiveEvent[] {
    return this.said.map((body) => this.event(body as LiveBody, nextSeq(), at))
  }

  /** Is there something that readers in other processes have not seen? */
  get isUnwritten(): boolean {
    const { whole, characters } = this.written
    return whole < this.said.length || characters < (this.said[whole - 1]?.text?.length ?? 0)
  }

  /** What they have not seen, and the mark to give to `wrote` when they have. */
  unwritten(at: number): { readonly events: LiveEvent[]; readonly mark: Mark } {
    const { whole, characters } = this.written
    const rest = this.said[whole - 1]?.text?.slice(characters) ?? ''
    const events = this.said.slice(whole).map((body) => this.event({ ...body } as LiveBody, 0, at))
    if (rest !== '') events.unshift(this.event({ ...this.said[whole - 1], text: rest } as LiveBody, 0, at))
    return { events, mark: { whole: this.said.length, characters: this.said.at(-1)?.text?.length ?? 0 } }
  }

  wrote(mark: Mark): void {
    this.written = mark
  }

  private keep(body: LiveBody): void {
    const last = this.said.length === 0 ? undefined : this.said[this.said.length - 1]
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
