// All open streams of a server: how many there may be, one tick for their writes, one clock for all of them.
//
// Stays true:
// - A server has one timer for streams, and none while there are none.
// - Nobody's stream ends because others have too many: one too many is refused.
// - A stream whose token was revoked or has expired ends within 5 seconds.

import { Shares } from '../../core/base/shares.ts'
import { countedIds } from '../../doors/grant.ts'
import type { Principal } from '../../index.ts'
import { Problem } from '../http/problem/problem.ts'
import { StreamReader, type StreamRequest, type Ticker } from './reader.ts'
import type { Sink, SinkEvents } from './sink.ts'

/** Whose stream it is. */
export interface StreamOwner {
  readonly principal: Principal
  /** Streams of one token are asked about once; null: each by itself. */
  readonly tokenId: string | null
  /** False as soon as who opened it may not read any more. */
  readonly isStillValid: () => Promise<boolean>
}

interface OpenStream {
  readonly owner: StreamOwner
  readonly release: () => void
}

const TICK_MS = 2_500
const COMMENT_EVERY = 6
const SLOW_MS = 30_000

export class Streams implements Ticker {
  private readonly shares: Shares
  private readonly open: Map<StreamReader, OpenStream> = new Map()
  private readonly dirty: Set<StreamReader> = new Set()
  private timer: NodeJS.Timeout | undefined
  private ticks = 0
  private isDraining = false

  constructor(
    /** Open streams of one principal. With those of all whom it made it has eight times as many. */
    perPrincipal: number,
    /** Open streams of the server. */
    inAll: number,
  ) {
    this.shares = new Shares({ each: perPrincipal, inAll })
  }

  get count(): number {
    return this.open.size
  }

  /** Refuses one stream too many. Ask before the answer begins. */
  check(principal: Principal): void {
    if (this.isDraining) throw new Problem('draining', 'The server is about to stop.', { 'retry-after': '1' })
    const full = this.shares.full(countedIds(principal))
    if (full === undefined) return
    const whose = { own: 'You have', maker: 'Tokens of one maker have', all: 'The server has' }[full.whose]
    const detail = `${whose} ${full.count} open streams and waits, which is the most.`
    throw new Problem('too_many', detail, { 'retry-after': '5' })
  }

  /** Counts a request that waits for something like a stream, until the function that it gives is called. */
  hold(principal: Principal): () => void {
    this.check(principal)
    return this.shares.hold(countedIds(principal))
  }

  /** Begins a stream. Resolves when it is over. */
  async begin(owner: StreamOwner, request: StreamRequest, makeSink: (events: SinkEvents) => Sink): Promise<void> {
    const parts: { reader?: StreamReader } = {}
    const sink = makeSink({ drained: () => parts.reader?.drained(), closed: () => parts.reader?.closed() })
    const reader = new StreamReader(sink, this, () => this.remove(reader))
    parts.reader = reader
    this.open.set(reader, { owner, release: this.shares.hold(countedIds(owner.principal)) })
    this.timer ??= setInterval(() => this.tick(), TICK_MS).unref()
    await reader.run(request)
  }

  private remove(reader: StreamReader): void {
    const stream = this.open.get(reader)
    this.dirty.delete(reader)
    if (stream === undefined) return
    this.open.delete(reader)
    stream.release()
    if (this.open.size > 0) return
    clearInterval(this.timer)
    this.timer = undefined
  }

  soon(reader: StreamReader): void {
    this.dirty.add(reader)
    if (this.dirty.size === 1) setImmediate(() => this.flush())
  }

  private flush(): void {
    const readers = [...this.dirty]
    this.dirty.clear()
    for (const reader of readers) reader.flush()
  }

  private tick(): void {
    this.ticks++
    const isComment = this.ticks % COMMENT_EVERY === 0
    const late = Date.now() - SLOW_MS
    for (const [reader] of [...this.open]) {
      if (reader.behindSince !== undefined && reader.behindSince < late) reader.bid('slow')
      else if (isComment) reader.comment()
    }
    this.dropInvalid().catch(() => undefined)
  }

  private async dropInvalid(): Promise<void> {
    const known = new Map<string, boolean>()
    for (const [reader, { owner }] of [...this.open]) {
      const { tokenId, isStillValid } = owner
      // A store that does not answer now is asked again at the next tick.
      const isValid = known.get(tokenId ?? '') ?? (await isStillValid().catch(() => true))
      if (tokenId !== null) known.set(tokenId, isValid)
      if (!isValid) reader.bid('closed', { reason: 'This token is no longer valid.' })
    }
  }

  /** Looks at once whose streams must end. */
  async recheck(): Promise<void> {
    await this.dropInvalid()
  }

  /** Tells all readers to come back, to another process. */
  drain(): void {
    this.isDraining = true
    for (const [reader] of [...this.open]) reader.bid('moved')
  }
}
