import { contextTurnsOf } from '../agent/build/conversation-settings.ts'
import type { AnyAgent, Extension } from '../agent/definition/agent.ts'
import type {
  AgentRequest,
  PromptInput,
  RequestAgent,
  RequestRuntime,
  RequestStartOptions,
} from '../agent/definition/agent-request.ts'
import type { ChatRecord } from '../agent/definition/chat-record.ts'
import { extension } from '../agent/hooks/hook-set.ts'
import { DefinitionError, messageOf } from '../base/error.ts'
import { foreignId, freshId, isId } from '../base/id.ts'
import { int, list, type NoOptions, type OptionRules, oneOf, readOptions, record, text } from '../base/options.ts'
import type { Run } from '../conversation/run.ts'
import { readPath } from '../fields/path-pattern.ts'
import { textOf } from '../graph/content.ts'
import type { CompletedOutcome } from '../graph/outcome.ts'
import type { Id } from '../graph/rows.ts'
import { lookWith } from '../store/look.ts'

export interface ChatMethods {
  /**
   * Opens a chat that continues where the last request with the same id stopped, in this store. Without an id it is a
   * new one. The id is a name within this agent, or the id of one of its conversations.
   */
  activateChatSession(id?: string, options?: ChatStart): ChatSession
}

const START: OptionRules<ChatStart> = { runtime: record, owner: text }

/**
 * Adds chats to an agent: each request sees the earlier inputs and answers, without tool calls. Failed and cancelled
 * requests are not kept. A chat is a conversation of the store; its requests run one after the other.
 */
export function chatSession(options: ChatOptions = {}): Extension<'chatSession', ChatMethods> {
  const kept = readRecord(options)
  return extension({
    name: 'chatSession',
    methods: (agent: AnyAgent): ChatMethods => ({
      activateChatSession: (id, start = {}) =>
        new ChatSession({ agent, id, record: kept, ...readOptions('activateChatSession(id, options)', start, START) }),
    }),
  })
}

export interface ChatStart {
  /** The runtime that runs and stores the chat. Default: one in memory. */
  readonly runtime?: RequestRuntime
  /** The owner of the chat. Chats of other owners are not found. */
  readonly owner?: string
}

export interface ChatMessage {
  readonly role: 'user' | 'assistant'
  readonly content: string
}

export interface ChatSessionParts extends ChatStart {
  readonly agent: AnyAgent
  readonly id: string | undefined
  readonly record: ChatRecord
}

/** A chat with an agent: a conversation under a name. It holds no state itself, so you can hold any number of them. */
export class ChatSession {
  readonly id: string
  /** The id of the conversation behind the chat. */
  readonly conversationId: Id
  private readonly parts: ChatSessionParts

  constructor(parts: ChatSessionParts) {
    const { agent, owner = null, id = freshId(Date.now()) } = parts
    if (typeof id !== 'string' || id.trim() === '') {
      throw new DefinitionError('definition', 'activateChatSession(id): the id is a text that is not empty.')
    }
    this.id = id
    this.conversationId = isId(id) ? id : foreignId({ owner, surface: 'chat', agent: agent.name, key: id })
    this.parts = { ...parts, id }
  }

  /** Begins the next request of the chat, to be filled slot by slot. */
  request(options?: NoOptions): AgentRequest {
    return this.parts.agent.request(options).through((of) => this.inChat(of))
  }

  /** Starts the next request of the chat with this input. */
  stream(input: string, options?: RequestStartOptions): Run {
    return this.request().input(input).start(options)
  }

  /** Starts the next request of the chat and waits for its outcome; throws RunError unless it completed. */
  generate(input: string, options?: RequestStartOptions): Promise<CompletedOutcome> {
    return this.request().input(input).generate(options)
  }

  /** Returns the inputs and answers so far, as the next request sees them. */
  async history(options: NoOptions = {}): Promise<ChatMessage[]> {
    readOptions('history()', options, {})
    const { agent, record, runtime } = this.parts
    const [{ contextAfter }, { chatHistory }] = await Promise.all([
      import('../graph/context.ts'),
      import('../agent/request/chat-history.ts'),
    ])
    const said = await lookWith(agent.request().reader(runtime), this.conversationId, (tree) => {
      const lane = tree.conversation(this.conversationId)
      if (lane === undefined) return []
      return chatHistory(tree, contextAfter(tree, lane, contextTurnsOf(lane, agent) - 1), record.maxLength)
    })
    return said.map(({ role, content }) => ({
      role: role === 'assistant' ? role : 'user',
      content: textOf(content),
    }))
  }

  /** Returns a chat that keeps these places of its next requests. */
  recordInputPaths(
    places: readonly ChatPlace[],
    mode: ChatRecord['inputMode'] = this.parts.record.inputMode,
  ): ChatSession {
    return this.with({ input: readPlaces(places), inputMode: mode })
  }

  /** Returns a chat that keeps these places of its next answers. */
  recordOutputPaths(
    paths: readonly string[],
    mode: ChatRecord['outputMode'] = this.parts.record.outputMode,
  ): ChatSession {
    return this.with({ output: readPaths(paths), outputMode: mode })
  }

  private with(change: Partial<ChatRecord>): ChatSession {
    return new ChatSession({ ...this.parts, record: { ...this.parts.record, ...change } })
  }

  private inChat(of: RequestAgent): RequestAgent {
    const { runtime, owner, record } = this.parts
    const place = {
      conversationId: this.conversationId,
      createConversation: true,
      ...(runtime === undefined ? {} : { runtime }),
      ...(owner === undefined ? {} : { owner }),
    }
    return {
      ...of,
      start: (asked: PromptInput, options) => of.start(asked.inChat(record), { ...options, ...place }),
      generate: (asked: PromptInput, options) => of.generate(asked.inChat(record), { ...options, ...place }),
    }
  }
}

/** A slot, or a path within one. */
export type ChatPlace = string | readonly [slot: string, path?: string]

export interface ChatOptions {
  /** The parts of a request that the history keeps: slots, or `[slot, path]`. Default: the input. */
  readonly recordInputPaths?: readonly ChatPlace[]
  /**
   * The parts of a structured answer that the history keeps, as paths: `reply`, `/items/0/name`, `items[*].name`.
   * Default: the whole text.
   */
  readonly recordOutputPaths?: readonly string[]
  /** Keep `all` of these parts as YAML, or only the `first` one present. Default `all`. */
  readonly recordInputMode?: ChatRecord['inputMode']
  /** `all` paths of the answer, or the `first` that is there. Default `all`. */
  readonly recordOutputMode?: ChatRecord['outputMode']
  /** The most characters of history that a request sees. The newest messages that fit are kept. */
  readonly maxLength?: number
}

const mode = oneOf('all', 'first')

const OPTIONS: OptionRules<ChatOptions> = {
  recordInputPaths: list,
  recordOutputPaths: list,
  recordInputMode: mode,
  recordOutputMode: mode,
  maxLength: int(0),
}

/** Normalizes the record options of a chat. Throws for a path that cannot be parsed. */
function readRecord(options: ChatOptions): ChatRecord {
  readOptions('chatSession()', options, OPTIONS)
  const { recordInputMode = 'all', recordOutputMode = 'all', maxLength = null } = options
  return {
    input: readPlaces(options.recordInputPaths ?? []),
    inputMode: recordInputMode,
    output: readPaths(options.recordOutputPaths ?? []),
    outputMode: recordOutputMode,
    maxLength,
  }
}

function readPlaces(places: readonly ChatPlace[]): ChatRecord['input'] {
  if (!Array.isArray(places)) refuse('recordInputPaths is a list of slots, or of [slot, path].')
  return places.map((place: unknown) => {
    const [slot, path = ''] = Array.isArray(place) ? (place as unknown[]) : [place]
    if (typeof slot !== 'string' || slot === '') refuse('a place in a request is a slot, or [slot, path].')
    return [slot, checkedPath(path)] as const
  })
}

function readPaths(paths: readonly string[]): readonly string[] {
  if (!Array.isArray(paths)) refuse('recordOutputPaths is a list of paths.')
  return paths.map((path: unknown) => checkedPath(path))
}

function checkedPath(path: unknown): string {
  if (typeof path !== 'string') refuse(`a path is a text, not ${JSON.stringify(path)}.`)
  try {
    readPath(path)
    return path
  } catch (error) {
    return refuse(messageOf(error))
  }
}

function refuse(message: string): never {
  throw new DefinitionError('definition', `chatSession(): ${message}`)
}
