// Routes of conversations beside those of operations: streams, one more turn, and a tree as lines.

import { bodySchema } from '../../../core/operations/schemas.ts'
import { NotFoundError } from '../../../index.ts'
import type { Route } from '../table/route.ts'
import { routesOf } from '../table/routes-of.ts'
import { bodyOf, param } from './parts.ts'
import { EVENTS, placeOf, STREAM_QUERY, treeStream } from './run-stream.ts'
import { START_ANSWERS, START_HEADERS, START_PROPERTIES, start } from './runs.ts'

const READ_EVENTS: Route = {
  method: 'GET',
  path: '/v1/conversations/{id}/events',
  scope: 'read',
  summary: 'The events of a whole tree, of all its runs and lanes, as a stream.',
  description: 'Server-sent events until you leave or the tree is deleted.',
  params: { id: 'id' },
  query: STREAM_QUERY,
  headers: { 'Last-Event-ID': 'The last `id:` that you have.' },
  answers: { 200: EVENTS },
  handler: async (call) => {
    const after = placeOf(call, await call.runtime.lastSeq(param(call)))
    return { status: 200, stream: await treeStream(call, param(call), after) }
  },
}

const SEND: Route = {
  method: 'POST',
  path: '/v1/conversations/{id}/messages',
  scope: 'start',
  summary: 'Says one more thing: starts a turn in the conversation.',
  params: { id: 'id' },
  query: { wait: { type: 'integer', description: 'Seconds to wait for the outcome.', maximum: 60 } },
  headers: START_HEADERS,
  body: bodySchema(START_PROPERTIES, ['input']),
  maxBody: 10_000_000,
  answers: START_ANSWERS,
  example: { body: { input: 'And now?' } },
  handler: async (call) => {
    const row = await (await call.runtime.conversation(param(call))).row()
    if (row === undefined) throw new NotFoundError('not_found', 'It was deleted meanwhile.')
    const { id, agent } = row
    return start(call, agent.name, { ...bodyOf<object>(call), conversationId: id })
  },
}

const EXPORT: Route = {
  method: 'GET',
  path: '/v1/conversations/{id}/export',
  scope: 'export',
  summary: 'All of a tree as JSON Lines, for `POST /v1/import` of any server.',
  params: { id: 'id' },
  answers: { 200: { description: 'The lines.', type: 'application/x-ndjson' } },
  handler: async (call) => {
    const lines = await call.runtime.export(param(call))
    const name = `attachment; filename="${param(call)}.jsonl"`
    return { status: 200, lines, headers: { 'content-disposition': name } }
  },
}

const [GET, TRANSCRIPT, ...LANES] = routesOf('lanes', { messagesPage: [SEND, EXPORT] })

/** Routes of conversations and their lanes. */
export const CONVERSATION_ROUTES: readonly Route[] = routesOf('conversations', {
  conversations: [GET, TRANSCRIPT].flatMap((route) => route ?? []),
  graph: [READ_EVENTS, ...LANES],
})
