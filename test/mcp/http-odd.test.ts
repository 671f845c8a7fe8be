import { mcpServer } from 'legate'
import { describe, expect, test } from 'vitest'
import { openRuntime } from '../support/reading.ts'
import { caller, freePort, listen, MAY_START } from './support.ts'

/** As a definition names a variable. */
const named = (variable: string) => `$${'{'}${variable}}`

describe('variables in headers and address', () => {
  test('aster-goose 3.2: come from its own env and envKeys', async () => {
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

  test('one that never answers', async () => {
    const { url } = await listen(() => undefined)
    const source = mcpServer({ url, startTimeoutMs: 300 })
    const outcome = await openRuntime().run(caller({ far: source }, []).who, 'go').result

    expect(outcome.error?.message).toMatch(/timed out/i)
  })
})
