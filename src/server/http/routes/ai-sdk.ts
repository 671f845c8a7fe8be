import type { QuerySchema } from '../../../core/operations/operation.ts'
import { bodySchema, OBJECT, SHORT, UNICODE } from '../../../core/operations/schemas.ts'
import { readChatRequest } from '../../protocols/ai-sdk/read.ts'
import { Chat, type ChatStream } from '../../protocols/ai-sdk/serve.ts'
import { CHAT_HEADERS, chatFrame, LAST_FRAME } from '../../protocols/ai-sdk/write.ts'
import type { PlainItem } from '../../stream/frames.ts'
import { type Answer, json, NOTHING, type Route, type RouteCall } from '../table/route.ts'
import { answer, param } from './parts.ts'

/** Files come as data inside of messages. */
const CHAT_BYTES = 10_000_000

const UI: Readonly<Record<string, QuerySchema>> = {
  ui: { type: 'integer', description: 'The major version of `ai` on the page.', minimum: 6, maximum: 7, default: 6 },
}

const CHUNKS = { description: 'The chunks of a message.', type: 'text/event-stream' }

/** Routes for pages of `useChat`: the transport of the AI SDK finds them under `api: '/ai-sdk/NAME'`. */
export const AI_SDK_ROUTES: readonly Route[] = [
  {
    method: 'POST',
    path: '/ai-sdk/{agent}',
    scope: 'start',
    summary:
      'Takes what a person says, answers or wants anew in a chat of `useChat`, and streams the message that follows.',
    description:
      'Only the newest message, words on approvals and ids are taken from the body. The stream ends where the run waits for the person. A repeated request starts nothing twice, and a caller who leaves stops nothing.',
    params: { agent: 'name' },
    query: UI,
    body: {
      type: 'object',
      properties: {
        id: { ...SHORT, minLength: 1, description: 'The page’s id of the chat.' },
        messages: { type: 'array', maxItems: 10_000, items: { ...OBJECT, properties: { id: { format: UNICODE } } } },
        trigger: { type: 'string', enum: ['submit-message', 'regenerate-message'] },
        messageId: { ...SHORT, type: ['string', 'null'] },
      },
      required: ['id', 'messages'],
    },
    maxBody: CHAT_BYTES,
    answers: { 200: CHUNKS },
    example: {
      body: {
        id: 'chat-1',
        messages: [{ id: 'message-1', role: 'user', parts: [{ type: 'text', text: 'Hello.' }] }],
        trigger: 'submit-message',
      },
    },
    handler: async (call) => {
      const request = readChatRequest(call.body)
      return streamed(await chatOf(call, request.chatId).post(request))
    },
  },
  {
    method: 'GET',
    path: '/ai-sdk/{agent}/{chat}/stream',
    scope: 'read',
    summary: 'Streams the message that is being written in a chat, from its first chunk.',
    params: { agent: 'name', chat: 'text' },
    query: {
      ...UI,
      message: { type: 'string', description: 'A message that the page holds unfinished: also if it is over by now.' },
    },
    answers: { 200: CHUNKS, 204: { description: 'Nothing is being written.' } },
    handler: async (call) => {
      const stream = await chatOf(call, param(call, 'chat')).resume(call.query.text('message'))
      return stream === null ? NOTHING : streamed(stream)
    },
  },
  {
    method: 'GET',
    path: '/ai-sdk/{agent}/{chat}/messages',
    scope: 'read',
    summary: 'The newest messages of a chat, for a page that loads.',
    params: { agent: 'name', chat: 'text' },
    answers: { 200: answer('ChatMessages', 'The messages.') },
    handler: async (call) => json(await chatOf(call, param(call, 'chat')).messages()),
  },
  {
    method: 'POST',
    path: '/ai-sdk/{agent}/{chat}/stop',
    scope: 'cancel',
    summary: 'Cancels what goes on in a chat.',
    params: { agent: 'name', chat: 'text' },
    body: bodySchema({}),
    answers: { 200: answer('StoppedChat', 'How many runs were asked to stop: `stopped`.') },
    example: { body: {} },
    handler: async (call) => json({ stopped: await chatOf(call, param(call, 'chat')).stop() }),
  },
]

function chatOf(call: RouteCall, chatId: string): Chat {
  const ui = call.query.number('ui') === 7 ? 7 : 6
  return new Chat(call.runtime, { agent: param(call, 'agent'), chatId, ui })
}

function streamed(stream: ChatStream): Answer {
  return {
    status: 200,
    headers: CHAT_HEADERS,
    stream: { hello: null, items: framesOf(stream), isSlim: false, end: {} },
  }
}

/** The chunks of a stream as frames, and the last one that the protocol wants. */
function framesOf(stream: ChatStream): AsyncIterator<PlainItem> {
  const reader = stream.getReader()
  let isOver = false
  return {
    next: async () => {
      if (isOver) return { value: undefined, done: true }
      const { done, value } = await reader.read()
      isOver = done
      return { value: { plain: done ? LAST_FRAME : chatFrame(value) }, done: false }
    },
    return: async () => {
      isOver = true
      await reader.cancel()
      return { value: undefined, done: true }
    },
  }
}
