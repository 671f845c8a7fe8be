// One open stream: takes items from its source, writes their frames, and stops taking while its reader is behind.
//
// Stays true:
// - A reader that is behind holds at most `MOST_UNSENT` bytes here and one item of its source.
// - Frames of one turn of the event loop are written together.
// - Whoever ends a stream says why with a last frame; the source is left in every case.

import { warnQuietly } from '../../core/base/quietly.ts'
import { problemOf } from '../http/problem/problem.ts'
import { COMMENT, frame, helloFrame, itemFrame, joinDeltas, type StreamItem } from './frames.ts'
import type { Sink } from './sink.ts'

/** A stream that a handler asks for. */
export interface StreamRequest {
  /**
   * Goes into the first frame. Null for a stream of another protocol: it has only the frames of its source, and where the server
   * ends it early, the connection breaks off, so that its reader comes back.
   */
  readonly hello: object | null
  readonly items: AsyncIterator<StreamItem>
  /** The `id:` of the first frame, for streams that begin at a place which their reader does not know. */
  readonly place?: string
  /** Deltas carry their node and their text only. */
  readonly isSlim: boolean
  /** Goes into the last frame, `event: end`, when the source has ended. */
  readonly end: object
}

/** One tick for the writes of all streams. */
export interface Ticker {
  soon(reader: StreamReader): void
}

const MOST_UNSENT = 262_144
const LAST_WORDS_MS = 1_000
const END_MS = 30_000

export class StreamReader {
  /** Since when it has been behind; undefined while it is not. */
  behindSince: number | undefined
  private readonly sink: Sink
  private readonly ticker: Ticker
  private readonly leave: () => void
  private pending: Buffer[] = []
  private bytes = 0
  private held: { readonly item: StreamItem; readonly isSlim: boolean } | undefined
  private isCatchingUp = false
  /** The other side did not take all of the last write at once. */
  private isFull = false
  private isOver = false
  private isPlain = false
  private wake: (() => void) | undefined
  private source: AsyncIterator<unknown> | undefined

  constructor(sink: Sink, ticker: Ticker, leave: () => void) {
    this.sink = sink
    this.ticker = ticker
    this.leave = leave
  }

  /** Reads the source to its end, or to that of the reader. Never throws. */
  async run(request: StreamRequest): Promise<void> {
    this.source = request.items
    this.isPlain = request.hello === null
    if (request.hello !== null) this.add(helloFrame(request.hello, request.place))
    try {
      await this.readAll(request)
      if (!this.isOver) this.finish(this.isPlain ? [] : [frame('end', request.end)], END_MS)
    } catch (error) {
      this.bid('problem', { detail: problemOf(error, warnQuietly).details.detail })
    }
  }

  private async readAll({ items, isSlim }: StreamRequest): Promise<void> {
    while (!this.isOver) {
      const { value, done } = await items.next()
      if (done === true || this.isOver) return
      this.take(value, isSlim)
      if (this.isFull || this.bytes > MOST_UNSENT) await this.room()
    }
  }

  private take(item: StreamItem, isSlim: boolean): void {
    if (!this.isCatchingUp) return this.add(itemFrame(item, isSlim))
    const joined = this.held === undefined ? undefined : joinDeltas(this.held.item, item)
    if (joined === undefined) this.letGo()
    this.held = { item: joined ?? item, isSlim }
    this.ticker.soon(this)
  }

  private letGo(): void {
    const { held } = this
    this.held = undefined
    if (held !== undefined) this.add(itemFrame(held.item, held.isSlim))
  }

  private get unsent(): number {
    return this.bytes + this.sink.unsent
  }

  private add(bytes: Buffer): void {
    this.pending.push(bytes)
    this.bytes += bytes.length
    this.ticker.soon(this)
  }

  /** Writes what has come together. */
  flush(): void {
    this.letGo()
    if (this.behindSince === undefined) this.isCatchingUp = false
    if (this.bytes === 0) return
    const bytes = joined(this.pending)
    this.pending = []
    this.bytes = 0
    this.isFull = !this.sink.write(bytes)
  }

  /** Waits until there is room, where the reader is far behind. */
  private async room(): Promise<void> {
    if (this.bytes > MOST_UNSENT) this.flush()
    if (this.unsent <= MOST_UNSENT) return
    this.behindSince = Date.now()
    await new Promise<void>((resolve) => {
      this.wake = resolve
    })
    this.behindSince = undefined
    this.isCatchingUp = true
  }

  /** Everything that was written has been taken. */
  drained(): void {
    this.isFull = false
    this.wake?.()
    this.wake = undefined
  }

  /** A sign of life, unless there is enough to send anyway. */
  comment(): void {
    if (!this.isOver && this.unsent === 0) this.add(COMMENT)
  }

  /** Ends the stream with a last frame that says why. */
  bid(farewell: 'moved' | 'slow' | 'closed' | 'problem', data: object = {}): void {
    if (this.isOver) return
    if (!this.isPlain) return this.finish([frame(farewell, data)], LAST_WORDS_MS)
    this.sink.destroy()
    this.closed()
  }

  /** Whoever does not take the rest in time loses it. */
  private finish(last: readonly Buffer[], withinMs: number): void {
    this.letGo()
    for (const bytes of last) this.add(bytes)
    this.flush()
    this.sink.end()
    const timer = setTimeout(() => this.sink.destroy(), withinMs)
    timer.unref()
    this.closed()
  }

  /** Nobody reads any more, or nothing more is to come. */
  closed(): void {
    if (this.isOver) return
    this.isOver = true
    this.drained()
    this.leave()
    this.source?.return?.().catch(() => undefined)
  }
}

let lastParts: readonly Buffer[] = []
let lastJoined: Buffer = Buffer.alloc(0)

/** Frames as one piece. What was joined last is kept: many readers get the same frames one after the other. */
function joined(parts: readonly Buffer[]): Buffer {
  const [first] = parts
  if (parts.length === 1 && first !== undefined) return first
  if (parts.length === lastParts.length && parts.every((part, at) => part === lastParts[at])) return lastJoined
  lastParts = parts
  lastJoined = Buffer.concat(parts)
  return lastJoined
}
