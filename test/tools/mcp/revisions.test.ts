import path from 'node:path'
import { mcpServer } from 'legate/mcp'
import { describe, expect, test } from 'vitest'
import { eventsOf, only, openRuntime, resultIn, resultsIn, toolNamesIn } from '../../support/reading.ts'
import { caller, freePort, MAY_START, mark, noneRunning, oddServer, startHttp } from './support.ts'

const MODERN = path.join(import.meta.dirname, 'programs/modern.mjs')

type Place = 'stdio' | 'HTTP'

/** A server of 2026-07-28 that knows no other revision. */
async function modern(place: Place, options: object = {}) {
  if (place === 'stdio') return { source: mcpServer({ command: 'node', args: [MODERN, 'stdio'], ...options }) }
  const port = await freePort()
  const child = await startHttp([MODERN, 'http'], port, options as Record<string, string>)
  const url = `http://127.0.0.1:${port}/mcp`
  const seen = async () =>
    (await fetch(`http://127.0.0.1:${port}/seen`).then((response) => response.json())) as Record<string, string>[]
  // One that is gone for good is left out of the next step.
  return { source: mcpServer({ url, required: false }), child, seen }
}

async function answers(place: Place, calls: readonly [string, unknown][]) {
  const { source, ...others } = await modern(place)
  const { who, model } = caller(
    { new: source },
    calls.map(([name, input]) => [`new__${name}`, input] as [string, unknown]),
  )
  const events = await eventsOf(openRuntime().run(who, 'go'))
  return { shown: resultsIn(model.requests.at(-1)), model, events, ...others }
}

describe.each<Place>(['stdio', 'HTTP'])('a server of 2026-07-28 over %s', (place) => {
  test('gives its tools, resources and prompts, and calls reach it', async () => {
    const { shown, model, events } = await answers(place, [
      ['era', {}],
      ['echo', { message: 'hi' }],
      ['work', {}],
      ['list_resources', {}],
      ['read_resource', { uri: 'note://one' }],
      ['get_prompt', { name: 'greet' }],
    ])

    expect(shown.map(({ content }) => content)).toEqual([
      expect.stringMatching(/^modern/),
      'Echo: hi',
      'worked',
      'note://one - note: A note',
      '[note://one]\nThe note.',
      'user:\nHello.',
    ])
    expect(model.requests[0]?.messages[0]?.content).toMatch(/as their server says:\nSay era\./)
    expect(only(events, 'progress').map(({ data }) => data)).toContainEqual({ progress: 3, total: 3 })
  })

  test('an invalid tool is left out and named, and the others stay', async () => {
    const source =
      place === 'stdio'
        ? mcpServer({ command: 'node', args: [MODERN, 'stdio'], env: { ODD: '1' } })
        : (await modern(place, { ODD: '1' })).source
    const calls: [string, unknown][] = [
      ['new__era', {}],
      ['new__echo', { message: 'hi' }],
    ]
    const { who, model } = caller({ new: source }, calls, { use: [...MAY_START.use, 'exec:env ODD=1 node *'] })
    const events = await eventsOf(openRuntime().run(who, 'go'))

    expect(toolNamesIn(model.requests[0]).filter((name) => /era|echo|schema|words/.test(name))).toEqual([
      'new__era',
      'new__echo',
    ])
    expect(resultsIn(model.requests.at(-1)).map(({ content }) => content)).toEqual([
      expect.stringMatching(/^modern/),
      'Echo: hi',
    ])
    expect(only(events, 'warning').map(({ message }) => message)).toEqual([
      'new: a tool without a name was left out',
      'new: the tool "no_schema" was left out: its input schema does not describe an object',
      'new: the tool "words" was left out: its input schema does not describe an object',
    ])
  })

  test('a server that asks a person for input is refused in one line', async () => {
    const { shown } = await answers(place, [
      ['ask', {}],
      ['state', {}],
    ])
    const refused = /the server asks a person for more input, which is not supported here|elicitation/

    expect(shown.map(({ isError }) => isError)).toEqual([true, true])
    for (const { content } of shown) expect(content).toMatch(refused)
    for (const { content } of shown) expect(content).not.toContain('\n')
  })

  test('tools that it gets later are offered in the next step', async () => {
    const { model, shown } = await answers(place, [
      ['grow', {}],
      ['more', {}],
    ])

    expect(toolNamesIn(model.requests[0])).not.toContain('new__more')
    expect(toolNamesIn(model.requests[1])).toContain('new__more')
    expect(shown[1]?.content).toBe('more')
  })

  test('a server that dies in the middle of a call does not keep the call waiting', async () => {
    const { shown } = await answers(place, [['dies', {}]])

    expect(shown[0]?.content).toMatch(/may or may not have taken effect/)
  }, 20_000)

  test('a call that takes too long is stopped there too', async () => {
    const { source } = await modern(place, place === 'stdio' ? { timeoutMs: 2_000 } : {})
    const timed = place === 'stdio' ? source : mcpServer({ url: String(addressOf(source)), timeoutMs: 2_000 })
    const { who, model } = caller({ new: timed }, [
      ['new__wait', {}],
      ['new__stopped', {}],
    ])
    await openRuntime().run(who, 'go').result
    const [late, stopped] = resultsIn(model.requests.at(-1))

    expect(late?.content).toMatch(/took longer than 2000 ms/)
    expect(stopped?.content).toBe('1')
  })
})

function addressOf({ about }: { readonly about: unknown }): unknown {
  return Reflect.get(about as object, 'mcp')
}

test('over HTTP the headers repeat what the body says, and arguments that its schema names', async () => {
  const { seen } = await answers('HTTP', [['region', { region: 'eu 1' }]])
  const headers = (await seen?.()) ?? []
  const calls = headers.filter((one) => one['mcp-method'] === 'tools/call')

  expect(headers.filter((one) => one['mcp-method'] !== undefined).map((one) => one['mcp-method'])).toEqual(
    expect.arrayContaining(['server/discover', 'tools/list', 'tools/call']),
  )
  expect(calls).toMatchObject([
    { 'mcp-name': 'region', 'mcp-protocol-version': '2026-07-28', 'mcp-param-region': 'eu 1' },
  ])
})

test('a cancelled run over HTTP closes the stream of its call', async () => {
  const { source } = await modern('HTTP')
  const shared = mcpServer({ url: String(addressOf(source)), scope: 'runtime' })
  const runtime = openRuntime()
  const run = runtime.run(caller({ new: shared }, [['new__wait', {}]]).who, 'go')
  for await (const { type } of run) if (type === 'progress') break
  await run.cancel()
  const { who, model } = caller({ new: shared }, [['new__stopped', {}]])
  await runtime.run(who, 'go').result

  expect((await run.result).status).toBe('cancelled')
  expect(resultIn(model.requests[1])).toBe('1')
})

test('a list of tools is asked for again when its time has passed, and not before', async () => {
  const often = await modern('HTTP', { TTL_MS: '1' })
  const once = await modern('HTTP', { TTL_MS: '60000' })
  const times = async (source: typeof often.source) => {
    const { who, model } = caller({ new: source }, [
      ['new__era', {}],
      ['new__era', {}],
    ])
    await openRuntime().run(who, 'go').result
    return resultsIn(model.requests.at(-1)).map(({ content }) => content)
  }

  expect(await times(once.source)).toEqual(['modern, listed 1 times', 'modern, listed 1 times'])
  expect((await times(often.source)).at(-1)).not.toBe('modern, listed 1 times')
})

test('a tool that says something else of itself each time it is allowed is refused, and nobody is asked without end', async () => {
  const { source } = await modern('HTTP', { TTL_MS: '1', FICKLE: '1' })
  const grant = { use: ['tool:*', 'model:*', 'net:*'], ask: ['tool:new__era'] }
  const { who, model } = caller({ new: source }, [['new__era', {}]], grant)
  const runtime = openRuntime()
  const run = runtime.run(who, 'go')
  let asked = 0
  for await (const event of run) {
    if (event.type !== 'approval-request') continue
    asked++
    await new Promise((resolve) => setTimeout(resolve, 10))
    await runtime.answer(event.nodeId ?? '', { allow: true, always: true })
  }

  expect(asked).toBe(3)
  expect(resultIn(model.requests[1])).toBe(
    'tool:new__era is refused: it was changed 3 times while a person was asked to allow it.',
  )
  expect((await run.result).status).toBe('completed')
})

describe('servers before 2026-07-28', () => {
  test.each([
    ['answers that it does not know the question', 'strict', 10_000],
    ['ends when it is asked', 'exits', 10_000],
    ['does not answer', 'mute', 2_000],
    ['answers that, and then takes more than half of the time', 'slow', 4_000],
  ])('a server that %s is spoken to as before', async (_, mode, startTimeoutMs) => {
    const word = mark()
    const { who, model } = caller({ odd: oddServer(mode, { args: [word], startTimeoutMs }) }, [
      ['odd__echo', { message: 'hi' }],
    ])
    await openRuntime().run(who, 'go').result

    expect(resultIn(model.requests[1])).toBe('Echo: hi')
    await noneRunning(word)
  })
})

describe('a server that speaks no revision of ours', () => {
  test.each([
    ['later ones only', 'future', '2027-01-01'],
    ['an unknown one', 'ancient', '1999-01-01'],
  ])('%s: says so in one line', async (_, mode, version) => {
    const { who } = caller({ odd: oddServer(mode) }, [])
    const { error } = await openRuntime().run(who, 'go').result

    expect(error?.message).toBe(
      `The tools of "odd" are not available: it did not start: it speaks MCP ${version}, and we speak 2026-07-28 and the revisions before it`,
    )
  })
})
