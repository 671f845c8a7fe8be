import { DeniedError } from '../../../index.ts'
import { SESSION_HEADER } from '../../protocols/mcp/http.ts'
import type { PlainItem } from '../../stream/frames.ts'
import { NOT_FOUND, Problem } from '../problem/problem.ts'
import { type Answer, PARSE_ERROR, type Route, type RouteCall } from '../table/route.ts'

const MCP_BYTES = 4_000_000

const JSON_RPC = 'application/json'

const ERRORS = {
  400: { description: 'The message cannot be served: an error of JSON-RPC.', type: JSON_RPC },
  404: { description: 'There is no such method, or no such session.', type: JSON_RPC },
  406: { description: 'The client does not take both forms of an answer.', type: JSON_RPC },
}

const SESSION = { 'Mcp-Session-Id': 'The session, for clients of revisions before 2026-07-28.' }

/** Routes for clients of MCP, who send what they want as messages of JSON-RPC. */
export const MCP_ROUTES: readonly Route[] = [
  {
    method: 'POST',
    path: '/mcp',
    scope: 'any',
    summary: 'Takes a message of MCP: agents are tools, recipes are prompts, runs are resources.',
    description:
      'Speaks the revisions 2026-07-28 and 2025-11-25. What a message needs, it needs as elsewhere: a call the scope `start`, a list `read`. A client of the newest revision that closes the connection cancels a call that still waits.',
    body: { type: ['object', 'array'] },
    maxBody: MCP_BYTES,
    unreadable: PARSE_ERROR,
    headers: {
      ...SESSION,
      Accept: '`application/json, text/event-stream`.',
      'MCP-Protocol-Version': 'The revision that the client speaks.',
    },
    answers: {
      200: { description: 'The answer, or a stream that ends with it.', type: JSON_RPC },
      202: { description: 'A notification was taken.', type: 'text/plain' },
      ...ERRORS,
    },
    example: { body: { jsonrpc: '2.0', id: 1, method: 'ping' } },
    handler: (call) => answer(call, 'POST'),
  },
  {
    method: 'GET',
    path: '/mcp',
    scope: 'any',
    summary: 'Streams what is sent to a session of MCP outside of its calls.',
    headers: SESSION,
    answers: {
      200: { description: 'Messages of JSON-RPC.', type: 'text/event-stream' },
      409: { description: 'The session has such a stream already.', type: JSON_RPC },
      ...ERRORS,
    },
    handler: (call) => answer(call, 'GET'),
  },
  {
    method: 'DELETE',
    path: '/mcp',
    scope: 'any',
    summary: 'Ends a session of MCP. Its runs go on.',
    headers: SESSION,
    answers: { 200: { description: 'It has ended.', type: 'text/plain' }, ...ERRORS },
    handler: (call) => answer(call, 'DELETE'),
  },
]

async function answer(call: RouteCall, method: 'POST' | 'GET' | 'DELETE'): Promise<Answer> {
  if (method !== 'POST' && !call.headers.has(SESSION_HEADER)) {
    throw new Problem('invalid_input', 'Name a session with Mcp-Session-Id. Messages are sent with POST.')
  }
  const response = await ask(call, method)
  if (response === undefined) throw new Problem('not_found', NOT_FOUND.detail)
  return answerOf(response)
}

/** Counts a caller who waits like a stream, once for each message that it sends together. */
async function ask(call: RouteCall, method: string): Promise<Response | undefined> {
  const { server, principal, headers, signal, body } = call
  const messages = Array.isArray(body) ? Math.max(body.length, 1) : 1
  const held: (() => void)[] = []
  try {
    for (let count = 1; count < messages; count++) server.countRead(principal)
    for (let count = 0; count < messages; count++) held.push(server.streams.hold(principal))
    const request = new Request('http://localhost/mcp', { method, headers: withAccept(headers), signal })
    const caller = { runtime: call.runtime, options: server.mcpOptions, beforeStart: () => countStart(call) }
    return await server.mcp.answer({ request, body: method === 'POST' ? body : undefined }, caller)
  } finally {
    for (const release of held) release()
  }
}

/** A call too many is a refusal that the model of the client can read. */
function countStart({ server, principal }: RouteCall): void {
  try {
    server.countStart(principal)
  } catch (error) {
    throw error instanceof Problem ? new DeniedError('denied', error.details.detail) : error
  }
}

/** A caller without an `accept` header takes both forms of an answer. */
function withAccept(headers: Headers): Headers {
  if ((headers.get('accept') ?? '*/*') !== '*/*') return headers
  const both = new Headers(headers)
  both.set('accept', 'application/json, text/event-stream')
  return both
}

async function answerOf(response: Response): Promise<Answer> {
  const { status, body } = response
  const type = response.headers.get('content-type') ?? ''
  const session = response.headers.get(SESSION_HEADER)
  const own = session === null ? {} : { [SESSION_HEADER]: session }
  if (body !== null && type.startsWith('text/event-stream')) {
    return { status, headers: own, stream: { hello: null, items: framesOf(body), isSlim: false, end: {} } }
  }
  const text = await response.text()
  return text === '' ? { status, headers: own } : { status, text, headers: { ...own, 'content-type': type } }
}

/** The stream of the package as it is. A reader who leaves cancels what it waits for. */
function framesOf(body: ReadableStream<Uint8Array>): AsyncIterator<PlainItem> {
  const reader = body.pipeThrough(new TextDecoderStream() as never).getReader() as ReadableStreamDefaultReader<string>
  return {
    next: async () => {
      const { done, value } = await reader.read()
      return done ? { value: undefined, done } : { value: { plain: value }, done: false }
    },
    return: async () => {
      await reader.cancel()
      return { value: undefined, done: true }
    },
  }
}
