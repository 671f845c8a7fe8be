import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { DurableEvent } from '../../src/core/graph/event.ts'
import type { Chance } from '../support/chance.ts'

/** What happens in the scripted run, one after the other. */
export type Happening = { readonly event: DurableEvent } | { readonly nodeId: string; readonly text: string }

/** A connection as the server sees it. */
export interface Asked {
  readonly path: string
  readonly headers: IncomingMessage['headers']
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void

/** A server of its own for a test. */
export class TestServer {
  readonly asked: Asked[] = []
  private readonly server: Server

  constructor(handler: Handler) {
    this.server = createServer((request, response) => {
      this.asked.push({ path: request.url ?? '', headers: request.headers })
      handler(request, response)
    })
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => {
      this.server.listen(0, '127.0.0.1', resolve)
    })
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    this.server.closeAllConnections()
    await new Promise((resolve) => {
      this.server.close(resolve)
    })
  }
}

export function frame(type: string, data: unknown, id?: number | string): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${type}\ndata: ${JSON.stringify(data)}\n\n`
}

export const HELLO = `retry: 1\n${frame('hello', { after: 0 })}`

/** The most that happens while nobody reads. */
const MOST_UNHEARD = 8

/** Plays a run to any number of readers, as a server does, and cuts them off at any byte. */
export class Broadcast {
  /** Connections that were cut in the middle. */
  cuts = 0
  private readonly script: readonly Happening[]
  private readonly chance: Chance
  private position = 0
  private readonly readers: Set<Reader> = new Set()

  constructor(script: readonly Happening[], chance: Chance) {
    this.script = script
    this.chance = chance
  }

  /** Goes on for a while when nobody reads, then waits for a reader: a busy machine does not change what is heard. */
  async play(): Promise<void> {
    let unheard = 0
    while (this.position < this.script.length) {
      await new Promise((resolve) => setTimeout(resolve, this.chance.below(3)))
      if (this.readers.size > 0) unheard = this.chance.below(MOST_UNHEARD)
      else if (--unheard < 0) continue
      const happening = this.script[this.position++]
      if (happening !== undefined) for (const reader of this.readers) reader.write(this.frameOf(happening))
    }
    for (const reader of this.readers) reader.end()
  }

  readonly handler: Handler = (request, response) => {
    const after = Number(request.headers['last-event-id'] ?? 0)
    const past = this.script.slice(0, this.position)
    const missed = past.flatMap((one) => ('event' in one && one.event.seq > after ? [one] : []))
    const isOver = this.position === this.script.length
    if (isOver && missed.length === 0) {
      response.writeHead(204).end()
      return
    }
    if (this.chance.below(6) === 0) {
      this.cuts++
      response.writeHead(503, { 'retry-after': '0' }).end('busy')
      return
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const reader = new Reader(response, this.chance.below(3_000), () => {
      this.cuts++
      this.readers.delete(reader)
    })
    this.readers.add(reader)
    reader.write(HELLO)
    // The last event comes again: a reader must not take it twice.
    const again = past.findLast((one) => 'event' in one && one.event.seq === after)
    for (const one of [...(again === undefined ? [] : [again]), ...missed]) reader.write(this.frameOf(one))
    for (const [nodeId, text] of speaking(past)) {
      reader.write(frame('live', { type: 'live', nodeId, attempt: 1, text, reasoning: '', calls: [] }))
    }
    if (isOver) reader.end()
  }

  private frameOf(one: Happening): string {
    if ('event' in one) return frame(one.event.type, one.event, one.event.seq)
    return frame('text-delta', { type: 'text-delta', seq: 0.5, nodeId: one.nodeId, text: one.text })
  }
}

/** What each node that has not ended has said so far. */
function speaking(past: readonly Happening[]): Map<string, string> {
  const said = new Map<string, string>()
  for (const one of past) {
    if (!('event' in one)) said.set(one.nodeId, (said.get(one.nodeId) ?? '') + one.text)
    else if (one.event.type === 'message') said.delete(one.event.nodeId ?? '')
  }
  return said
}

/** How a connection ends early: with a last word after a whole frame, or inside of the frame that is too long for it. */
const LAST_WORDS = ['moved', 'slow', '', '', ''] as const

class Reader {
  private left: number
  private isCut = false
  private readonly response: ServerResponse
  private readonly cut: () => void

  constructor(response: ServerResponse, bytes: number, cut: () => void) {
    this.response = response
    this.left = bytes
    this.cut = cut
  }

  /** Writes as much as this connection will ever carry. */
  write(text: string): void {
    if (this.isCut) return
    const bytes = Buffer.from(text)
    if (bytes.length > this.left) return this.leave(bytes)
    this.response.write(bytes)
    this.left -= bytes.length
  }

  private leave(bytes: Buffer): void {
    this.isCut = true
    const word = LAST_WORDS[this.left % LAST_WORDS.length] ?? ''
    if (word !== '') this.response.end(frame(word, {}))
    else this.response.write(bytes.subarray(0, Math.max(1, this.left)), () => this.response.destroy())
    this.cut()
  }

  end(): void {
    if (!this.isCut) this.response.end(frame('end', {}))
  }
}
