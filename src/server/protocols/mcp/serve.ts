// The server of the MCP package, made from an offer: it lists, calls, reads, completes, and speaks both revisions.
//
// Owns:      the way from a request of MCP to an offer and back, signed states, and what errors become.
// Called by: `serveMcp` once per connection, `http` once per request.
// Must stay true:
//   - A state that a client brings back counts only for the same caller, method, name and arguments.
//   - Errors that are not ours tell nothing but that there was one.

import { randomBytes } from 'node:crypto'
import type { Server, ServerContext } from '@modelcontextprotocol/server'
import { sha256 } from '../../../core/base/hash.ts'
import { canonicalJson } from '../../../core/base/json.ts'
import { VERSION } from '../../../core/base/package/version.ts'
import { mayStart } from '../../../doors/grant.ts'
import { ConflictError, isLegateError, type Json, LegateError, type ScopedRuntime, type Store } from '../../../index.ts'
import { agentTools } from './agent-tools.ts'
import {
  checkMcpOptions,
  isGap,
  type McpArguments,
  type McpCall,
  type McpOffer,
  type McpOptions,
  type McpPrompt,
  type McpReader,
  type McpResource,
  type McpTool,
  matchResource,
} from './offer.ts'

import { type McpCaller, Peer } from './peer.ts'
import { hasTasks, INVALID_PARAMS, McpRefusal, TASKS } from './read.ts'
import { runResources } from './run-resources.ts'
import { runTools } from './run-tools.ts'
import { TASK_METHODS } from './tasks.ts'
import { INSIDE, textContent } from './write.ts'

/** The package, loaded when it is first needed. */
export type McpSdk = typeof import('@modelcontextprotocol/server')

/** The parts of one server. */
export interface ServingParts extends McpCaller {
  readonly sdk: McpSdk
  /** The key that states are signed with, at least 32 bytes. Every process that serves the same callers has the same. */
  readonly key: Uint8Array
  /** The revision that the client speaks: before 2026-07-28 it subscribes to resources by itself. */
  readonly era: 'legacy' | 'modern'
  /** Hears of errors that callers are not told of. */
  readonly report: (error: unknown) => void
}

const STATE_SECONDS = 24 * 3_600
const MOST_VALUES = 100
const INTERNAL = -32_603

/** Makes the server of one caller. */
export function makeServer(parts: ServingParts): Server {
  return new OfferServer(parts).server
}

class OfferServer {
  readonly server: Server
  private readonly parts: ServingParts
  private readonly peer: Peer
  private readonly codec

  constructor(parts: ServingParts) {
    const { sdk, key, runtime, options } = parts
    this.parts = parts
    this.peer = new Peer(parts)
    this.codec = sdk.createRequestStateCodec<SignedState>({
      key,
      ttlSeconds: STATE_SECONDS,
      bind: ({ mcpReq }) => `${mcpReq.method}\0${runtime.principal.id}`,
    })
    this.server = new sdk.Server(
      { name: options.name ?? 'legate', version: VERSION },
      {
        capabilities: {
          tools: {},
          prompts: {},
          resources: parts.era === 'legacy' ? { subscribe: true } : {},
          completions: {},
          ...(parts.era === 'legacy' ? { logging: {} } : {}),
          extensions: { [TASKS]: {} },
        },
        instructions: INSTRUCTIONS,
        requestState: { verify: this.codec.verify },
      },
    )
    this.handleTools()
    this.handlePrompts()
    this.handleResources()
    this.handleTasks()
    if (parts.era === 'legacy') this.handleSubscriptions()
  }

  private handleSubscriptions(): void {
    const subscriptions = new Subscriptions((uri) => {
      return this.server.notification({ method: 'notifications/resources/updated', params: { uri } })
    })
    this.server.onclose = () => subscriptions.end()
    this.server.setRequestHandler('resources/subscribe', ({ params: { uri } }) => {
      subscriptions.add(this.resources, uri)
      return {}
    })
    this.server.setRequestHandler('resources/unsubscribe', ({ params: { uri } }) => {
      subscriptions.drop(uri)
      return {}
    })
  }

  private handleTools(): void {
    this.server.setRequestHandler('tools/list', async (_, ctx) => {
      return this.told(async () => ({ tools: (await this.tools(this.clientOf(ctx))).map(toolRow) }))
    })
    this.server.setRequestHandler('tools/call', ({ params }, ctx) => {
      return this.told(async () => {
        const { name, arguments: args = {} } = params
        const call = this.callOf(ctx, { name, args: args as Json })
        const tool = (await this.tools(call.client)).find((one) => one.name === name)
        if (tool === undefined) throw new McpRefusal(INVALID_PARAMS, `There is no tool ${JSON.stringify(name)}.`)
        return (await callTool(tool, args as McpArguments, call)) as never
      })
    })
  }

  private handlePrompts(): void {
    this.server.setRequestHandler('prompts/list', () => ({
      prompts: this.peer.runtime.may('read') ? this.prompts.map(promptRow) : [],
    }))
    this.server.setRequestHandler('prompts/get', ({ params }, ctx) => {
      return this.told(async () => {
        const { name, arguments: args = {} } = params
        const prompt = this.promptOf(name, 'start')
        requireArguments(prompt, args)
        return (await prompt.get(args, this.callOf(ctx, { name, args }))) as never
      })
    })
    this.server.setRequestHandler('completion/complete', ({ params }) => {
      const { ref, argument } = params
      const prompt = ref.type === 'ref/prompt' ? this.promptOf(ref.name, 'read') : undefined
      const values = prompt?.arguments.find(({ name }) => name === argument.name)?.values ?? []
      const fitting = values.filter((value) => value.startsWith(argument.value))
      const shown = fitting.slice(0, MOST_VALUES)
      return { completion: { values: shown, total: fitting.length, hasMore: shown.length < fitting.length } }
    })
  }

  private handleResources(): void {
    this.server.setRequestHandler('resources/list', () => {
      return this.told(async () => {
        const lists = this.resources.map(async (one) => {
          const { uri, name, description, mimeType } = one
          const documents = isGap(uri) ? ((await one.list?.(this.reader)) ?? []) : [{ uri, name }]
          return documents.map((document) => ({
            ...document,
            description,
            ...(mimeType === undefined ? {} : { mimeType }),
          }))
        })
        return { resources: (await Promise.all(lists)).flat() }
      })
    })
    this.server.setRequestHandler('resources/templates/list', () => {
      const templates = this.resources.filter(({ uri }) => isGap(uri))
      return {
        resourceTemplates: templates.map(({ uri, read, list, watch, ...row }) => ({ uriTemplate: uri, ...row })),
      }
    })
    this.server.setRequestHandler('resources/read', ({ params: { uri } }) => {
      return this.told(async () => {
        for (const resource of this.resources) {
          const gaps = matchResource(resource.uri, uri)
          const contents = gaps === undefined ? undefined : await resource.read(uri, gaps, this.reader)
          if (contents !== undefined) return { contents: contents as never }
        }
        throw new McpRefusal(INVALID_PARAMS, 'Resource not found', { uri })
      })
    })
  }

  private handleTasks(): void {
    for (const [method, run] of Object.entries(TASK_METHODS)) {
      this.server.setRequestHandler(method, { params: ANY_PARAMS }, (params, ctx) => {
        const { taskId } = Object(params) as { readonly taskId?: unknown }
        return this.told(async () => (await run(this.peer, taskId, this.callOf(ctx, { name: '', args: {} }))) as never)
      })
    }
  }

  private async tools(client: McpCall['client']): Promise<readonly McpTool[]> {
    const { tools = [], manage = false } = this.peer.options
    const isManaged = manage || !hasTasks(client)
    return [
      ...(await agentTools(this.peer)),
      ...(this.peer.runtime.may('start') ? tools : []),
      ...(isManaged ? runTools(this.peer, client) : []),
    ]
  }

  private get prompts(): McpOffer['prompts'] {
    const { runtime, options } = this.peer
    return (options.prompts ?? []).filter(({ agent }) => agent === undefined || mayStart(runtime.principal, agent))
  }

  private get resources(): McpOffer['resources'] {
    const { runtime, options } = this.peer
    return [...(runtime.may('read') ? (options.resources ?? []) : []), ...runResources(this.peer)]
  }

  private get reader(): McpReader {
    return { principal: this.peer.runtime.principal.id }
  }

  private promptOf(name: string, scope: 'start' | 'read'): McpPrompt {
    const found = this.peer.runtime.may(scope) ? this.prompts.find((one) => one.name === name) : undefined
    if (found === undefined) throw this.protocolError(new McpRefusal(INVALID_PARAMS, 'There is no such prompt.'))
    return found
  }

  /** In the revision of 2026 every request says what its client can do; before it, the connection did. */
  private clientOf({ mcpReq }: ServerContext): McpCall['client'] {
    const { sdk } = this.parts
    const envelope = mcpReq.envelope as Readonly<Record<string, unknown>> | undefined
    const own = envelope?.[sdk.CLIENT_CAPABILITIES_META_KEY]
    return (own ?? this.server.getClientCapabilities() ?? {}) as McpCall['client']
  }

  private callOf(ctx: ServerContext, asked: OfferRequest): McpCall {
    const { mcpReq } = ctx
    const digest = sha256(canonicalJson([asked.name, asked.args]))
    const token = mcpReq._meta?.progressToken
    return {
      ...this.reader,
      signal: mcpReq.signal,
      client: this.clientOf(ctx),
      answers: mcpReq.inputResponses ?? {},
      state: checkedState(mcpReq.requestState<SignedState>(), digest),
      sign: (state) => this.codec.mint({ digest, state }, ctx),
      progress: async (progress, more = {}) => {
        if (token === undefined) return
        const params = { progressToken: token, progress, ...more }
        await mcpReq.notify({ method: 'notifications/progress', params })
      },
      log: async (level, message) => {
        if (this.parts.era === 'legacy') await mcpReq.log(level, message, 'legate')
      },
    }
  }

  /** Runs a handler. What it throws becomes an error of the protocol. */
  private async told<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      throw this.protocolError(error)
    }
  }

  private protocolError(error: unknown): Error {
    const { sdk, report } = this.parts
    if (error instanceof sdk.ProtocolError) return error
    if (error instanceof McpRefusal) return new sdk.ProtocolError(error.code, error.message, error.data)
    if (isLegateError(error) && !INSIDE.has(error.code)) return new sdk.ProtocolError(INVALID_PARAMS, error.message)
    report(error)
    return new sdk.ProtocolError(INTERNAL, 'Something went wrong inside the server. Its log says more.')
  }
}

interface OfferRequest {
  readonly name: string
  readonly args: Json
}

/** A state as it is signed: with the digest of the request that it belongs to. */
interface SignedState {
  readonly digest: string
  readonly state: Json
}

function checkedState(signed: SignedState | undefined, digest: string): Json | undefined {
  if (signed === undefined) return undefined
  if (signed.digest === digest) return signed.state
  throw new McpRefusal(INVALID_PARAMS, 'Invalid or expired requestState')
}

/** A call that our rules refuse is a result that a model can read; a request that cannot be served is an error. */
async function callTool(tool: McpTool, args: McpArguments, call: McpCall): Promise<object> {
  try {
    return await tool.call(args, call)
  } catch (error) {
    if (!(error instanceof LegateError) || INSIDE.has(error.code)) throw error
    return { content: [textContent(`${error.code}: ${error.message}`)], isError: true }
  }
}

function toolRow({ call, ...row }: McpTool) {
  return row as never
}

function promptRow({ get, agent: _, arguments: given, ...row }: McpPrompt) {
  return { ...row, arguments: given.map(({ values, ...argument }) => argument) }
}

function requireArguments(prompt: McpPrompt, args: Readonly<Record<string, string>>): void {
  const missing = prompt.arguments.find(({ name, required }) => required && args[name] === undefined)
  if (missing !== undefined) throw new McpRefusal(INVALID_PARAMS, `The argument "${missing.name}" is missing.`)
}

/** Takes any parameters: the capability is checked before they are. */
const ANY_PARAMS = {
  '~standard': {
    version: 1,
    vendor: 'legate',
    validate: (value: unknown) => ({ value }),
  },
} as const

const INSTRUCTIONS =
  'Each tool is an agent that works on its own and answers when it is done. Its runs are recorded: they survive a restart, ' +
  'and a long one goes on as a task, or under its run_id.'

/** The documents that one client wants to hear of. They end with its connection. */
class Subscriptions {
  private readonly changed: (uri: string) => Promise<void>
  private readonly watched: Map<string, AbortController> = new Map()

  constructor(changed: (uri: string) => Promise<void>) {
    this.changed = changed
  }

  /** Begins to tell of a document. Documents that cannot change are never told of. */
  add(resources: readonly McpResource[], uri: string): void {
    if (this.watched.has(uri) || this.watched.size >= MOST) return
    const leaving = new AbortController()
    this.watched.set(uri, leaving)
    for (const resource of resources) {
      const gaps = matchResource(resource.uri, uri)
      if (gaps === undefined) continue
      const tell = () => {
        this.changed(uri).catch(() => this.drop(uri))
      }
      // Whoever may not see it hears nothing.
      resource.watch?.(gaps, tell, leaving.signal).catch(() => this.drop(uri))
      return
    }
  }

  drop(uri: string): void {
    this.watched.get(uri)?.abort()
    this.watched.delete(uri)
  }

  end(): void {
    for (const uri of [...this.watched.keys()]) this.drop(uri)
  }
}

const MOST = 100

const KIND = 'key'
const ID = 'mcp'

/**
 * The key of a store that states of MCP are signed with. All processes of the store have the same, so what one has signed
 * another can check, also after a restart.
 */
export async function signingKey({ registry }: Pick<Store, 'registry'>): Promise<Uint8Array> {
  const known = await registry.get(KIND, ID)
  if (known !== undefined) return bytesOf(known.data)
  const data = randomBytes(32).toString('base64url')
  try {
    await registry.put({ kind: KIND, id: ID, owner: null, version: 1, at: Date.now(), data })
    return bytesOf(data)
  } catch (error) {
    // Another process was faster.
    if (!ConflictError.isInstance(error)) throw error
    return signingKey({ registry })
  }
}

function bytesOf(data: Json): Uint8Array {
  return Buffer.from(String(data), 'base64url')
}

/** How a program serves MCP over its own standard input and output. */
export interface ServeMcpOptions extends McpOptions {
  /** The key that states are signed with, at least 32 bytes. Default: one that ends with this process. */
  readonly key?: Uint8Array
  /** Hears of errors that callers are not told of. Default: warnings of the process. */
  readonly report?: (error: unknown) => void
}

/**
 * Serves the agents of a principal as MCP tools over stdin and stdout, which nothing else may write to. Resolves when the
 * client has left; runs go on until the runtime is closed.
 */
export async function serveMcp(runtime: ScopedRuntime, given: ServeMcpOptions = {}): Promise<void> {
  const { key = randomBytes(32), report = warn, ...options } = given
  checkMcpOptions(options, 'serveMcp(runtime, options)')
  const [sdk, { serveStdio, StdioServerTransport }] = await Promise.all([
    import('@modelcontextprotocol/server'),
    import('@modelcontextprotocol/server/stdio'),
  ])
  const transport = new StdioServerTransport()
  const left = new Promise<void>((resolve) => {
    process.stdin.once('end', resolve).once('close', resolve)
    process.stdout.once('error', () => resolve())
  })
  const serving = serveStdio(({ era }) => makeServer({ sdk, key, report, runtime, options, era }), {
    transport,
    onerror: report,
  })
  await left
  await serving.close()
}

function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error.message : String(error), { type: 'LegateWarning' })
}
