import { readFileSync, statSync } from 'node:fs'
import { createRuntime, type Principal } from 'legate'
import { handler, serve } from 'legate/server'
import { sqliteStore } from 'legate/store/sqlite'
import { describe, expect, test } from 'vitest'
import { tokensOf } from '../../src/server/http/handler.ts'
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

describe('tokens are counted for who makes them', () => {
  const limits = { readsPerMinute: 100_000, perAddressPerMinute: 100_000 }
  const make = (setting: Setting, token: string, principal: object = { scopes: [] }) =>
    setting.post('/v1/tokens', { principal }, { token })
  const maker = (tokenId: string, principal: Principal = ann) => ({ principal, tokenId })

  test('at most 1,000 below one of the operator’s, others of its id keep theirs, and expired ones make room', async () => {
    await using setting = await startServer({ limits })
    const tokens = tokensOf(setting.runtime)
    const [first, second] = [await setting.tokenFor(ann), await setting.tokenFor(ann)]
    const given = { principal: { id: 'ann', scopes: [] as const } }
    for (let count = 0; count < 999; count++) await tokens.make({ ...given, parent: idOf(first) })
    const last = await tokens.makeNarrower(maker(idOf(first)), { ...given, expiresAt: Date.now() + 60_000 })

    const refused = await make(setting, first)
    expect(refused.status).toBe(409)
    expect(await refused.text()).toMatch('1000 tokens were made with this one or one above it')
    expect((await make(setting, second)).status).toBe(201)
    expect(await setting.tokenFor(ann)).toMatch(/^lgt_/)
    expect((await make(setting, setting.token, { id: 'ann', scopes: [] })).status).toBe(201)
    const row = await setting.runtime.store.registry.get('token', last.info.id)
    if (row === undefined) throw new Error('There is no such row.')
    const data = { ...(row.data as object), expiresAt: Date.now() - 1 }
    await setting.runtime.store.registry.put({ ...row, version: row.version + 1, data })
    expect((await make(setting, first)).status).toBe(201)
    expect((await make(setting, first)).status).toBe(409)
  })

  test('at most 100 below one that was made, which leaves who made it the rest', async () => {
    await using setting = await startServer({ limits })
    const top = await setting.tokenFor(ann)
    const narrow = await made(setting, top, { scopes: ['read'] })
    const below = await made(setting, narrow, { scopes: ['read'] })
    for (let count = 1; count < 100; count++) expect((await make(setting, narrow)).status).toBe(201)

    expect((await make(setting, narrow)).status).toBe(409)
    // What stands below counts all the way up.
    expect((await make(setting, below)).status).toBe(409)
    expect((await make(setting, top)).status).toBe(201)
    expect(await revoke(setting, narrow, idOf(below))).toBe(200)
    expect((await make(setting, narrow)).status).toBe(201)
  })

  test('tokens of other ids that an admin makes count for the admin, and tokens that they make too', async () => {
    await using setting = await startServer({ limits })
    const tokens = tokensOf(setting.runtime)
    const lea: Principal = { id: 'lea', scopes: ['read', 'admin'], sees: ['lea', 'bob'] }
    const admin = await setting.tokenFor(lea)
    const bob = await made(setting, admin, { id: 'bob', scopes: ['read'] })
    for (let count = 1; count < 1_000; count++) {
      await tokens.make({ principal: { id: `made-${count}`, scopes: [] }, parent: idOf(admin) })
    }

    expect((await make(setting, admin, { id: 'cat', scopes: [] })).status).toBe(409)
    expect((await make(setting, bob)).status).toBe(409)
    expect((await make(setting, await setting.tokenFor({ id: 'bob', scopes: [] }))).status).toBe(201)
  })

  test('of a login without a token, 1,000 in all', async () => {
    await using runtime = createRuntime()
    const tokens = tokensOf(runtime)
    const login = { principal: ann, tokenId: null }
    const given = { principal: { id: 'ann', scopes: [] as const } }
    const first = await tokens.makeNarrower(login, given)
    for (let count = 1; count < 999; count++) {
      await tokens.make({ principal: { ...given.principal, within: ann } })
    }
    await tokens.makeNarrower({ principal: first.info.principal, tokenId: first.info.id }, given)

    await expect(tokens.makeNarrower(login, given)).rejects.toThrow('1000 tokens were made')
    const below = { principal: first.info.principal, tokenId: first.info.id }
    await expect(tokens.makeNarrower(below, given)).rejects.toThrow('1000 tokens were made')
    const other: Principal = { ...ann, id: 'bob' }
    const bobs = await tokens.makeNarrower({ principal: other, tokenId: null }, { principal: { ...other, scopes: [] } })
    expect(bobs.info.principal.id).toBe('bob')
    expect((await tokens.make({ principal: ann })).info.parent).toBeNull()
  })

  test('an admin of some agents looks after what it made, and not after tokens that reach other agents', async () => {
    await using setting = await startServer()
    const own = await setting.tokenFor(ann)
    const admin = await setting.tokenFor({ id: 'ann', scopes: ['admin', 'read'], agents: ['greeter'] })
    const gift = await made(setting, admin, { id: 'ann', scopes: ['read'] })

    expect(await listed(setting, admin)).toEqual([admin, gift].map(idOf).toSorted())
    expect(await revoke(setting, admin, idOf(own))).toBe(404)
    expect(await revoke(setting, admin, idOf(gift))).toBe(200)
  })
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
  test('the token that was revoked does not come back: the next start makes a new one', async () => {
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
