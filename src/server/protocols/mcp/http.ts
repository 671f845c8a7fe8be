// MCP over HTTP: one request in, one response out. Who asks was found out before.
//
// Clients of the newest revision need no session. Those before it open one, so that they can be asked something in the middle
// of a call; without one they are served too, but cannot be asked.

import type { McpHttpHandler, McpRequestContext } from '@modelcontextprotocol/server'
import type { Json } from '../../../index.ts'
import type { McpCaller } from './peer.ts'
import { type McpSdk, makeServer } from './serve.ts'
import { type McpRequest, Sessions } from './sessions.ts'

export interface McpEndpointParts {
  /** The key that states are signed with. Read once. */
  readonly key: () => Promise<Uint8Array>
  readonly report: (error: unknown) => void
  /** Makes the error for a caller who has too many sessions. */
  readonly tooMany: (detail: string) => Error
}

/** The parts that are there once the package is loaded. */
interface LoadedPackage {
  readonly sdk: McpSdk
  readonly handler: McpHttpHandler
  readonly sessions: Sessions
}

/** The header that names a session. */
export const SESSION_HEADER = 'mcp-session-id'

/** The endpoint of a server. The package is loaded with the first request. */
export class McpEndpoint {
  private readonly parts: McpEndpointParts
  private loaded: Promise<LoadedPackage> | undefined

  constructor(parts: McpEndpointParts) {
    this.parts = parts
  }

  /** Answers a request whose body was read. Undefined: it names a session that the caller does not have. */
  async answer(asked: McpRequest, caller: McpCaller): Promise<Response | undefined> {
    const { request, body } = asked
    const { sdk, handler, sessions } = await this.ready()
    const session = request.headers.get(SESSION_HEADER)
    if (session !== null) return sessions.answer(session, asked, caller)
    if (isInitialize(body) && (await sdk.isLegacyRequest(request, body))) return sessions.begin(asked, caller)
    const authInfo = { token: '', clientId: '', scopes: [], extra: { caller } }
    return handler.fetch(request, { parsedBody: body, authInfo })
  }

  private ready(): Promise<LoadedPackage> {
    this.loaded ??= this.load().catch((error: unknown) => {
      this.loaded = undefined
      throw error
    })
    return this.loaded
  }

  private async load(): Promise<LoadedPackage> {
    const sdk: McpSdk = await import('@modelcontextprotocol/server')
    const { report, tooMany } = this.parts
    const key = await this.parts.key()
    const make = (caller: McpCaller, era: 'legacy' | 'modern') => makeServer({ sdk, key, report, era, ...caller })
    // The server has its own clock for streams.
    const handler = sdk.createMcpHandler(({ authInfo, era }) => make(callerIn(authInfo), era), { keepAliveMs: 0 })
    return { sdk, handler, sessions: new Sessions(sdk, (caller) => make(caller, 'legacy'), tooMany) }
  }
}

function isInitialize(body: Json | undefined): boolean {
  return (Object(body ?? null) as { readonly method?: unknown }).method === 'initialize'
}

function callerIn(info: McpRequestContext['authInfo']): McpCaller {
  return info?.extra?.['caller'] as McpCaller
}
