import { Chat } from '@ai-sdk/react'
import {
  DefaultChatTransport,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  type UIMessage,
} from 'ai'
import type { Principal, Runtime } from 'legate'
import type { UiDataParts, UiMetadata } from 'legate/ai-sdk'
import { handler, type ServerLimits } from 'legate/server'

export type PageMessage = UIMessage<UiMetadata, UiDataParts>

export const ANN: Principal = { id: 'ann', scopes: ['start', 'read', 'cancel', 'approve', 'history'] }

const LIMITS = { startsPerMinute: 100_000, readsPerMinute: 100_000, perAddressPerMinute: 100_000 }

/** `fetch` of a page whose person is known to the server. */
export function fetchFrom(runtime: Runtime, principal: Principal = ANN, more: ServerLimits = {}): typeof fetch {
  const limits = { ...LIMITS, ...more }
  const handle = handler(runtime, { authenticate: () => principal, allowHosts: ['legate.test'], limits })
  return (input, init) => {
    const request = new Request(input, init)
    if (init?.method === 'POST') request.headers.set('content-type', 'application/json')
    request.headers.set('host', 'legate.test')
    return handle(request)
  }
}

export interface Page {
  readonly chat: Chat<PageMessage>
  readonly errors: Error[]
}

/** A page of `useChat`, with the class that the hook of React holds. */
export function openPage(fetch: typeof globalThis.fetch, options: PageOptions = {}): Page {
  const { agent = 'host', id = 'chat 1/ä', messages = [], isAutomatic = true, tools = {} } = options
  const errors: Error[] = []
  const isComplete = (given: { messages: PageMessage[] }) =>
    lastAssistantMessageIsCompleteWithApprovalResponses(given) || lastAssistantMessageIsCompleteWithToolCalls(given)
  const chat = new Chat<PageMessage>({
    id,
    messages,
    transport: new DefaultChatTransport<PageMessage>({ api: `http://legate.test/ai-sdk/${agent}`, fetch }),
    onError: (error) => errors.push(error),
    // To wait for it here would wait for the stream that calls.
    onToolCall: ({ toolCall: { toolCallId, toolName: tool, input } }) => {
      const execute = tools[tool]
      if (execute === undefined) return
      Promise.resolve(input)
        .then(execute)
        .then((output) => chat.addToolOutput({ tool, toolCallId, output }))
        .catch(({ message }) => chat.addToolOutput({ state: 'output-error', tool, toolCallId, errorText: message }))
        .catch((error) => errors.push(error))
    },
    ...(isAutomatic ? { sendAutomaticallyWhen: isComplete } : {}),
  })
  return { chat, errors }
}

interface PageOptions {
  readonly agent?: string
  readonly id?: string
  readonly messages?: PageMessage[]
  readonly isAutomatic?: boolean
  /** The tools that the page executes. */
  readonly tools?: Readonly<Record<string, (input: unknown) => unknown>>
}

/** The approvals that the page asks its person for. */
export function askedOf({ chat }: Page): { id: string; tool: string }[] {
  return chat.messages.flatMap(({ parts }) =>
    parts.flatMap((part) =>
      isToolUIPart(part) && part.state === 'approval-requested' ? [{ id: part.approval.id, tool: part.type }] : [],
    ),
  )
}

/** Resolves when the page has nothing under way. */
export async function untilReady({ chat }: Page): Promise<void> {
  for (let quiet = 0; quiet < 3; ) {
    await new Promise((resolve) => setTimeout(resolve, 10))
    quiet = chat.status === 'ready' || chat.status === 'error' ? quiet + 1 : 0
  }
}

/** Without what JSON does not carry. */
export function plain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value))
}

/** What a page gets that loads now. */
export async function loaded(fetch: typeof globalThis.fetch, id = 'chat 1/ä', agent = 'host'): Promise<PageMessage[]> {
  const response = await fetch(`http://legate.test/ai-sdk/${agent}/${encodeURIComponent(id)}/messages`)
  return (await response.json()) as PageMessage[]
}
