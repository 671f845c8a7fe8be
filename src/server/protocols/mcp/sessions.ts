// Sessions of clients that speak a revision before 2026-07-28 over HTTP: they say once what they can do, and are asked on the
// stream of their call.
//
// Must stay true:
//   - A session is its opener's: for anybody else, also for another token of the same owner, it does not exist (I9).
//   - It holds nothing but the client's capabilities, open streams and what was last sent on them. Runs do not end with it.
//   - A client that forgets its sessions loses the oldest of its own. Nobody loses one to others: one too many is refused.

import { randomUUID } from 'node:crypto'
import type { Server, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server'
import { canonicalJson } from '../../../core/base/json.ts'
import { Shares } from '../../../core/base/shares.ts'
import { countedIds } from '../../../doors/grant.ts'
import type { Json } from '../../../index.ts'
import type { McpCaller } from './peer.ts'
import { Replays } from './replays.ts'
import type { McpSdk } from './serve.ts'

/** A request whose body was read; requests of other methods than POST have none. */
export interface McpRequest {
  readonly request: Request
  readonly body: Json | undefined
}

interface Session {
  readonly opener: string
  readonly transport: WebStandardStreamableHTTPServerTransport
  /** Gives back its share. */
  readonly release: () => void
  usedAt: number
}

/** Beyond this an opener's oldest makes room for a new one. */
const MOST_PER_OPENER = 32
/** Sessions of one id, whatever its tokens may do. All principals that the id made share eight times as many. */
const MOST_PER_ID = 64
const MOST = 2_000
const IDLE_MS = 3_600_000

export class Sessions {
  private readonly sdk: McpSdk
  private readonly make: (caller: McpCaller) => Server
  /** Makes the error for a caller who has too many. */
  private readonly tooMany: (detail: string) => Error
  /** In the order in which they were opened. */
  private readonly open: Map<string, Session> = new Map()
  private readonly shares: Shares = new Shares({ each: MOST_PER_ID, inAll: MOST })

  constructor(sdk: McpSdk, make: (caller: McpCaller) => Server, tooMany: (detail: string) => Error) {
    this.sdk = sdk
    this.make = make
    this.tooMany = tooMany
  }

  /** Opens a session with the message `initialize`. */
  async begin({ request, body }: McpRequest, caller: McpCaller): Promise<Response> {
    const opener = openerOf(caller)
    const ids = countedIds(caller.runtime.principal)
    this.makeRoom(opener, ids)
    const release = this.shares.hold(ids)
    const opened: { id?: string } = {}
    const transport = new this.sdk.WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      eventStore: new Replays(),
      onsessioninitialized: (id) => {
        opened.id = id
        this.open.set(id, { opener, transport, release, usedAt: Date.now() })
      },
      onsessionclosed: (id) => this.close(id),
    })
    try {
      await this.make(caller).connect(transport)
      return await transport.handleRequest(request, { parsedBody: body })
    } finally {
      if (opened.id === undefined) release()
    }
  }

  /** Answers a request in a session; undefined where the caller has no such session. */
  async answer(id: string, { request, body }: McpRequest, caller: McpCaller): Promise<Response | undefined> {
    const session = this.open.get(id)
    if (session === undefined || session.opener !== openerOf(caller)) return undefined
    session.usedAt = Date.now()
    return session.transport.handleRequest(request, body === undefined ? {} : { parsedBody: body })
  }

  /** Closes sessions that nobody uses, and the opener's own oldest where it has too many. Throws where others have too many. */
  private makeRoom(opener: string, ids: readonly string[]): void {
    const idle = [...this.open].filter(([, { usedAt }]) => usedAt < Date.now() - IDLE_MS)
    for (const [id] of idle) this.close(id)
    const own = [...this.open].filter(([, session]) => session.opener === opener)
    const [oldest] = own
    if (oldest !== undefined && (own.length >= MOST_PER_OPENER || this.shares.full(ids) !== undefined)) {
      this.close(oldest[0])
    }
    const full = this.shares.full(ids)
    if (full === undefined) return
    const whose = { own: 'Your tokens have', maker: 'Tokens of one maker have', all: 'The server has' }[full.whose]
    throw this.tooMany(`${whose} ${full.count} sessions of MCP, which is the most. End some with DELETE.`)
  }

  private close(id: string): void {
    const session = this.open.get(id)
    this.open.delete(id)
    session?.release()
    session?.transport.close().catch(() => undefined)
  }
}

/** All that a principal may do is a part of who opened a session. */
function openerOf({ runtime }: McpCaller): string {
  return canonicalJson(runtime.principal as unknown as Json)
}
