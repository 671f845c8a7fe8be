// All open streams of a server: how many there may be, one tick for their writes, one clock for all of them.
//
// Stays true:
// - A server has one timer for streams, and none while there are none.
// - A stream whose token was revoked or has expired ends within 5 seconds.

import { Problem } from '../problem/problem.ts'
import { StreamReader, type StreamRequest, type Ticker } from './reader.ts'
import type { Sink, SinkEvents } from './sink.ts'

export interface StreamLimits {
  /** Open streams of one principal. */
  readonly perPrincipal: number
  /** Open streams of the server. */
  readonly inAll: number
}

/** Whose stream it is. */
export interface StreamOwner {
  readonly principalId: string
  /** Streams of one token are asked about once; null: each by itself. */
  readonly tokenId: string | null
  /** False as soon as who opened it may not read any more. */
  readonly isStillValid: () => Promise<boolean>
}

const TICK_MS = 2_500
const COMMENT_EVERY = 6
const SLOW_MS = 30_000

export class Streams implements Ticker {
  private readonly limits: StreamLimits
  private readonly open: Map<StreamReader, StreamOwner> = new Map()
  private readonly perPrincipal: Map<string, number> = new Map()
  private readonly dirty: Set<StreamReader> = new Set()
  private timer: NodeJS.Timeout | undefined
  private ticks = 0
  private isDraining = false
  private polls = 0

  constructor(limits: StreamLimits) {
    this.limits = limits
  }

  get count(): number {
    return this.open.size
  }

  /** Refuses one stream too many. Ask before the answer begins. */
  check({ principalId }: Pick<StreamOwner, 'principalId'>): void {
    if (this.isDraining) throw new Problem('draining', 'The server is about to stop.', { 'retry-after': '1' })
    const own = this.perPrincipal.get(principalId) ?? 0
    const inAll = this.open.size + this.polls
    if (own < this.limits.perPrincipal && inAll < this.limits.inAll) return
    const whose = own < this.limits.perPrincipal ? `The server has ${inAll}` : `You have ${own}`
    throw new Problem('too_many', `${whose} open streams and waits, which is the most.`, { 'retry-after': '5' })
  }

  /** Counts a request that waits for something like a stream, until the function that it gives is called. */
  hold({ principalId }: Pick<StreamOwner, 'principalId'>): () => void {
    this.check({ principalId })
    this.tally(principalId, 1)
    this.polls++
    return () => {
      this.tally(principalId, -1)
      this.polls--
    }
  }

  private tally(principalId: string, more: 1 | -1): void {
    const left = (this.perPrincipal.get(principalId) ?? 0) + more
    if (left > 0) this.perPrincipal.set(principalId, left)
    else this.perPrincipal.delete(principalId)
  }

  /** Begins a stream. Resolves when it is over. */
  async begin(owner: StreamOwner, request: StreamRequest, makeSink: (events: SinkEvents) => Sink): Promise<void> {
    const parts: { reader?: StreamReader } = {}
    const sink = makeSink({ drained: () => parts.reader?.drained(), closed: () => parts.reader?.closed() })
    const reader = new StreamReader(sink, this, () => this.remove(reader))
    parts.reader = reader
    this.open.set(reader, owner)
    this.tally(owner.principalId, 1)
    this.timer ??= setInterval(() => this.tick(), TICK_MS).unref()
    await reader.run(request)
  }

  private remove(reader: StreamReader): void {
    const owner = this.open.get(reader)
    this.dirty.delete(reader)
    if (owner === undefined) return
    this.open.delete(reader)
    this.tally(owner.principalId, -1)
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
    for (const [reader, { tokenId, isStillValid }] of [...this.open]) {
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
