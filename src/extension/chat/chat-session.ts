import type { AnyAgent, Extension } from '../../agent/agent.ts'
import { extension } from '../../agent/hooks/define-extension.ts'
import { type Rules, readOptions, record, text } from '../../base/options.ts'
import { type ChatOptions, readRecord } from './read-record.ts'
import { ChatSession, type ChatStart } from './session.ts'

export interface ChatMethods {
  /**
   * A chat with this agent that goes on where the last request of the same id left off, in this store. Without an id it
   * is a new one. The id is a name within this agent, or the id of a conversation of its.
   */
  activateChatSession(id?: string, options?: ChatStart): ChatSession
}

const START: Rules<ChatStart> = { runtime: record, owner: text }

/**
 * Chats: each request is shown what was asked and answered before, and nothing of how. What failed or was cancelled is
 * not kept. A chat is a conversation of the store; two requests of one chat run one after the other.
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
