import { agent, type Principal } from 'legate'
import { memoryStore } from 'legate/store/memory'
import { sqliteStore } from 'legate/store/sqlite'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { tempFolder } from '../support/temp-folder.ts'
import { Receiver } from './support/receiver.ts'
import { greeter, type Setting, startServer } from './support/server.ts'

const FAST = { allowPrivate: true, retryMs: Array<number>(60).fill(100), timeoutMs: 2_000, leaseMs: 2_000 }
const echo = agent({ name: 'echo', instructions: 'Say it again.', model: scriptedModel(() => ({ text: 'Echo.' })) })
const lea: Principal = { id: 'lea', scopes: ['start', 'read', 'delete', 'cancel'], sees: ['lea', 'ann'] }
const ci = { scopes: ['start', 'read', 'delete'], agents: ['echo'] }

type Row = Readonly<Record<string, unknown>>

async function listed(setting: Setting, path: string, token: string): Promise<readonly Row[]> {
  const body = (await (await setting.get(path, { token })).json()) as Record<string, Row[]>
  return Object.values(body).find(Array.isArray) ?? []
}

async function made(setting: Setting, token: string, principal: object): Promise<string> {
  const answer = await setting.post('/v1/tokens', { principal }, { token })
  expect(answer.status).toBe(201)
  return ((await answer.json()) as { token: string }).token
}

async function hookOf(setting: Setting, token: string, url: string, more: object = {}): Promise<string> {
  const answer = await setting.post('/v1/webhooks', { url, types: ['run.ended'], ...more }, { token })
  expect(answer.status).toBe(201)
  return ((await answer.json()) as { webhook: { id: string } }).webhook.id
}

async function run(setting: Setting, token: string, agentName = 'greeter'): Promise<string> {
  const answer = await setting.post('/v1/runs?wait=10', { agent: agentName, input: 'Hi' }, { token })
  return ((await answer.json()) as { conversationId: string }).conversationId
}

const idIn = (token: string) => token.split('_')[1] ?? ''

async function revoke(setting: Setting, token: string): Promise<void> {
  expect((await setting.get(`/v1/tokens/${idIn(token)}`, { method: 'DELETE' })).status).toBe(200)
}

const agents = [greeter, echo]

describe('a webhook belongs to the token that made it', () => {
  test('a narrower token of the same id does not know of it, and reads nothing that it was sent', async () => {
    await using receiver = await new Receiver().listen()
    await using setting = await startServer({ webhooks: FAST }, { agents })
    const wide = await setting.tokenFor(lea)
    const ann = await setting.tokenFor({ id: 'ann', scopes: ['start', 'read'] })
    const narrow = await made(setting, wide, ci)
    const sibling = await setting.tokenFor(lea)
    const id = await hookOf(setting, wide, receiver.url, { include: 'outcome' })
    await run(setting, ann)
    await run(setting, wide)
    await receiver.until((arrived) => arrived.length >= 2)

    for (const token of [narrow, sibling, ann]) {
      expect(await listed(setting, '/v1/webhooks', token)).toEqual([])
      for (const [method, path] of [
        ['GET', ''],
        ['GET', '/deliveries'],
        ['DELETE', ''],
      ] as const) {
        const [known, unknown] = await Promise.all(
          [id, '0123456789abcdef'].map((one) => setting.get(`/v1/webhooks/${one}${path}`, { token, method })),
        )
        if (token === ann && method === 'DELETE') expect(known?.status).toBe(404)
        expect((await known?.text())?.replaceAll(id, '0123456789abcdef')).toBe(await unknown?.text())
      }
    }
    const [delivery] = await listed(setting, `/v1/webhooks/${id}/deliveries`, wide)
    const path = `/v1/webhooks/${id}/deliveries/${String(delivery?.['id'])}/again`
    expect((await setting.post(path, {}, { token: narrow })).status).toBe(404)
    expect((await setting.post(path, {}, { token: wide })).status).toBe(202)
    expect(JSON.stringify(await listed(setting, `/v1/webhooks/${id}/deliveries`, wide))).not.toMatch(/Hello/)
  })

  test('the token above it and admins who see its owner know of it, before and after it is revoked', async () => {
    await using receiver = await new Receiver().listen()
    await using setting = await startServer({ webhooks: FAST, report: () => undefined }, { agents })
    const wide = await setting.tokenFor(lea)
    const narrow = await made(setting, wide, ci)
    const sibling = await setting.tokenFor(lea)
    const id = await hookOf(setting, narrow, receiver.url)
    const idsOf = async (token: string) => (await listed(setting, '/v1/webhooks', token)).map((one) => one['id'])
    const stranger = await setting.tokenFor({ id: 'root', scopes: ['admin', 'read'], sees: ['bob'] })

    expect(await Promise.all([narrow, wide, setting.token, sibling, stranger].map(idsOf))).toEqual([
      [id],
      [id],
      [id],
      [],
      [],
    ])
    await revoke(setting, narrow)
    expect(await Promise.all([wide, setting.token, sibling].map(idsOf))).toEqual([[id], [id], []])
    await revoke(setting, wide)
    // Nobody of its line is left: it belongs to who has the id and reads as much.
    const again = await setting.tokenFor({ id: 'lea', scopes: ['start', 'read', 'delete'] })
    const poor = await setting.tokenFor({ id: 'lea', scopes: ['read'] })
    expect(await Promise.all([again, poor, setting.token].map(idsOf))).toEqual([[id], [], [id]])
    expect((await setting.get(`/v1/webhooks/${id}`, { token: again, method: 'DELETE' })).status).toBe(204)
  })

  test('deliveries about trees that the caller does not see are not shown', async () => {
    await using receiver = await new Receiver().listen()
    await using setting = await startServer({ webhooks: FAST }, { agents })
    const wide = await setting.tokenFor(lea)
    const ann = await setting.tokenFor({ id: 'ann', scopes: ['start', 'read'] })
    const admin = await setting.tokenFor({ id: 'admin', scopes: ['admin', 'read', 'start'], sees: ['lea'] })
    const echoes = await setting.tokenFor({
      id: 'admin',
      scopes: ['admin', 'read'],
      sees: ['lea', 'ann'],
      agents: ['echo'],
    })
    const id = await hookOf(setting, wide, receiver.url)
    const [foreign, own, other] = [await run(setting, ann), await run(setting, wide), await run(setting, wide, 'echo')]
    await receiver.until((arrived) => arrived.length >= 3)
    const treesOf = async (token: string) =>
      (await listed(setting, `/v1/webhooks/${id}/deliveries`, token)).map((one) => one['rootId'])

    await expect.poll(() => treesOf(wide)).toEqual([other, own, foreign])
    expect(await treesOf(admin)).toEqual([other, own])
    // An admin of some agents looks after no owner as a whole.
    expect(await treesOf(echoes)).toEqual([])
    const all = await listed(setting, `/v1/webhooks/${id}/deliveries`, wide)
    const path = `/v1/webhooks/${id}/deliveries/${String(all[2]?.['id'])}/again`
    expect((await setting.post(path, {}, { token: admin })).status).toBe(404)
  })

  test('deliveries are listed page by page, the newest first', async () => {
    await using setting = await startServer({ webhooks: { ...FAST, retryMs: [60_000] } }, { agents })
    const token = await setting.tokenFor(lea)
    const id = await hookOf(setting, token, 'http://127.0.0.1:9/')
    const trees: string[] = []
    for (let n = 0; n < 5; n++) trees.push(await run(setting, token))
    const path = `/v1/webhooks/${id}/deliveries`
    await expect.poll(async () => (await listed(setting, path, token)).length).toBe(5)

    const found: unknown[] = []
    let next: string | null = ''
    for (let pages = 0; next !== null; pages++) {
      expect(pages).toBeLessThan(4)
      const answer: Response = await setting.get(`${path}?limit=2${next === '' ? '' : `&before=${next}`}`, { token })
      const page = (await answer.json()) as { deliveries: Row[]; next: string | null }
      found.push(...page.deliveries.map((one) => one['rootId']))
      next = page.next
    }
    expect(found).toEqual(trees.toReversed())
  })
})

describe('a push notification of A2A belongs to the token that asked for it', () => {
  test('a narrower token of the same id neither sees, replaces nor ends it', async () => {
    await using receiver = await new Receiver().listen()
    await using setting = await startServer({ webhooks: FAST }, { agents })
    const wide = await setting.tokenFor(lea)
    const narrow = await made(setting, wide, ci)
    const started = await setting.post('/v1/runs?wait=10', { agent: 'echo', input: 'Hi' }, { token: wide })
    const { runId } = (await started.json()) as { runId: string }
    const path = `/a2a/echo/tasks/${runId}/pushNotificationConfigs`
    const headers = { 'a2a-version': '1.0' }
    const urlsOf = async (token: string) => {
      const answer = await setting.get(path, { token, headers })
      const { configs = [] } = (await answer.json()) as { configs?: readonly { url: string }[] }
      return configs.map(({ url }) => new URL(url).pathname)
    }
    const make = (token: string, name: string) =>
      setting.post(path, { id: 'mine', url: receiver.url.replace('/hook', name) }, { token, headers })

    expect((await make(wide, '/wide')).status).toBe(200)
    expect(await urlsOf(narrow)).toEqual([])
    expect((await setting.get(`${path}/mine`, { token: narrow, headers })).status).toBe(404)
    expect((await make(narrow, '/narrow')).status).toBe(200)
    expect(await urlsOf(narrow)).toEqual(['/narrow'])
    expect(await urlsOf(wide)).toEqual(['/wide', '/narrow'])
    expect((await make(narrow, '/again')).status).toBe(200)
    expect(await urlsOf(wide)).toEqual(['/wide', '/again'])
    expect((await setting.get(`${path}/mine`, { token: narrow, headers, method: 'DELETE' })).status).toBe(204)
    expect(await urlsOf(wide)).toEqual(['/wide'])
    expect((await setting.get(`${path}/mine`, { token: narrow, headers, method: 'DELETE' })).status).toBe(204)
    expect(await urlsOf(wide)).toEqual(['/wide'])
  })
})

describe('what is not sent any more', () => {
  test('deliveries of a token that was revoked are dropped, and say so, also where their next try is far away', async () => {
    const reported: string[] = []
    const options = {
      webhooks: { ...FAST, retryMs: [3_600_000] },
      report: (error: unknown) => reported.push(String(error)),
    }
    await using setting = await startServer(options, { agents })
    const token = await setting.tokenFor(lea)
    const id = await hookOf(setting, token, 'http://127.0.0.1:9/')
    await run(setting, token)
    const path = `/v1/webhooks/${id}/deliveries`
    await expect.poll(() => listed(setting, path, token)).toMatchObject([{ state: 'waiting', attempts: 1 }])
    await revoke(setting, token)

    await expect
      .poll(() => listed(setting, path, setting.token), { timeout: 10_000 })
      .toMatchObject([{ state: 'dropped', nextAt: null, last: { error: 'The token that made it is gone.' } }])
    expect(reported).toEqual([expect.stringMatching(/disabled\. The token that made it is gone/)])
    expect(await setting.runtime.store.registry.list('delivery', { limit: 9 })).toEqual([])
  })

  test('a delivery whose tree was deleted is dropped, and says so', async () => {
    await using receiver = await new Receiver().listen()
    receiver.manner = () => 500
    await using setting = await startServer({ webhooks: { ...FAST, retryMs: [500, 500, 500] } }, { agents })
    const token = await setting.tokenFor(lea)
    const id = await hookOf(setting, token, receiver.url)
    const tree = await run(setting, token)
    await receiver.until((arrived) => arrived.length > 0)
    expect((await setting.get(`/v1/conversations/${tree}`, { token, method: 'DELETE' })).status).toBe(200)

    await expect
      .poll(() => listed(setting, `/v1/webhooks/${id}/deliveries`, token), { timeout: 10_000 })
      .toMatchObject([{ state: 'dropped', last: { error: expect.stringContaining('was deleted') } }])
    expect(await listed(setting, '/v1/webhooks', token)).toMatchObject([{ disabled: null }])
  })
})

describe.each([
  ['memory', () => memoryStore()],
  ['SQLite', () => sqliteStore(`${tempFolder()}/rows.db`)],
])('deliveries in %s', (_, open) => {
  test('rows hold no word of a message, and those of an older version are sent as they are', async () => {
    await using receiver = await new Receiver().listen()
    const store = open()
    await using setting = await startServer({ webhooks: FAST }, { agents, store })
    const token = await setting.tokenFor(lea)
    const id = await hookOf(setting, token, receiver.url, { include: 'outcome' })
    const tree = await run(setting, token)
    await receiver.until((arrived) => arrived.length === 1)
    const [over] = await expect
      .poll(() => store.registry.list('delivered', { limit: 9 }))
      .toHaveLength(1)
      .then(() => store.registry.list('delivered', { limit: 9 }))
    expect(JSON.stringify(over)).not.toMatch(/Hello|outcome|body/)

    const body = JSON.stringify({ type: 'run.ended', timestamp: '2026-11-18T00:00:00.000Z', data: { old: true } })
    const older = {
      hookId: id,
      type: 'run.ended',
      rootId: tree,
      seq: 5,
      body,
      attempts: 0,
      nextAt: 0,
      last: null,
      state: 'waiting',
    }
    const row = { kind: 'delivery', id: `${id}.msg_0mwold`, owner: 'lea', version: 1, at: 1, data: older }
    await store.registry.put(row)
    const arrived = await receiver.until((some) => some.length === 2)

    expect(arrived[1]?.text).toBe(body)
    expect(arrived[1]?.headers['webhook-id']).toBe('msg_0mwold')
  })
})

test('a webhook of an older version belongs to its token and those above it', async () => {
  await using setting = await startServer({ webhooks: FAST }, { agents })
  const { registry } = setting.runtime.store
  const wide = await setting.tokenFor(lea)
  const narrow = await made(setting, wide, ci)
  const ids = {
    wide: await hookOf(setting, wide, 'http://127.0.0.1:9/wide'),
    narrow: await hookOf(setting, narrow, 'http://127.0.0.1:9/narrow'),
  }
  for (const id of Object.values(ids)) {
    const row = await registry.get('webhook', id)
    if (row === undefined) throw new Error('It was not stored.')
    const { line: _, ...data } = row.data as { readonly line: string[] }
    await registry.put({ ...row, version: row.version + 1, data })
  }
  const known = async (token: string) =>
    (await listed(setting, '/v1/webhooks', token)).map((one) => one['id']).toSorted()

  expect(await known(wide)).toEqual(Object.values(ids).toSorted())
  expect(await known(narrow)).toEqual([ids.narrow])
  await revoke(setting, wide)
  const [again, poor] = [await setting.tokenFor(lea), await setting.tokenFor({ ...lea, sees: 'own' })]
  expect(await known(again)).toEqual(Object.values(ids).toSorted())
  expect(await known(poor)).toEqual([ids.narrow])
})

test('a receiver that never answers keeps no other owner waiting', async () => {
  await using silent = await new Receiver().listen()
  silent.manner = () => 'silent'
  await using receiver = await new Receiver().listen()
  const options = {
    webhooks: { ...FAST, timeoutMs: 30_000, leaseMs: 90_000 },
    limits: { startsPerMinute: 10_000 },
    graceMs: 100,
  }
  await using setting = await startServer(options, { agents })
  const owns = { ...lea, sees: 'own' } as const
  const [eve, bob] = [await setting.tokenFor({ ...owns, id: 'eve' }), await setting.tokenFor({ ...owns, id: 'bob' })]
  for (let n = 0; n < 50; n++) await hookOf(setting, eve, silent.url)
  await hookOf(setting, bob, receiver.url)
  for (let n = 0; n < 20; n++) await run(setting, eve)
  await silent.until((arrived) => arrived.length >= 16)

  await run(setting, bob)
  await receiver.until((arrived) => arrived.length === 1, 5_000)
  expect(silent.arrived.length).toBeLessThanOrEqual(16)
}, 60_000)

test('where too much waits for an owner, its fullest webhook is disabled, and what waits for it is dropped', async () => {
  await using receiver = await new Receiver().listen()
  const store = memoryStore()
  const reported: string[] = []
  const options = { webhooks: FAST, report: (error: unknown) => reported.push(String(error)) }
  await using setting = await startServer(options, { agents, store })
  const token = await setting.tokenFor({ ...lea, sees: 'own' })
  const full = await hookOf(setting, token, receiver.url)
  const tree = await run(setting, token)
  await receiver.until((arrived) => arrived.length === 1)
  const other = await setting.tokenFor({ ...lea, id: 'bob', sees: 'own' })
  await hookOf(setting, other, receiver.url)
  const later = { attempts: 1, nextAt: Date.now() + 3_600_000, last: null, state: 'waiting' }
  for (let n = 0; n < 9_999; n++) {
    const data = { hookId: full, type: 'run.ended', rootId: tree, agent: 'greeter', seq: n + 10, ...later }
    const id = `${full}.msg_1${String(n).padStart(9, '0')}`
    store.registry.put({ kind: 'delivery', id, owner: 'lea', version: 1, at: 1, data })
  }
  await expect.poll(() => waitingOf(setting), { timeout: 10_000 }).toBeGreaterThan(9_000)
  const few = await hookOf(setting, token, receiver.url.replace('/hook', '/few'))
  await run(setting, token)
  await run(setting, other)

  await expect
    .poll(() => reported, { timeout: 10_000 })
    .toEqual([expect.stringMatching(/Too many deliveries of its owner/)])
  const hooks = await listed(setting, '/v1/webhooks', token)
  const disabledOf = (id: string) => hooks.find((one) => one['id'] === id)?.['disabled']
  expect(disabledOf(full)).toMatchObject({ reason: expect.stringContaining('Too many') })
  expect(disabledOf(few)).toBeNull()
  const [newest] = await listed(setting, `/v1/webhooks/${full}/deliveries`, token)
  expect(newest).toMatchObject({ state: 'dropped', last: { error: expect.stringContaining('Too many') } })
  await receiver.until((arrived) => arrived.some(({ path }) => path === '/few') && arrived.length >= 3)
  expect(await waitingOf(setting)).toBeLessThan(10)
}, 60_000)

/** How many deliveries the server holds in its queue. */
async function waitingOf(setting: Setting): Promise<number> {
  const figures = await (await setting.get('/metrics')).text()
  return Number(/legate_webhook_deliveries_waiting (\d+)/.exec(figures)?.[1])
}
