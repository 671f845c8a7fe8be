// The agent's side of ACP: sessions by their ids, and what each method of the protocol does.
//
// Must stay true:
//   - A session that is not the principal's own does not exist (I9).
//   - A session is opened in its own folder: in another one its calls would reach other files.
//   - `session/load` answers after everything was replayed.

import { randomUUID } from 'node:crypto'
import path from 'node:path'
import { Readable, Writable } from 'node:stream'
import type { AgentApp, AgentContext, InitializeRequest, McpServer } from '@agentclientprotocol/sdk'
import { code, type OptionRule, type OptionRules, readOptions } from '../../../core/base/options.ts'
import { VERSION as PACKAGE_VERSION } from '../../../core/base/package/version.ts'
import { costOf, modelInfo } from '../../../doors/models.ts'
import { MODES, type Mode } from '../../../doors/recipe.ts'
import { type AnyAgent, isAgent, isLegateError, type RunOutcome, type ScopedRuntime } from '../../../index.ts'
import { withEditorServers } from './read.ts'
import { COMMANDS, type Editor, type EditorSessionParts, Session } from './session.ts'

/** The package, loaded when it is first needed. */
export type AcpSdk = typeof import('@agentclientprotocol/sdk')

export interface AcpParts {
  readonly sdk: AcpSdk
  /** The agent that the editor talks to, or its name: then the editor can add no servers. */
  readonly agent: AnyAgent | string
  /** The runtime of a folder, as the person at the editor may use it. */
  readonly runtimeFor: (folder: string) => Promise<ScopedRuntime>
  /** The folder of a session, null for none; undefined where sessions belong to every folder. */
  readonly folderOf?: ((sessionId: string) => Promise<string | null> | string | null) | undefined
  readonly commands?: ((text: string) => string) | undefined
}

const VERSION = 1
const PAGE = 50

const STOPS: Readonly<
  Partial<Record<RunOutcome['status'], 'end_turn' | 'max_turn_requests' | 'max_tokens' | 'refusal' | 'cancelled'>>
> = {
  completed: 'end_turn',
  max_turns: 'max_turn_requests',
  over_budget: 'max_tokens',
  denied: 'refusal',
  cancelled: 'cancelled',
}

const MODE_NAMES: Readonly<Record<Mode, string>> = {
  auto: 'As the agent says',
  approve: 'Ask for every tool',
  smart_approve: 'Ask before changes',
  chat: 'Only talk',
}

/** Makes the agent of one connection. */
export function makeAgent(parts: AcpParts): AgentApp {
  return new EditorAgent(parts).app()
}

interface SessionOpening {
  readonly id: string
  readonly key: string | null
  readonly folder: string
  readonly runtime: ScopedRuntime
  readonly isChild: boolean
  /** The servers that the editor names for the session. */
  readonly servers: readonly McpServer[]
}

/** A session as the editor describes it: its folder, and its servers. */
interface SessionPlace {
  readonly cwd: string
  readonly mcpServers?: readonly McpServer[]
}

class EditorAgent {
  private readonly parts: AcpParts
  private readonly sessions: Map<string, Session> = new Map()
  /** Whether the editor has forms. */
  private hasForms = false

  constructor(parts: AcpParts) {
    this.parts = parts
  }

  app(): AgentApp {
    const { sdk } = this.parts
    const { session, initialize } = sdk.methods.agent
    return sdk
      .agent({ name: 'legate' })
      .onRequest(initialize, ({ params }) => this.initialize(params))
      .onRequest(session.new, ({ params, client }) => this.told(() => this.create(params, client)))
      .onRequest(session.load, ({ params, client }) => {
        return this.told(async () => {
          const opened = await this.find(params.sessionId, params, client)
          await opened.replay()
          await this.offerCommands(opened, client)
          return { modes: this.modes(opened) }
        })
      })
      .onRequest(session.resume, ({ params, client }) => {
        return this.told(async () => {
          const opened = await this.find(params.sessionId, params, client)
          await opened.resume()
          await this.offerCommands(opened, client)
          return { modes: this.modes(opened) }
        })
      })
      .onRequest(session.list, ({ params }) => this.told(() => this.list(params.cwd ?? null, params.cursor ?? null)))
      .onRequest(session.close, ({ params }) => {
        return this.told(async () => {
          const opened = this.known(params.sessionId)
          await opened.cancel()
          opened.leave()
          this.sessions.delete(params.sessionId)
          return {}
        })
      })
      .onRequest(session.setMode, ({ params, client }) => {
        return this.told(async () => {
          const opened = this.known(params.sessionId)
          if (!Object.hasOwn(MODES, params.modeId))
            throw sdk.RequestError.invalidParams(undefined, 'There is no such mode.')
          opened.mode = params.modeId as Mode
          const update = { sessionUpdate: 'current_mode_update' as const, currentModeId: params.modeId }
          await client.notify(sdk.methods.client.session.update, { sessionId: params.sessionId, update })
          return {}
        })
      })
      .onRequest(session.prompt, ({ params }) => {
        return this.told(async () => ({
          stopReason: this.stopReason(await this.known(params.sessionId).prompt(params.prompt)),
        }))
      })
      .onNotification(session.cancel, async ({ params }) => this.sessions.get(params.sessionId)?.cancel())
  }

  private get name(): string {
    const { agent } = this.parts
    return typeof agent === 'string' ? agent : agent.name
  }

  private initialize({ clientCapabilities }: InitializeRequest) {
    this.hasForms = clientCapabilities?.elicitation?.form != null
    return {
      protocolVersion: VERSION,
      agentInfo: { name: 'legate', title: this.name, version: PACKAGE_VERSION },
      agentCapabilities: {
        loadSession: true,
        mcpCapabilities: { http: typeof this.parts.agent !== 'string', sse: false },
        promptCapabilities: { image: true, audio: true, embeddedContext: true },
        sessionCapabilities: { list: {}, resume: {}, close: {} },
      },
      authMethods: [],
    }
  }

  /** The conversation begins with the first prompt; its id is known before. */
  private async create({ cwd, mcpServers: servers = [] }: SessionPlace, client: AgentContext) {
    const folder = path.resolve(cwd)
    const runtime = await this.parts.runtimeFor(folder)
    const key = `acp:${randomUUID()}`
    const id = await runtime.conversationIdFor(this.name, key)
    const opened = await this.open({ id, key, folder, runtime, isChild: false, servers }, client)
    await this.offerCommands(opened, client)
    return { sessionId: id, modes: this.modes(opened) }
  }

  /** A session that exists: of this connection, or of rows. A child's conversation is one too. */
  private async find(
    id: string,
    { cwd, mcpServers: servers = [] }: SessionPlace,
    client: AgentContext,
  ): Promise<Session> {
    const folder = path.resolve(cwd)
    const runtime = await this.parts.runtimeFor(folder)
    const row = await (await runtime.conversation(id)).row()
    await this.requireFolder(id, folder)
    this.sessions.get(id)?.leave()
    const isChild = row !== undefined && row.parentConversationId !== null
    return this.open({ id, key: null, folder, runtime, isChild, servers }, client)
  }

  private async requireFolder(id: string, folder: string): Promise<void> {
    const { folderOf, sdk } = this.parts
    const own = folderOf === undefined ? folder : await folderOf(id)
    if (own === folder) return
    const what =
      own === null ? 'It began in no editor: go on with it where it began.' : `It works in ${own}: open it there.`
    throw sdk.RequestError.invalidParams(undefined, what)
  }

  private async open({ servers, ...opening }: SessionOpening, client: AgentContext): Promise<Session> {
    const { agent: own, sdk } = this.parts
    const editor = editorOf(sdk, client, this.hasForms)
    const agent = typeof own === 'string' ? own : await withEditorServers(own, servers, opening.folder)
    const session = new Session({ ...opening, agent, editor, figures: FIGURES, commands: this.parts.commands })
    this.sessions.set(opening.id, session)
    return session
  }

  private known(id: string): Session {
    const session = this.sessions.get(id)
    if (session !== undefined) return session
    throw this.parts.sdk.RequestError.resourceNotFound(id)
  }

  private async list(cwd: string | null, cursor: string | null) {
    const { folderOf } = this.parts
    const folder = cwd === null ? null : path.resolve(cwd)
    const runtime = await this.parts.runtimeFor(folder ?? process.cwd())
    const query = { agent: this.name, limit: PAGE, ...(cursor === null ? {} : { before: cursor }) }
    const conversations = await runtime.conversations(query)
    const nextCursor = conversations.length < PAGE ? {} : { nextCursor: conversations.at(-1)?.id ?? null }
    const sessions = await Promise.all(
      conversations.map(async ({ id, title, updatedAt }) => ({
        sessionId: id,
        cwd: folderOf === undefined ? (folder ?? process.cwd()) : await folderOf(id),
        title,
        updatedAt: new Date(updatedAt).toISOString(),
      })),
    )
    const isListed = (own: string | null): own is string => own !== null && (folder === null || own === folder)
    return { sessions: sessions.flatMap((one) => (isListed(one.cwd) ? [{ ...one, cwd: one.cwd }] : [])), ...nextCursor }
  }

  private modes({ mode }: Session) {
    const availableModes = Object.entries(MODE_NAMES).map(([id, name]) => ({ id, name }))
    return { currentModeId: mode, availableModes }
  }

  private async offerCommands({ id }: Session, client: AgentContext): Promise<void> {
    const update = { sessionUpdate: 'available_commands_update' as const, availableCommands: [...COMMANDS] }
    await client.notify(this.parts.sdk.methods.client.session.update, { sessionId: id, update })
  }

  /** Statuses that ACP has no word for are errors that say what to do. */
  private stopReason(outcome: RunOutcome | 'asks') {
    if (outcome === 'asks') return 'end_turn'
    const { status, error, advice } = outcome
    const reason = STOPS[status]
    if (reason !== undefined) return reason
    const text = [`The run ended ${status}${error === null ? '' : `: ${error.message}`}`, advice ?? ''].join(' ').trim()
    throw new this.parts.sdk.RequestError(-32_603, text, { status, advice })
  }

  /** A refusal becomes an error that says why; a fault inside says nothing of itself. */
  private async told<T>(work: () => Promise<T>): Promise<T> {
    const { RequestError } = this.parts.sdk
    try {
      return await work()
    } catch (error) {
      if (error instanceof RequestError || !isLegateError(error)) throw error
      if (error.code === 'not_found' || error.code === 'deleted') throw RequestError.resourceNotFound()
      throw RequestError.invalidParams({ code: error.code }, error.message)
    }
  }
}

const FIGURES: EditorSessionParts['figures'] = {
  windowOf: (model) => modelInfo(model).contextWindow,
  costOf: ({ usage, model }) => costOf(usage, model),
}

function editorOf({ methods }: AcpSdk, client: AgentContext, hasForms: boolean): Editor {
  const form: Editor['form'] = (params, cancellationSignal) =>
    client.request(methods.client.elicitation.create, params, { cancellationSignal })
  return {
    update: (sessionId, update) => client.notify(methods.client.session.update, { sessionId, update: update as never }),
    permission: async (params, cancellationSignal) => {
      const method = methods.client.session.requestPermission
      const { outcome } = await client.request(method, params as never, { cancellationSignal })
      return outcome
    },
    form: hasForms ? form : null,
  }
}

/** How an agent is offered to an editor. */
export interface AcpOptions {
  /** The agent, or its name. With the agent itself, MCP servers of the editor join its tools: the person is asked before each starts. */
  readonly agent: AnyAgent | string
  /** The runtime of a folder that the editor works in, as the person at the editor may use it. */
  readonly runtimeFor: (folder: string) => Promise<ScopedRuntime> | ScopedRuntime
  /**
   * The folder of a session; null for a conversation that belongs to none. A session is loaded and listed in its own folder and in
   * no other. Default: sessions belong to every folder.
   */
  readonly folderOf?: (sessionId: string) => Promise<string | null> | string | null
  /**
   * Completes the commands of the command line in texts for the person, such as `legate answer 1f0c9a2e TEXT`: with the store that
   * they need, for example. Default: they stay as they are.
   */
  readonly commands?: (text: string) => string
}

const agentOrName: OptionRule = (value) =>
  typeof value === 'string' || isAgent(value) ? null : 'an agent, or its name'

const OPTIONS: OptionRules<AcpOptions> = { agent: agentOrName, runtimeFor: code, folderOf: code, commands: code }

/**
 * Speaks ACP with an editor over stdin and stdout, which nothing else may write to. Resolves when the editor has left; runs go on
 * until their runtime is closed.
 */
export async function serveAcp(options: AcpOptions): Promise<void> {
  const { agent, runtimeFor, folderOf, commands } = readOptions('serveAcp(options)', options, OPTIONS)
  const sdk = await import('@agentclientprotocol/sdk')
  const output = Writable.toWeb(process.stdout) as WritableStream<Uint8Array>
  const input = Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>
  const app = makeAgent({ sdk, agent, runtimeFor: async (folder) => runtimeFor(folder), folderOf, commands })
  await app.connect(sdk.ndJsonStream(output, input)).closed
}
