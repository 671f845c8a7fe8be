import type { Clock } from '../base/clock.ts'
import type { LiveBody, LiveEvent } from '../graph/event.ts'
import type { Id, Node } from '../graph/rows.ts'

type StreamedPiece = { -readonly [Key in keyof LiveBody]: LiveBody[Key] } & { text?: string; callId?: string }

/** The end of the part that was written: the number of whole pieces, and the characters of the last one. */
interface Mark {
  readonly whole: number
  readonly characters: number
}

/** The feed that those who read a tree share. */
interface LiveReaders {
  append(event: LiveEvent): void
  /** The number of the next live event. */
  nextLive(): number
}

/** A running node that streams. Readers get each delta as it comes, and everything before as one. */
export class LiveNode {
  readonly node: Node
  /** Set while somebody reads the tree. */
  tree: LiveReaders | null = null
  readonly path: readonly string[]
  readonly parentId: Id | null
  /** The pieces so far; neighbours of one kind are joined. */
  readonly said: StreamedPiece[] = []
  /** The end of the part that readers in other processes can see. */
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

  /** Everything that was streamed so far. */
  soFar(at: number, nextSeq: () => number): LiveEvent[] {
    return this.said.map((body) => this.event(body as LiveBody, nextSeq(), at))
  }

  /** True when readers in other processes miss something. */
  get isUnwritten(): boolean {
    const { whole, characters } = this.written
    return whole < this.said.length || characters < (this.said[whole - 1]?.text?.length ?? 0)
  }

  /** The part that readers in other processes miss, and the mark to pass to `wrote` when they have it. */
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

  keep(body: LiveBody): void {
    const last = this.said.length === 0 ? undefined : this.said[this.said.length - 1]
    if (last !== undefined && last.text !== undefined && 'text' in body && isSameStream(last, body)) {
      last.text += body.text
      return
    }
    this.said.push(body.type === 'text-delta' ? { type: 'text-delta', text: body.text } : { ...body })
  }

  /** Spells out the event of a text, because text comes by the thousand. */
  private event(body: LiveBody, seq: number, at: number): LiveEvent {
    const { node, path, parentId } = this
    const { conversationId, turnId, id: nodeId } = node
    if (body.type === 'text-delta') {
      return { seq, at, conversationId, runId: turnId, nodeId, path, parentId, type: 'text-delta', text: body.text }
    }
    return { seq, at, conversationId, runId: turnId, nodeId, path, parentId, ...body }
  }
}

/** A longer piece is joined with nothing: blocks are cut from the last piece, again and again. */
const LONG_PIECE = 65_536

function isSameStream(a: StreamedPiece, b: LiveBody): boolean {
  if (a.type !== b.type || (a.text?.length ?? 0) > LONG_PIECE) return false
  return b.type !== 'tool-input-delta' || a.callId === b.callId
}
