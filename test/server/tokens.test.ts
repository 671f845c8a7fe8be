import { readFileSync, statSync } from 'node:fs'
import { createRuntime, type Principal } from 'legate'
import { handler, serve } from 'legate/server'
import { sqliteStore } from 'legate/store/sqlite'
import { describe, expect, test } from 'vitest'
import { tokensOf } from '../../src/server/handler.ts'
import { tempFolder } from '../support/temp-folder.ts'
import { type Setting, startServer } from './support/server.ts'

const ann: Principal = { id: 'ann', scopes: ['start', 'read'] }
const idOf = (token: string) => token.slice(4, 20)

async function listed(setting: Setting, token: string): Promise<string[]> {
  const { tokens } = (await (await setting.get('/v1/tokens', { token })).json()) as { tokens: { id: string }[] }
  return tokens.map(({ id }) => id).toSorted()
}

async function made(setting: Setting, token: string, principal: object): Promise<string> {
  const answer = await setting.post('/v1/tokens', { principal }, { token })
  return ((await answer.json()) as { token: string }).token
}

const revoke = async (setting: Setting, token: string, id: string) =>
  (await setting.get(`/v1/tokens/${id}`, { token, method: 'DELETE' })).status

describe('a token', () => {
  test('knows of itself and those below it, and of no other of its id', async () => {
    await using setting = await startServer()
    const [first, second] = [await setting.tokenFor(ann), await setting.tokenFor({ id: 'ann', scopes: [] })]
    const child = await made(setting, first, { scopes: ['read'] })
    const grandchild = await made(setting, child, { scopes: [] })

    expect(await listed(setting, first)).toEqual([first, child, grandchild].map(idOf).toSorted())
    expect(await listed(setting, child)).toEqual([child, grandchild].map(idOf).toSorted())
    expect(await listed(setting, second)).toEqual([idOf(second)])
  })

  test('revokes itself and those below it, and finds no other of its id', async () => {
    await using setting = await startServer()
    const [first, second] = [await setting.tokenFor(ann), await setting.tokenFor({ id: 'ann', scopes: [] })]
    const child = await made(setting, first, { scopes: ['read'] })
    const sibling = await made(setting, first, { scopes: ['read'] })

    for (const [by, other] of [
      [second, first],
      [second, child],
      [child, first],
      [child, sibling],
    ] as const) {
      expect(await revoke(setting, by, idOf(other))).toBe(404)
    }
    expect((await setting.get('/v1', { token: first })).status).toBe(200)
    expect(await revoke(setting, first, idOf(sibling))).toBe(200)
    expect((await setting.get('/v1', { token: sibling })).status).toBe(401)
    expect(await revoke(setting, child, idOf(child))).toBe(200)
    expect((await setting.get('/v1', { token: child })).status).toBe(401)
  })

  test('of an admin reaches the owners that it sees, and those below it', async () => {
    await using setting = await startServer()
    const [own, bobs] = [await setting.tokenFor(ann), await setting.tokenFor({ ...ann, id: 'bob' })]
    const admin = await setting.tokenFor({ id: 'ann', scopes: ['admin', 'read'] })
    const gift = await made(setting, admin, { id: 'cid', scopes: ['read'] })
    const all = await setting.tokenFor({ id: 'root', scopes: ['admin'], sees: 'all' })

    expect(await listed(setting, admin)).toEqual([own, admin, gift].map(idOf).toSorted())
    expect(await revoke(setting, admin, idOf(bobs))).toBe(404)
    expect(await revoke(setting, admin, idOf(own))).toBe(200)
    expect(await revoke(setting, all, idOf(bobs))).toBe(200)
  })
})

test('who has no token reaches those of his id with the scope admin only', async () => {
  const runtime = createRuntime()
  const { token } = await tokensOf(runtime).make({ principal: ann })
  await tokensOf(runtime).make({ principal: { ...ann, id: 'bob' } })
  const answer = handler(runtime, {
    allowHosts: ['app.example'],
    authenticate: ({ headers }) => ({ id: 'ann', scopes: headers.has('x-admin') ? ['admin'] : ['read'] }),
  })
  const ask = (headers: Record<string, string>, method = 'GET', path = '') =>
    answer(new Request(`https://app.example/v1/tokens${path}`, { headers, method }))

  expect(await (await ask({})).json()).toEqual({ tokens: [], next: null })
  expect((await ask({}, 'DELETE', `/${idOf(token)}`)).status).toBe(404)
  expect(await (await ask({ 'x-admin': '1' })).json()).toMatchObject({ tokens: [{ id: idOf(token) }] })
  expect((await ask({ 'x-admin': '1' }, 'DELETE', `/${idOf(token)}`)).status).toBe(200)
  await runtime.close()
})

test('an owner has at most 1,000 tokens, and expired ones make room', async () => {
  await using setting = await startServer({ limits: { readsPerMinute: 10_000 } })
  const tokens = tokensOf(setting.runtime)
  const first = await setting.tokenFor(ann)
  for (let count = 1; count < 999; count++) await tokens.make({ principal: ann })
  const last = await tokens.make({ principal: ann, expiresAt: Date.now() + 60_000 })
  const make = () => setting.post('/v1/tokens', { principal: { scopes: [] } }, { token: first })

  const refused = await make()
  expect(refused.status).toBe(409)
  expect(await refused.text()).toMatch('ann has 1000 tokens')
  expect(await setting.tokenFor({ ...ann, id: 'bob' })).toMatch(/^lgt_/)
  const row = await setting.runtime.store.registry.get('token', last.info.id)
  if (row === undefined) throw new Error('There is no such row.')
  const data = { ...(row.data as object), expiresAt: Date.now() - 1 }
  await setting.runtime.store.registry.put({ ...row, version: row.version + 1, data })
  expect((await make()).status).toBe(201)
  expect((await make()).status).toBe(409)
})

test('who may not read revokes nothing with runs', async () => {
  await using setting = await startServer()
  const token = await setting.tokenFor({ id: 'ann', scopes: ['start', 'cancel'] })

  expect((await setting.get(`/v1/tokens/${idOf(token)}?cancel=1`, { token, method: 'DELETE' })).status).toBe(403)
  expect((await setting.get('/v1', { token })).status).toBe(200)
})

test('an admin knows of webhooks of owners that he sees, and figures of all are for who sees all', async () => {
  await using setting = await startServer()
  const bobs = await setting.tokenFor({ ...ann, id: 'bob' })
  const body = { url: 'https://hooks.example/legate', types: ['run.ended'] }
  const hook = (await (await setting.post('/v1/webhooks', body, { token: bobs })).json()) as { webhook: { id: string } }
  const scopes = ['admin', 'read', 'start', 'audit'] as const
  const own = await setting.tokenFor({ id: 'ann', scopes: [...scopes] })
  const seeing = await setting.tokenFor({ id: 'ann', scopes: [...scopes], sees: ['bob'] })
  const path = `/v1/webhooks/${hook.webhook.id}`
  const count = async (token: string) =>
    ((await (await setting.get('/v1/webhooks', { token })).json()) as { webhooks: unknown[] }).webhooks.length

  expect([await count(own), await count(seeing), await count(setting.token), await count(bobs)]).toEqual([0, 1, 1, 1])
  expect((await setting.get(path, { token: own })).status).toBe(404)
  expect((await setting.get(path, { token: own, method: 'DELETE' })).status).toBe(404)
  for (const place of ['/metrics', '/v1/processes']) {
    expect((await setting.get(place, { token: own })).status).toBe(403)
    expect((await setting.get(place, { token: seeing })).status).toBe(403)
    expect((await setting.get(place)).status).toBe(200)
  }
  expect((await setting.get(path, { token: seeing, method: 'DELETE' })).status).toBe(204)
})

describe('the token of this machine', () => {
  test('that was revoked does not come back: the next start makes a new one', async () => {
    const folder = tempFolder()
    const [file, path] = [`${folder}/serve.token`, `${folder}/rows.db`]
    const start = () => startServer({ localTokenFile: file }, { store: sqliteStore(path) })
    const first = await start()
    const old = first.token
    expect(await revoke(first, old, idOf(old))).toBe(200)
    expect((await first.get('/v1')).status).toBe(401)
    await first[Symbol.asyncDispose]()

    const second = await start()
    expect(second.token).not.toBe(old)
    expect((await second.get('/v1')).status).toBe(200)
    expect((await second.get('/v1', { token: old })).status).toBe(401)
    expect(readFileSync(file, 'utf8').trim()).toBe(second.token)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    await second[Symbol.asyncDispose]()
    await using third = await start()
    expect(third.token).toBe(second.token)
    expect((await third.get('/v1')).status).toBe(200)
  })

  test('is taken by no server that others reach, nor where the server says so', async () => {
    await using setting = await startServer()
    const { runtime, token } = setting
    const child = await made(setting, token, { scopes: ['read'] })
    const oidc = { issuer: 'https://id.example', audience: 'legate' }
    const beyond = await serve(runtime, {
      port: 0,
      host: '0.0.0.0',
      behindProxy: true,
      oidc,
      allowHosts: ['127.0.0.1'],
    })
    const without = await serve(runtime, { port: 0, localToken: false })
    const inside = handler(runtime, { allowHosts: ['app.example'] })
    const headers = (given: string) => ({ authorization: `Bearer ${given}` })
    const statuses = async (given: string) => [
      (await fetch(`${beyond.url.replace('0.0.0.0', '127.0.0.1')}/v1`, { headers: headers(given) })).status,
      (await fetch(`${without.url}/v1`, { headers: headers(given) })).status,
      (await inside(new Request('https://app.example/v1', { headers: headers(given) }))).status,
      (await setting.get('/v1', { token: given })).status,
    ]

    expect(await statuses(token)).toEqual([401, 401, 401, 200])
    expect(await statuses(child)).toEqual([200, 200, 200, 200])
    await beyond.close()
    await without.close()
  })
})
