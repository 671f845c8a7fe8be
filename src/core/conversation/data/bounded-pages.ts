// Pages of a conversation as a principal reads them: they end at 8 MB, and longer texts go by reference.

import { PAGE_BYTES } from '../../base/page/room.ts'
import type { ConversationHandle } from '../conversation.ts'
import type { MessagePage, MessagePageQuery, TranscriptPage, TurnPageQuery } from '../conversation-pages.ts'
import type { UiMessage } from '../ui/ui-chunk.ts'
import { toUIMessages } from '../ui/ui-message-stream.ts'
import type { UiPageQuery } from '../ui/ui-options.ts'
import { shortLine } from './by-reference.ts'

export async function transcriptPage(handle: ConversationHandle, query: TurnPageQuery): Promise<TranscriptPage> {
  const page = await handle.transcriptPage(bounded(query))
  return { ...page, transcript: page.transcript.map(shortLine) }
}

export async function messagesPage(handle: ConversationHandle, query: MessagePageQuery): Promise<MessagePage> {
  const { messages, next } = await handle.messagesPage(bounded(query))
  return { messages: messages.map(shortLine), next }
}

export function uiMessages(handle: ConversationHandle, query: UiPageQuery): Promise<UiMessage[]> {
  return toUIMessages(handle, bounded(query))
}

function bounded<Query extends { readonly maxBytes?: number }>(query: Query): Query {
  return { ...query, maxBytes: Math.min(query.maxBytes ?? PAGE_BYTES, PAGE_BYTES) }
}
