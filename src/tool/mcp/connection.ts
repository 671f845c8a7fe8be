import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import type { RequestOptions } from '@modelcontextprotocol/sdk/shared/protocol.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { messageOf, ToolError } from '../../base/error.ts'
import { within } from '../../base/within.ts'
import { type OpenSource, SOURCE_SEPARATOR, type SourcePlace, type SourceTool } from '../source/source.ts'
import { isDisallowedVariable, knownTo, serverEnvironment, substituted } from './environment.ts'
import { hostOf } from './host-of.ts'
import { httpTransport } from './http-transport.ts'
import { MOST_PAGES, MOST_TOOLS } from './limits.ts'
import type { ServerSettings } from './options.ts'
import { readTools, shownText } from './read-tools.ts'
import { resourceTools } from './resource-tools.ts'
import { Redaction } from './secrets.ts'
import type { Server } from './server.ts'
import { serverTool } from './server-tool.ts'
import { StdioTransport } from './stdio-transport.ts'

/** Starts a server and asks it for its tools. */
export async function openConnection(settings: ServerSettings, place: SourcePlace): Promise<OpenSource> {
  const connection = new McpConnection(settings, place)
  await connection.ready()
  return connection
}

/** How often a server that ended may be started again within a minute. */
const MOST_STARTS = 5
const START_WINDOW_MS = 60_000

interface Session {
  readonly client: Client
  readonly transport: Transport
}

/** A server and what it told of itself. One that has ended is started again when it is next needed. */
class McpConnection implements OpenSource, Server {
  tools: ReadonlyMap<string, SourceTool> = new Map()
  notes = ''
  warnings: readonly string[] = []
  readonly redaction: Redaction
  readonly timeoutMs: number
  private readonly settings: ServerSettings
  private readonly place: SourcePlace
  private readonly secrets: ReadonlyMap<string, string>
  private session: Session | undefined
  private starting: Promise<Session> | undefined
  /** What a start waits for. */
  private opening: Transport | undefined
  private listing: Promise<void> | undefined
  private starts: number[] = []
  private isChanged = true
  private isClosed = false
  private lostBy = ''

  constructor(settings: ServerSettings, place: SourcePlace) {
    this.settings = settings
    this.place = place
    this.timeoutMs = settings.timeoutMs
    this.secrets = new Map(
      settings.envKeys.flatMap((name) => {
        const value = settings.secrets(name)
        return value === undefined || value === '' ? [] : [[name, value] as const]
      }),
    )
    this.redaction = new Redaction([...this.secrets.values(), ...telling(settings.headers), ...telling(settings.env)])
    place.signal.addEventListener('abort', () => this.close(), { once: true })
  }

  async ready(): Promise<void> {
    const session = await this.connected()
    if (!this.isChanged) return
    this.listing ??= this.list(session).finally(() => {
      this.listing = undefined
    })
    await this.listing
  }

  /** A session that the server does not know any more is opened again: the request had no effect then. */
  async request<T>(send: (client: Client, options: RequestOptions) => Promise<T>, options: RequestOptions): Promise<T> {
    const { client } = await this.connected()
    const all = { timeout: NO_TIMEOUT, ...options }
    try {
      return await send(client, all)
    } catch (error) {
      if (!isUnheard(error)) throw this.told(error)
      this.lose('')
      const again = await this.connected()
      return await send(again.client, all).catch((second: unknown) => {
        throw this.told(second)
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

  private async connected(): Promise<Session> {
    if (this.isClosed) throw new ToolError('tool', `${this.place.name} has been closed`)
    if (this.session !== undefined) return this.session
    this.starting ??= this.start().finally(() => {
      this.starting = undefined
    })
    return this.starting
  }

  private async start(): Promise<Session> {
    const now = Date.now()
    this.starts = [...this.starts.filter((at) => now - at < START_WINDOW_MS), now]
    if (this.starts.length > MOST_STARTS) {
      throw new ToolError('tool', `it has ended ${MOST_STARTS} times within a minute: ${this.lostBy}`)
    }
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js')
    const { ToolListChangedNotificationSchema } = await import('@modelcontextprotocol/sdk/types.js')
    const client = new Client({ name: 'legate', version: '0' }, { capabilities: {} })
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
      this.isChanged = true
    })
    const transport = await this.transport()
    client.onclose = () => this.forget(transport)
    this.opening = transport
    try {
      if (this.isClosed) throw new Error('it is not needed any more')
      await client.connect(transport, { timeout: this.settings.startTimeoutMs })
    } catch (error) {
      const words = lastWords(transport)
      await transport.close().catch(() => undefined)
      const reason =
        words === '' || messageOf(error).includes(words) ? messageOf(error) : `${messageOf(error)} (${words})`
      throw new ToolError('tool', this.redaction.clean(`it did not start: ${reason}`), { cause: error })
    }
    this.opening = undefined
    this.session = { client, transport }
    this.isChanged = true
    this.notes = shownText(this.redaction.clean(client.getInstructions() ?? ''))
    return this.session
  }

  private async transport(): Promise<Transport> {
    const { command, args, cwd, env } = this.settings
    if (command === null) return this.overHttp()
    this.warnDropped()
    const environment = serverEnvironment(env, this.secrets)
    return new StdioTransport({ command, args, cwd: cwd ?? undefined, env: environment })
  }

  private async overHttp(): Promise<Transport> {
    const { url, headers } = this.settings
    const address = this.full(url ?? '', 'its url')
    if (hostOf(address) === undefined) throw new ToolError('tool', 'its url is no address that HTTP can reach')
    const full = Object.entries(headers).map(([name, value]) => [name, this.full(value, `its header ${name}`)])
    return httpTransport({ url: new URL(address), headers: Object.fromEntries(full) }, (reason) => this.lose(reason))
  }

  private full(text: string, where: string): string {
    const { text: full, missing } = substituted(text, knownTo(this.settings))
    if (missing.length === 0) return full
    throw new ToolError('tool', `${where} needs ${missing.join(', ')}, which is not set or not among its envKeys`)
  }

  private warnDropped(): void {
    const dropped = [...Object.keys(this.settings.env), ...this.settings.envKeys].filter(isDisallowedVariable)
    for (const name of dropped) {
      this.place.logger.warn(`${this.place.name}: ${name} may not be set for a server; it was dropped.`)
    }
  }

  /** Everything it has, page by page; what it answered is read as if anybody could have written it. */
  private async list(session: Session): Promise<void> {
    this.isChanged = false
    try {
      const given = session.client.getServerCapabilities()?.tools === undefined ? [] : await this.pages(session.client)
      const room = this.place.name.length + SOURCE_SEPARATOR.length
      const { availableTools } = this.settings
      const { tools, warnings } = readTools(given, { availableTools, redaction: this.redaction, room })
      const own = tools.map((listed) => [listed.shownAs, serverTool(this, listed)] as const)
      const beside = resourceTools(this, session.client.getServerCapabilities(), availableTools)
      this.tools = new Map([...beside, ...own])
      this.warnings = warnings
    } catch (error) {
      this.isChanged = true
      throw this.told(error)
    }
  }

  private async pages(client: Client): Promise<unknown[]> {
    const { ResultSchema } = await import('@modelcontextprotocol/sdk/types.js')
    const found: unknown[] = []
    const seen = new Set<unknown>()
    let cursor: unknown
    for (let page = 0; page < MOST_PAGES && found.length <= MOST_TOOLS; page++) {
      const params = typeof cursor === 'string' ? { params: { cursor } } : {}
      const options = { timeout: this.settings.startTimeoutMs }
      const result = await client.request({ method: 'tools/list', ...params }, ResultSchema, options)
      const tools: unknown = result['tools']
      if (!Array.isArray(tools)) throw new ToolError('tool', 'it gave no list of tools')
      found.push(...tools.slice(0, MOST_TOOLS + 1))
      cursor = result['nextCursor']
      if (typeof cursor !== 'string' || seen.has(cursor)) break
      seen.add(cursor)
    }
    return found
  }

  /** A request will get no answer: whoever waits for one is told. */
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

  /** What went wrong, in words that hold no secret. */
  private told(error: unknown): ToolError {
    const words = this.isLost && this.lostBy !== '' ? `${messageOf(error)} (${this.lostBy})` : messageOf(error)
    return new ToolError('tool', this.redaction.clean(words), { cause: error })
  }
}

/** Values that are secret by the look of their names, and what stands behind a word such as Bearer. */
function telling(named: Readonly<Record<string, string>>): string[] {
  const values = Object.entries(named).flatMap(([name, value]) => (SECRET_NAME.test(name) ? [value] : []))
  return values.flatMap((value) => [value, ...value.split(' ').slice(1)])
}

const SECRET_NAME = /auth|cookie|credential|key|passw|secret|token/i

/** The longest a timer can be: calls have a time limit of their own. */
const NO_TIMEOUT = 2 ** 31 - 1
const GOODBYE_MS = 500

/** The server may forget the session now. It need not answer. */
async function endSession(transport: object): Promise<void> {
  const { terminateSession } = transport as { terminateSession(): Promise<void> }
  await within(terminateSession.call(transport), GOODBYE_MS).catch(() => undefined)
}

function lastWords(transport: Transport): string {
  return 'lastWords' in transport && typeof transport.lastWords === 'string' ? transport.lastWords : ''
}

/** Was the request refused before anybody heard it: no such session, or nobody there? */
function isUnheard(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false
  const code: unknown = Reflect.get(error, 'code')
  if (error instanceof Error && error.message.startsWith('Streamable HTTP error') && (code === 404 || code === 400))
    return true
  const cause: unknown = Reflect.get(error, 'cause')
  return typeof cause === 'object' && cause !== null && Reflect.get(cause, 'code') === 'ECONNREFUSED'
}
