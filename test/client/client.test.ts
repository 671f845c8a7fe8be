import { ClientError, connect, type LegateClient } from 'legate/client'
import { describe, expect, onTestFinished, test } from 'vitest'
import { TestServer } from './stream-server.ts'

interface Sent {
  readonly method: string
  readonly path: string
  readonly body: unknown
  readonly headers: Readonly<Record<string, unknown>>
}

/** A server that answers everything with this, and keeps what it was sent. */
async function answering(answer: unknown = {}, status = 200, headers: Record<string, string> = {}) {
  const sent: Sent[] = []
  const server = new TestServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString()
      const isJson = request.headers['content-type'] === 'application/json'
      const { method = '', url: path = '' } = request
      sent.push({ method, path, body: isJson ? JSON.parse(text) : text, headers: request.headers })
      response.writeHead(status, headers).end(typeof answer === 'string' ? answer : JSON.stringify(answer))
    })
  })
  const url = await server.listen()
  onTestFinished(() => server.close())
  return { url, sent, client: connect({ url, token: 'lgt_1_secret' }) }
}

type Call = (client: LegateClient) => Promise<unknown>

const calls: readonly (readonly [request: string, call: Call, body?: unknown])[] = [
  ['GET /v1/agents/a%2Fb', (c) => c.agent('a/b')],
  ['POST /v1/runs?wait=9', (c) => c.run('a', { n: 1 }, { wait: 9 }), { agent: 'a', input: { n: 1 } }],
  [
    'GET /v1/runs/r/events?after=3&types=message%2Crun-end',
    (c) => c.eventPage('r', { after: 3, types: ['message', 'run-end'] }),
  ],
  ['POST /v1/import', (c) => c.import('{"a":1}\n'), '{"a":1}\n'],
]

describe('a client', () => {
  test('sends each call to its route, with its token and its body', async () => {
    const { client, sent } = await answering()
    for (const [, call] of calls) await call(client)

    expect(sent.map(({ method, path }) => `${method} ${path}`)).toEqual(calls.map(([request]) => request))
    expect(sent.map(({ body }) => body)).toEqual(calls.map(([, , body = '']) => body))
    expect(new Set(sent.map(({ headers }) => headers['authorization']))).toEqual(new Set(['Bearer lgt_1_secret']))
  })

  test('sends headers of its own beside them, made anew for each request', async () => {
    const { url, sent } = await answering()
    let count = 0
    await connect({ url, headers: { 'x-user': 'ann' } }).agents()
    const counting = connect({ url, headers: async () => ({ 'x-user': `ann-${++count}` }) })
    await counting.agents()
    await counting.agents()

    expect(sent.map(({ headers }) => headers['x-user'])).toEqual(['ann', 'ann-1', 'ann-2'])
  })

  test.each(['127.0.0.1:4747', 'localhost', 'ftp://a', ''])(
    'refuses "%s", which is not an address of a server',
    (url) => {
      expect(() => connect({ url })).toThrow(
        `${JSON.stringify(url)} is not an address. Write it with http:// or https://`,
      )
    },
  )

  test('says why a server cannot be reached', async () => {
    const { url } = await answering()
    const closed = new TestServer(() => undefined)
    const nowhere = await closed.listen()
    await closed.close()

    await expect(connect({ url: nowhere }).agents()).rejects.toThrow(
      `${nowhere} cannot be reached: no server listens there`,
    )
    await expect(connect({ url, fetch: () => Promise.reject(new Error('No.')) }).agents()).rejects.toThrow(
      'reached: No.',
    )
    for (const [error, why] of [
      [Object.assign(new Error(''), { code: 'EPIPE' }), 'EPIPE'],
      [new Error(''), 'nothing says why'],
    ] as const) {
      const fetch = () => Promise.reject(error)
      await expect(connect({ url, fetch }).agents()).rejects.toThrow(`${url} cannot be reached: ${why}.`)
    }
  })

  test.each(['', '/', '/behind/a/proxy', '/behind/a/proxy/'])('takes an address that ends in "%s"', async (end) => {
    const { url, sent } = await answering()
    await connect({ url: url + end, token: async () => 'fresh' }).get('r')

    expect(sent[0]?.path).toBe(`${end.replace(/\/$/, '')}/v1/runs/r`)
    expect(sent[0]?.headers['authorization']).toBe('Bearer fresh')
  })

  test('sends a key as a header, and no token where there is none', async () => {
    const { url, sent } = await answering()
    await connect({ url }).run('a', 'go', { key: 'order-17' })

    expect(sent[0]?.headers).toMatchObject({ 'idempotency-key': 'order-17', 'content-type': 'application/json' })
    expect(sent[0]?.headers).not.toHaveProperty('authorization')
    expect(sent[0]?.body).toEqual({ agent: 'a', input: 'go' })
  })

  test('gives the problem of a refusal: status, code, advice, details and how long to wait', async () => {
    const problem = {
      title: 'Conflict',
      detail: 'Ann was first.',
      code: 'conflict',
      advice: 'Look.',
      details: { by: 'ann' },
    }
    const { client } = await answering(problem, 409, { 'retry-after': '3' })
    const error = await client.approve('n', { allow: true, seen: 's' }).catch((reason: unknown) => reason)

    expect(error).toBeInstanceOf(ClientError)
    expect(error).toMatchObject({
      name: 'ClientError',
      message: 'Ann was first.',
      status: 409,
      code: 'conflict',
      advice: 'Look.',
      details: { by: 'ann' },
      retryAfterMs: 3_000,
    })
  })

  test('says what it got where an answer is no problem and no JSON, and where nobody answers', async () => {
    const { client } = await answering('<h1>Bad gateway</h1>', 502)
    await expect(client.info()).rejects.toMatchObject({ status: 502, code: 'http_502', advice: null })

    const { client: page } = await answering('<h1>Hello</h1>')
    await expect(page.info()).rejects.toMatchObject({ status: 200, code: 'no_json' })

    const nobody = connect({ url: 'http://127.0.0.1:1' })
    await expect(nobody.info()).rejects.toMatchObject({ status: 0, code: 'unreachable' })
  })

  test('is an error of its own when the server is lost in the middle of its answer', async () => {
    const server = new TestServer((_, response) => {
      response.writeHead(200, { 'content-length': '100' }).write('{"version":', () => response.destroy())
    })
    const client = connect({ url: await server.listen() })
    onTestFinished(() => server.close())

    await expect(client.info()).rejects.toMatchObject({ name: 'ClientError', status: 0, code: 'cut' })
    await expect(client.body('n')).rejects.toMatchObject({ name: 'ClientError', status: 0, code: 'cut' })
  })

  test('gives up a request when it is aborted, with the reason', async () => {
    const server = new TestServer(() => undefined)
    const client = connect({ url: await server.listen() })
    onTestFinished(() => server.close())
    const reason = new Error('enough')
    const controller = new AbortController()
    setTimeout(() => controller.abort(reason), 20)

    await expect(client.get('r', { signal: controller.signal })).rejects.toBe(reason)
  })

  test('waits for the outcome of a run as long as it takes', async () => {
    let asked = 0
    const server = new TestServer((_, response) => {
      const isOver = ++asked === 3
      response
        .writeHead(isOver ? 200 : 202)
        .end(JSON.stringify({ runId: 'r', outcome: isOver ? { text: 'done' } : null }))
    })
    const client = connect({ url: await server.listen() })
    onTestFinished(() => server.close())

    expect(await client.result('r')).toEqual({ text: 'done' })
    expect(server.asked[0]?.path).toBe('/v1/runs/r/result?wait=55')
  })

  test('uses the fetch that it is given', async () => {
    const asked: string[] = []
    const fetch = async (url: string) => {
      asked.push(url)
      return new Response(JSON.stringify({ version: '1' }))
    }

    expect(await connect({ url: 'https://example.com/x', fetch }).info()).toEqual({ version: '1' })
    expect(asked).toEqual(['https://example.com/x/v1'])
  })
})
