import { checkHandle, type NoOptions, readOptions } from '../../base/options.ts'
import type { ConversationHandle } from '../conversation.ts'
import type { TurnPageQuery } from '../conversation-pages.ts'
import type { Run } from '../run.ts'
import type { UiMessage, UiMessageChunk } from './ui-chunk.ts'
import type { UiWriter } from './ui-writer.ts'

/**
 * Streams a run for `useChat`: the host's text as text, its calls as tool parts, the activity of subagents as
 * `data-subagent` parts, and requests to people, at any depth, as `data-approval` and `data-question` parts. Text of
 * subagents is not mixed into the host's. Closing the stream does not stop the run: give the run a signal for that.
 */
export function toUIMessageStream(run: Run, options: NoOptions = {}): ReadableStream<UiMessageChunk> {
  readOptions('toUIMessageStream(run)', options, {})
  checkHandle(run, Symbol.asyncIterator, 'toUIMessageStream(run) takes a run')
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
 * The latest turns of a conversation, or a page of others, as messages for `useChat`: equal to those that their streams
 * built, with the open requests to people. Reads nothing but those turns.
 */
export async function toUIMessages(conversation: ConversationHandle, query: TurnPageQuery = {}): Promise<UiMessage[]> {
  checkHandle(conversation, 'transcript', 'toUIMessages(conversation) takes the handle of a conversation')
  const { uiMessagesOf } = await import('./ui-messages.ts')
  return uiMessagesOf(conversation, query)
}
