// The service: one request in, one answer out, whatever host stands around it.
//
// Owns:      the way of a request: gate, query, body, handler; and that everything thrown becomes a problem.
// Called by: `handler` and `serve`.
// Must stay true:
//   - `answer` never throws.
//   - A handler gets the runtime only as its caller may use it (I12).
//   - An answer that took long is not given to a caller whose token was revoked meanwhile.

import { warnQuietly } from '../../core/base/quietly.ts'
import type { Runtime } from '../../index.ts'
import { LargeAnswers } from '../gate/answers.ts'
import { checkBodyHead, type JsonBody, readBodyLines, readJsonBody, UnreadableBody } from '../gate/body.ts'
import { type Arrival, Gate, type Passed } from '../gate/gate.ts'
import { corsHeaders, type OriginRules, preflightHeaders, securityHeaders } from '../gate/origin.ts'
import { isLarge, Turns } from '../gate/turns.ts'
import { Courier } from '../hooks/courier.ts'
import { Deliveries } from '../hooks/deliveries.ts'
import { HookPushes } from '../hooks/push.ts'
import { Retention } from '../hooks/retention.ts'
import { Webhooks } from '../hooks/webhooks.ts'
import type { Authenticator, Identity } from '../identity/authenticator.ts'
import type { Maker, Tokens } from '../identity/tokens.ts'
import { A2aEndpoint } from '../protocols/a2a/serve.ts'
import { McpEndpoint } from '../protocols/mcp/http.ts'
import { signingKey } from '../protocols/mcp/serve.ts'
import { type StreamOwner, Streams } from '../stream/streams.ts'
import { ChangeTicker } from '../stream/ticker.ts'
import { Counters } from './metrics.ts'
import { type HandlerOptions, LIMIT_DEFAULTS, WEBHOOK_DEFAULTS } from './options.ts'
import { Problem, problemOf, unauthenticated } from './problem/problem.ts'
import { loginHeader } from './routes/login.ts'
import { TABLE } from './routes/table.ts'
import { checkBody, readQuery } from './table/check.ts'
import {
  type Answer,
  type Route,
  type RouteCall,
  type ServerLimits,
  type ServerParts,
  takesBody,
} from './table/route.ts'
import { Router } from './table/router.ts'
import { Upkeep } from './upkeep.ts'

export interface ServiceParts {
  readonly runtime: Runtime
  readonly options: HandlerOptions
  readonly tokens: Tokens
  /** Further ways to say who asks, before and after tokens. */
  readonly ways: readonly Authenticator[]
  /** The port that the server listens on itself. */
  readonly port: number | undefined
}

/** An answer and whom it is for. */
export interface Answered extends Answer {
  readonly identity?: Identity
  /** The path of its route; left out where there is none. */
  readonly route?: string
  readonly headers: Readonly<Record<string, string>>
  /** To be called when all of a large answer was taken, or nobody takes more. */
  readonly sent?: () => void
}

const MAX_BODY = 1_000_000
/** An answer that took longer than this is given only to who may still have it. */
const LONG_MS = 1_000

export class Service {
  readonly streams: Streams
  /** The work in the background. */
  readonly upkeep: Upkeep
  private readonly parts: ServiceParts
  private readonly counters: Counters = new Counters()
  private readonly limits: Required<ServerLimits>
  private readonly rules: Omit<OriginRules, 'isSocket'>
  private readonly headers: Readonly<Record<string, string>>
  private readonly gate: Gate
  private readonly turns: Turns = new Turns()
  private readonly large: LargeAnswers = new LargeAnswers()
  private readonly server: ServerParts
  private readonly report: (error: unknown) => void

  constructor(parts: ServiceParts) {
    const { options, runtime } = parts
    const { allowHosts = [], allowOrigins = [] } = options
    this.parts = parts
    this.limits = { ...LIMIT_DEFAULTS, ...options.limits }
    this.rules = { allowHosts, allowOrigins, port: parts.port }
    this.report = options.report ?? warnQuietly
    this.streams = new Streams(this.limits.streamsPerPrincipal, this.limits.streams)
    this.headers = securityHeaders(options.oidc === undefined ? [] : [new URL(options.oidc.issuer).origin])
    const table = options.ui === false ? TABLE.filter(({ isPage }) => isPage !== true) : TABLE
    this.gate = new Gate({ router: new Router(table), ways: parts.ways, rules: this.rules, limits: this.limits })
    const { upkeep, webhooks, retention, push } = makeUpkeep(parts, this.report)
    this.upkeep = upkeep
    this.server = {
      tokens: parts.tokens,
      streams: this.streams,
      webhooks,
      retention,
      ticker: new ChangeTicker(async () => (await runtime.store.changes(null, 0)).cursor),
      mcp: new McpEndpoint({
        key: () => signingKey(runtime.store),
        report: this.report,
        tooMany: (detail) => new Problem('too_many', detail, { 'retry-after': '60' }),
      }),
      mcpOptions: options.mcp ?? {},
      a2a: new A2aEndpoint(),
      a2aAgent: options.a2a?.agent ?? null,
      push,
      issuer: options.oidc?.issuer ?? null,
      startedAt: Date.now(),
      report: this.report,
      countStart: (principal) => this.gate.countStart(principal),
      countRead: (principal) => this.gate.countRead(principal),
      metrics: () =>
        this.counters.page({
          runtime,
          streams: this.streams.count,
          courier: upkeep.courier.counts,
          webhooks: () => webhooks.count(),
          isUpkeeper: upkeep.isHeld,
        }),
      ready: () => isReady(runtime),
      hasTree: async (rootId) => (await runtime.store.ownerOf(rootId)) !== undefined,
      table: () => table,
      limits: this.limits,
    }
  }

  /** Answers a request, and counts it. Never throws. */
  async answer(arrival: Arrival): Promise<Answered> {
    const began = performance.now()
    const answered = await this.answerUncounted(arrival)
    const ms = performance.now() - began
    const { status, route = '' } = answered
    this.counters.answered({ method: arrival.request.method, route, status, ms })
    this.tell(arrival, answered, ms)
    return answered
  }

  private tell({ request, url }: Arrival, { status, identity }: Answered, ms: number): void {
    const { heard } = this.parts.options
    if (heard === undefined) return
    try {
      heard({ method: request.method, path: url.pathname, status, ms, principal: identity?.principal.id ?? null })
    } catch (error) {
      this.report(error)
    }
  }

  private async answerUncounted(arrival: Arrival): Promise<Answered> {
    const { request } = arrival
    let route: string | undefined
    let sent: (() => void) | undefined
    try {
      if (isPreflight(request)) return this.preflight(arrival)
      const passed = await this.gate.pass(arrival)
      route = passed.route.path
      const began = performance.now()
      const key = passed.identity.principal.id
      const readsOnly = request.method === 'GET'
      const asked = { key, address: `${key} ${arrival.url.pathname}`, signal: request.signal, readsOnly }
      const answer = await this.large.make(asked, () => this.call(arrival, passed))
      sent = answer.sent
      if (performance.now() - began > LONG_MS) await recheck(answer, passed.identity)
      if (answer.stream !== undefined) this.checkStream(answer, passed.identity)
      return { ...answer, route, identity: passed.identity, headers: { ...this.common(request), ...answer.headers } }
    } catch (error) {
      sent?.()
      return { ...this.refusal(arrival, problemOf(error, this.report)), ...(route === undefined ? {} : { route }) }
    }
  }

  /** A stream too many leaves its source alone. */
  private checkStream({ stream }: Answer, identity: Identity): void {
    try {
      this.streams.check(identity.principal)
    } catch (error) {
      leaveStream(stream)
      throw error
    }
  }

  private preflight(arrival: Arrival): Answered {
    this.gate.checkCaller(arrival)
    return { status: 204, headers: { ...this.common(arrival.request), ...preflightHeaders() } }
  }

  private refusal(arrival: Arrival, { details, headers }: Problem): Answered {
    const { oidc, behindProxy } = this.parts.options
    const type = { 'content-type': 'application/problem+json' }
    const canLogIn = details.code === 'unauthenticated' && oidc !== undefined
    const login = canLogIn
      ? { 'www-authenticate': loginHeader(originOf(arrival, behindProxy === true), arrival.url.pathname) }
      : {}
    return {
      status: details.status,
      text: JSON.stringify(details),
      headers: { ...this.common(arrival.request), ...type, ...headers, ...login },
    }
  }

  private common(request: Request): Readonly<Record<string, string>> {
    return { ...this.headers, ...corsHeaders(request.headers, this.rules) }
  }

  private async call(arrival: Arrival, passed: Passed): Promise<Answer> {
    const { request, url } = arrival
    const { route, identity } = passed
    const query = readQuery(route, url.searchParams)
    const origin = originOf(arrival, this.parts.options.behindProxy === true)
    if (!takesBody(route.method)) return this.handle(request, passed, { query, origin, ...NO_BODY })
    const limits = { maxBytes: route.maxBody ?? MAX_BODY, timeoutMs: this.limits.bodyMs }
    checkBodyHead(request.headers, typesOf(route), limits.maxBytes)
    const work = async (read: () => void) => {
      const isJson = route.takesLines !== true
      const { value: body, sent } = isJson ? await readJsonBody(request, limits) : NO_JSON
      if (isJson) read()
      await checkBody(route, sent)
      return this.handle(request, passed, {
        query,
        origin,
        body,
        lines: isJson ? NO_LINES : readBodyLines(request, limits),
      })
    }
    try {
      return await (isLarge(request.headers) ? this.turns.take(identity.principal.id, work) : work(() => undefined))
    } catch (error) {
      if (error instanceof UnreadableBody && route.unreadable !== undefined) return route.unreadable
      throw error
    }
  }

  private async handle(
    request: Request,
    { route, params, identity }: Passed,
    parts: Pick<RouteCall, 'query' | 'body' | 'lines' | 'origin'>,
  ): Promise<Answer> {
    const { principal, tokenId, endsAt = null } = identity
    return route.handler({
      ...parts,
      params,
      headers: request.headers,
      principal,
      tokenId,
      endsAt,
      runtime: this.parts.runtime.as(principal),
      server: this.server,
      get signal() {
        return request.signal
      },
    })
  }
}

/** Who waited for an answer gets it only if he may still have it. */
async function recheck({ stream }: Answer, { isStillValid }: Identity): Promise<void> {
  if (await isStillValid()) return
  leaveStream(stream)
  throw unauthenticated()
}

function leaveStream(stream: Answer['stream']): void {
  stream?.items.return?.().catch(() => undefined)
}

/** Whose stream it is. */
export function ownerOf({ principal, tokenId, isStillValid }: Identity): StreamOwner {
  return { principal, tokenId, isStillValid }
}

const NO_JSON: JsonBody = { value: {}, sent: {} }
const NO_LINES: AsyncIterable<string> = (async function* () {})()
const NO_BODY = { body: {}, lines: NO_LINES }

/** A proxy that ends TLS says so, or is taken at its word. */
function originOf({ request, url }: Arrival, isBehindProxy: boolean): string {
  const host = request.headers.get('host') ?? url.host
  const forwarded = request.headers.get('x-forwarded-proto') === 'http' ? 'http:' : 'https:'
  return `${isBehindProxy ? forwarded : url.protocol}//${host}`
}

function isPreflight({ method, headers }: Request): boolean {
  return method === 'OPTIONS' && headers.has('origin') && headers.has('access-control-request-method')
}

function typesOf({ takesLines }: Route): readonly string[] {
  return takesLines === true ? ['application/x-ndjson'] : ['application/json']
}

/** A process without workers has no agents. */
async function isReady(runtime: Runtime): Promise<boolean> {
  if (runtime.isStoreFull) return false
  try {
    return (await runtime.processes()).some(({ isAlive, agents }) => isAlive && agents?.length !== 0)
  } catch {
    return false
  }
}

/** Webhooks, retention, and what does their work. */
function makeUpkeep({ runtime, tokens, options }: ServiceParts, report: (error: unknown) => void) {
  const { registry } = runtime.store
  const settings = { ...WEBHOOK_DEFAULTS, ...options.webhooks }
  const parts: { upkeep?: Upkeep } = {}
  const deliveries = new Deliveries(registry)
  const webhooks = new Webhooks({
    registry,
    tokens,
    deliveries,
    allowPrivate: settings.allowPrivate,
    begin: async () => parts.upkeep?.begin(),
    wake: () => parts.upkeep?.wake(),
  })
  const retention = new Retention(runtime, options)
  // Who loses the lease ends what it sends before another begins.
  const timeoutMs = Math.min(settings.timeoutMs, Math.floor(settings.leaseMs / 3))
  const upkeep = new Upkeep({
    registry,
    leaseMs: settings.leaseMs,
    newest: async () => (await runtime.changes(null, 0)).cursor,
    webhooks,
    retention,
    courier: (isHeld) =>
      new Courier({ runtime, webhooks, deliveries, settings: { ...settings, timeoutMs }, isHeld, report }),
    report,
  })
  parts.upkeep = upkeep
  const push = (maker: Maker) => new HookPushes({ store: runtime.store, webhooks, deliveries }, maker)
  return { upkeep, webhooks, retention, push }
}
