import { NotFoundError } from '../../../index.ts'
import { json, NOTHING, type Route, type RouteCall } from '../table/route.ts'
import {
  answer,
  bodyOf,
  bodySchema,
  conversationView,
  DONE,
  given,
  LIMIT,
  LIST_QUERY,
  listQuery,
  OBJECT,
  param,
} from './parts.ts'
import { EVENTS, placeOf, STREAM_QUERY, treeStream } from './run-stream.ts'
import { START_ANSWERS, START_HEADERS, START_PROPERTIES, start } from './runs.ts'

const TURNS = { type: 'integer', description: 'The most turns.', minimum: 1, maximum: 1_000, default: 50 } as const

/** Routes of conversations and their lanes: reading, one more turn, export, deletion. */
export const CONVERSATION_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/conversations',
    scope: 'read',
    summary: 'The conversations that you see, newest first.',
    query: LIST_QUERY,
    answers: { 200: answer('Conversations', 'The conversations.') },
    handler: async ({ runtime, query }) => {
      const limit = query.number('limit') ?? 50
      const conversations = await runtime.conversations({ ...listQuery(query), limit })
      return json({ conversations, next: conversations.length < limit ? null : (conversations.at(-1)?.id ?? null) })
    },
  },
  {
    method: 'GET',
    path: '/v1/conversations/{id}',
    scope: 'read',
    summary: 'A conversation or lane.',
    params: { id: 'id' },
    answers: { 200: answer('ConversationAnswer', 'The conversation.') },
    handler: async (call) => json(conversationView(await rowOf(call))),
  },
  {
    method: 'GET',
    path: '/v1/conversations/{id}/transcript',
    scope: 'read',
    summary: 'The visible lines of a conversation, page by page.',
    params: { id: 'id' },
    query: {
      limitTurns: TURNS,
      beforeRunId: { type: 'string', description: 'Turns older than this one.' },
      afterRunId: { type: 'string', description: 'Turns newer than this one.' },
    },
    answers: { 200: answer('Transcript', 'The lines, and the cursors for the pages on both sides.') },
    handler: async (call) => {
      const { query } = call
      const conversation = await call.runtime.conversation(param(call))
      const cursors = { beforeRunId: query.text('beforeRunId'), afterRunId: query.text('afterRunId') }
      return json(
        await conversation.transcriptPage({ limitTurns: query.number('limitTurns') ?? 50, ...given(cursors) }),
      )
    },
  },
  {
    method: 'GET',
    path: '/v1/conversations/{id}/tree',
    scope: 'read',
    summary: 'The latest runs of a conversation and its lanes, with what they delegated.',
    params: { id: 'id' },
    query: { limitTurns: TURNS },
    answers: { 200: answer('Tree', 'The tree.') },
    handler: async (call) =>
      json(await call.runtime.tree(param(call), { limitTurns: call.query.number('limitTurns') ?? 50 })),
  },
  {
    method: 'GET',
    path: '/v1/conversations/{id}/picture',
    scope: 'read',
    summary: 'A picture of a tree for Mermaid or Graphviz.',
    params: { id: 'id' },
    query: {
      of: {
        type: 'string',
        description: 'Who delegated to whom, or every node.',
        enum: ['tree', 'graph'],
        default: 'tree',
      },
      format: { type: 'string', description: 'The language.', enum: ['mermaid', 'dot'], default: 'mermaid' },
    },
    answers: { 200: { description: 'The picture.', type: 'text/plain' } },
    handler: async (call) => {
      const options = { of: call.query.text('of') as 'tree', format: call.query.text('format') as 'mermaid' }
      return { status: 200, text: await call.runtime.picture(param(call), options) }
    },
  },
  {
    method: 'GET',
    path: '/v1/conversations/{id}/graph',
    scope: 'read',
    summary: 'Nodes, edges, lanes and versions of a conversation as data, the newest turns first.',
    params: { id: 'id' },
    query: {
      turns: { type: 'integer', description: 'The most turns.', minimum: 1, maximum: 1_000, default: 20 },
      before: { type: 'string', description: 'Turns older than this one.' },
    },
    answers: { 200: answer('Graph', 'The graph.') },
    handler: async (call) => {
      const { query } = call
      const before = given({ before: query.text('before') })
      return json(await call.runtime.graph(param(call), { turns: query.number('turns') ?? 20, ...before }))
    },
  },
  {
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
  },
  {
    method: 'GET',
    path: '/v1/conversations/{id}/lanes',
    scope: 'read',
    summary: 'The lanes that were forked from a conversation.',
    params: { id: 'id' },
    answers: { 200: answer('Lanes', 'The lanes, newest first.') },
    handler: async (call) => {
      const conversation = await call.runtime.conversation(param(call))
      return json({ lanes: await conversation.lanes(), next: null })
    },
  },
  {
    method: 'GET',
    path: '/v1/conversations/{id}/usage',
    scope: 'read',
    summary: 'The usage of a conversation: in all, by model and by day.',
    params: { id: 'id' },
    query: {
      of: {
        type: 'string',
        description: '`tree`: with that of all its lanes and of everything that it delegated.',
        enum: ['lane', 'tree'],
        default: 'lane',
      },
    },
    answers: { 200: answer('ConversationUsage', 'The usage.') },
    handler: async (call) => {
      const of = (call.query.text('of') ?? 'lane') as 'lane' | 'tree'
      return json(await (await call.runtime.conversation(param(call))).usageStats({ of }))
    },
  },
  {
    method: 'GET',
    path: '/v1/conversations/{id}/sessions',
    scope: 'read',
    summary: 'The open sessions with subagents that a conversation has started.',
    params: { id: 'id' },
    answers: { 200: answer('Sessions', 'The sessions.') },
    handler: async (call) => {
      const conversation = await call.runtime.conversation(param(call))
      return json({ sessions: await conversation.sessions(), next: null })
    },
  },
  {
    method: 'GET',
    path: '/v1/conversations/{id}/messages',
    scope: 'read',
    summary: 'The visible messages of a conversation, one by one.',
    params: { id: 'id' },
    query: {
      limit: LIMIT,
      before: { type: 'string', description: 'Messages older than this one.' },
      after: { type: 'string', description: 'Messages newer than this one.' },
    },
    answers: {
      200: answer(
        'Messages',
        'The messages, oldest first. `next` is the `before` (or `after`) of the page that follows.',
      ),
    },
    handler: async (call) => {
      const { query } = call
      const conversation = await call.runtime.conversation(param(call))
      const cursors = { before: query.text('before'), after: query.text('after') }
      return json(await conversation.messagesPage({ limit: query.number('limit') ?? 50, ...given(cursors) }))
    },
  },
  {
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
      const { id, agent } = await rowOf(call)
      return start(call, agent.name, { ...bodyOf<object>(call), conversationId: id })
    },
  },
  {
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
  },
  {
    method: 'DELETE',
    path: '/v1/conversations/{id}',
    scope: 'delete',
    summary: 'Deletes the whole tree of a conversation, and leaves its tombstone.',
    params: { id: 'id' },
    query: { reason: { type: 'string', description: 'The reason that the tombstone keeps.' } },
    answers: { 200: answer('Tombstone', 'The tombstone.') },
    handler: async (call) => json(await call.runtime.forget(param(call), call.query.text('reason'))),
  },
  {
    method: 'POST',
    path: '/v1/conversations/{id}/sessions/{session}/close',
    scope: 'history',
    summary: 'Closes a session with a subagent.',
    params: { id: 'id', session: 'id' },
    body: bodySchema({}),
    answers: DONE,
    handler: async (call) => {
      await (await call.runtime.conversation(param(call))).closeSession(param(call, 'session'))
      return NOTHING
    },
  },
  {
    method: 'POST',
    path: '/v1/conversations/{id}/observe',
    scope: 'history',
    summary: 'Adds a message without starting a turn.',
    params: { id: 'id' },
    body: bodySchema(
      { role: { enum: ['user', 'developer', 'agent'] }, content: { type: ['string', 'array'], items: OBJECT } },
      ['content'],
    ),
    answers: { 200: answer('Observed', 'The id of its node.') },
    example: { body: { content: 'By the way.' } },
    handler: async (call) => {
      const conversation = await call.runtime.conversation(param(call))
      const said = bodyOf<{ readonly role?: 'user'; readonly content: string }>(call)
      return json({ nodeId: await conversation.observe({ role: 'user', ...said }) })
    },
  },
]

async function rowOf(call: RouteCall) {
  const row = await (await call.runtime.conversation(param(call))).row()
  if (row === undefined) throw new NotFoundError('not_found', 'It was deleted meanwhile.')
  return row
}
