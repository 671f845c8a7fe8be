import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { head, RawConnection } from './support/raw.ts'
import { type Setting, startServer } from './support/server.ts'

const START = JSON.stringify({ agent: 'greeter', input: 'Hi' })

function headers(setting: Setting, more: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const { host } = new URL(setting.server.url)
  return { Host: host, Authorization: `Bearer ${setting.token}`, 'Content-Type': 'application/json', ...more }
}

async function runsOf({ runtime }: Setting): Promise<number> {
  return (await runtime.store.roots({ limit: 100 })).length
}

describe('callers who do not behave', () => {
  test('nobody who keeps a connection open without a request holds up a server that closes', async () => {
    const setting = await startServer()
    const silent = new RawConnection(setting.server.url)
    const said = new RawConnection(setting.server.url).send(head('GET /v1 HTTP/1.1', headers(setting)))
    await said.until((text) => text.includes('principal'))
    const begun = Date.now()
    await setting[Symbol.asyncDispose]()

    expect(Date.now() - begun).toBeLessThan(3_000)
    for (const raw of [silent, said]) await raw.end()
  })

  test('headers that come too slowly end the connection', async () => {
    await using setting = await startServer({ limits: { headersMs: 300 } })
    const raw = new RawConnection(setting.server.url).send('GET /health HTTP/1.1\r\nHost: x')

    expect(await raw.end(5_000)).toMatch('HTTP/1.1 408 ')
  })

  test('a body that comes too slowly starts nothing', async () => {
    await using setting = await startServer({ limits: { bodyMs: 300 } })
    const raw = new RawConnection(setting.server.url)
    raw.send(head('POST /v1/runs HTTP/1.1', headers(setting, { 'Content-Length': '1000' })))
    raw.send(START.slice(0, 10))

    expect(await raw.end(5_000)).toMatch('HTTP/1.1 408 ')
    expect(await runsOf(setting)).toBe(0)
  })

  test('a body that is announced or sent too large is refused at once', async () => {
    await using setting = await startServer()
    const announced = new RawConnection(setting.server.url)
    announced.send(head('POST /v1/runs/x/cancel HTTP/1.1', headers(setting, { 'Content-Length': '99999999' })))
    expect(await announced.end()).toMatch('HTTP/1.1 404 ')

    const long = new RawConnection(setting.server.url)
    long.send(head('POST /v1/runs HTTP/1.1', headers(setting, { 'Content-Length': '10000001' })))
    expect(await long.end()).toMatch('HTTP/1.1 413 ')

    const sent = new RawConnection(setting.server.url)
    sent.send(head('POST /v1/tokens HTTP/1.1', headers(setting, { 'Transfer-Encoding': 'chunked' })))
    const chunk = `10000\r\n${' '.repeat(0x10000)}\r\n`
    for (let count = 0; count < 20; count++) sent.send(chunk)
    expect(await sent.until((text) => text.includes('\r\n\r\n'))).toMatch('HTTP/1.1 413 ')
    sent.close()
    expect(await runsOf(setting)).toBe(0)
  })

  test('a body nested 10,000 levels deep is refused in little time', async () => {
    await using setting = await startServer()
    const deep = `{"agent":"greeter","input":${'['.repeat(10_000)}${']'.repeat(10_000)}}`

    const answer = await setting.post('/v1/runs', deep)

    expect([answer.status, ((await answer.json()) as { detail: string }).detail]).toEqual([
      400,
      'The body cannot be read. The JSON text is nested more than 64 levels deep.',
    ])
  })

  test('headers of more than 16 kB are refused', async () => {
    await using setting = await startServer()
    const raw = new RawConnection(setting.server.url)
    raw.send(head('GET /health HTTP/1.1', { ...headers(setting), 'X-Long': 'x'.repeat(17_000) }))

    expect(await raw.end()).toMatch('HTTP/1.1 431 ')
  })

  test('a caller who closes his side in the middle of a body starts nothing', async () => {
    await using setting = await startServer()
    const raw = new RawConnection(setting.server.url)
    raw.send(head('POST /v1/runs HTTP/1.1', headers(setting, { 'Content-Length': '1000' })))
    raw.send(START)
    raw.socket.end()

    expect(await raw.end()).not.toMatch('HTTP/1.1 2')
    expect(await runsOf(setting)).toBe(0)
  })

  test('HTTP/1.0 gets answers and streams, and the connection ends', async () => {
    await using setting = await startServer()
    const { runId } = (await (await setting.post('/v1/runs?wait=10', { agent: 'greeter', input: 'Hi' })).json()) as {
      runId: string
    }
    const plain = new RawConnection(setting.server.url).send(head('GET /v1 HTTP/1.0', headers(setting)))
    expect(await plain.end()).toMatch(/^HTTP\/1\.1 200 /)

    const stream = new RawConnection(setting.server.url)
    stream.send(head(`GET /v1/runs/${runId}/events HTTP/1.0`, headers(setting)))
    const text = await stream.end()
    expect(text).toMatch('event: run-end')
    expect(text).toMatch('event: end')
    expect(text).not.toMatch('Transfer-Encoding: chunked')
  })

  test('requests sent one behind the other are answered in order', async () => {
    await using setting = await startServer()
    const raw = new RawConnection(setting.server.url)
    const one = head('GET /health HTTP/1.1', headers(setting))
    const two = head('GET /v1/nowhere HTTP/1.1', headers(setting))
    raw.send(one + two + one + head('GET /v1 HTTP/1.1', headers(setting, { Connection: 'close' })))

    const text = await raw.end()
    expect([...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(['204', '404', '204', '200'])
  })

  test('two lengths, or a length and chunks, are no request', async () => {
    await using setting = await startServer()
    const { host } = new URL(setting.server.url)
    const both = `POST /v1/runs HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`
    const twice = `POST /v1/runs HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde`

    expect(await new RawConnection(setting.server.url).send(both).end()).toMatch('HTTP/1.1 400 ')
    expect(await new RawConnection(setting.server.url).send(twice).end()).toMatch('HTTP/1.1 400 ')
  })

  test('methods and targets that nobody uses get an answer, and the server lives', async () => {
    await using setting = await startServer()
    for (const line of [
      'TRACE /v1 HTTP/1.1',
      'PUT /v1 HTTP/1.1',
      'GET http://evil.example/v1 HTTP/1.1',
      'GET \\evil HTTP/1.1',
      'OPTIONS * HTTP/1.1',
    ]) {
      const raw = new RawConnection(setting.server.url).send(head(line, headers(setting, { Connection: 'close' })))
      expect([line, await raw.end()]).toEqual([line, expect.stringMatching(/^HTTP\/1\.1 4\d\d /)])
    }
    expect((await setting.get('/v1')).status).toBe(200)
  })

  test('many silent connections cost the others nothing, and go', async () => {
    await using setting = await startServer({ limits: { headersMs: 500 } })
    const { hostname, port } = new URL(setting.server.url)
    const silent = Array.from({ length: 200 }, () =>
      connect({ host: hostname, port: Number(port) }).on('error', () => undefined),
    )
    const closed = Promise.all(silent.map((socket) => new Promise((resolve) => socket.once('close', resolve).resume())))

    expect((await setting.get('/v1')).status).toBe(200)
    await closed
    expect((await setting.get('/v1')).status).toBe(200)
  })
})

describe('half a character', () => {
  const HALF = 'x\ud800'
  const message = { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Hi.' }] }

  test.each([
    ['conversationKey', '/v1/runs', { agent: 'greeter', input: 'x', conversationKey: HALF }],
    ['title', '/v1/runs', { agent: 'greeter', input: 'x', title: HALF }],
    ['agent', '/v1/runs', { agent: HALF }],
    ['principal.id', '/v1/tokens', { principal: { id: HALF, scopes: [] } }],
    ['principal.sees', '/v1/tokens', { principal: { scopes: ['admin'], sees: [HALF] } }],
    ['owner', '/v1/prune', { owner: HALF, dryRun: true }],
    ['id', '/ai-sdk/greeter', { id: HALF, messages: [message] }],
    ['messages.0.id', '/ai-sdk/greeter', { id: 'chat', messages: [{ ...message, id: HALF }] }],
    ['messageId', '/ai-sdk/greeter', { id: 'chat', messages: [message], messageId: HALF }],
  ])('in %s of %s is refused', async (_, path, body) => {
    await using setting = await startServer()

    const answer = await setting.post(path, body)
    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({ code: 'invalid_input' })
    expect(await setting.runtime.runs()).toEqual([])
  })

  test('in the key or title of a fork, and in a header or a path, is refused', async () => {
    await using setting = await startServer()
    const nodeId = '01890000-0000-7000-8000-000000000000'
    const fork = (more: object) => setting.post(`/v1/conversations/${nodeId}/fork`, { nodeId, ...more })

    expect([(await fork({ key: HALF })).status, (await fork({ title: HALF })).status]).toEqual([400, 400])
    expect((await fork({ key: 'whole 🙂' })).status).toBe(404)
    const raw = new RawConnection(setting.server.url)
    const body = '{"agent":"greeter"}'
    const headers = {
      Host: new URL(setting.server.url).host,
      Authorization: `Bearer ${setting.token}`,
      'Content-Type': 'application/json',
      'Content-Length': String(body.length),
      'Idempotency-Key': '\u00ed\u00a0\u0080',
      Connection: 'close',
    }
    raw.send(`${head('POST /v1/runs HTTP/1.1', headers)}${body}`)
    expect(await raw.end()).toMatch('HTTP/1.1 400 ')
    expect((await setting.get('/ai-sdk/greeter/%ED%A0%80/messages')).status).toBe(404)
    expect((await setting.get('/v1/owners/%ED%A0%80')).status).toBe(404)
  })

  test('makes no principal', async () => {
    await using setting = await startServer()

    expect(() => setting.runtime.as({ id: HALF, scopes: [] })).toThrow('well-formed Unicode')
    expect(() => setting.runtime.as({ id: 'ann', scopes: [], sees: [HALF] })).toThrow('well-formed Unicode')
    await expect(setting.tokenFor({ id: HALF, scopes: [] })).rejects.toMatchObject({ code: 'invalid_input' })
    expect(setting.runtime.as({ id: 'ann 🙂', scopes: [] }).principal.id).toBe('ann 🙂')
  })
})
