// A page with two clients that people use: `useChat` of the AI SDK, and `HttpAgent` of AG-UI with its verifier on. Tests build and
// open it; it knows the server by the address that it was loaded from.

import { HttpAgent } from '@ag-ui/client'
import { Chat, useChat } from '@ai-sdk/react'
import {
  DefaultChatTransport,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  type UIMessage,
} from 'ai'
import { createElement } from 'react'
import { createRoot } from 'react-dom/client'
import type { UiDataParts, UiMetadata } from '../../../src/doors/ai-sdk.ts'

export type ClientMessage = UIMessage<UiMetadata, UiDataParts>

/** What the page lends to a test. */
export interface Clients {
  /** Says something as a front end of AG-UI, and gives every event of the stream. Rejects what the verifier rejects. */
  agUi(input: AgUiRun): Promise<object[]>
  /** Shows a chat. Its buttons are how a person answers. `place` is what the page's own tool `place` gives. */
  chat(input: { agent: string; id: string; user: string; place: string }): void
  messages(): ClientMessage[]
}

interface AgUiRun {
  readonly agent: string
  readonly threadId: string
  readonly user: string
  readonly text?: string
  /** Answers by the reason of each interrupt of the run before, where one is given. */
  readonly answers?: Readonly<Record<string, object>>
}

const agents = new Map<string, HttpAgent>()
let shown: Chat<ClientMessage> | undefined

const clients: Clients = { agUi, chat, messages: () => shown?.messages ?? [] }
Object.assign(globalThis, { clients })

async function agUi({ agent, threadId, user, text, answers }: AgUiRun): Promise<object[]> {
  const headers = { 'x-user': user }
  const known = agents.get(threadId) ?? new HttpAgent({ url: `/ag-ui/${agent}`, threadId, headers })
  agents.set(threadId, known)
  if (text !== undefined) known.addMessage({ id: crypto.randomUUID(), role: 'user', content: text })
  const events: object[] = []
  const resume = known.pendingInterrupts.map(({ id, reason }) => {
    return { interruptId: id, status: 'resolved' as const, payload: answers?.[reason] }
  })
  await known.runAgent(answers === undefined ? {} : { resume }, {
    onEvent: ({ event }) => {
      events.push({ ...event })
    },
  })
  return events
}

function chat({ agent, id, user, place }: Parameters<Clients['chat']>[0]): void {
  const made = new Chat<ClientMessage>({
    id,
    transport: new DefaultChatTransport({ api: `/ai-sdk/${agent}`, headers: { 'x-user': user } }),
    onToolCall: ({ toolCall: { toolName: tool, toolCallId } }) => {
      if (tool === 'place') Promise.resolve(made.addToolOutput({ tool, toolCallId, output: place })).catch(reportError)
    },
    sendAutomaticallyWhen: (now) =>
      lastAssistantMessageIsCompleteWithApprovalResponses(now) || lastAssistantMessageIsCompleteWithToolCalls(now),
  })
  shown = made
  createRoot(document.body).render(createElement(ChatView, { chat: made }))
}

function ChatView({ chat }: { readonly chat: Chat<ClientMessage> }) {
  const { messages, status, error, sendMessage, addToolApprovalResponse } = useChat({ chat, resume: true })
  const asked = messages.flatMap(({ parts }) => parts.filter(isToolUIPart))
  return createElement(
    'main',
    null,
    createElement('p', { role: 'status' }, `${status} ${error?.message ?? ''}`),
    ...messages.flatMap(({ id, parts }) =>
      parts.map((part, at) => createElement('p', { key: `${id} ${at}` }, part.type === 'text' ? part.text : '')),
    ),
    ...asked.map((part) => {
      if (part.state !== 'approval-requested') return null
      const onClick = () => addToolApprovalResponse({ id: part.approval.id, approved: true })
      return createElement('button', { key: part.toolCallId, type: 'button', onClick }, `Allow ${part.type.slice(5)}`)
    }),
    createElement('button', { type: 'button', onClick: () => sendMessage({ text: 'Where am I?' }) }, 'Ask'),
  )
}
