// A server that listens by itself: on an address or on a Unix socket, with or without TLS.
//
// Stays true:
// - It listens beyond this machine only where callers can prove who they are and nobody between can listen in.
// - A caller that sends slowly, or nothing, loses its connection: headers and body have their time.
// - Closing tells streams to move, lets requests end within the grace, and then takes the connections away.

import { lstatSync } from 'node:fs'
import { unlink } from 'node:fs/promises'
import { createServer, type Server as HttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { messageOf } from '../../core/base/error.ts'
import { isLoopback } from '../../core/base/loopback.ts'
import { ownFile } from '../../core/base/system/own-files.ts'
import { DefinitionError, type Runtime } from '../../index.ts'
import { socketAuthenticator } from '../identity/authenticator.ts'
import { LOCAL_PRINCIPAL, LOCAL_TOKEN_NAME, localToken, renewLocalToken } from '../identity/local-token.ts'
import type { Tokens } from '../identity/tokens.ts'
import { requireTrust } from '../identity/trust.ts'
import { forwardedFor, tokensOf, waysOf } from './handler.ts'
import { checkServeOptions, LIMIT_DEFAULTS, type ServeOptions, type TlsFiles } from './options.ts'
import { sendToNode } from './send.ts'
import { Service } from './service.ts'

/** A server that listens. */
export interface Server {
  /** `http://127.0.0.1:4747`; the path of the socket where it listens on one. */
  readonly url: string
  /** The token of this machine; undefined where it is not taken. */
  readonly token: string | undefined
  /**
   * Takes no more requests, tells streams to come back elsewhere, and waits for open requests. Close the runtime afterwards:
   * its nodes then get their grace, and what does not end in it goes back to the queue.
   */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

const PORT = 4747
const HOST = '127.0.0.1'
const GRACE_MS = 5_000
/** How often a server that closes looks for connections that are idle now. */
const IDLE_MS = 20
const MAX_HEADER_BYTES = 16_384
const NO_HOST = 'no-host.invalid'

/**
 * Serves the runtime over HTTP, and resolves when it listens. Each caller reaches what its principal may. The runtime goes on
 * with what the store holds: a server that was killed and started again has lost nothing.
 */
export async function serve(runtime: Runtime, options: ServeOptions = {}): Promise<Server> {
  checkServeOptions(options)
  const tokens = tokensOf(runtime)
  await checkReach(options, tokens)
  const hasLogin = options.oidc !== undefined || options.authenticate !== undefined
  await requireTrust(runtime, tokens, { hasLogin })
  const token = await takeLocalToken(options, tokens)
  const http = makeHttp(options)
  const sockets = socketsOf(http)
  await listen(http, options)
  const { url, port } = placeOf(http, options)
  const ways = [
    ...(options.socket === undefined ? [] : [socketAuthenticator(LOCAL_PRINCIPAL)]),
    ...waysOf(options, tokens.authenticator(token === undefined ? LOCAL_TOKEN_NAME : undefined)),
  ]
  const allowHosts = [...(options.allowHosts ?? []), ...namesOf(options)]
  const service = new Service({ runtime, options: { ...options, allowHosts }, tokens, ways, port })
  answerWith(http, service, options)
  await runtime.resume()
  let closing: Promise<void> | undefined
  const close = () => {
    closing ??= drain(http, sockets, { service, graceMs: options.graceMs ?? GRACE_MS })
    return closing
  }
  return { url, token, close, [Symbol.asyncDispose]: close }
}

function answerWith(http: HttpServer, service: Service, options: ServeOptions): void {
  const isSocket = options.socket !== undefined
  const answer = async (request: Request, incoming: IncomingMessage, outgoing: ServerResponse) => {
    const address = options.behindProxy === true ? forwardedFor(request.headers) : (incoming.socket.remoteAddress ?? '')
    const answered = await service.answer({ request, url: new URL(request.url), address, isSocket })
    await sendToNode(answered, outgoing, service.streams)
  }
  const listener = getRequestListener(
    async (request, env) => {
      const { incoming, outgoing } = env as { incoming: IncomingMessage; outgoing: ServerResponse }
      await answer(request, incoming, outgoing).catch(() => outgoing.destroy())
      return RESPONSE_ALREADY_SENT
    },
    { overrideGlobalObjects: false, hostname: NO_HOST, errorHandler: () => BAD_REQUEST.clone() },
  )
  http.on('request', (incoming, outgoing) => {
    listener(incoming, outgoing).catch(() => outgoing.destroy())
  })
}

const BAD_REQUEST = new Response('{"type":"urn:legate:problem:invalid_input","status":400}', {
  status: 400,
  headers: { 'content-type': 'application/problem+json', connection: 'close' },
})

function makeHttp({ tls, limits }: ServeOptions): HttpServer {
  const { headersMs, bodyMs } = { ...LIMIT_DEFAULTS, ...limits }
  const settings = {
    headersTimeout: headersMs,
    requestTimeout: headersMs + bodyMs,
    connectionsCheckingInterval: Math.min(1_000, headersMs),
    keepAliveTimeout: 10_000,
    maxHeaderSize: MAX_HEADER_BYTES,
    noDelay: true,
    keepAlive: true,
  }
  const http = tls === undefined ? createServer(settings) : makeTls(settings, tls)
  http.maxRequestsPerSocket = 1_000
  return http
}

function makeTls(settings: object, tls: TlsFiles): HttpServer {
  try {
    return createTlsServer({ ...settings, ...tls })
  } catch (error) {
    throw new DefinitionError('definition', `serve({ tls }): certificate and key cannot be read. ${messageOf(error)}`)
  }
}

async function listen(http: HttpServer, options: ServeOptions): Promise<void> {
  const { host = HOST, port = PORT, socket } = options
  if (socket !== undefined) {
    ownFile(socket, 'the socket of the server')
    await removeStale(socket)
  }
  await new Promise<void>((resolve, reject) => {
    const fail = (error: unknown) => reject(listenError(error, options))
    http.once('error', fail)
    const done = () => {
      http.off('error', fail)
      resolve()
    }
    if (socket === undefined) http.listen({ host, port }, done)
    else listenOnSocket(http, socket, done)
  })
}

/** Says why the server cannot listen there, and what to change. */
function listenError(cause: unknown, { host = HOST, port = PORT, socket }: ServeOptions): unknown {
  const { code = '' } = Object(cause) as NodeJS.ErrnoException
  const why = WHY[code]
  if (why === undefined) return cause
  const given = socket === undefined ? `host: '${host}', port: ${port}` : `socket: '${socket}'`
  return new DefinitionError('definition', `serve({ ${given} }): ${why}`, { cause })
}

const WHY: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program listens there. Choose another port, or 0 for any that is free.',
  EADDRNOTAVAIL: 'this machine does not have the address. Name one of its own.',
  ENOTFOUND: 'there is no host of that name. Name an address of this machine.',
  EAI_AGAIN: 'the name of the host cannot be found now. Name an address of this machine.',
  EACCES:
    'this process may not listen there. Ports below 1024 need more rights; a socket needs a folder that the process may write to.',
  ENOENT: 'its folder does not exist.',
  EINVAL: 'this is no address or path to listen on.',
}

/** The file is made within this call: nobody else can open it at any moment. */
function listenOnSocket(http: HttpServer, socket: string, done: () => void): void {
  const mask = process.umask(0o177)
  try {
    http.listen({ path: socket }, done)
  } finally {
    process.umask(mask)
  }
}

/** A socket file that nobody listens on is what a killed server left. Anything else there belongs to somebody. */
async function removeStale(socket: string): Promise<void> {
  const found = lstatSync(socket, { throwIfNoEntry: false })
  if (found === undefined) return
  if (!found.isSocket()) {
    throw new DefinitionError('definition', `serve({ socket }): ${socket} is there already, and it is no socket.`)
  }
  const isAlive = await new Promise<boolean>((resolve) => {
    const probe = connect(socket, () => resolve(true))
    probe.once('error', () => resolve(false))
    probe.once('connect', () => probe.destroy())
  })
  if (isAlive) throw new DefinitionError('definition', `serve({ socket }): another process listens on ${socket}.`)
  await unlink(socket)
}

function placeOf(
  http: HttpServer,
  { host = HOST, socket, tls }: ServeOptions,
): { url: string; port: number | undefined } {
  if (socket !== undefined) return { url: socket, port: undefined }
  const { port } = http.address() as AddressInfo
  const name = host.includes(':') ? `[${host}]` : host
  return { url: `${tls === undefined ? 'http' : 'https'}://${name}:${port}`, port }
}

/** A server that listens on one address goes by it. */
function namesOf({ host = HOST }: ServeOptions): readonly string[] {
  return isLoopback(host) || host === '0.0.0.0' || host === '::' ? [] : [host.includes(':') ? `[${host}]` : host]
}

/** Refuses to be reachable from elsewhere where that cannot be safe, and says what to do. */
async function checkReach(options: ServeOptions, tokens: Tokens): Promise<void> {
  const { host = HOST, socket, tls, behindProxy, oidc, authenticate } = options
  if (socket !== undefined || isLoopback(host)) return
  const refuse = (why: string): never => {
    throw new DefinitionError('definition', `serve({ host: '${host}' }) reaches beyond this machine, and ${why}`)
  }
  if (tls === undefined && behindProxy !== true) {
    refuse(
      'nothing protects the tokens on their way. Give tls: { cert, key }, or behindProxy: true where a proxy ends TLS.',
    )
  }
  const hasProof = oidc !== undefined || authenticate !== undefined || (await tokens.hasOther(LOCAL_TOKEN_NAME))
  if (!hasProof) refuse('no caller could sign in: make a token (legate token add), or set oidc.')
}

/** The token of this machine belongs to servers that only this machine reaches: others do not take it, whoever made it. */
async function takeLocalToken(options: ServeOptions, tokens: Tokens): Promise<string | undefined> {
  const { host = HOST, socket, localToken: isWanted = true, localTokenFile } = options
  if (!isWanted || socket !== undefined || !isLoopback(host)) return undefined
  const given = { principal: LOCAL_PRINCIPAL, name: LOCAL_TOKEN_NAME }
  const token = await localToken(localTokenFile)
  if (await tokens.keep(token, given)) return token
  const fresh = await renewLocalToken(localTokenFile)
  await tokens.keep(fresh, given)
  return fresh
}

/** The open connections of a server. */
function socketsOf(http: HttpServer): ReadonlySet<Socket> {
  const sockets = new Set<Socket>()
  http.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  return sockets
}

async function drain(http: HttpServer, sockets: ReadonlySet<Socket>, closing: Closing): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    http.close(() => resolve())
  })
  closing.service.streams.drain()
  const rested = closing.service.upkeep.close(closing.graceMs)
  const closeIdle = () => {
    // A connection whose answer has ended is idle from then on, and one that never said anything does not count as idle.
    http.closeIdleConnections()
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
  }
  closeIdle()
  const idle = setInterval(closeIdle, IDLE_MS)
  const timer = setTimeout(() => http.closeAllConnections(), closing.graceMs)
  await closed
  clearInterval(idle)
  clearTimeout(timer)
  await rested
}

interface Closing {
  readonly service: Service
  readonly graceMs: number
}
