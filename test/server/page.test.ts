import { request } from 'node:http'
import { createRuntime } from 'legate'
import { handler } from 'legate/server'
import { describe, expect, test } from 'vitest'
import { pageFiles } from '../../src/server/page/files.ts'
import { greeter, type Setting, startServer } from './support/server.ts'

const places = [
  '/',
  '/?any=thing&any=more',
  '/new',
  '/new/greeter',
  '/c/some-run',
  '/c/some-run/graph',
  '/diff',
  '/diff/a',
  '/diff/a/b',
  '/ops',
]

test.each(places)('%s is the page, for everybody, and tells nothing', async (place) => {
  await using setting = await startServer()

  const answer = await setting.get(place, { token: null })

  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(answer.headers.get('cache-control')).toBe('no-cache')
  expect(Buffer.from(await answer.arrayBuffer())).toEqual((await pageFiles()).get('index.html')?.bytes)
})

test('the page has a policy that lets no foreign script in, and one Trusted Types policy', async () => {
  await using setting = await startServer()

  const { headers } = await setting.get('/', { token: null })

  expect(headers.get('content-security-policy')?.split('; ')).toEqual([
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    'trusted-types legate',
  ])
})

test('where people log in at a provider, the page may talk to it, and to nobody else', async () => {
  await using setting = await startServer({ oidc: { issuer: 'https://login.example/tenant', audience: 'agents' } })

  const { headers } = await setting.get('/', { token: null })

  expect(headers.get('content-security-policy')).toContain("connect-src 'self' https://login.example; ")
})

test('scripts and styles are kept for ever, under names that change with them', async () => {
  await using setting = await startServer()
  const page = await (await setting.get('/', { token: null })).text()
  const named = [...page.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, name = '']) => name)

  expect(named.length).toBeGreaterThan(0)
  for (const name of named) {
    const answer = await setting.get(name, { token: null, headers: { 'accept-encoding': 'identity' } })
    const etag = answer.headers.get('etag') ?? ''
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'public, max-age=31536000, immutable'])
    expect(Number(answer.headers.get('content-length'))).toBeGreaterThan(0)
    const again = await setting.get(name, { token: null, headers: { 'if-none-match': etag } })
    expect([again.status, await again.text()]).toEqual([304, ''])
    const packed = await setting.get(name, { token: null, headers: { 'accept-encoding': 'gzip' } })
    expect(packed.headers.get('content-encoding')).toBe('gzip')
    expect(await packed.text()).toBe(await answer.text())
  }
})

test.each([
  '/assets/../../package.json',
  '/assets/..%2f..%2fpackage.json',
  '/assets/%2e%2e%2findex.html',
  '/assets/index.html',
  '/assets/%00',
  '/package.json',
  '/file.json.gz',
  '/assets/file.json.gz',
  '/index.html',
])('no path reaches the disk: %s', async (place) => {
  await using setting = await startServer()

  expect(await statusOf(setting, place)).toBe(404)
})

describe('a page of another site', () => {
  const site = { 'sec-fetch-site': 'cross-site' }

  test('may link to the page', async () => {
    await using setting = await startServer()
    const followed = { ...site, 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }

    expect(await statusOf(setting, '/c/some-run', followed)).toBe(200)
    expect(await statusOf(setting, '/v1/runs', followed)).toBe(403)
  })

  test('can neither frame it nor load its scripts', async () => {
    await using setting = await startServer()
    const framed = { ...site, 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' }
    const loaded = { ...site, 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'script' }

    expect(await statusOf(setting, '/', framed)).toBe(403)
    expect(await statusOf(setting, '/', loaded)).toBe(403)
  })
})

test('ui: false serves the API alone', async () => {
  await using setting = await startServer({ ui: false })

  for (const place of places) expect((await setting.get(place, { token: null })).status).toBe(404)
  const described = (await (await setting.get('/v1/openapi.json')).json()) as { paths: object }
  expect(Object.keys(described.paths)).not.toContain('/')
  expect((await setting.get('/v1/runs')).status).toBe(200)
})

test('handler() serves the page too', async () => {
  await using runtime = createRuntime({ agents: [greeter] })
  const answer = handler(runtime)

  expect((await answer(new Request('http://localhost/c/some-run'))).status).toBe(200)
  expect((await handler(runtime, { ui: false })(new Request('http://localhost/'))).status).toBe(404)
})

/** With node:http: fetch would tidy the path, and send other headers of its own. */
function statusOf(
  { server }: Setting,
  path: string,
  headers: Record<string, string> = {},
): Promise<number | undefined> {
  const { hostname, port } = new URL(server.url)
  return new Promise((resolve, reject) => {
    const asked = request({ hostname, port, path, headers }, (answer) => {
      answer.resume()
      resolve(answer.statusCode)
    })
    asked.on('error', reject)
    asked.end()
  })
}
