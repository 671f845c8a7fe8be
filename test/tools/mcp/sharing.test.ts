import { agent, tool } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { until } from '../../support/process.ts'
import { openRuntime, resultIn, resultsIn } from '../../support/reading.ts'
import { caller, MAY_START, mark, noneRunning, oddServer, servers } from './support.ts'

describe('who shares a server, and when it ends', () => {
  function family(scope: 'run' | 'conversation' | 'runtime', word: string) {
    const source = () => oddServer('x', { args: [word], scope })
    const seen: number[] = []
    const look = tool({
      description: 'Looks',
      input: { type: 'object' },
      execute: () => {
        seen.push(servers(word).length)
        return 'looked'
      },
    })
    const step = [{ calls: [{ name: 'all__echo', input: { message: 'x' } }] }, { calls: [{ name: 'look', input: {} }] }]
    const child = agent({
      name: 'child',
      instructions: '',
      model: scriptedModel([...step, 'done', ...step, 'done']),
      sources: { all: source() },
      tools: { look },
      grant: MAY_START,
    })
    const calls = [{ calls: [1, 2].map(() => ({ name: 'ask', input: { message: 'go' } })) }]
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel([...step, ...calls, 'done']),
      sources: { all: source() },
      tools: { look },
      subagents: { ask: child },
      grant: MAY_START,
    })
    return { host, seen }
  }

  test('a run and its children use one process, which ends with the run', async () => {
    const word = mark()
    const { host, seen } = family('run', word)
    const outcome = await openRuntime().run(host, 'go').result

    expect([outcome.status, seen]).toEqual(['completed', [1, 1, 1]])
    await noneRunning(word)
  })

  test('a model that calls no tool reads those that it was offered, also of its servers', async () => {
    const word = mark()
    const model = scriptedModel([{ calls: [{ name: 'frobnicate_all', input: {} }] }, 'Done.'])
    const sources = { odd: oddServer('x', { args: [word] }) }
    await openRuntime().run(agent({ name: 'lost', instructions: '', model, sources, grant: MAY_START }), 'go').result

    const offered = model.requests[0]?.tools.map(({ name }) => name) ?? []
    expect(offered).toContain('odd__echo')
    expect(resultIn(model.requests[1])).toMatch(/^There is no tool "frobnicate_all"\. .*\bodd__\w+/)
    await noneRunning(word)
  })

  test('many calls at once over one connection each get their own answer', async () => {
    const numbers = Array.from({ length: 40 }, (_, n) => n)
    const calls = numbers.map((n) => ({ name: 'odd__echo', input: { message: `m${n}` } }))
    const model = scriptedModel([{ calls }, 'Done.'])
    const sources = { odd: oddServer('x') }
    await openRuntime().run(agent({ name: 'many', instructions: '', model, sources, grant: MAY_START }), 'go').result

    expect(resultsIn(model.requests[1]).map(({ content }) => content)).toEqual(numbers.map((n) => `Echo: m${n}`))
  })

  test('two runs have a server each', async () => {
    const runtime = openRuntime()
    const model = scriptedModel((request) => {
      return resultsIn(request).length === 0 ? { calls: [{ name: 'odd__pid', input: {} }] } : 'Done.'
    })
    const sources = { odd: oddServer('x') }
    const who = agent({ name: 'caller', instructions: 'You call.', model, sources, grant: MAY_START })
    await Promise.all([1, 2].map(() => runtime.run(who, 'go').result))
    const pids = model.requests.filter((request) => resultsIn(request).length > 0).map(resultIn)

    expect(pids).toHaveLength(2)
    expect(new Set(pids).size).toBe(2)
  })

  test('with scope conversation each has its own', async () => {
    const word = mark()
    const { host, seen } = family('conversation', word)
    await openRuntime().run(host, 'go').result

    expect(Math.max(...seen)).toBeGreaterThan(1)
    await noneRunning(word)
  })

  test('with scope runtime it stays until the runtime is closed', async () => {
    const word = mark()
    const { who } = caller({ all: oddServer('x', { args: [word], scope: 'runtime' }) }, [
      ['all__echo', { message: 'x' }],
    ])
    const runtime = openRuntime()
    await runtime.run(who, 'go').result
    const [first] = servers(word)

    expect(first).toBeDefined()
    await runtime.close()
    await noneRunning(word)
  })

  test('a server is not started by a run that comes to no step', async () => {
    const word = mark()
    const { who } = caller({ all: oddServer('x', { args: [word] }) }, [])
    const controller = new AbortController()
    controller.abort()
    await openRuntime().run(who, 'go', { abortSignal: controller.signal }).result

    await noneRunning(word)
  })

  test('closing the runtime does not wait for a server that never answers', async () => {
    const word = mark()
    const { who } = caller({ all: oddServer('silent', { args: [word], startTimeoutMs: 60_000 }) }, [])
    const runtime = openRuntime({ engine: { graceMs: 50 } })
    runtime.run(who, 'go').result.catch(() => undefined)
    await until('the server', () => servers(word).length > 0)
    const since = performance.now()
    await runtime.close()

    // Its start would be waited for a minute.
    expect(performance.now() - since).toBeLessThan(10_000)
    await noneRunning(word)
  })

  test('closing the runtime in the middle of a start leaves nothing behind', async () => {
    const word = mark()
    const { who } = caller({ all: oddServer('x', { args: [word] }) }, [])
    const runtime = openRuntime({ engine: { graceMs: 50 } })
    runtime.run(who, 'go').result.catch(() => undefined)
    await new Promise((resolve) => setTimeout(resolve, 60))
    await runtime.close()

    await noneRunning(word)
  })
})
