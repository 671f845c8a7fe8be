import type { Message, Part, StreamResponse, Task } from '@a2a-js/sdk'
import {
  type Client,
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client'

/** The official client with a token, by either binding. */
export function clientOf(url: string, token: string, binding: 'JSONRPC' | 'HTTP+JSON' = 'JSONRPC'): Promise<Client> {
  const fetchImpl = withToken(token)
  const factory = new ClientFactory({
    transports: [
      binding === 'JSONRPC' ? new JsonRpcTransportFactory({ fetchImpl }) : new RestTransportFactory({ fetchImpl }),
    ],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
  })
  return factory.createFromUrl(`${url}/.well-known/agent-card.json`, '')
}

function withToken(token: string): typeof fetch {
  return (input, init) => {
    const headers = new Headers(init?.headers)
    headers.set('authorization', `Bearer ${token}`)
    return fetch(input as string, { ...init, headers })
  }
}

/** A request with a message of one part. */
export function said(given: string | Part['content'], more: Partial<Message> = {}) {
  const content = typeof given === 'string' ? { $case: 'text' as const, value: given } : given
  const message: Message = {
    messageId: crypto.randomUUID(),
    contextId: '',
    taskId: '',
    role: 1,
    parts: [{ content, metadata: undefined, filename: '', mediaType: '' }],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
    ...more,
  }
  return { tenant: '', message, configuration: undefined, metadata: undefined }
}

/** The texts of a task's artifacts. */
export function answerOf(task: Task): string {
  return task.artifacts.flatMap(({ parts }) => parts.map(({ content }) => String(content?.value))).join('\n')
}

/** A stream in short: what each item is, and its state. */
export async function inShort(stream: AsyncIterable<StreamResponse>): Promise<string[]> {
  const seen: string[] = []
  for await (const { payload } of stream) {
    if (payload?.$case === 'task') seen.push(`task ${payload.value.status?.state}`)
    else if (payload?.$case === 'statusUpdate') seen.push(`status ${payload.value.status?.state}`)
    else seen.push(`${payload?.$case}`)
  }
  return seen
}
