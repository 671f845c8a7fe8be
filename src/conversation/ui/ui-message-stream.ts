import { type NoOptions, readOptions } from '../../base/options.ts'
import type { ConversationHandle } from '../conversation.ts'
import type { TurnPageQuery } from '../conversation-pages.ts'
import type { Run } from '../run.ts'
import type { UiMessage, UiMessageChunk } from './ui-chunk.ts'
import type { UiWriter } from './ui-writer.ts'

/**
 * A run for `useChat`: the host's words as text, its calls as tool parts, what subagents do as `data-subagent` parts, and
 * what people are asked, at any depth, as `data-approval` and `data-question` parts. Words of subagents are not mixed into
 * the host's. Closing the stream does not stop the run: give the run a signal for that.
 */
export function toUIMessageStream(run: Run, options: NoOptions = {}): ReadableStream<UiMessageChunk> {
  readOptions('toUIMessageStream(run)', options, {})
  const events = run[Symbol.asyncIterator]()
  let writer: UiWriter | undefined
  return new ReadableStream<UiMessageChunk>({
    start: async (controller) => {
      const { UiWriter } = await import('./ui-writer.ts')
      writer = new UiWriter(run.id)
      controller.enqueue(writer.start())
    },
    pull: async (controller) => {
      for (let chunks: readonly UiMessageChunk[] = []; chunks.length === 0; ) {
        const { done, value } = await events.next()
        if (done === true) return controller.close()
        chunks = writer?.write(value) ?? []
        for (const chunk of chunks) controller.enqueue(chunk)
      }
    },
    cancel: async () => {
      await events.return?.()
    },
  })
}

/**
 * The latest turns of a conversation, or a page of others, as messages for `useChat`: the same as their streams have built,
 * with what people are asked now. Nothing is read but those turns.
 */
export async function toUIMessages(conversation: ConversationHandle, query: TurnPageQuery = {}): Promise<UiMessage[]> {
  const { uiMessagesOf } = await import('./ui-messages.ts')
  return uiMessagesOf(conversation, query)
}
