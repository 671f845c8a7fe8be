import type { Run } from './run.ts'
import type { UiMessageChunk } from './ui-chunk.ts'
import { UiWriter } from './ui-writer.ts'

/**
 * A run for `useChat`: the host's words as text, its calls as tool parts, what subagents do as `data-subagent` parts.
 * Their words are not mixed into the host's. Closing the stream does not stop the run: give the run a signal for that.
 */
export function toUIMessageStream(run: Run): ReadableStream<UiMessageChunk> {
  const events = run[Symbol.asyncIterator]()
  const writer = new UiWriter(run.id)
  return new ReadableStream<UiMessageChunk>({
    start: (controller) => controller.enqueue(writer.start()),
    pull: async (controller) => {
      for (let chunks: readonly UiMessageChunk[] = []; chunks.length === 0; ) {
        const { done, value } = await events.next()
        if (done === true) return controller.close()
        chunks = writer.write(value)
        for (const chunk of chunks) controller.enqueue(chunk)
      }
    },
    cancel: async () => {
      await events.return?.()
    },
  })
}
