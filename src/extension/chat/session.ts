import type { AnyAgent } from '../../agent/agent.ts'
import { contextTurnsOf } from '../../agent/conversation-settings.ts'
import type {
  AgentRequest,
  RequestAgent,
  RequestRuntime,
  RequestStartOptions,
} from '../../agent/request/agent-request.ts'
import type { Asked } from '../../agent/request/asked.ts'
import type { ChatRecord } from '../../agent/request/chat-record.ts'
import { DefinitionError } from '../../base/error.ts'
import { foreignId, freshId, isId } from '../../base/id.ts'
import type { CompletedOutcome, Run } from '../../conversation/run.ts'
import { textOf } from '../../graph/content.ts'
import type { Id } from '../../graph/rows.ts'
import { type ChatPlace, readPaths, readPlaces } from './read-record.ts'

export interface ChatStart {
  /** Where it runs and is kept. Default: one in memory. */
  readonly runtime?: RequestRuntime
  /** Whose chat it is: another owner's is not found. */
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

/** A chat with an agent: a conversation under a name. It keeps nothing itself, so any number of them may be held. */
export class ChatSession {
  readonly id: string
  /** The conversation it is. */
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

  /** What the agent is asked next, slot by slot. */
  request(): AgentRequest {
    return this.parts.agent.request().through((of) => this.inChat(of))
  }

  stream(input: string, options?: RequestStartOptions): Run {
    return this.request().input(input).start(options)
  }

  generate(input: string, options?: RequestStartOptions): Promise<CompletedOutcome> {
    return this.request().input(input).generate(options)
  }

  /** What was asked and answered so far, as the next request is shown it. */
  async history(): Promise<ChatMessage[]> {
    const { agent, record, runtime } = this.parts
    const reader = agent.request().reader(runtime)
    const lane = reader.conversation(this.conversationId)
    if (lane === undefined) return []
    const [{ contextAfter }, { chatHistory }] = await Promise.all([
      import('../../graph/context.ts'),
      import('../../agent/request/chat-history.ts'),
    ])
    const before = contextAfter(reader, lane, contextTurnsOf(lane, agent) - 1)
    return chatHistory(reader, before, record.maxLength).map(({ role, content }) => {
      return { role: role === 'assistant' ? role : 'user', content: textOf(content) }
    })
  }

  /** The same chat, which keeps these places of its next requests. */
  recordInputPaths(
    places: readonly ChatPlace[],
    mode: ChatRecord['inputMode'] = this.parts.record.inputMode,
  ): ChatSession {
    return this.with({ input: readPlaces(places), inputMode: mode })
  }

  /** The same chat, which keeps these places of its next answers. */
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
      start: (asked: Asked, options) => of.start(asked.inChat(record), { ...options, ...place }),
      generate: (asked: Asked, options) => of.generate(asked.inChat(record), { ...options, ...place }),
    }
  }
}
