import { checkHandle, int, listOf, type OptionRules, oneOf, readOptions, text } from '../../base/options.ts'
import type { ConversationHandle } from '../conversation.ts'
import type { Run } from '../run.ts'
import type { UiMessage, UiMessageChunk, UiMessageChunk7 } from './ui-chunk.ts'
import type { UiPageQuery, UiStreamOptions } from './ui-options.ts'
import type { UiReader } from './ui-reader.ts'

const OPTIONS: OptionRules<UiStreamOptions> = {
  ui: int(6, 7),
  approvals: oneOf('ask', 'end', 'show'),
  executes: text,
  after: listOf(text, 'texts'),
}

/**
 * Streams a run for `useChat`: the host's text as text, its calls as tool parts, the activity of subagents as `data-subagent`
 * parts and their calls as `data-subagent-call` parts, and requests to people, at any depth, as `data-approval` and
 * `data-question` parts. Text of subagents is not mixed into the host's. Closing the stream does not stop the run: give the run
 * a signal for that.
 */
export function toUIMessageStream(
  run: Run,
  options?: UiStreamOptions & { readonly ui?: 6 },
): ReadableStream<UiMessageChunk>
export function toUIMessageStream(run: Run, options: UiStreamOptions): ReadableStream<UiMessageChunk7>
export function toUIMessageStream(run: Run, options: UiStreamOptions = {}): ReadableStream<UiMessageChunk7> {
  const form = readOptions('toUIMessageStream(run)', options, OPTIONS)
  checkHandle(run, Symbol.asyncIterator, 'toUIMessageStream(run) takes a run')
  let reader: UiReader | undefined
  return new ReadableStream<UiMessageChunk7>({
    start: async (controller) => {
      const { UiReader } = await import('./ui-reader.ts')
      reader = new UiReader(run, form)
      controller.enqueue(reader.start())
    },
    pull: async (controller) => {
      for (const chunk of (await reader?.next()) ?? []) controller.enqueue(chunk)
      if (reader?.isOver !== true) return
      controller.close()
      await reader.close()
    },
    cancel: () => reader?.close(),
  })
}

/**
 * The latest turns of a conversation, or a page of others, as messages for `useChat`: equal to those that their streams
 * built, with the open requests to people. Reads nothing but those turns.
 */
export async function toUIMessages(conversation: ConversationHandle, query: UiPageQuery = {}): Promise<UiMessage[]> {
  checkHandle(conversation, 'transcript', 'toUIMessages(conversation) takes the handle of a conversation')
  const { uiMessagesOf } = await import('./ui-messages.ts')
  return uiMessagesOf(conversation, query)
}
