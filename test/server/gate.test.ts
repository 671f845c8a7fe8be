import { createRuntime } from 'legate'
import { sqliteStore } from 'legate/store/sqlite'
import { describe, expect, test } from 'vitest'
import { tempFolder } from '../support/temp-folder.ts'
import { head, RawConnection } from './support/raw.ts'
import { greeter, startServer } from './support/server.ts'

describe('before any route', () => {
  test('health needs nobody, and everything else a token', async () => {
    await using setting = await startServer()

    expect((await setting.get('/health', { token: null })).status).toBe(204)
    const refused = await setting.get('/v1', { token: null })
    expect(refused.status).toBe(401)
    expect(refused.headers.get('www-authenticate')).toBe('Bearer realm="legate"')
    expect(refused.headers.get('content-type')).toBe('application/problem+json')
    expect(await refused.json()).toMatchObject({ code: 'unauthenticated', status: 401 })
    expect((await setting.get('/v1')).status).toBe(200)
  })

  test('a server is ready where a living process has workers', async () => {
    await using setting = await startServer()
    await using idle = await startServer({}, { engine: { workers: 0 } })

    expect((await setting.get('/ready', { token: null })).status).toBe(204)
    expect((await idle.get('/ready', { token: null })).status).toBe(503)
  })

  test('a server without workers is ready while another process has some, and no longer', async () => {
    const path = `${tempFolder()}/rows.db`
    await using idle = await startServer({}, { store: sqliteStore(path), engine: { workers: 0 } })
    const ready = async () => (await idle.get('/ready', { token: null })).status

    expect(await ready()).toBe(503)
    const worker = createRuntime({ store: sqliteStore(path), agents: [greeter] })
    await worker.resume()
    expect(await ready()).toBe(204)
    await worker.close()
    expect(await ready()).toBe(503)
  })

  test('ten wrong tokens in a minute are enough, and the right one still works', async () => {
    await using setting = await startServer()
    const wrong = `${setting.token.slice(0, -2)}xx`

    const statuses: number[] = []
    for (let tries = 0; tries < 12; tries++) statuses.push((await setting.get('/v1', { token: wrong })).status)

    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429, 429])
    const last = await setting.get('/v1', { token: wrong })
    expect(Number(last.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await setting.get('/v1')).status).toBe(200)
  })

  test.each([
    ['evil.example', 421],
    ['127.0.0.1', 421],
    ['localhost', 421],
    ['127.0.0.1:1', 421],
    ['', 421],
  ])('the Host %j is refused', async (host, status) => {
    await using setting = await startServer()
    const raw = new RawConnection(setting.server.url)

    raw.send(head('GET /health HTTP/1.1', { Host: host, Connection: 'close' }))

    expect(await raw.end()).toMatch(`HTTP/1.1 ${status} `)
  })

  test('a request without Host is refused', async () => {
    await using setting = await startServer()

    expect(await new RawConnection(setting.server.url).send('GET /health HTTP/1.1\r\n\r\n').end()).toMatch(' 400 ')
    expect(await new RawConnection(setting.server.url).send('GET /health HTTP/1.0\r\n\r\n').end()).toMatch(' 421 ')
  })

  test('names of the machine with the right port, and allowed names, are taken', async () => {
    await using setting = await startServer({ allowHosts: ['agents.example'] })
    const { port } = new URL(setting.server.url)

    for (const host of [
      `localhost:${port}`,
      `127.0.0.1:${port}`,
      `[::1]:${port}`,
      'agents.example',
      'AGENTS.example:443',
    ]) {
      const raw = new RawConnection(setting.server.url)
      raw.send(head('GET /health HTTP/1.1', { Host: host, Connection: 'close' }))
      expect(await raw.end()).toMatch('HTTP/1.1 204 ')
    }
  })

  test.each(['https://evil.example', 'null', 'http://127.0.0.1', 'http://localhost:4747'])(
    'pages of the origin %s are refused',
    async (origin) => {
      await using setting = await startServer()

      const answer = await setting.get('/v1', { headers: { origin } })
      expect(answer.status).toBe(403)
      expect(answer.headers.get('access-control-allow-origin')).toBe(null)
    },
  )

  test('only listed origins may ask from a browser, without credentials', async () => {
    await using setting = await startServer({ allowOrigins: ['https://app.example'] })
    const asked = { origin: 'https://app.example', 'access-control-request-method': 'POST' }

    const preflight = await setting.get('/v1/runs', { method: 'OPTIONS', headers: asked, token: null })
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('access-control-allow-origin')).toBe('https://app.example')
    expect(preflight.headers.get('access-control-allow-credentials')).toBe(null)
    const other = { ...asked, origin: 'https://other.example' }
    expect((await setting.get('/v1/runs', { method: 'OPTIONS', headers: other, token: null })).status).toBe(403)
    const answer = await setting.get('/v1', {
      headers: { origin: 'https://app.example', 'sec-fetch-site': 'cross-site' },
    })
    expect(answer.status).toBe(200)
  })

  test('what a browser sends for another page is refused, but for health', async () => {
    await using setting = await startServer()
    const headers = { 'sec-fetch-site': 'cross-site' }

    expect((await setting.get('/v1', { headers })).status).toBe(403)
    expect((await setting.get('/health', { headers })).status).toBe(204)
  })

  test('every answer has the headers that keep pages from being misused', async () => {
    await using setting = await startServer()

    for (const path of ['/health', '/v1', '/nowhere']) {
      const { headers } = await setting.get(path)
      expect(headers.get('content-security-policy')).toMatch("default-src 'none'")
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('referrer-policy')).toBe('no-referrer')
      expect(headers.get('cross-origin-opener-policy')).toBe('same-origin')
      expect(headers.get('cross-origin-resource-policy')).toBe('same-origin')
      expect(headers.get('cache-control')).toBe('no-store')
    }
  })

  test('an unknown path is 404, another method 405', async () => {
    await using setting = await startServer()

    expect((await setting.get('/v1/nowhere')).status).toBe(404)
    const wrong = await setting.get('/v1', { method: 'DELETE' })
    expect(wrong.status).toBe(405)
    expect(wrong.headers.get('allow')).toBe('GET')
  })

  test('a principal and an address have their rates', async () => {
    await using setting = await startServer({ limits: { readsPerMinute: 3, perAddressPerMinute: 8 } })

    const statuses: number[] = []
    for (let tries = 0; tries < 10; tries++) statuses.push((await setting.get('/v1')).status)

    expect(statuses).toEqual([200, 200, 200, 429, 429, 429, 429, 429, 429, 429])
    expect(await (await setting.get('/v1')).text()).toMatch('from this address')
  })
})
