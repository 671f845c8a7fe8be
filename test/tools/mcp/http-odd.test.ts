import { mcpServer } from 'legate/mcp'
import { describe, expect, test } from 'vitest'
import { openRuntime, resultsIn } from '../../support/reading.ts'
import { caller, freePort, listen, MAY_START } from './support.ts'

/** As a definition names a variable. */
const named = (variable: string) => `$${'{'}${variable}}`

describe('variables in headers and address', () => {
  test('come from its own env and envKeys', async () => {
    const { url, seen } = await listen((_request, response) => response.writeHead(500).end('no'))
    const source = mcpServer({
      url: url.replace('/mcp', `/${named('WHERE')}`),
      headers: { Authorization: `Bearer ${named('TOKEN')}` },
      env: { WHERE: 'mcp' },
      envKeys: ['TOKEN'],
      secrets: () => 'secret-of-mine',
    })
    const outcome = await openRuntime().run(caller({ far: source }, []).who, 'go').result

    expect(seen[0]).toMatchObject({ path: '/mcp', authorization: 'Bearer secret-of-mine' })
    expect(outcome.error?.message).toMatch(/it did not start/)
  })

  test('and from nothing else of this process', async () => {
    process.env['LEGATE_TEST_OTHER'] = 'another-secret'
    const { url, seen } = await listen((_request, response) => response.end())
    const source = mcpServer({ url, headers: { Authorization: `Bearer ${named('LEGATE_TEST_OTHER')}` } })
    const outcome = await openRuntime().run(caller({ far: source }, []).who, 'go').result

    expect(outcome.error?.message).toMatch(
      /its header Authorization needs LEGATE_TEST_OTHER, which is not set or not among/,
    )
    expect(seen).toEqual([])
  })

  test('a secret that a server sends back is not shown', async () => {
    const { url } = await listen((request, response) =>
      response.writeHead(401).end(`who is ${request.headers.authorization}?`),
    )
    const headers = { Authorization: `Bearer ${named('TOKEN')}` }
    const source = mcpServer({ url, headers, envKeys: ['TOKEN'], secrets: () => 'secret-of-mine' })
    const outcome = await openRuntime().run(caller({ far: source }, []).who, 'go').result

    expect(outcome.error?.message).toMatch(/who is Bearer \*\*\*\?/)
  })
})

test('a server that is not there: the reason says so and names it', async () => {
  const port = await freePort()
  const source = mcpServer({ url: `http://127.0.0.1:${port}/mcp` })
  const { error } = await openRuntime().run(caller({ far: source }, []).who, 'go').result

  expect(error?.message).toContain(`it did not start: it cannot be reached: connect ECONNREFUSED 127.0.0.1:${port}`)
})

describe('I10: a hostile server over HTTP', () => {
  test('an answer without end is left off', async () => {
    const chunk = `"${'x'.repeat(1_000_000)}",`
    const { url } = await listen((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.write('[')
      const more = () => {
        while (!response.destroyed && response.write(chunk));
      }
      response.on('drain', more)
      more()
    })
    const outcome = await openRuntime().run(caller({ far: mcpServer({ url }) }, []).who, 'go').result

    expect(outcome.error?.message).toMatch(/a message of more than 16 MB/)
  })

  test('a redirect to another host is not followed', async () => {
    const other = await listen((_request, response) => response.end())
    const { url } = await listen((_request, response) => response.writeHead(307, { location: other.url }).end())
    const outcome = await openRuntime().run(caller({ far: mcpServer({ url }) }, [], MAY_START).who, 'go').result

    expect(outcome.status).toBe('unavailable')
    expect(other.seen).toEqual([])
  })

  test('a server that never answers', async () => {
    const { url } = await listen(() => undefined)
    const source = mcpServer({ url, startTimeoutMs: 300 })
    const outcome = await openRuntime().run(caller({ far: source }, []).who, 'go').result

    expect(outcome.error?.message).toMatch(/timed out/i)
  })

  test.each([
    ['null', '"result":null', /the server gave a result that is not an object/],
    ['a number', '"result":7', /the server gave a result that is not an object/],
    ['a list', '"result":[1]', /the server gave a result that is not an object/],
    ['too deep', `"result":{"a":${DEEP}}`, /nested more than 1000 levels deep/],
    [
      'an error that is too deep',
      `"error":{"code":1,"message":"no","data":${DEEP}}`,
      /nested more than 1000 levels deep/,
    ],
  ])('a result in a stream of events that is %s fails the call at once', async (_name, result, reason) => {
    const { url } = await listen(eventServer(result))
    const began = performance.now()
    const { who, model } = caller({ far: mcpServer({ url, timeoutMs: 60_000 }) }, [
      ['far__odd', {}],
      ['far__good', {}],
    ])

    const { status } = await openRuntime().run(who, 'go').result

    expect(status).toBe('completed')
    const [odd, good] = resultsIn(model.requests.at(-1))
    expect([odd?.isError, String(odd?.content)]).toEqual([true, expect.stringMatching(reason)])
    expect([good?.isError, good?.content]).toEqual([false, 'Grüße'])
    expect(performance.now() - began).toBeLessThan(30_000)
  })
})

const DEEP = `${'['.repeat(2_000)}${']'.repeat(2_000)}`

/** Answers with events, a few bytes at a time, over streams that stay open. */
function eventServer(odd: string): Parameters<typeof listen>[0] {
  return async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const asked = request.method === 'POST' ? JSON.parse(Buffer.concat(chunks).toString('utf8')) : {}
    if (asked.id === undefined) return void response.writeHead(request.method === 'POST' ? 202 : 405).end()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const data = `{"jsonrpc":"2.0","id":${JSON.stringify(asked.id)},${answerTo(asked, odd)}}`
    const event = Buffer.from(`: hello\r\n\r\nevent: message\r\ndata: ${data}\r\n\r\n`)
    for (let at = 0; at < event.length; at += 7) {
      response.write(event.subarray(at, at + 7))
      if (at < 300) await new Promise((resolve) => setImmediate(resolve))
    }
  }
}

function answerTo({ method, params }: { method: string; params: Record<string, unknown> }, odd: string): string {
  const tool = (name: string) => ({ name, description: name, inputSchema: { type: 'object', properties: {} } })
  const serverInfo = { name: 'odd', version: '1' }
  const results: Record<string, unknown> = {
    initialize: { protocolVersion: params?.['protocolVersion'], capabilities: { tools: {} }, serverInfo },
    'tools/list': { tools: [tool('odd'), tool('good')] },
    'tools/call': { content: [{ type: 'text', text: 'Grüße' }] },
  }
  if (method === 'tools/call' && params['name'] === 'odd') return odd
  const known = JSON.stringify(results[method])
  return known === undefined ? '"error":{"code":-32601,"message":"no such method"}' : `"result":${known}`
}
