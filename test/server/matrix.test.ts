import { createHash } from 'node:crypto'
import { request } from 'node:http'
import type { Principal } from 'legate'
import { SCOPES } from 'legate/grant'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TABLE } from '../../src/server/http/routes/table.ts'
import { type Route, takesBody } from '../../src/server/http/table/route.ts'
import { watchWork } from '../support/pace.ts'
import { checkAnswer } from './support/check-answer.ts'
import { head, RawConnection } from './support/raw.ts'
import { type Setting, startServer } from './support/server.ts'

// Every route of the table with everything that a caller can do wrong. Rows are made from the table: a new route is attacked
// as soon as it is there.

const everything: readonly Principal['scopes'][number][] = SCOPES.filter(
  (scope) => scope !== 'admin' && scope !== 'audit',
)
const ann: Principal = { id: 'ann', scopes: everything }
const bob: Principal = { id: 'bob', scopes: everything }
const plenty = 1_000_000

interface Scene {
  /** Tokens of ann's with every scope but this one. */
  readonly narrow: ReadonlyMap<string, string>
  readonly setting: Setting
  /** One run of ann's, and what belongs to it. */
  readonly ids: { readonly run: string; readonly conversation: string; readonly node: string; readonly token: string }
  readonly tokens: { readonly ann: string; readonly bob: string; readonly admin: string; readonly expired: string }
}

let scene: Scene

beforeAll(async () => {
  const limits = {
    startsPerMinute: plenty,
    readsPerMinute: plenty,
    perAddressPerMinute: plenty,
    failuresPerMinute: plenty,
    headersMs: 1_000,
    bodyMs: 1_000,
  }
  const setting = await startServer({ limits })
  const admin: Principal = { id: 'root', scopes: [...SCOPES], sees: 'all' }
  const tokens = {
    ann: await setting.tokenFor(ann),
    bob: await setting.tokenFor(bob),
    admin: await setting.tokenFor(admin),
    expired: await setting.tokenFor(ann, Date.now() - 1),
  }
  const made = await setting.post('/v1/runs?wait=10', { agent: 'greeter', input: 'Hi' }, { token: tokens.ann })
  const { runId: run, conversationId: conversation } = (await made.json()) as { runId: string; conversationId: string }
  const answer = await setting.get(`/v1/runs/${run}/nodes`, { token: tokens.ann })
  const [first] = ((await answer.json()) as { nodes: { id: string }[] }).nodes
  const narrow = new Map<string, string>()
  for (const scope of SCOPES) {
    const sees = scope === 'admin' ? 'own' : 'all'
    narrow.set(scope, await setting.tokenFor({ id: 'ann', scopes: SCOPES.filter((one) => one !== scope), sees }))
  }
  scene = { setting, tokens, narrow, ids: { run, conversation, node: first?.id ?? '', token: tokens.ann.slice(4, 20) } }
})

afterAll(() => scene.setting[Symbol.asyncDispose]())

const UNKNOWN = '01890000-0000-7000-8000-00000000dead'

/** The path of a route with ann's ids, or with ids that nobody has. */
function pathOf({ path, params = {}, example }: Route, isUnknown = false): string {
  const { ids } = scene
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    if (params[name] === 'name') return 'greeter'
    const isTask = path.startsWith('/a2a/')
    if (params[name] === 'text' && !isTask) return isUnknown ? '0000000000000000' : ids.token
    if (isUnknown) return UNKNOWN
    if (isTask || path.startsWith('/v1/runs')) return ids.run
    return path.startsWith('/v1/conversations') ? ids.conversation : ids.node
  })
  return example?.query === undefined ? filled : `${filled}?${example.query}`
}

function bodyOf({ method, example, takesLines }: Route): string | undefined {
  if (!takesBody(method)) return undefined
  if (takesLines === true) return '{"no":"tree"}\n'
  return JSON.stringify(example?.body ?? {}).replaceAll('01890000-0000-7000-8000-000000000000', scene.ids.node)
}

interface Change {
  readonly token?: string | null
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly isUnknown?: boolean
}

interface Answered {
  readonly status: number
  readonly text: string
  readonly type: string
}

/** With node:http: fetch sends neither another Host nor a body that is shorter than its length. */
function ask(route: Route, change: Change = {}): Promise<Answered> {
  const { token = scene.tokens.ann, headers = {}, isUnknown = false, body = bodyOf(route) } = change
  const { hostname, port } = new URL(scene.setting.server.url)
  return new Promise((resolve, reject) => {
    const asked = request(
      {
        hostname,
        port,
        path: pathOf(route, isUnknown),
        method: route.method,
        headers: {
          ...(route.headers?.['A2A-Version'] === undefined ? {} : { 'a2a-version': '1.0' }),
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined ? {} : { 'content-type': typeOf(route), 'content-length': Buffer.byteLength(body) }),
          ...headers,
        },
      },
      (answer) => {
        let text = ''
        const type = answer.headers['content-type'] ?? ''
        if (type.startsWith('text/event-stream')) {
          resolve({ status: answer.statusCode ?? 0, text, type })
          answer.destroy()
        }
        answer.setEncoding('utf8').on('data', (part) => {
          text += part
        })
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text, type }))
      },
    )
    asked.on('error', reject)
    asked.end(body)
  })
}

function typeOf({ takesLines }: Route): string {
  return takesLines === true ? 'application/x-ndjson' : 'application/json'
}

function rawHead(route: Route, version: string, more: Readonly<Record<string, string>> = {}): string {
  const { host } = new URL(scene.setting.server.url)
  const type = takesBody(route.method) ? { 'Content-Type': typeOf(route) } : {}
  return head(`${route.method} ${pathOf(route)} HTTP/${version}`, { Host: host, ...type, ...more })
}

function raw(): RawConnection {
  return new RawConnection(scene.setting.server.url)
}

/** Everything that a refused request must not have changed. */
async function fingerprint(): Promise<string> {
  const { runtime } = scene.setting
  const roots = await runtime.store.roots({ limit: 1_000 })
  const hash = createHash('sha256')
  for (const { id } of roots) for await (const line of runtime.export(id)) hash.update(line)
  const { registry } = runtime.store
  const rows = await Promise.all(['token', 'webhook', 'owner'].map((kind) => registry.list(kind, { limit: 1_000 })))
  return `${roots.length} ${rows.map(({ length }) => length).join(' ')} ${hash.digest('hex')}`
}

const routes = TABLE.map((route) => [`${route.method} ${route.path}`, route] as const)
const guarded = routes.filter(([, { scope }]) => scope !== 'none')
const scoped = guarded.filter(([, { scope }]) => scope !== 'any')
const posts = routes.filter(([, { method }]) => takesBody(method))
const ofIds = guarded.filter(([, { params = {} }]) => Object.values(params).some((kind) => kind !== 'name'))

describe('nothing is started or read by', () => {
  let before = ''
  beforeAll(async () => {
    before = await fingerprint()
  })
  afterAll(async () => {
    expect(await fingerprint()).toBe(before)
  })

  test.each(guarded)('%s without a token, with a wrong or an expired one', async (_, route) => {
    expect((await ask(route, { token: null })).status).toBe(401)
    const wrong = `${scene.tokens.ann.slice(0, -1)}${scene.tokens.ann.endsWith('A') ? 'B' : 'A'}`
    expect((await ask(route, { token: wrong })).status).toBe(401)
    expect((await ask(route, { token: scene.tokens.expired })).status).toBe(401)
    expect((await ask(route, { token: null, headers: { cookie: `t=${scene.tokens.ann}` } })).status).toBe(401)
  })

  test.each(scoped)('%s with a token that has all scopes but its own', async (_, route) => {
    expect((await ask(route, { token: scene.narrow.get(route.scope) ?? '' })).status).toBe(403)
  })

  test.each(ofIds)('%s with the ids of another owner: as if they did not exist', async (_, route) => {
    const isScoped = route.scope === 'any' || everything.includes(route.scope as never)
    const foreign = await ask(route, { token: scene.tokens.bob })
    const unknown = await ask(route, { token: scene.tokens.bob, isUnknown: true })

    // Everybody has a chat of his own under every name, and it is empty at first.
    if (route.params?.['chat'] !== undefined) expect([200, 204]).toContain(foreign.status)
    else expect(foreign.status).toBe(isScoped ? 404 : 403)
    expect(foreign).toEqual(unknown)
    expect(foreign.text).not.toMatch(scene.ids.run)
  })

  test.each(guarded)('%s in lists of others', async (_, route) => {
    if (route.method !== 'GET' || route.params !== undefined || !everything.includes(route.scope as never)) return
    const { text } = await ask(route, { token: scene.tokens.bob, headers: { accept: 'application/json' } })

    for (const id of Object.values(scene.ids)) expect(text).not.toMatch(id)
  })

  test.each(routes)('%s under another name, or from another page', async (_, route) => {
    expect((await ask(route, { headers: { host: 'evil.example' } })).status).toBe(421)
    expect((await ask(route, { headers: { origin: 'https://evil.example' } })).status).toBe(403)
    expect((await ask(route, { headers: { origin: 'null' } })).status).toBe(403)
    const fetched = await ask(route, { token: null, headers: { 'sec-fetch-site': 'cross-site' } })
    expect(fetched.status).toBe(route.path === '/health' ? 204 : 403)
  })

  test.each(posts)('%s with another type, with too much, or too deep', async (_, route) => {
    const token = scene.tokens.admin
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', '']) {
      expect((await ask(route, { token, headers: { 'content-type': type } })).status).toBe(415)
    }
    expect((await ask(route, { token, headers: { 'content-encoding': 'gzip' } })).status).toBe(415)
    const deep = `{"agent":${'['.repeat(10_000)}${']'.repeat(10_000)}}`
    const workMs = watchWork()
    expect((await ask(route, { token, body: deep })).status).toBe(400)
    expect(workMs()).toBeLessThan(1_000)
    const large = raw().send(
      rawHead(route, '1.1', {
        Authorization: `Bearer ${token}`,
        'Content-Length': String((route.maxBody ?? 1_000_000) + 1),
      }),
    )
    expect(await large.end()).toMatch(/^HTTP\/1\.1 413 /)
  })

  test('any route with headers or a body that do not come, or a side that is closed', async () => {
    const slowHeads = routes.map(async ([name, route]) => {
      const text = await raw().send(rawHead(route, '1.1').slice(0, -4)).end(8_000)
      expect([name, text]).toEqual([name, expect.stringMatching(/^HTTP\/1\.1 408 /)])
    })
    const bearer = { Authorization: `Bearer ${scene.tokens.admin}`, 'Content-Length': '500' }
    const slowBodies = posts.map(async ([name, route]) => {
      const text = await raw()
        .send(`${rawHead(route, '1.1', bearer)}{"agent":`)
        .end(8_000)
      expect([name, text]).toEqual([name, expect.stringMatching(/^HTTP\/1\.1 408 /)])
    })
    const halves = posts.map(async ([name, route]) => {
      const half = raw().send(`${rawHead(route, '1.1', bearer)}{"agent":`)
      half.socket.end()
      expect([name, await half.end(8_000)]).toEqual([name, expect.not.stringMatching(/^HTTP\/1\.1 2/)])
    })
    await Promise.all([...slowHeads, ...slowBodies, ...halves])
  })

  test.each(guarded)('%s over HTTP/1.0, or one request behind the other, without a token', async (_, route) => {
    const none = takesBody(route.method) ? { 'Content-Length': '0' } : {}
    expect(
      await raw()
        .send(rawHead(route, '1.0', none))
        .end(),
    ).toMatch(/^HTTP\/1\.1 401 /)
    const two = rawHead(route, '1.1', none) + rawHead(route, '1.1', { ...none, Connection: 'close' })
    const text = await raw().send(two).end()
    expect([...text.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => status)).toEqual(['401', '401'])
  })
})

test.each(routes)('%s is reached by who may, and answers as OpenAPI says', async (_, route) => {
  const { status, text, type } = await ask(route, { token: scene.tokens.admin, isUnknown: route.method === 'DELETE' })

  expect([401, 403, 405, 408, 413, 415, 421, 429, 500, 503]).not.toContain(status)
  const answer = new Response(text === '' ? null : text, { status, headers: { 'content-type': type } })
  await checkAnswer(route.method, pathOf(route).split('?')[0] ?? '', answer)
})
