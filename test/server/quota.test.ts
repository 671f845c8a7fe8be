import type { Principal } from 'legate'
import { connect } from 'legate/client'
import { expect, test } from 'vitest'
import { startServer } from './support/server.ts'

const ann: Principal = { id: 'ann', scopes: ['start', 'read'], perDay: { runs: 0 } }
const V1 = { 'a2a-version': '1.0' }

const text = 'Hello.'
const chat = { id: 'chat-1', messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text }] }] }
const thread = { threadId: 't', runId: 'r', messages: [{ id: 'm1', role: 'user', content: text }] }
const message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text }] }
const rpc = { jsonrpc: '2.0', id: 1 }

test.each([
  ['REST', '/v1/runs', { agent: 'greeter', input: text }, {}],
  ['a stream', '/v1/runs', { agent: 'greeter', input: text }, { accept: 'text/event-stream' }],
  ['useChat', '/ai-sdk/greeter', { ...chat, trigger: 'submit-message' }, {}],
  ['AG-UI', '/ag-ui/greeter', thread, {}],
  ['A2A over JSON-RPC', '/a2a/greeter/', { ...rpc, method: 'SendMessage', params: { message } }, V1],
  ['A2A over HTTP', '/a2a/greeter/message:send', { message }, V1],
])(
  '%s refuses a run over the limit of a day with 429, the seconds that are left, and the name of the limit',
  async (...of) => {
    const [, path, body, headers] = of
    await using setting = await startServer()
    const token = await setting.tokenFor(ann)

    const got = await setting.post(path, body, { token, headers })

    expect(got.status).toBe(429)
    const seconds = Number(got.headers.get('retry-after'))
    expect(seconds).toBeGreaterThan(0)
    expect(seconds).toBeLessThanOrEqual(86_400)
    expect(await got.json()).toMatchObject({ code: 'over_quota', details: { limit: 'perDay.runs', owner: 'ann' } })
  },
)

test('the model that calls over MCP reads which limit of the day is used up', async () => {
  await using setting = await startServer()
  const token = await setting.tokenFor(ann)
  const params = { name: 'greeter', arguments: { message: text } }

  const got = await setting.post('/mcp', { ...rpc, method: 'tools/call', params }, { token })

  expect(await got.text()).toContain('over_quota: ann has had its 0 runs of today.')
})

test('the client throws an error with the code, the wait and the limit', async () => {
  await using setting = await startServer()
  const client = connect({ url: setting.server.url, token: await setting.tokenFor(ann) })

  const refused = await client.run('greeter', text).catch((error: unknown) => error)

  expect(refused).toMatchObject({ status: 429, code: 'over_quota', details: { limit: 'perDay.runs' } })
  expect((refused as { retryAfterMs: number }).retryAfterMs).toBeGreaterThan(0)
})
