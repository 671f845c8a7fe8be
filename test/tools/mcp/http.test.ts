import { mcpServer } from 'legate/mcp'
import { describe, expect, test } from 'vitest'
import { openRuntime, resultIn, resultsIn, toolNamesIn } from '../../support/reading.ts'
import { caller, freePort, listen, serverFile, startHttp } from './support.ts'

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
