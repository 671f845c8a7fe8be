import { agent, type Principal, tool } from 'legate'
import { jsonStore } from 'legate/store/json'
import { memoryStore } from 'legate/store/memory'
import { sqliteStore } from 'legate/store/sqlite'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { tempFolder } from '../support/temp-folder.ts'
import { type Arrived, Receiver, verified } from './support/receiver.ts'
import { greeter, type Setting, startServer } from './support/server.ts'

const ann: Principal = { id: 'ann', scopes: ['start', 'read', 'approve'] }
const FAST = { allowPrivate: true, retryMs: Array<number>(60).fill(100), timeoutMs: 500, leaseMs: 2_000 }

const deploy = tool({ description: 'Deploys.', input: { type: 'object' }, effect: 'effectful', execute: () => 'ok' })
function careful() {
  return agent({
    name: 'careful',
    instructions: 'Deploy.',
    model: scriptedModel([{ calls: [{ name: 'deploy', input: { secret: 'xyzzy' } }] }, 'Deployed.']),
    tools: { deploy },
    grant: { use: ['tool:*', 'model:*'], ask: ['tool:deploy'] },
  })
}

interface Made {
  readonly webhook: { readonly id: string }
  readonly secret: string
}

async function makeHook(setting: Setting, body: object, token: string): Promise<Made> {
  const answer = await setting.post('/v1/webhooks', body, { token })
  expect(answer.status).toBe(201)
  return (await answer.json()) as Made
}

async function run(setting: Setting, token: string, agentName = 'greeter'): Promise<string> {
  const wait = agentName === 'greeter' ? '?wait=10' : ''
  const made = await setting.post(`/v1/runs${wait}`, { agent: agentName, input: 'Hi' }, { token })
  return ((await made.json()) as { conversationId: string }).conversationId
}

async function listed(setting: Setting, path: string, token: string): Promise<Record<string, unknown>[]> {
  const body = (await (await setting.get(path, { token })).json()) as Record<string, Record<string, unknown>[]>
  return Object.values(body).find(Array.isArray) ?? []
}

const ended = (arrived: readonly Arrived[]) => arrived.filter(({ body }) => body.type === 'run.ended')
const rootOf = ({ body }: Arrived) => body.data['rootId']
const stores = {
  memory: () => memoryStore(),
  SQLite: () => sqliteStore(`${tempFolder()}/rows.db`),
  JSON: () => jsonStore(`${tempFolder()}/rows`),
}

describe.each(Object.entries(stores))('webhooks of a store in %s', (_, open) => {
  test('tell what happened, signed, once, without a word that anybody said', async () => {
    await using receiver = await new Receiver().listen()
    await using setting = await startServer({ webhooks: FAST }, { agents: [greeter, careful()], store: open() })
    const [own, other] = [await setting.tokenFor(ann), await setting.tokenFor({ ...ann, id: 'bob' })]
    await run(setting, own)
    const types = ['run.ended', 'run.waiting', 'approval.requested']
    const { secret, webhook } = await makeHook(setting, { url: receiver.url, types }, own)
    await run(setting, other)
    const first = await run(setting, own)
    const second = await run(setting, own, 'careful')
    await receiver.until((arrived) => arrived.length >= 3)
    const [approval] = (await listed(setting, '/v1/approvals', own)) as { nodeId: string; seen: string }[]
    await setting.post(`/v1/approvals/${approval?.nodeId}`, { allow: true, seen: approval?.seen }, { token: own })
    const arrived = await receiver.until((some) => ended(some).length >= 2)

    expect(secret).toMatch(/^whsec_/)
    const bodies = arrived.map((one) => verified(secret, one))
    expect(() => verified(`whsec_${Buffer.from('no').toString('base64')}`, arrived[0] as Arrived)).toThrow()
    expect(bodies.map(({ type, data }) => [type, data['rootId'], data['status'], data['why']])).toEqual([
      ['run.ended', first, 'completed', null],
      ['run.waiting', second, 'waiting', 'approval'],
      ['approval.requested', second, 'waiting', 'approval'],
      ['run.ended', second, 'completed', null],
    ])
    expect(bodies[2]?.data).toMatchObject({ tool: 'deploy', nodeId: approval?.nodeId, owner: 'ann', agent: 'careful' })
    expect(JSON.stringify(arrived)).not.toMatch(/xyzzy|Hello|Deployed|bob/)
    expect(new Set(arrived.map(({ headers }) => headers['webhook-id'])).size).toBe(4)
    const deliveries = await listed(setting, `/v1/webhooks/${webhook.id}/deliveries`, own)
    expect(deliveries.map(({ state, attempts }) => [state, attempts])).toEqual(Array(4).fill(['delivered', 1]))
  })
})

test('with `include`, a message has the outcome', async () => {
  await using receiver = await new Receiver().listen()
  await using setting = await startServer({ webhooks: FAST })
  const token = await setting.tokenFor(ann)
  await makeHook(setting, { url: receiver.url, types: ['run.ended'], include: 'outcome' }, token)
  await run(setting, token)

  const [first] = await receiver.until((arrived) => arrived.length > 0)

  expect(first?.body.data['outcome']).toMatchObject({ status: 'completed', text: 'Hello there, friend.' })
})

test('a receiver that was down gets each message once, in the order of its tree', async () => {
  await using setting = await startServer({ webhooks: FAST })
  const token = await setting.tokenFor(ann)
  const down = await new Receiver().listen()
  const { url } = down
  await down.close()
  await makeHook(setting, { url, types: ['run.ended'] }, token)
  const tree = await run(setting, token)
  for (const input of ['2', '3', '4']) {
    await setting.post(`/v1/conversations/${tree}/messages?wait=10`, { input }, { token })
  }
  const others = [await run(setting, token), await run(setting, token)]

  await using receiver = await new Receiver().listen(Number(new URL(url).port))
  const arrived = await receiver.until((some) => some.length >= 6)
  await new Promise((resolve) => setTimeout(resolve, 500))

  expect(arrived).toHaveLength(6)
  const seqs = arrived.filter((one) => rootOf(one) === tree).map(({ body }) => Number(body.data['seq']))
  expect(seqs).toEqual(seqs.toSorted((a, b) => a - b))
  expect(seqs).toHaveLength(4)
  expect(new Set(arrived.map(rootOf))).toEqual(new Set([tree, ...others]))
})

test('a message that fails holds up its own tree only, and is tried again under the same id', async () => {
  await using receiver = await new Receiver().listen()
  await using setting = await startServer({ webhooks: FAST })
  const token = await setting.tokenFor(ann)
  await makeHook(setting, { url: receiver.url, types: ['run.ended'] }, token)
  let bad: unknown
  receiver.manner = (one) => {
    bad ??= rootOf(one)
    return rootOf(one) === bad && receiver.arrived.filter((other) => rootOf(other) === bad).length < 3 ? 500 : 200
  }
  const first = await run(setting, token)
  await run(setting, token)

  const arrived = await receiver.until((some) => some.length >= 4)

  const tries = arrived.filter((one) => rootOf(one) === first)
  expect(tries).toHaveLength(3)
  expect(new Set(tries.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
})

test('a webhook that fails too often is disabled, says so, and can be enabled again', async () => {
  await using receiver = await new Receiver().listen()
  receiver.manner = () => 503
  const reported: string[] = []
  const report = (error: unknown) => reported.push(String(error))
  await using setting = await startServer({ webhooks: { ...FAST, retryMs: [20, 20] }, report })
  const token = await setting.tokenFor(ann)
  const { webhook } = await makeHook(setting, { url: receiver.url, types: ['run.ended'] }, token)
  await run(setting, token)
  await receiver.until((arrived) => arrived.length >= 3)
  await expect.poll(() => reported.length).toBe(1)
  await run(setting, token)
  await new Promise((resolve) => setTimeout(resolve, 600))

  expect(receiver.arrived).toHaveLength(3)
  expect(reported).toEqual([expect.stringMatching(/disabled.*failed 3 times.*answered 503/)])
  const [hook] = await listed(setting, '/v1/webhooks', token)
  expect(hook).toMatchObject({ id: webhook.id, disabled: { reason: expect.stringContaining('503') } })
  const path = `/v1/webhooks/${webhook.id}/deliveries`
  const [failed] = await listed(setting, path, token)
  expect(failed).toMatchObject({ state: 'failed', attempts: 3, last: { status: 503 } })
  receiver.manner = () => 200
  const again = await setting.post(`${path}/${String(failed?.['id'])}/again`, {}, { token })
  expect(again.status).toBe(202)
  const arrived = await receiver.until((some) => some.length >= 4)
  expect(arrived[3]?.headers['webhook-id']).toBe(arrived[0]?.headers['webhook-id'])
  expect(await listed(setting, '/v1/webhooks', token)).toMatchObject([{ disabled: null }])
})

test('a redirect is not followed, a silent receiver is left, and a long answer is cut', async () => {
  await using elsewhere = await new Receiver().listen()
  await using receiver = await new Receiver().listen()
  await using setting = await startServer({ webhooks: FAST })
  const token = await setting.tokenFor(ann)
  const { webhook } = await makeHook(setting, { url: receiver.url, types: ['run.ended'] }, token)
  receiver.headers = { location: elsewhere.url }
  receiver.manner = (_, nth) => ([302, 'silent'] as const)[nth - 1] ?? 200
  await run(setting, token)
  await receiver.until((arrived) => arrived.length >= 3)

  expect(elsewhere.arrived).toEqual([])
  await expect
    .poll(() => listed(setting, `/v1/webhooks/${webhook.id}/deliveries`, token))
    .toMatchObject([{ state: 'delivered', attempts: 3 }])
})

test('webhooks of others are unknown, an admin sees all, and a webhook ends with its token', async () => {
  await using receiver = await new Receiver().listen()
  const reported: string[] = []
  await using setting = await startServer({ webhooks: FAST, report: (error) => reported.push(String(error)) })
  const [own, other] = [await setting.tokenFor(ann), await setting.tokenFor({ ...ann, id: 'bob' })]
  const { webhook } = await makeHook(setting, { url: receiver.url, types: ['run.ended'] }, own)
  const path = `/v1/webhooks/${webhook.id}`

  expect(await listed(setting, '/v1/webhooks', other)).toEqual([])
  for (const [method, place] of [
    ['GET', path],
    ['DELETE', path],
    ['GET', `${path}/deliveries`],
  ] as const) {
    const [foreign, unknown] = [place, place.replace(webhook.id, '0123456789abcdef')].map((at) =>
      setting.get(at, { token: other, method }),
    )
    expect((await foreign)?.status).toBe(404)
    expect(((await (await foreign)?.text()) ?? '').replace(webhook.id, '0123456789abcdef')).toBe(
      await (await unknown)?.text(),
    )
  }
  expect(await listed(setting, '/v1/webhooks', setting.token)).toHaveLength(1)
  expect(JSON.stringify(await listed(setting, '/v1/webhooks', setting.token))).not.toMatch('whsec_')
  const reader = await setting.tokenFor({ id: 'ann', scopes: ['read'] })
  expect(
    (await setting.post('/v1/webhooks', { url: receiver.url, types: ['run.ended'] }, { token: reader })).status,
  ).toBe(403)
  await setting.get(`/v1/tokens/${own.split('_')[1]}`, { method: 'DELETE' })
  await run(setting, await setting.tokenFor(ann))
  await expect.poll(() => reported, { timeout: 5_000 }).toEqual([expect.stringMatching(/token that made it is gone/)])
  expect(receiver.arrived).toEqual([])
})

test('two servers on one store send each message once, and one goes on where the other closed', async () => {
  await using receiver = await new Receiver().listen()
  const file = `${tempFolder()}/rows.db`
  const second = await startServer({ webhooks: FAST }, { agents: [greeter], store: sqliteStore(file) })
  await using setting = await startServer({ webhooks: FAST }, { agents: [greeter], store: sqliteStore(file) })
  const token = await setting.tokenFor(ann)
  await makeHook(setting, { url: receiver.url, types: ['run.ended'] }, token)
  receiver.manner = async () => {
    await new Promise((resolve) => setTimeout(resolve, 30))
    return 200
  }
  for (let n = 0; n < 6; n++) await run(n % 2 === 0 ? setting : second, token)
  await receiver.until((arrived) => arrived.length >= 6)
  await second.server.close()
  await second.runtime.close()
  for (let n = 0; n < 3; n++) await run(setting, token)
  await receiver.until((arrived) => arrived.length >= 9)
  await new Promise((resolve) => setTimeout(resolve, 500))

  expect(receiver.arrived).toHaveLength(9)
  expect(new Set(receiver.arrived.map(({ headers }) => headers['webhook-id'])).size).toBe(9)
})

test('a server that closes lets what it is sending end', async () => {
  await using receiver = await new Receiver().listen()
  const store = memoryStore()
  const setting = await startServer({ webhooks: FAST }, { agents: [greeter], store })
  const token = await setting.tokenFor(ann)
  await makeHook(setting, { url: receiver.url, types: ['run.ended'] }, token)
  receiver.manner = async () => {
    await new Promise((resolve) => setTimeout(resolve, 300))
    return 200
  }
  await run(setting, token)
  await receiver.until((arrived) => arrived.length > 0)
  await setting.server.close()

  expect(await store.registry.list('delivery', { limit: 9 })).toEqual([])
  expect(await store.registry.list('delivered', { limit: 9 })).toMatchObject([{ data: { state: 'delivered' } }])
  expect(await store.registry.get('lease', 'upkeep')).toMatchObject({ data: { holder: null } })
  await setting[Symbol.asyncDispose]()
})

test('forgetting an owner drops its webhooks and what was to be told about its runs', async () => {
  await using setting = await startServer({ webhooks: { ...FAST, retryMs: [60_000] } })
  const token = await setting.tokenFor(ann)
  const url = 'http://127.0.0.1:9/hook'
  await makeHook(setting, { url, types: ['run.ended'] }, token)
  const { webhook } = await makeHook(setting, { url, types: ['run.ended'] }, setting.token)
  await run(setting, token)
  const path = `/v1/webhooks/${webhook.id}/deliveries`
  await expect.poll(() => listed(setting, path, setting.token)).toHaveLength(1)

  expect((await setting.get('/v1/owners/ann', { method: 'DELETE' })).status).toBe(200)

  expect(await listed(setting, path, setting.token)).toEqual([])
  expect(await listed(setting, '/v1/webhooks', setting.token)).toMatchObject([{ id: webhook.id }])
  await expect.poll(async () => (await setting.get('/v1', { token })).status, { timeout: 3_000 }).toBe(401)
})
