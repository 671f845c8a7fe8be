import { agent, type Principal } from 'legate'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { greeter, type Setting, startServer } from '../../server/support/server.ts'

const ann: Principal = { id: 'ann', scopes: ['start', 'read', 'cancel', 'approve'] }
const UNKNOWN = '01890000-0000-7000-8000-00000000dead'
const V1 = { 'a2a-version': '1.0' }

const picky = agent({ name: 'picky', input: { type: 'object', required: ['a'] }, reply: () => 'ok' })

let setting: Setting
let token = ''
let done = ''

beforeAll(async () => {
  setting = await startServer({}, { agents: [greeter, picky] })
  token = await setting.tokenFor(ann)
  const answer = await rpc('SendMessage', { message: said() })
  done = (answer.result as { task: { id: string } }).task.id
})
afterAll(() => setting[Symbol.asyncDispose]())

interface Answer {
  readonly result?: unknown
  readonly error?: { readonly code: number; readonly message: string; readonly data?: readonly object[] }
}

async function rpc(
  method: string,
  params: unknown,
  headers: Record<string, string> = V1,
  name = 'greeter',
): Promise<Answer> {
  const body = { jsonrpc: '2.0', id: 1, method, params }
  const answer = await setting.post(`/a2a/${name}/`, body, { token, headers })
  expect(answer.status).toBe(200)
  return (await answer.json()) as Answer
}

function said(parts: readonly object[] = [{ text: 'Hi' }], more: object = {}) {
  return { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts, ...more }
}

interface Row {
  readonly method: string
  readonly params: () => unknown
  readonly code: number
  readonly reason?: string
  readonly headers?: Record<string, string>
  readonly agent?: string
}

const push = () => ({ taskId: UNKNOWN, url: 'https://hooks.example/a2a' })
const file = { raw: 'dGNr', mediaType: 'application/x-unknown' }
const ROWS: readonly Row[] = [
  { method: 'GetTask', params: () => ({ id: UNKNOWN }), code: -32001, reason: 'TASK_NOT_FOUND' },
  { method: 'GetTask', params: () => ({ id: 'no id' }), code: -32001, reason: 'TASK_NOT_FOUND' },
  { method: 'CancelTask', params: () => ({ id: UNKNOWN }), code: -32001, reason: 'TASK_NOT_FOUND' },
  { method: 'SubscribeToTask', params: () => ({ id: UNKNOWN }), code: -32001, reason: 'TASK_NOT_FOUND' },
  { method: 'CreateTaskPushNotificationConfig', params: push, code: -32001, reason: 'TASK_NOT_FOUND' },
  { method: 'SendMessage', params: () => ({ message: said(undefined, { taskId: UNKNOWN }) }), code: -32001 },
  { method: 'SendStreamingMessage', params: () => ({ message: said(undefined, { taskId: UNKNOWN }) }), code: -32001 },
  { method: 'CancelTask', params: () => ({ id: done }), code: -32002, reason: 'TASK_NOT_CANCELABLE' },
  {
    method: 'SendMessage',
    params: () => ({ message: said(undefined, { taskId: done }) }),
    code: -32004,
    reason: 'UNSUPPORTED_OPERATION',
  },
  { method: 'SubscribeToTask', params: () => ({ id: done }), code: -32004, reason: 'UNSUPPORTED_OPERATION' },
  { method: 'GetExtendedAgentCard', params: () => ({}), code: -32004, reason: 'UNSUPPORTED_OPERATION' },
  {
    method: 'SendMessage',
    params: () => ({ message: said([file]) }),
    code: -32005,
    reason: 'CONTENT_TYPE_NOT_SUPPORTED',
  },
  { method: 'SendMessage', params: () => ({ message: said([{ url: 'http://127.0.0.1/' }]) }), code: -32005 },
  { method: 'SendMessage', params: () => ({ message: said([file]) }), code: -32005, agent: 'picky' },
  { method: 'GetTask', params: () => ({ id: done }), headers: {}, code: -32009, reason: 'VERSION_NOT_SUPPORTED' },
  { method: 'GetTask', params: () => ({ id: done }), headers: { 'a2a-version': '0.3' }, code: -32009 },
  { method: 'GetTask', params: () => ({ id: done }), headers: { 'a2a-version': '99.0' }, code: -32009 },
  { method: 'SendMessage', params: () => ({}), code: -32602 },
  { method: 'SendMessage', params: () => ({ message: said([]) }), code: -32602 },
  { method: 'SendMessage', params: () => ({ message: said(undefined, { messageId: '' }) }), code: -32602 },
  { method: 'SendMessage', params: () => ({ message: said(undefined, { contextId: 'mine' }) }), code: -32602 },
  { method: 'SendMessage', params: () => ({ message: said(undefined, { role: 'ROLE_AGENT' }) }), code: -32602 },
  { method: 'SendMessage', params: () => ({ message: said([{ data: { b: 1 } }]) }), code: -32602, agent: 'picky' },
  { method: 'ListTasks', params: () => ({ pageSize: 1_000 }), code: -32602 },
  { method: 'ListTasks', params: () => ({ pageToken: 'nonsense' }), code: -32602 },
  { method: 'ListTasks', params: () => [], code: -32602 },
  { method: 'tasks/get', params: () => ({ id: done }), code: -32601 },
  { method: '', params: () => ({}), code: -32600 },
]

describe('every error has its code', () => {
  test.each(ROWS.map((row) => [row.code, row.method, row] as const))('%s for %s', async (code, method, row) => {
    const { result, error } = await rpc(method, row.params(), row.headers, row.agent)

    expect([result, error?.code]).toEqual([undefined, code])
    if (row.reason === undefined) return
    const info = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: row.reason, domain: 'a2a-protocol.org' }
    expect(error?.data).toEqual([info])
  })
})

test.each([
  ['{', 400, -32700],
  ['"text"', 200, -32600],
  ['[]', 200, -32600],
])('a message that is not a request of JSON-RPC has its code: %s', async (body, status, code) => {
  const headers = { ...V1, authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const answer = await fetch(`${setting.server.url}/a2a/greeter`, { method: 'POST', headers, body })
  expect([answer.status, await answer.json()]).toMatchObject([status, { jsonrpc: '2.0', id: null, error: { code } }])
})

test('over HTTP+JSON the same errors have a status and the form of google.rpc.Status', async () => {
  const missing = await setting.get(`/a2a/greeter/tasks/${UNKNOWN}`, { token, headers: V1 })
  expect([missing.status, missing.headers.get('content-type')]).toEqual([404, 'application/json'])
  expect(await missing.json()).toMatchObject({ error: { code: 404, details: [{ reason: 'TASK_NOT_FOUND' }] } })
  const old = await setting.get(`/a2a/greeter/tasks/${UNKNOWN}`, { token })
  expect([old.status, await old.json()]).toMatchObject([
    400,
    { error: { details: [{ reason: 'VERSION_NOT_SUPPORTED' }] } },
  ])
  const over = await setting.post(`/a2a/greeter/tasks/${done}:cancel`, {}, { token, headers: V1 })
  expect(await over.json()).toMatchObject({ error: { details: [{ reason: 'TASK_NOT_CANCELABLE' }] } })
})

test('who lacks a scope is refused, whatever the binding', async () => {
  const reader = await setting.tokenFor({ id: 'ann', scopes: ['read'] })
  const body = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message: said() } }
  const answer = await setting.post('/a2a/greeter', body, { token: reader, headers: V1 })

  expect([answer.status, await answer.json()]).toMatchObject([403, { code: 'denied' }])
  const stream = { ...body, method: 'SendStreamingMessage' }
  expect((await setting.post('/a2a/greeter', stream, { token: reader, headers: V1 })).status).toBe(403)
  expect(
    (await setting.post('/a2a/greeter/message:send', { message: said() }, { token: reader, headers: V1 })).status,
  ).toBe(403)
})

test.each([
  ['CreateTaskPushNotificationConfig', () => ({ taskId: done, url: 'https://hooks.example/a2a' })],
  ['DeleteTaskPushNotificationConfig', () => ({ taskId: done, id: done })],
  ['CancelTask', () => ({ id: done })],
])('a token that only reads may not %s', async (method, params) => {
  const reader = await setting.tokenFor({ id: 'ann', scopes: ['read'] })
  const body = { jsonrpc: '2.0', id: 1, method, params: params() }
  const answer = await setting.post('/a2a/greeter', body, { token: reader, headers: V1 })
  expect([answer.status, await answer.json()]).toMatchObject([403, { code: 'denied' }])
})

test('a message whose push notification is refused begins nothing', async () => {
  const before = (await setting.runtime.runs()).length
  const configuration = { taskPushNotificationConfig: { url: 'https://127.0.0.1/inside' } }
  expect((await rpc('SendMessage', { message: said(), configuration })).error?.code).toBe(-32602)
  const nameless = { taskPushNotificationConfig: { url: '' } }
  expect((await rpc('SendMessage', { message: said(), configuration: nameless })).error?.code).toBe(-32602)
  expect(await setting.runtime.runs()).toHaveLength(before)
})

test('cards are kept by their ETag, and one stands for the server', async () => {
  const own = await setting.get('/a2a/picky/.well-known/agent-card.json', { token })
  const etag = own.headers.get('etag') ?? ''
  expect(own.headers.get('cache-control')).toMatch(/max-age/)
  expect(Date.parse(own.headers.get('last-modified') ?? '')).toBeLessThanOrEqual(Date.now())
  expect(await own.json()).toMatchObject({ name: 'picky', securitySchemes: { bearer: {} }, skills: [{ id: 'picky' }] })
  const again = await setting.get('/a2a/picky/.well-known/agent-card.json', {
    token,
    headers: { 'if-none-match': etag },
  })
  expect([again.status, await again.text()]).toEqual([304, ''])
  expect(await (await setting.get('/.well-known/agent-card.json', { token })).json()).toMatchObject({ name: 'greeter' })
  expect((await setting.get('/a2a/nobody/.well-known/agent-card.json', { token })).status).toBe(404)
  expect((await setting.get('/.well-known/agent-card.json', { token: null })).status).toBe(401)
})
