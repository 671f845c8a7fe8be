// The page of the chat service: all that it needs to know of the server. A component of React shows the chat with
// `const { messages, sendMessage } = useChat({ chat, resume: true })`. `resume` takes up an answer that is being written when
// the page loads.

import { Chat } from '@ai-sdk/react'
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage } from 'ai'
import type { UiDataParts, UiMetadata } from 'legate/ai-sdk'

export type ChatMessage = UIMessage<UiMetadata, UiDataParts>

/** A chat of one person with the agent `clerk`, with everything that was said before. */
export async function openChat(url: string, { id, user }: { id: string; user: string }): Promise<Chat<ChatMessage>> {
  const api = `${url}/ai-sdk/clerk`
  const headers = { 'x-user': user }
  const before = await fetch(`${api}/${encodeURIComponent(id)}/messages`, { headers })
  return new Chat<ChatMessage>({
    id,
    messages: (await before.json()) as ChatMessage[],
    transport: new DefaultChatTransport({ api, headers }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  })
}
