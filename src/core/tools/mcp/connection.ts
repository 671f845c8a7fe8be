import type { Client, Tool as McpTool, RequestOptions, Transport } from '@modelcontextprotocol/client'
import { within } from '../../base/abort.ts'
import { Allowance } from '../../base/clock.ts'
import { messageOf, ToolError } from '../../base/error.ts'
import { Secrets } from '../../base/secrets/secrets.ts'
import type { OwnerFolder } from '../../files/files.ts'
import { isHostRequest, isProgramRequest } from '../../grant/request.ts'
import { ErrorResult } from '../../tool/result.ts'
import { type OpenSource, SOURCE_SEPARATOR, type SourcePlace, type SourceTool } from '../../tool/source.ts'
import { type Tool, type ToolContext, tool } from '../../tool/tool.ts'
import {
  droppedVariables,
  secretVariables,
  serverEnvironment,
  serverSecrets,
  substituteVariables,
  variableLookup,
  withDecided,
} from './environment.ts'
import { httpTransport } from './http-transport.ts'
import type { ServerSettings } from './options.ts'
import { type ListedTool, listTools, readServerTools } from './read-tools.ts'
import { resourceTools } from './resource-tools.ts'
import { type OpenServer, shownLine, shownResult, shownText } from './server.ts'
import { lastWords, type McpSession, openSession, plainReason } from './session.ts'
import { StdioTransport } from './stdio-transport.ts'

/** Starts a server and lists its tools. */
export async function openConnection(
  settings: ServerSettings,
  place: SourcePlace,
  own: OwnerFolder | null,
): Promise<OpenSource> {
  const connection = new McpConnection(settings, place, own)
  await connection.ready()
  return connection
}

/** How often a server that ended may be restarted within a minute. */
const MOST_STARTS = 5
const START_WINDOW_MS = 60_000

/** A server, its tools and its notes. A server that has ended is restarted at its next use. */
class McpConnection implements OpenSource, OpenServer {
  tools: ReadonlyMap<string, SourceTool> = new Map()
  notes = ''
  warnings: readonly string[] = []
  readonly secrets: Secrets
  readonly secretValues: readonly string[]
  readonly timeoutMs: number
  private readonly settings: ServerSettings
  private readonly place: SourcePlace
  /** The folder of the owner for whom it runs; null where its settings name one, or it runs in that of this process. */
  private readonly own: OwnerFolder | null
  private readonly values: ReadonlyMap<string, string>
  private session: McpSession | undefined
  private starting: Promise<McpSession> | undefined
  /** The transport that a start waits for. */
  private opening: Transport | undefined
  private listing: Promise<void> | undefined
  private starts: number[] = []
  private isListening = false
  /** When to list the tools again, as the server asked. */
  private staleAt = Number.POSITIVE_INFINITY
  private isChanged = true
  private isOld = false
  private isClosed = false
  private lostBy = ''

  constructor(given: ServerSettings, place: SourcePlace, own: OwnerFolder | null) {
    const settings = withDecided(given, place.decided)
    this.settings = settings
    this.place = place
    this.own = own
    this.timeoutMs = settings.timeoutMs
    this.values = secretVariables(settings)
    this.secretValues = serverSecrets(settings)
    this.secrets = new Secrets(this.secretValues)
    place.signal.addEventListener('abort', () => this.close(), { once: true })
  }

  async ready(): Promise<void> {
    const session = await this.connected()
    if (!this.isChanged && Date.now() < this.staleAt) return
    this.listing ??= this.list(session).finally(() => {
      this.listing = undefined
    })
    await this.listing
  }

  /** Reopens a session that the server has forgotten: the request had no effect in that case. */
  async request<T>(send: (client: Client, options: RequestOptions) => Promise<T>, options: RequestOptions): Promise<T> {
    const session = await this.connected()
    const all = { timeout: NO_TIMEOUT, ...options }
    try {
      return await send(session.client, all)
    } catch (error) {
      if (!isUnheard(error, session)) {
        if (isBroken(error)) this.lose(plainReason(error))
        throw this.errorFor(error)
      }
      this.lose('')
      const again = await this.connected()
      return await send(again.client, all).catch((second: unknown) => {
        throw this.errorFor(second)
      })
    }
  }

  get isLost(): boolean {
    return this.session === undefined
  }

  async close(): Promise<void> {
    this.isClosed = true
    await this.opening?.close().catch(() => undefined)
    await this.starting?.catch(() => undefined)
    await this.end()
  }

  private async connected(): Promise<McpSession> {
    if (this.isClosed) throw new ToolError('tool', `${this.place.name} has been closed`)
    if (this.session !== undefined) return this.session
    this.starting ??= this.start().finally(() => {
      this.starting = undefined
    })
    return this.starting
  }

  private async start(): Promise<McpSession> {
    const now = Date.now()
    this.starts = [...this.starts.filter((at) => now - at < START_WINDOW_MS), now]
    if (this.starts.length > MOST_STARTS) {
      throw this.errorFor(`it has ended ${MOST_STARTS} times within a minute: ${this.lostBy}`)
    }
    try {
      this.session = await openSession({
        transport: () => this.transport(),
        isOld: this.isOld,
        startTimeoutMs: this.settings.startTimeoutMs,
        onOpening: (transport) => {
          this.opening = transport
          if (this.isClosed) throw new ToolError('tool', 'it is not needed any more')
        },
        onClose: (transport) => this.forget(transport),
        onToolsChanged: () => {
          this.isChanged = true
        },
      })
    } catch (error) {
      throw this.errorFor(`it did not start: ${plainReason(error)}`)
    }
    this.opening = undefined
    this.isListening = false
    this.isChanged = true
    const { client } = this.session
    this.isOld = client.getProtocolEra() === 'legacy'
    this.notes = shownText(this.secrets.clean(client.getInstructions() ?? ''))
    return this.session
  }

  private async transport(): Promise<Transport> {
    const { command, cwd } = this.settings
    if (command === null) return this.overHttp()
    const request = this.place.decided.find(isProgramRequest)
    if (request === undefined) throw new ToolError('tool', 'nobody has decided that its program may be started')
    this.warnDropped()
    const environment = serverEnvironment(this.settings, this.values)
    return new StdioTransport({ request, cwd: cwd ?? undefined, own: this.own, env: environment })
  }

  private async overHttp(): Promise<Transport> {
    const { url, headers } = this.settings
    this.full(url ?? '', 'its url')
    const request = this.place.decided.find(isHostRequest)
    if (request === undefined) throw new ToolError('tool', 'its url is not an address that HTTP can reach')
    const full = Object.entries(headers).map(([name, value]) => [name, this.full(value, `its header ${name}`)])
    return httpTransport(request, Object.fromEntries(full), (reason) => this.lose(reason))
  }

  private full(text: string, where: string): string {
    const { text: full, missing } = substituteVariables(text, variableLookup(this.settings))
    if (missing.length === 0) return full
    throw new ToolError('tool', `${where} needs ${missing.join(', ')}, which is not set or not among its envKeys`)
  }

  private warnDropped(): void {
    for (const name of droppedVariables(this.settings)) {
      this.place.logger.warn(
        `${this.place.name}: ${name} may decide what is loaded, and its value cannot be shown; it was dropped.`,
      )
    }
  }

  /** Lists all tools, page by page. It trusts nothing in the answers. */
  private async list(session: McpSession): Promise<void> {
    this.isChanged = false
    try {
      this.listen(session.client).catch(() => undefined)
      const { tools: given, ttlMs, cut } = await listTools(session.client, this.settings.startTimeoutMs)
      this.staleAt = ttlMs === null ? Number.POSITIVE_INFINITY : Date.now() + ttlMs
      const room = this.place.name.length + SOURCE_SEPARATOR.length
      const beside = resourceTools(this, session.client.getServerCapabilities(), this.settings)
      const taken = new Set(beside.keys())
      const isHttp = this.settings.command === null
      const { tools, warnings } = readServerTools(given, {
        limit: this.settings,
        secrets: this.secrets,
        room,
        taken,
        isHttp,
      })
      const own = tools.map((listed) => [listed.shownAs, serverTool(this, listed)] as const)
      this.tools = new Map([...beside, ...own])
      this.warnings = cut === null ? warnings : [cut, ...warnings]
    } catch (error) {
      this.isChanged = true
      throw this.errorFor(error)
    }
  }

  /** Since 2026-07-28 a server announces changes to listeners. If it does not answer, nobody listens. */
  private async listen(client: Client): Promise<void> {
    const isTold = client.getProtocolEra() === 'modern' && client.getServerCapabilities()?.tools?.listChanged === true
    if (!isTold || this.isListening) return
    this.isListening = true
    const subscription = await client.listen({ toolsListChanged: true }).catch(() => undefined)
    if ((await subscription?.closed) !== 'remote' || this.session?.client !== client) return
    // Changes are no longer announced: list the tools again, and listen again.
    this.isListening = false
    this.isChanged = true
  }

  /** Fails every waiting request, because no answer will come. */
  private lose(reason: string): void {
    this.lostBy = reason
    this.end().catch(() => undefined)
  }

  private forget(transport: Transport): void {
    if (this.session?.transport !== transport) return
    this.lostBy = lastWords(transport) || this.lostBy
    this.session = undefined
  }

  private async end(): Promise<void> {
    const { session } = this
    if (session === undefined) return
    this.session = undefined
    if (this.isClosed && 'terminateSession' in session.transport) await endSession(session.transport)
    await session.client.close().catch(() => undefined)
  }

  /** Words an error without secrets. */
  private errorFor(error: unknown): ToolError {
    const reason = typeof error === 'string' ? error : plainReason(error)
    const words =
      this.isLost && this.lostBy !== '' && !reason.includes(this.lostBy) ? `${reason} (${this.lostBy})` : reason
    return new ToolError('tool', shownLine(this.secrets.clean(words)))
  }
}

/** The longest possible timer, because calls have their own time limit. */
const NO_TIMEOUT = 2 ** 31 - 1
const GOODBYE_MS = 500

/** Lets the server forget the session. It need not answer. */
async function endSession(transport: object): Promise<void> {
  const { terminateSession } = transport as { terminateSession(): Promise<void> }
  await within(terminateSession.call(transport), GOODBYE_MS).catch(() => undefined)
}

/** True when the request was refused unread: no such session, or nobody there. */
function isUnheard(error: unknown, { transport }: McpSession): boolean {
  if (typeof error !== 'object' || error === null) return false
  const status: unknown = Reflect.get(error, 'status')
  if (transport.sessionId !== undefined && (status === 404 || status === 400)) return true
  const cause: unknown = Reflect.get(error, 'cause')
  return typeof cause === 'object' && cause !== null && Reflect.get(cause, 'code') === 'ECONNREFUSED'
}

/** True when the connection broke before an answer began. */
function isBroken(error: unknown): boolean {
  return error instanceof TypeError && error.message === 'fetch failed'
}

/** A tool of a server. It is effectful, whatever the server claims about its effects. */
function serverTool(server: OpenServer, listed: ListedTool): SourceTool {
  const made = tool({
    description: listed.description,
    input: { type: 'object' },
    timeoutMs: server.timeoutMs,
    execute: (input, context) => callTool(server, { listed, input }, context),
  })
  return { tool: Object.freeze({ ...made, input: listed.input }) as Tool, name: listed.name, version: listed.version }
}

async function callTool(
  server: OpenServer,
  { listed, input }: { readonly listed: ListedTool; readonly input: unknown },
  context: ToolContext,
): Promise<unknown> {
  const { name, inputSchema } = listed
  const { traceparent } = context
  const traced = traceparent === null ? {} : { _meta: { traceparent } }
  const params = { name, arguments: input as Record<string, unknown>, ...traced }
  // The schema may send some arguments as headers too. Without an output schema, nothing that comes from a server is
  // compiled.
  const toolDefinition = { name, inputSchema: inputSchema as McpTool['inputSchema'] }
  try {
    const result = await server.request((client, options) => client.callTool(params, { ...options, toolDefinition }), {
      signal: context.signal,
      onprogress: progressOf(context, server),
    })
    const shown = shownResult(result.content, result.structuredContent, server.secrets)
    return result.isError === true ? new ErrorResult(shown) : shown
  } catch (error) {
    if (context.signal.aborted || !server.isLost) throw error
    const words = `${messageOf(error)}. It may or may not have taken effect: check before you call it again.`
    throw new ToolError('tool', words, { cause: error })
  }
}

/** The progress of one call: some messages at once, then only as many as anybody can read. */
const PROGRESS_AT_ONCE = 20
const PROGRESS_PER_SECOND = 10

interface Progress {
  readonly progress: number
  readonly total?: number | undefined
  readonly message?: string | undefined
}

function progressOf(context: ToolContext, { secrets }: OpenServer): (progress: Progress) => void {
  const allowance = new Allowance(PROGRESS_AT_ONCE, PROGRESS_PER_SECOND)
  return ({ progress, total, message }) => {
    if (!allowance.take(1, Date.now())) return
    const words = message ?? (total === undefined ? `${progress}` : `${progress} of ${total}`)
    const shown = shownLine(secrets.clean(words)).slice(0, LONGEST_PROGRESS)
    context.progress(shown, { progress, ...(total === undefined ? {} : { total }) })
  }
}

const LONGEST_PROGRESS = 1_000
