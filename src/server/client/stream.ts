// A stream of server-sent events that comes back by itself.
//
// Stays true:
// - Every frame with an id comes once: a new connection names the last id that was given, and what comes again is left out.
// - It ends with `end`, with 204, or with an answer that another try cannot change; everything else is a reason to come back.
// - Nobody waits for a connection that says nothing: the server gives a sign of life every 15 s.

import { onAbort } from '../../core/base/abort.ts'
import { ClientError, errorOf } from './error.ts'
import { type Frame, FrameReader } from './frame-reader.ts'
import type { QueryValues, ServerRequests } from './transport.ts'

/** How a stream behaves when it is cut. */
export interface ClientStreamOptions {
  /** Ends the stream. */
  readonly signal?: AbortSignal
  /** Gives up when no connection held for so long. Default: it goes on trying until you abort it. */
  readonly giveUpAfterMs?: number
  /** Leaves a connection that was silent for so long. Default 45 s. */
  readonly silenceMs?: number
  /** Hears of each connection that was made: the first, and those after a cut. */
  readonly onConnect?: () => void
  /** Hears of each cut, and how long it waits before it comes back. */
  readonly onReconnect?: (event: Reconnect) => void
}

/** A stream was cut and comes back. */
export interface Reconnect {
  /** How many tries have failed since the last frame, from 1. */
  readonly attempt: number
  readonly waitMs: number
  readonly error: unknown
}

/** A stream to read. */
export interface StreamPlace {
  readonly path: string
  readonly query?: QueryValues
  /** Begins after this id. */
  readonly lastId?: string | undefined
  /** True for a frame that has come before. */
  readonly isOld?: (frame: Frame, lastId: string | undefined) => boolean
}

const RETRY_MS = 1_000
const MOST_WAIT_MS = 30_000
const SILENCE_MS = 45_000
/** Answers that may be others a moment later. */
const MAY_PASS: ReadonlySet<number> = new Set([0, 408, 425, 429, 500, 502, 503, 504])
/** A server that is still there, or has a successor, lets readers come back at once, though not all at the same moment. */
const SOON_MS = 250
const SOON: ReadonlySet<string> = new Set(['moved', 'slow', 'closed'])
const FAREWELLS: ReadonlySet<string> = new Set([...SOON, 'problem'])
const NOT_FOR_READERS: ReadonlySet<string> = new Set([...FAREWELLS, 'hello', 'end'])

/** The frames of a stream, as many at a time as have come together. */
export async function* readStream(
  transport: ServerRequests,
  place: StreamPlace,
  options: ClientStreamOptions = {},
): AsyncGenerator<readonly Frame[], void> {
  const stream = new Stream(transport, place, options)
  try {
    for (;;) {
      const frames = await stream.next()
      if (frames === null) return
      if (frames.length > 0) yield frames
    }
  } finally {
    stream.leave()
  }
}

class Stream {
  private readonly transport: ServerRequests
  private readonly place: StreamPlace
  private readonly options: ClientStreamOptions
  private lastId: string | undefined
  private connection: Connection | null = null
  private isOver = false
  /** The last words of a server that ends the stream before its end. */
  private farewell: string | null = null
  private hasConnected = false
  private attempt = 0
  private heardAt: number = Date.now()
  private retryMs: number = RETRY_MS

  constructor(transport: ServerRequests, place: StreamPlace, options: ClientStreamOptions) {
    this.transport = transport
    this.place = place
    this.options = options
    this.lastId = place.lastId
  }

  /** The next frames; null at the end. Throws where coming back cannot help. */
  async next(): Promise<readonly Frame[] | null> {
    while (!this.isOver) {
      this.options.signal?.throwIfAborted()
      try {
        if (this.farewell !== null) throw new ClientError('The server left.', { status: 0, code: this.farewell })
        this.connection ??= await this.connect()
        if (this.connection === null) return null
        const frames = await this.connection.read()
        if (frames === null) throw CUT
        return this.take(frames)
      } catch (error) {
        this.leave()
        this.farewell = null
        this.options.signal?.throwIfAborted()
        await this.comeBack(error)
      }
    }
    return null
  }

  leave(): void {
    this.connection?.close()
    this.connection = null
  }

  private async connect(): Promise<Connection | null> {
    const { path, query } = this.place
    const close = new AbortController()
    const { signal, silenceMs = SILENCE_MS } = this.options
    const stop = (): void => close.abort(signal?.reason)
    const forget = onAbort(signal, stop)
    const headers = {
      accept: 'text/event-stream',
      ...(this.lastId === undefined ? {} : { 'last-event-id': this.lastId }),
    }
    const connection = new Connection(close, silenceMs, forget)
    try {
      const response = await connection.within(this.transport.send(path, { query, headers, signal: close.signal }))
      if (response.status === 204) {
        connection.close()
        return null
      }
      if (!response.ok) throw await errorOf(response)
      this.hasConnected = true
      connection.open(response)
      this.options.onConnect?.()
      return connection
    } catch (error) {
      connection.close()
      throw error
    }
  }

  /** Leaves out what has come before, and hears whether the server has said its last word. */
  private take(frames: readonly Frame[]): readonly Frame[] {
    this.heardAt = Date.now()
    this.retryMs = this.connection?.retryMs ?? this.retryMs
    return frames.filter((frame) => {
      if (frame.event === 'end') this.isOver = true
      if (FAREWELLS.has(frame.event)) this.farewell = frame.event
      const isForReaders = !NOT_FOR_READERS.has(frame.event)
      if (this.isOld(frame)) return false
      // The first frame may have an id too: the place where the stream begins. Last words are no place: a proxy that
      // writes them into the middle of a frame leaves its id before them, and nobody was given that frame.
      if (frame.hasId && (isForReaders || frame.event === 'hello')) this.lastId = frame.id
      if (frame.hasId && isForReaders) this.attempt = 0
      return isForReaders
    })
  }

  private isOld(frame: Frame): boolean {
    return frame.hasId && this.place.isOld?.(frame, this.lastId) === true
  }

  /** Waits before the next try: longer each time, and never as long as others. Throws where no further try may help. */
  private async comeBack(error: unknown): Promise<void> {
    const isFinal = error instanceof ClientError && !MAY_PASS.has(error.status)
    if (isFinal || (!this.hasConnected && isUnreachable(error)) || isTooLarge(error)) throw error
    this.attempt++
    const { giveUpAfterMs, onReconnect, signal } = this.options
    if (giveUpAfterMs !== undefined && Date.now() - this.heardAt >= giveUpAfterMs) throw asClientError(error)
    const waitMs = this.waitFor(error)
    onReconnect?.({ attempt: this.attempt, waitMs, error })
    await pause(waitMs, signal)
  }

  private waitFor(error: unknown): number {
    const asked = error instanceof ClientError ? error : CUT
    if (this.attempt === 1 && SOON.has(asked.code)) return Math.round(Math.random() * SOON_MS)
    const most = Math.min(MOST_WAIT_MS, this.retryMs * 2 ** Math.min(this.attempt - 1, 16))
    return Math.round(Math.max(asked.retryAfterMs ?? 0, most * (0.5 + Math.random() / 2)))
  }
}

/** A connection was closed in the middle. */
const CUT = new ClientError('The stream was cut.', { status: 0, code: 'cut' })

function isUnreachable(error: unknown): boolean {
  return error instanceof ClientError && error.code === 'unreachable'
}

function isTooLarge(error: unknown): boolean {
  return error instanceof ClientError && error.code === 'too_large'
}

function asClientError(error: unknown): ClientError {
  if (error instanceof ClientError) return error
  return new ClientError('The stream was cut, and does not come back.', { status: 0, code: 'cut' }, error)
}

/** One connection of a stream. */
class Connection {
  private readonly abort: AbortController
  private readonly silenceMs: number
  private readonly closed: () => void
  private readonly frames: FrameReader = new FrameReader()
  private reader: ReadableStreamDefaultReader<Uint8Array> | null = null

  constructor(abort: AbortController, silenceMs: number, closed: () => void) {
    this.abort = abort
    this.silenceMs = silenceMs
    this.closed = closed
  }

  get retryMs(): number | undefined {
    return this.frames.retryMs
  }

  open({ body }: Response): void {
    this.reader = body?.getReader() ?? null
  }

  /** The frames that came together; null when the connection has ended. */
  async read(): Promise<readonly Frame[] | null> {
    if (this.reader === null) return null
    const { value, done } = await this.within(this.reader.read())
    return done || value === undefined ? null : this.frames.push(value)
  }

  /** Aborts the connection if this takes too long. */
  async within<Value>(work: Promise<Value>): Promise<Value> {
    const timer = setTimeout(() => this.abort.abort(SILENT), this.silenceMs)
    try {
      return await work
    } finally {
      clearTimeout(timer)
    }
  }

  close(): void {
    this.closed()
    this.abort.abort()
    this.reader?.cancel().catch(() => undefined)
    this.reader = null
  }
}

const SILENT = new ClientError('The server was silent for too long.', { status: 0, code: 'silent' })

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      forget()
      resolve()
    }, ms)
    const forget = onAbort(signal, () => {
      clearTimeout(timer)
      reject(signal?.reason)
    })
  })
}
