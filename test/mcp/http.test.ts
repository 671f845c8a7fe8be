import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mcpServer } from 'legate'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openRuntime, resultIn, resultsIn, toolNamesIn } from '../support/reading.ts'
import { caller, freePort, MAY_START, serverFile, startHttp } from './support.ts'

/** As a definition names a variable. */
const named = (variable: string) => `$${'{'}${variable}}`

const EVERYTHING = [serverFile('everything'), 'streamableHttp']

describe('a server over HTTP', () => {
  test('gives its tools, and calls reach it', async () => {
    const port = await freePort()
    await startHttp(EVERYTHING, port)
    const url = `http://127.0.0.1:${port}/mcp`
    const { who, model } = caller({ all: mcpServer({ url }) }, [
      ['all__echo', { message: 'over HTTP' }],
      ['all__trigger-long-running-operation', { duration: 0.2, steps: 2 }],
    ])
    const outcome = await openRuntime().run(who, 'go').result

    expect(outcome.text).toBe('Done.')
    expect(toolNamesIn(model.requests[0])).toContain('all__get-sum')
    expect(resultsIn(model.requests.at(-1)).map(({ content }) => content)).toEqual([
      'Echo: over HTTP',
      expect.stringMatching(/completed/),
    ])
  })

  test('asks for its host, without a rule for it nothing is sent', async () => {
    const { url, seen } = await listen((_request, response) => response.end())
    const { who } = caller({ far: mcpServer({ url }) }, [], { use: ['tool:*', 'net:example.com'] })
    const outcome = await openRuntime().run(who, 'go').result

    expect(outcome.error?.message).toBe('The tools of "far" are not available: no rule of caller allows net:127.0.0.1')
    expect(seen).toEqual([])
  })

  test('a server that was restarted is asked again in a new session', async () => {
    const port = await freePort()
    const first = await startHttp(EVERYTHING, port)
    const url = `http://127.0.0.1:${port}/mcp`
    const source = mcpServer({ url, scope: 'runtime' })
    const runtime = openRuntime()
    const one = caller({ all: source }, [['all__echo', { message: 'before' }]])
    await runtime.run(one.who, 'go').result
    const gone = new Promise((resolve) => first.once('exit', resolve))
    first.kill('SIGKILL')
    await gone
    await startHttp(EVERYTHING, port)
    const two = caller({ all: source }, [['all__echo', { message: 'after' }]])
    await runtime.run(two.who, 'go').result

    expect(resultIn(one.model.requests[1])).toBe('Echo: before')
    expect(resultIn(two.model.requests[1])).toBe('Echo: after')
  })

  test('a server that dies in the middle of a call does not keep the call waiting', async () => {
    const port = await freePort()
    const child = await startHttp(EVERYTHING, port)
    const call: [string, unknown] = ['all__trigger-long-running-operation', { duration: 60, steps: 60 }]
    const { who, model } = caller({ all: mcpServer({ url: `http://127.0.0.1:${port}/mcp`, required: false }) }, [call])
    const run = openRuntime().run(who, 'go')
    for await (const { type } of run) if (type === 'progress') break
    child.kill('SIGKILL')
    await run.result

    expect(resultIn(model.requests[1])).toMatch(/may or may not have taken effect/)
  }, 20_000)
})

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

    expect(outcome.error?.message).toMatch(/who is Bearer \[secret\]\?/)
  })
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

interface Seen {
  readonly path: string
  readonly authorization: string | undefined
}

async function listen(answer: Parameters<typeof createServer>[1] & object) {
  const seen: Seen[] = []
  const server = createServer((request, response) => {
    seen.push({ path: request.url ?? '', authorization: request.headers.authorization })
    answer(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, seen }
}
