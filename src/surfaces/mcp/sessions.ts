// Sessions of clients that speak a revision before 2026-07-28 over HTTP: they say once what they can do, and are asked on the
// stream of their call.
//
// Must stay true:
//   - A session is its opener's: for anybody else, also for another token of the same owner, it does not exist (I9).
//   - It holds nothing but the client's capabilities and open streams. Runs do not end with it.

import { randomUUID } from 'node:crypto'
import type { Server, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server'
import { canonicalJson } from '../../base/json.ts'
import type { Json } from '../../index.ts'
import type { McpCaller } from './runs/peer.ts'
import type { McpSdk } from './serving.ts'

/** A request whose body was read; requests of other methods than POST have none. */
export interface McpRequest {
  readonly request: Request
  readonly body: Json | undefined
}

interface Session {
  readonly opener: string
  readonly transport: WebStandardStreamableHTTPServerTransport
  usedAt: number
}

const MOST_PER_OPENER = 32
const MOST = 1_000
const IDLE_MS = 3_600_000

export class Sessions {
  private readonly sdk: McpSdk
  private readonly make: (caller: McpCaller) => Server
  /** In the order in which they were opened. */
  private readonly open: Map<string, Session> = new Map()

  constructor(sdk: McpSdk, make: (caller: McpCaller) => Server) {
    this.sdk = sdk
    this.make = make
  }

  /** Opens a session with the message `initialize`. */
  async begin({ request, body }: McpRequest, caller: McpCaller): Promise<Response> {
    const opener = openerOf(caller)
    const transport = new this.sdk.WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => this.add(id, { opener, transport, usedAt: Date.now() }),
      onsessionclosed: (id) => this.close(id),
    })
    await this.make(caller).connect(transport)
    return transport.handleRequest(request, { parsedBody: body })
  }

  /** Answers a request in a session; undefined where the caller has no such session. */
  async answer(id: string, { request, body }: McpRequest, caller: McpCaller): Promise<Response | undefined> {
    const session = this.open.get(id)
    if (session === undefined || session.opener !== openerOf(caller)) return undefined
    session.usedAt = Date.now()
    return session.transport.handleRequest(request, body === undefined ? {} : { parsedBody: body })
  }

  private add(id: string, session: Session): void {
    this.makeRoom(session.opener)
    this.open.set(id, session)
  }

  /** Closes sessions that nobody uses, and the oldest where there are too many. */
  private makeRoom(opener: string): void {
    const idle = [...this.open].filter(([, { usedAt }]) => usedAt < Date.now() - IDLE_MS)
    for (const [id] of idle) this.close(id)
    const own = [...this.open].filter(([, session]) => session.opener === opener)
    const [oldest] = own.length >= MOST_PER_OPENER ? own : this.open.size >= MOST ? this.open : []
    if (oldest !== undefined) this.close(oldest[0])
  }

  private close(id: string): void {
    const session = this.open.get(id)
    this.open.delete(id)
    session?.transport.close().catch(() => undefined)
  }
}

/** All that a principal may do is a part of who opened a session. */
function openerOf({ runtime }: McpCaller): string {
  return canonicalJson(runtime.principal as unknown as Json)
}
