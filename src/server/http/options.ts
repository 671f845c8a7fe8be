import {
  anything,
  code,
  flag,
  int,
  listOf,
  type OptionRules,
  readOptions,
  record,
  text,
} from '../../core/base/options.ts'
import type { Principal } from '../../index.ts'
import type { RetentionOptions } from '../hooks/retention.ts'
import type { OidcOptions } from '../identity/jwt.ts'
import { checkMcpOptions, type McpOptions } from '../protocols/mcp/offer.ts'
import type { ServerLimits } from './table/route.ts'

/** How webhooks are sent. */
export interface WebhookOptions {
  /** True: webhooks may go to private addresses, and by http to this machine. Default false. */
  readonly allowPrivate?: boolean
  /** How long to wait before each further try, in milliseconds. Default 5 s, 30 s, 2 min, 10 min, 1 h, 6 h, 24 h. */
  readonly retryMs?: readonly number[]
  /** How long a receiver may take to answer, in milliseconds. Default 10,000. */
  readonly timeoutMs?: number
  /** How long other servers wait for one that is gone before they send in its place, in milliseconds. Default 30,000. */
  readonly leaseMs?: number
}

export const WEBHOOK_DEFAULTS: Required<WebhookOptions> = Object.freeze({
  allowPrivate: false,
  retryMs: [5_000, 30_000, 120_000, 600_000, 3_600_000, 21_600_000, 86_400_000],
  timeoutMs: 10_000,
  leaseMs: 30_000,
})

/** How agents are offered over A2A. */
export interface A2aOptions {
  /** The agent whose card is at `/.well-known/agent-card.json`. Default: the first by name that the caller may start. */
  readonly agent?: string
}

/** How a server knows its callers, and whom it lets in. */
export interface HandlerOptions extends RetentionOptions {
  /** Says who asks, by the program that has the server inside it; null: nobody it knows. Asked after tokens. */
  readonly authenticate?: (request: Request) => Promise<Principal | null> | Principal | null
  /** Takes tokens of an OpenID Connect provider. Default: none. */
  readonly oidc?: OidcOptions
  /** Host names that the server goes by, beside those of this machine: `['agents.example']`. */
  readonly allowHosts?: readonly string[]
  /** Origins of web pages that may use the server: `['https://app.example']`. Default: only its own pages. */
  readonly allowOrigins?: readonly string[]
  /** True: a proxy stands before the server, ends TLS and says in `X-Forwarded-For` who asks. */
  readonly behindProxy?: boolean
  /** The most that callers may ask for. */
  readonly limits?: ServerLimits
  /** How webhooks are sent. */
  readonly webhooks?: WebhookOptions
  /** How agents are offered to clients of MCP. */
  readonly mcp?: McpOptions
  /** How agents are offered over A2A. */
  readonly a2a?: A2aOptions
  /** False: the inspector is not served. Default true. */
  readonly ui?: boolean
  /** Hears of errors that callers are not told of. Default: warnings of the process. */
  readonly report?: (error: unknown) => void
  /** Hears of each request when it is answered: for a log. */
  readonly heard?: (request: AnsweredRequest) => void
}

/** A request that was answered. */
export interface AnsweredRequest {
  readonly method: string
  /** Without the query, which may hold words of people. */
  readonly path: string
  readonly status: number
  /** How long the answer took; of a stream, until it began. */
  readonly ms: number
  /** The id of who asked; null where nobody was recognised. */
  readonly principal: string | null
}

/** A certificate and its key, both in PEM. */
export interface TlsFiles {
  /** The certificate, with those that lead to a known one. */
  readonly cert: string
  /** The private key of the certificate. */
  readonly key: string
}

/** Where a server listens. */
export interface ServeOptions extends HandlerOptions {
  /** The port; 0: any that is free. Default 4747. */
  readonly port?: number
  /** The address. Default `127.0.0.1`. Others need a token or `oidc`, and `tls` or `behindProxy`. */
  readonly host?: string
  /** The path of a Unix socket to listen on instead: whoever can open it is the local principal. */
  readonly socket?: string
  /** Certificate and key in PEM: the server then speaks https. */
  readonly tls?: TlsFiles
  /** False: the token of this machine is neither made nor taken. Default true. */
  readonly localToken?: boolean
  /** The file of that token. Default `$XDG_STATE_HOME/legate/serve.token`. */
  readonly localTokenFile?: string
  /** How long open requests may take when the server closes, in milliseconds. Default 5,000. */
  readonly graceMs?: number
}

export const LIMIT_DEFAULTS: Required<ServerLimits> = Object.freeze({
  startsPerMinute: 60,
  readsPerMinute: 600,
  perAddressPerMinute: 6_000,
  failuresPerMinute: 10,
  streamsPerPrincipal: 64,
  streams: 10_000,
  bodyMs: 30_000,
  headersMs: 10_000,
})

const LIMITS: OptionRules<ServerLimits> = {
  startsPerMinute: int(0),
  readsPerMinute: int(0),
  perAddressPerMinute: int(1),
  failuresPerMinute: int(0),
  streamsPerPrincipal: int(0),
  streams: int(0),
  bodyMs: int(1),
  headersMs: int(1),
}

const HANDLER: OptionRules<HandlerOptions> = {
  authenticate: code,
  oidc: record,
  allowHosts: listOf(text, 'host names'),
  allowOrigins: listOf(text, 'origins'),
  behindProxy: flag,
  limits: record,
  webhooks: record,
  mcp: record,
  a2a: record,
  keepDays: int(1),
  keepDaysOf: record,
  ui: flag,
  report: code,
  heard: code,
}

const WEBHOOKS: OptionRules<WebhookOptions> = {
  allowPrivate: flag,
  retryMs: listOf(int(0), 'milliseconds'),
  timeoutMs: int(1),
  leaseMs: int(100),
}

const SERVE: OptionRules<ServeOptions> = {
  ...HANDLER,
  port: int(0, 65_535),
  host: text,
  socket: text,
  tls: record,
  localToken: flag,
  localTokenFile: text,
  graceMs: int(0),
}

const A2A: OptionRules<A2aOptions> = { agent: text }
const OIDC: OptionRules<OidcOptions> = { issuer: text, audience: text, principal: code }
const TLS: OptionRules<TlsFiles> = { cert: anything, key: anything }

/** Refuses options that cannot be meant. */
export function checkHandlerOptions(options: HandlerOptions): void {
  readOptions('handler(runtime, options)', options, HANDLER)
  checkParts(options)
}

/** Refuses options of a server that listens. */
export function checkServeOptions(options: ServeOptions): void {
  readOptions('serve(runtime, options)', options, SERVE)
  if (options.tls !== undefined) readOptions('serve({ tls })', options.tls, TLS)
  checkParts(options)
}

function checkParts({ limits, oidc, webhooks, mcp, a2a, keepDaysOf = {} }: HandlerOptions): void {
  if (mcp !== undefined) checkMcpOptions(mcp, 'serve({ mcp })')
  if (a2a !== undefined) readOptions('serve({ a2a })', a2a, A2A)
  if (webhooks !== undefined) readOptions('serve({ webhooks })', webhooks, WEBHOOKS)
  const days = Object.fromEntries(Object.keys(keepDaysOf).map((owner) => [owner, int(1)]))
  readOptions('serve({ keepDaysOf })', keepDaysOf, days)
  if (limits !== undefined) readOptions('serve({ limits })', limits, LIMITS)
  if (oidc !== undefined) readOptions('serve({ oidc })', oidc, OIDC)
}
