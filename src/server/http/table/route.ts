// A row of the route table, and everything that its handler gets and gives.
//
// Owns:      the types of the table. Router, validation, OpenAPI, the reference page and the attack matrix are made from it.
// Called by: `routes-of` makes rows of operations, the files of `server/routes` write the others; `service` serves them.
// Must stay true:
//   - A route that is not in the table cannot exist.
//   - A handler reaches the runtime only through `call.runtime`, which is bound to who asks (I12).

import type { Method, ParamKind, QuerySchema } from '../../../core/operations/operation.ts'
import type { Scope } from '../../../doors/grant.ts'
import type { Json, JsonSchema, Principal, ScopedRuntime } from '../../../index.ts'
import type { Answers } from '../../client/index.ts'
import type { Retention } from '../../hooks/retention.ts'
import type { Webhooks } from '../../hooks/webhooks.ts'
import type { Maker, Tokens } from '../../identity/tokens.ts'
import type { A2aEndpoint } from '../../protocols/a2a/serve.ts'
import type { PushStore } from '../../protocols/a2a/write.ts'
import type { McpEndpoint } from '../../protocols/mcp/http.ts'
import type { McpOptions } from '../../protocols/mcp/index.ts'
import type { StreamRequest } from '../../stream/reader.ts'
import type { Streams } from '../../stream/streams.ts'
import type { ChangeTicker } from '../../stream/ticker.ts'

/** Do requests of this method have a body? */
export function takesBody(method: Method): boolean {
  return method === 'POST' || method === 'PUT'
}

/** One route. Nothing else answers. */
export interface Route {
  readonly method: Method
  /** With `{name}` for each parameter. */
  readonly path: string
  /** The scope that a principal needs; `any`: any principal; `none`: nobody is asked who he is. */
  readonly scope: Scope | 'any' | 'none'
  /** True: only for who sees all owners and agents. */
  readonly needsAll?: boolean
  /** True: it begins a run, so it counts like a start. Routes of the scope `start` always do. */
  readonly beginsRun?: boolean
  /** True: a part of the inspector. It tells nothing of anybody, and other pages may link to it. */
  readonly isPage?: boolean
  /** One line that says what it does. */
  readonly summary: string
  /** More about it, for the reference page. */
  readonly description?: string
  /** A parameter is an id, or the name of an agent or another thing. */
  readonly params?: Readonly<Record<string, ParamKind>>
  readonly query?: Readonly<Record<string, QuerySchema>>
  readonly body?: JsonSchema & { readonly [key: string]: unknown }
  /** True: the body is lines of text, not one JSON document. */
  readonly takesLines?: boolean
  /** Bytes of the body. Default 1,000,000. */
  readonly maxBody?: number
  /** The answer to a body that is not JSON, where a protocol has one of its own. Default: a problem. */
  readonly unreadable?: Answer
  /** Headers that it reads, with their meaning. */
  readonly headers?: Readonly<Record<string, string>>
  readonly answers: Readonly<Record<number, AnswerForm>>
  readonly handler: (call: RouteCall) => Answer | Promise<Answer>
  /** For the reference page and the attack matrix: what a good request holds. */
  readonly example?: { readonly query?: string; readonly body?: Json }
}

export interface AnswerForm {
  readonly description: string
  /** The name of the type of an answer in JSON, or of the data of each frame of a stream. */
  readonly shape?: keyof Answers
  /** The name of the type of that page, for a stream that can also be had as a page of JSON. */
  readonly page?: keyof Answers
  /** The media type of a text. Left out where the answer is JSON, or empty. */
  readonly type?: string
}

/** A request that has passed every check. */
export interface RouteCall {
  readonly params: Readonly<Record<string, string>>
  readonly query: RouteQuery
  readonly body: Json
  /** The lines of a body that is not JSON. */
  readonly lines: AsyncIterable<string>
  readonly headers: Headers
  readonly principal: Principal
  /** The row of the token that the caller has; null for other ways to say who he is. */
  readonly tokenId: string | null
  /** When the login of the caller ends; null where it does not say. */
  readonly endsAt: number | null
  /** The runtime as the caller may use it. */
  readonly runtime: ScopedRuntime
  readonly server: ServerParts
  /** The address that the caller reached the server by: `https://agents.example`. */
  readonly origin: string
  /** Aborted when the caller is gone. */
  readonly signal: AbortSignal
}

/** The parts of the server that routes need beside the runtime. */
export interface ServerParts {
  readonly tokens: Tokens
  readonly streams: Streams
  readonly webhooks: Webhooks
  readonly retention: Retention
  /** Says when trees may have gone on. */
  readonly ticker: ChangeTicker
  /** Answers messages of MCP. */
  readonly mcp: McpEndpoint
  readonly mcpOptions: McpOptions
  /** Answers requests of A2A. */
  readonly a2a: A2aEndpoint
  /** The agent whose card is the server's own; null: the first by name. */
  readonly a2aAgent: string | null
  /** The push notifications of who asks. */
  readonly push: (maker: Maker) => PushStore
  /** The issuer of OpenID Connect whose tokens are taken; null: none. */
  readonly issuer: string | null
  /** When the server began. */
  readonly startedAt: number
  /** Hears of errors that callers are not told of. */
  readonly report: (error: unknown) => void
  /** Counts a run that a route of another scope is about to begin. Throws where it is one too many. */
  readonly countStart: (principal: Principal) => void
  /** Counts one more message of a request that has several. Throws where it is one too many. */
  readonly countRead: (principal: Principal) => void
  /** The page of OpenMetrics. */
  readonly metrics: () => Promise<string>
  /** Does the store answer, and does any process run nodes? */
  readonly ready: () => Promise<boolean>
  /** Is there a tree with this root, whoever owns it? For admins only. */
  readonly hasTree: (rootId: string) => Promise<boolean>
  /** The whole table. */
  readonly table: () => readonly Route[]
  readonly limits: Required<ServerLimits>
}

/** The most that callers may ask for, as numbers. */
export interface ServerLimits {
  /** Runs that one principal may begin in a minute: started, forked, edited or repeated. Default 60. */
  readonly startsPerMinute?: number
  /** Other requests of one principal in a minute. Default 600. */
  readonly readsPerMinute?: number
  /** Requests of one address in a minute, whoever asks. Default 6,000. */
  readonly perAddressPerMinute?: number
  /** Wrong credentials of one address in a minute. Default 10. */
  readonly failuresPerMinute?: number
  /** Open streams of one principal, and requests with `wait`. With all tokens that it made it has eight times as many. Default 64. */
  readonly streamsPerPrincipal?: number
  /** Open streams of the server, and requests with `wait`. Default 10,000. */
  readonly streams?: number
  /** Milliseconds that a body may take. Default 30,000. */
  readonly bodyMs?: number
  /** Milliseconds that the headers of a request may take; only where the server listens itself. Default 10,000. */
  readonly headersMs?: number
}

/** Values of the query, read by the schemas of the route. */
export interface RouteQuery {
  text(name: string): string | undefined
  number(name: string): number | undefined
  flag(name: string): boolean
  list(name: string): readonly string[] | undefined
  /** All values that were given, or have a default. */
  all(): Readonly<Record<string, unknown>>
}

/** The answer of a handler: one of `json`, `text`, `bytes`, `lines` and `stream`, or nothing. */
export interface Answer {
  readonly status: number
  readonly json?: unknown
  readonly text?: string
  /** A text as bytes, for parts of it. */
  readonly bytes?: Buffer
  readonly lines?: AsyncIterable<string>
  readonly stream?: StreamRequest
  readonly headers?: Readonly<Record<string, string>>
}

/** An answer with a JSON body. */
export function json(value: unknown, status = 200): Answer {
  return { status, json: value }
}

/** An answer without a body. */
export const NOTHING: Answer = Object.freeze({ status: 204 })

/** The answer of JSON-RPC to a text that is not JSON. */
export const PARSE_ERROR: Answer = {
  status: 400,
  json: { jsonrpc: '2.0', id: null, error: { code: -32_700, message: 'This is not JSON.' } },
}
