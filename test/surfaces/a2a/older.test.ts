// Peers that speak A2A 0.3, and what a task says of the messages and files that were sent.

import { agent, type Principal } from 'legate'
import { scriptedModel } from 'legate/testing'
import { expect, onTestFinished, test } from 'vitest'
import { greeter, type Setting, startServer } from '../../server/support/server.ts'
import { askedOlder, foreignSdk } from './support/older-client.ts'

const ANN: Principal = { id: 'ann', scopes: ['start', 'read', 'cancel', 'approve'] }

const asker = agent({
  name: 'asker',
  effect: 'idempotent',
  reply: async (_, { ask }) => `You said ${await ask('Which city?')}.`,
})

const painter = agent({
  name: 'painter',
  instructions: 'Paint.',
  model: scriptedModel(() => ({
    blocks: [{ type: 'file', mediaType: 'application/pdf', data: 'QUJD', filename: 'offer.pdf' }],
  })),
})

async function opened(): Promise<{ setting: Setting; token: string }> {
  const setting = await startServer({}, { agents: [greeter, asker, painter] })
  onTestFinished(() => setting[Symbol.asyncDispose]())
  return { setting, token: await setting.tokenFor(ANN) }
}

const message = (text: string, more: object = {}) => {
  return {
    message: {
      kind: 'message',
      role: 'user',
      messageId: crypto.randomUUID(),
      parts: [{ kind: 'text', text }],
      ...more,
    },
  }
}

test('a peer of 0.3 sends, reads, answers, streams and cancels without a header', async () => {
  const { setting, token } = await opened()
  const { ask, stream } = askedOlder(`${setting.server.url}/a2a/asker`, token)
  const blocking = { configuration: { blocking: true } }

  const { result: task } = await ask('message/send', { ...message('Offer.'), ...blocking })
  expect(task).toMatchObject({ kind: 'task', status: { state: 'input-required' } })
  const { result: done } = await ask('message/send', { ...message('Bern', { taskId: task?.['id'] }), ...blocking })
  expect(done).toMatchObject({ id: task?.['id'], status: { state: 'completed' } })
  expect(JSON.stringify(done?.['artifacts'])).toContain('You said Bern.')
  expect((await ask('tasks/get', { id: task?.['id'] })).result).toMatchObject({ kind: 'task', id: task?.['id'] })

  const seen = await stream('message/stream', message('Again.'))
  expect(seen.map(({ result }) => result?.['kind'])).toEqual(expect.arrayContaining(['task', 'status-update']))
  const open = String(seen[0]?.result?.['id'])
  expect((await ask('tasks/cancel', { id: open })).result).toMatchObject({ status: { state: 'canceled' } })
})

test('errors have the codes of 0.3, and words of 1.0 without a version are still asked for it', async () => {
  const { setting, token } = await opened()
  const { ask } = askedOlder(`${setting.server.url}/a2a/asker`, token)

  expect((await ask('tasks/get', { id: '01890000-0000-7000-8000-00000000dead' })).error?.code).toBe(-32_001)
  expect((await ask('tasks/nonsense', {})).error?.code).toBe(-32_601)
  const missing = await ask('GetTask', { id: 'x' })
  expect(missing.error).toMatchObject({ code: -32_009, message: expect.stringContaining('A2A-Version is missing') })
  const other = askedOlder(
    `${setting.server.url}/a2a/asker`,
    await setting.tokenFor({ ...ANN, id: 'eve', scopes: ['read'] }),
  )
  expect((await other.ask('message/send', message('x'))).status).toBe(403)
})

test('a peer of 0.3 has a card in its form', async () => {
  const { setting, token } = await opened()
  const place = `${setting.server.url}/a2a/asker`
  const card = await setting.get('/a2a/asker/v0.3/.well-known/agent-card.json', { token })

  expect(await card.json()).toMatchObject({
    name: 'asker',
    url: place,
    protocolVersion: '0.3.0',
    preferredTransport: 'JSONRPC',
    capabilities: { streaming: true },
    securitySchemes: { bearer: { type: 'http', scheme: 'Bearer' } },
    security: [{ bearer: [] }],
  })
})

test('the official client of 0.3 talks to an agent', async ({ skip }) => {
  const sdk = await foreignSdk()
  if (sdk === undefined) return skip('node scripts/protocols.mjs runs it')
  const { setting, token } = await opened()
  const fetchImpl: typeof fetch = (input, init) => {
    const headers = new Headers(init?.headers)
    headers.set('authorization', `Bearer ${token}`)
    return fetch(input, { ...init, headers })
  }
  const card = `${setting.server.url}/a2a/greeter/v0.3/.well-known/agent-card.json`
  const client = await sdk.A2AClient.fromCardUrl(card, { fetchImpl })
  const answer = await client.sendMessage({ ...message('Hi'), configuration: { blocking: true } })

  expect(answer.result).toMatchObject({ kind: 'task', status: { state: 'completed' } })
})

test('a message comes back under the id that its sender gave it, and a file with its name', async () => {
  const { setting, token } = await opened()
  const call = async (method: string, params: object) => {
    const headers = { 'a2a-version': '1.0' }
    const answer = await setting.post('/a2a/painter', { jsonrpc: '2.0', id: 1, method, params } as never, {
      token,
      headers,
    })
    return ((await answer.json()) as { result: { task?: object } }).result
  }
  const file = { raw: 'QUJD', mediaType: 'application/pdf', filename: 'wish.pdf' }
  const sent = { messageId: 'same-1', role: 'ROLE_USER', parts: [{ text: 'Paint.' }, file] }
  const { task } = await call('SendMessage', { message: sent })

  expect(task).toMatchObject({
    history: [{ messageId: 'same-1', parts: [{ text: 'Paint.' }, file] }, { role: 'ROLE_AGENT' }],
    artifacts: [{ parts: [{ raw: 'QUJD', mediaType: 'application/pdf', filename: 'offer.pdf' }] }],
  })
  const { id } = task as { id: string }
  expect(await call('GetTask', { id })).toMatchObject({ history: [{ messageId: 'same-1' }, {}] })
})
