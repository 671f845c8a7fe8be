import { sha256 } from '../../../core/base/hash.ts'
import { isTraceparent } from '../../../core/base/traceparent.ts'
import type { AgentInfo } from '../../../doors/rows.ts'
import { type Json, NotFoundError } from '../../../index.ts'
import { cardOf } from '../../protocols/a2a/card.ts'
import type { A2aCaller } from '../../protocols/a2a/handler.ts'
import { olderCardOf } from '../../protocols/a2a/older.ts'
import type { A2aAnswer, RestOperation } from '../../protocols/a2a/serve.ts'
import { AgentTasks } from '../../protocols/a2a/tasks.ts'
import type { PlainItem } from '../../stream/frames.ts'
import { type Answer, NOTHING, PARSE_ERROR, type Route, type RouteCall } from '../table/route.ts'

/** Files come as data inside of messages. */
const MESSAGE_BYTES = 10_000_000

const JSON_TYPE = 'application/json'
const VERSION = { 'A2A-Version': '`1.0`. A request without it speaks 0.3, which JSON-RPC alone serves.' }
const TASK = { 200: { description: 'The answer, as A2A has it.', type: JSON_TYPE } }
const FRAMES = { 200: { description: 'Updates of the task.', type: 'text/event-stream' } }
const ERRORS = {
  400: { description: 'An error of A2A.', type: JSON_TYPE },
  404: { description: 'There is no such task.', type: JSON_TYPE },
}
const CARD = {
  200: { description: 'The card.', type: JSON_TYPE },
  304: { description: 'It is the one that you have.' },
}
const CARD_HEADERS = { 'If-None-Match': 'The `ETag` of the card that you have.' }

const EXAMPLE: Json = {
  message: { messageId: 'message-1', role: 'ROLE_USER', parts: [{ text: 'Hello.' }] },
}

/** Routes for other agents, which speak A2A 1.0. */
export const A2A_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/.well-known/agent-card.json',
    scope: 'read',
    summary: 'The card of the agent that stands for the server.',
    headers: CARD_HEADERS,
    answers: CARD,
    handler: async (call) => cardAnswer(call, await defaultAgent(call)),
  },
  {
    method: 'GET',
    path: '/a2a/{agent}/.well-known/agent-card.json',
    scope: 'read',
    summary: 'The card of an agent: what it does, where it is reached, and how.',
    params: { agent: 'name' },
    headers: CARD_HEADERS,
    answers: CARD,
    handler: async (call) => cardAnswer(call, await agentOf(call)),
  },
  {
    method: 'GET',
    path: '/a2a/{agent}/v0.3/.well-known/agent-card.json',
    scope: 'read',
    summary: 'The card of an agent for peers that speak A2A 0.3, who talk to `/a2a/{agent}` too.',
    params: { agent: 'name' },
    headers: CARD_HEADERS,
    answers: CARD,
    handler: async (call) => cardAnswer(call, await agentOf(call), olderCardOf),
  },
  ...['/a2a/{agent}', '/a2a/{agent}/'].map(
    (path): Route => ({
      method: 'POST',
      path,
      scope: 'any',
      summary: 'Takes a message of A2A in the binding JSON-RPC.',
      description:
        'What a method needs, it needs as elsewhere: SendMessage the scopes `start` and `read`, GetTask `read`, CancelTask `cancel` and `read`, a push notification `start` and `read`. A task is a run, and its context a conversation. A message that arrives again begins nothing twice.',
      params: { agent: 'name' },
      body: {},
      maxBody: MESSAGE_BYTES,
      unreadable: PARSE_ERROR,
      headers: VERSION,
      answers: {
        200: { description: 'The answer of JSON-RPC, or a stream of them.', type: JSON_TYPE },
        400: { description: 'The body is not JSON: an error of JSON-RPC.', type: JSON_TYPE },
      },
      example: { body: { jsonrpc: '2.0', id: 1, method: 'ListTasks', params: {} } },
      handler: async (call) => {
        const version = call.headers.get('a2a-version')
        return held(call, async () => call.server.a2a.rpc(version, call.body, await callerOf(call)))
      },
    }),
  ),
  rest('send', 'POST /message:send', {
    scope: 'start',
    summary: 'Sends a message: begins a task, or answers one that waits. Gives the task when it is over or waits.',
    example: { body: EXAMPLE },
  }),
  rest('stream', 'POST /message:stream', {
    scope: 'start',
    summary: 'Sends a message, and streams the task that follows.',
    answers: { ...FRAMES, ...ERRORS },
    example: { body: EXAMPLE },
  }),
  rest('list', 'GET /tasks', {
    scope: 'read',
    summary: 'Your tasks, the newest status first, without artifacts unless you ask for them.',
    query: {
      contextId: { type: 'string', description: 'Only of this context.' },
      status: { type: 'string', description: 'Only in this state: `TASK_STATE_WORKING`.' },
      pageSize: { type: 'integer', description: 'The most tasks of a page.', minimum: 1, maximum: 100, default: 50 },
      pageToken: { type: 'string', description: 'The `nextPageToken` of the page before.' },
      historyLength: { type: 'integer', description: 'The most messages of each.', minimum: 0 },
      statusTimestampAfter: { type: 'string', description: 'Only with a status since this time.' },
      includeArtifacts: { type: 'boolean', description: 'With artifacts.' },
    },
  }),
  rest('get', 'GET /tasks/{id}', {
    scope: 'read',
    summary: 'A task.',
    query: { historyLength: { type: 'integer', description: 'The most messages of its history.', minimum: 0 } },
  }),
  rest('cancel', 'POST /tasks/{id}:cancel', {
    scope: 'cancel',
    summary: 'Asks a task to stop.',
    example: { body: {} },
  }),
  ...(['GET', 'POST'] as const).map((method) => {
    const example = method === 'POST' ? { example: { body: {} } } : {}
    const answers = { ...FRAMES, ...ERRORS }
    const summary = 'Streams a task: as it is, then what happens to it, to its end.'
    return rest('subscribe', `${method} /tasks/{id}:subscribe`, { scope: 'read', summary, answers, ...example })
  }),
  rest('makePush', 'POST /tasks/{id}/pushNotificationConfigs', {
    scope: 'start',
    summary: 'Asks for push notifications about a task. They are signed webhooks: see the guide.',
    example: { body: { url: 'https://hooks.example/a2a' } },
  }),
  rest('listPush', 'GET /tasks/{id}/pushNotificationConfigs', {
    scope: 'read',
    summary: 'The push notifications of a task.',
  }),
  rest('getPush', 'GET /tasks/{id}/pushNotificationConfigs/{config}', {
    scope: 'read',
    summary: 'One of the push notifications of a task.',
  }),
  rest('deletePush', 'DELETE /tasks/{id}/pushNotificationConfigs/{config}', {
    scope: 'start',
    summary: 'Ends push notifications about a task.',
    answers: { 204: { description: 'It is done.' }, ...ERRORS },
  }),
  rest('extendedCard', 'GET /extendedAgentCard', {
    scope: 'read',
    summary: 'There is none: answers with the error that A2A has for it.',
  }),
]

type RestRoute = Pick<Route, 'scope' | 'summary' | 'example' | 'query'> & Partial<Pick<Route, 'answers'>>

/** A route of the binding HTTP+JSON. Body, query and ids of the path are one object to the operation. */
function rest(operation: RestOperation, place: `${Route['method']} ${string}`, more: RestRoute): Route {
  const [method, path = ''] = place.split(' ') as [Route['method'], string]
  const ids = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => [name, 'text'] as const)
  return {
    method,
    path: `/a2a/{agent}${path}`,
    params: { agent: 'name', ...Object.fromEntries(ids) },
    headers: VERSION,
    answers: { ...TASK, ...ERRORS },
    ...(method === 'POST' ? { body: { type: 'object' }, maxBody: MESSAGE_BYTES } : {}),
    ...more,
    handler: async (call) => {
      const params = paramsOf(call, operation)
      const version = call.headers.get('a2a-version')
      const answer = async () => call.server.a2a.rest(version, { operation, params }, await callerOf(call, true))
      return operation === 'send' ? held(call, answer) : answerOf(await answer())
    },
  }
}

const QUERY = ['contextId', 'status', 'pageToken', 'statusTimestampAfter'] as const

function paramsOf(call: RouteCall, operation: RestOperation): { readonly [key: string]: Json | undefined } {
  const { body, query, params } = call
  const { id, config } = params
  const isPush = operation.endsWith('Push')
  const texts = operation === 'list' ? QUERY.map((name) => [name, query.text(name)]) : []
  const isAsked = operation === 'list' || operation === 'get'
  const numbers = isAsked ? [['historyLength', query.number('historyLength')]] : []
  const given = [...texts, ...numbers, ...(operation === 'list' ? [['pageSize', query.number('pageSize')]] : [])]
  const asked = Object.fromEntries(given.filter(([, value]) => value !== undefined)) as { [key: string]: Json }
  return {
    ...(Object(body) as object),
    ...asked,
    ...(operation === 'list' ? { includeArtifacts: query.flag('includeArtifacts') } : {}),
    ...(id === undefined ? {} : isPush ? { taskId: id } : { id }),
    ...(config === undefined ? {} : { id: config }),
  }
}

/** Counts a caller who waits like a stream. */
async function held(call: RouteCall, work: () => Promise<A2aAnswer>): Promise<Answer> {
  const release = call.server.streams.hold(call.principal)
  try {
    return answerOf(await work())
  } finally {
    release()
  }
}

/** `isCounted`: the gate has counted the start already. */
async function callerOf(call: RouteCall, isCounted = false): Promise<A2aCaller> {
  const { runtime, server, principal, tokenId, endsAt, headers } = call
  const agent = call.params['agent'] ?? ''
  const traceparent = headers.get('traceparent')
  return {
    tasks: new AgentTasks(runtime, agent),
    push: server.push({ principal, tokenId, endsAt }),
    card: cardOf(await agentOf(call), placeOf(call)),
    traceparent: isTraceparent(traceparent) ? traceparent : undefined,
    signal: call.signal,
    beforeStart: () => (isCounted ? undefined : server.countStart(principal)),
    report: server.report,
  }
}

function placeOf({ origin, server }: RouteCall) {
  return { origin, issuer: server.issuer }
}

async function agentOf({ runtime, params }: RouteCall): Promise<AgentInfo> {
  const found = (await runtime.agents()).find(({ name }) => name === params['agent'])
  if (found === undefined) throw new NotFoundError('not_found', 'There is no such agent.')
  return found
}

async function defaultAgent({ runtime, server }: RouteCall): Promise<AgentInfo> {
  const agents = await runtime.agents()
  const found = server.a2aAgent === null ? agents[0] : agents.find(({ name }) => name === server.a2aAgent)
  if (found === undefined) throw new NotFoundError('not_found', 'There is no agent.')
  return found
}

function cardAnswer(call: RouteCall, agent: AgentInfo, form: typeof cardOf = cardOf): Answer {
  const text = JSON.stringify(form(agent, placeOf(call)))
  const etag = `"${sha256(text).slice(0, 32)}"`
  const headers = {
    etag,
    'cache-control': 'private, max-age=60',
    'last-modified': new Date(call.server.startedAt).toUTCString(),
  }
  if (call.headers.get('if-none-match') === etag) return { status: 304, headers }
  return { status: 200, text, headers: { ...headers, 'content-type': JSON_TYPE } }
}

function answerOf(answer: A2aAnswer): Answer {
  if ('stream' in answer) {
    return { status: 200, stream: { hello: null, items: framesOf(answer.stream), isSlim: false, end: {} } }
  }
  const { status, json } = answer
  return status === 204 ? NOTHING : { status, json }
}

function framesOf(texts: AsyncGenerator<string>): AsyncIterator<PlainItem> {
  return {
    next: async () => {
      const { done, value } = await texts.next()
      return done === true ? { value: undefined, done } : { value: { plain: `data: ${value}\n\n` }, done: false }
    },
    return: async () => {
      await texts.return(undefined)
      return { value: undefined, done: true }
    },
  }
}
