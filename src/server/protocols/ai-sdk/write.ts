import type { UiMessageChunk7 } from '../../../doors/ai-sdk.ts'

/** The headers of the stream that `useChat` reads. */
export const CHAT_HEADERS: Readonly<Record<string, string>> = Object.freeze({
  'content-type': 'text/event-stream; charset=utf-8',
  'x-vercel-ai-ui-message-stream': 'v1',
})

/** A chunk as an event of the stream. JSON has no raw line breaks, so no text of a chunk can end it. */
export function chatFrame(chunk: UiMessageChunk7): string {
  return `data: ${JSON.stringify(chunk)}\n\n`
}

/** The event that ends the stream. */
export const LAST_FRAME = 'data: [DONE]\n\n'
