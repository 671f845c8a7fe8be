import path from 'node:path'
import { agent, createRuntime, type PendingApproval, type Run, type Runtime } from 'legate'
import { mcpServer, type StdioServerOptions } from 'legate/mcp'
import { extensionSources } from 'legate/recipe'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { requestText } from '../../../src/core/grant/request.ts'
import { eventsOf, only, openRuntime, resultIn, toolNamesIn } from '../../support/reading.ts'
import { localStore } from '../../support/rows.ts'
import { lasting, memoryRows, stores } from '../../support/stores.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import { caller, MAY_START, mark, noneRunning, oddServer, running } from './support.ts'

async function answering(runtime: Runtime, run: Run, answer: object): Promise<string[]> {
  const asked: string[] = []
  for await (const event of run) {
    if (event.type !== 'approval-request' || event.nodeId === null) continue
    asked.push(`${event.request}: ${event.reason}`)
    await runtime.answer(event.nodeId, { allow: true, ...answer })
  }
  return asked
}

/** The one that begins like this. */
async function asked(runtime: Runtime, request: string): Promise<PendingApproval> {
  for (const giveUpAt = Date.now() + 5_000; ; ) {
    const found = (await runtime.approvals()).find((one) => one.request.startsWith(request))
    if (found !== undefined) return found
    if (Date.now() > giveUpAt) throw new Error(`nobody asks for ${request}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

describe('I2: starting a server is decided like everything else', () => {
  test('without a rule for its program it is not started, and a run that needs it is denied', async () => {
    const word = mark()
    const { who, model } = caller({ all: oddServer('x', { args: [word] }) }, [], { use: ['tool:*'] })
    const outcome = await openRuntime().run(who, 'go').result

    expect(outcome).toMatchObject({ status: 'denied', modelCalls: 0 })
    expect(outcome.error?.message).toMatch(
      /^The tools of "all" are not available: no rule of caller allows exec:node \S+server\.mjs x legate-mcp-/,
    )
    expect(model.requests).toEqual([])
    expect(running(word)).toEqual([])
  })

  test('a server that is not required is left out, and the model is told', async () => {
    const { who, model } = caller({ all: oddServer('x', { required: false }) }, [], { use: ['tool:*'] })
    const run = openRuntime().run(who, 'go')
    const events = await eventsOf(run)

    expect((await run.result).status).toBe('completed')
    expect(toolNamesIn(model.requests[0])).toEqual([])
    expect(only(events, 'warning')).toHaveLength(1)
  })

  test('I1: a child gets no server that its host may not pass on', async () => {
    const child = agent({
      name: 'child',
      instructions: '',
      model: scriptedModel(['no']),
      sources: { all: oddServer('x') },
      grant: MAY_START,
    })
    const model = scriptedModel([{ calls: [{ name: 'ask', input: { message: 'go' } }] }, 'Done.'])
    const grant = { use: ['tool:*', 'agent:*', 'exec:*'], delegate: ['tool:*'] }
    const host = agent({ name: 'host', instructions: '', model, subagents: { ask: child }, grant })
    await openRuntime().run(host, 'go').result

    expect(resultIn(model.requests[1])).toMatch(/no rule of host allows exec:node/)
  })

  test('a tool that is denied is not offered, and calling it by name is refused', async () => {
    const grant = { ...MAY_START, deny: ['tool:all__get-*'] }
    const { who, model } = caller({ all: oddServer('x') }, [['all__get-env', {}]], grant)
    await openRuntime().run(who, 'go').result

    expect(toolNamesIn(model.requests[0]).filter((name) => name.startsWith('all__get-'))).toEqual([])
    expect(resultIn(model.requests[1])).toMatch(/all__get-env is not allowed here: caller denies tool:all__get-\*/)
  })

  test('a person is asked once for a run, before its first step, and sees what would be started', async () => {
    const grant = { ...MAY_START, ask: ['exec:*'] }
    const calls = [1, 2, 3].map(() => ['all__echo', { message: 'x' }] as [string, unknown])
    const { who } = caller({ all: oddServer('x') }, calls, grant)
    const runtime = openRuntime()
    const run = runtime.run(who, 'go')
    const first = await asked(runtime, 'exec:node')

    expect(first.request).toMatch(/^exec:node \S+server\.mjs x$/)
    expect(first.reason).toBe('caller asks for exec:*')
    expect(await answering(runtime, run, {})).toEqual([`${first.request}: caller asks for exec:*`])
    expect((await run.result).status).toBe('completed')
  })

  test('secrets in its command line are shown to nobody', async () => {
    const grant = { ...MAY_START, ask: ['exec:*'] }
    const [one, two, three] = ['1', '2', '3'].map((end) => `abc-secret-Zq81Lm55Tt09Xx37Aa12Bb34-${end}`)
    const args = ['--token', `${one}`, `PASSWORD=${two}`, `postgres://me:${three}@db`, 'plain']
    const { who, model } = caller({ all: oddServer('args', { args }) }, [['all__args', {}]], grant)
    const runtime = openRuntime()
    const run = runtime.run(who, 'go')
    const events: unknown[] = []
    for await (const event of run) {
      events.push(event)
      if (event.type === 'approval-request') await runtime.answer(event.nodeId ?? '', { allow: true })
    }
    const everything = JSON.stringify([events, model.requests, localStore(runtime).nodesOf(run.id), await run.result])

    const mark = '\\*{3}\\(37:\\w{4}\\)'
    expect(everything).toMatch(new RegExp(`--token '${mark}' 'PASSWORD=${mark}' 'postgres://me:${mark}@db' plain`))
    expect(everything).not.toContain('abc-secret')
    expect(resultIn(model.requests[1])).toBe('["--token","***","PASSWORD=***","postgres://me:***@db","plain"]')
  })

  test('I11 no value of a definition hides what would be started', () => {
    const shown = (command: string, args: readonly string[], env = {}) =>
      mcpServer({ command, args, env }).needs.map(requestText)

    expect(shown('node', ['./evil.cjs'], { API_KEY: './evil.cjs' })).toEqual([
      "exec:env 'API_KEY=***(10:e6cc)' node ./evil.cjs",
    ])
    expect(shown('npx', ['evil-package'], { API_KEY: 'evil-package' })).toEqual([
      expect.stringMatching(/^exec:env 'API_KEY=\*{3}\(12:\w{4}\)' npx evil-package$/),
    ])
    expect(shown('node', ['-e', 'run()', '--', '--token', 'run()'])).toEqual([
      "exec:node -e 'run()' -- --token 'run()'",
    ])
    expect(shown('sh', ['-c', 'TOKEN=abc; touch PWNED'])).toEqual(["exec:sh -c 'TOKEN=abc; touch PWNED'"])
  })

  test.each<[string, Partial<StdioServerOptions>, Partial<StdioServerOptions>]>([
    ['secrets', {}, { envKeys: ['HOME'] }],
    ['another variable from a secret', { envFrom: { A: `$${'{'}B}` } }, { envFrom: { C: `$${'{'}B}` } }],
    ['another folder', {}, { cwd: '/' }],
  ])('I11 always for one server is no yes for another of the same command line with %s', async (_, one, other) => {
    const grant = { ...MAY_START, ask: ['exec:*'] }
    const sources = { first: oddServer('x', one), same: oddServer('x', one), second: oddServer('x', other) }
    const { who } = caller(sources, [], grant)
    const runtime = openRuntime()

    expect(await answering(runtime, runtime.run(who, 'go'), { always: true })).toEqual([
      expect.stringMatching(/^exec:node .*: caller asks for exec:\*$/),
      expect.stringMatching(/^exec:node .*: caller asks for exec:\*, and it has changed since it was allowed$/),
    ])
  })

  test('I11 the same holds for servers of one host: their address, headers and secrets', () => {
    const server = (more: object) => mcpServer({ url: 'https://host.test/docs', ...more } as never).needs[0]?.version
    const versions = [
      {},
      { url: 'https://host.test/collect' },
      { headers: { 'x-k': 'v' } },
      { headers: { 'x-other': 'v' } },
      { envKeys: ['KEY'] },
    ].map(server)

    expect(new Set(versions).size).toBe(5)
    expect(server({})).toBe(versions[0])
  })

  test('a denial ends a run that needs it', async () => {
    const { who } = caller({ all: oddServer('x') }, [], { ...MAY_START, ask: ['exec:*'] })
    const runtime = openRuntime()
    const run = runtime.run(who, 'go')
    await answering(runtime, run, { allow: false, reason: 'Not here.' })

    const message = 'You denied starting MCP server `all`, which this agent requires: Not here.'
    expect(await run.result).toMatchObject({ status: 'denied', error: { message } })
  })

  test.each(lasting)(
    'on %s: a denial of what is not required lets a run go on without it, also elsewhere',
    async (_, open) => {
      const rows = open()
      const model = scriptedModel([{ calls: [{ name: 'all__echo', input: { message: 'x' } }] }, 'Done.'])
      const make = () =>
        agent({
          name: 'caller',
          instructions: '',
          model,
          sources: { all: oddServer('x', { required: false }), more: oddServer('args', { required: false }) },
          grant: { ...MAY_START, ask: ['exec:*'] },
        })
      const first = createRuntime({ store: rows.open() })
      const run = first.run(make(), 'go')
      const { nodeId } = await asked(first, 'exec:node')
      await first.answer(nodeId, { allow: false, by: 'ada', reason: 'Not here.' })
      const second = await asked(first, 'exec:node')
      await first.close()
      const later = openRuntime({ store: rows.open(), agents: [make()] })
      await later.resume()
      await later.answer(second.nodeId, { allow: true })
      const outcome = await (await later.attach(run.id)).result

      expect(second.nodeId).toBe(nodeId)
      expect(outcome).toMatchObject({
        status: 'completed',
        absent: [{ name: 'all', reason: 'ada denied starting it: Not here.' }],
      })
      expect(toolNamesIn(model.requests[0]).filter((name) => name.startsWith('all__'))).toEqual([])
      expect(toolNamesIn(model.requests[0])).toContain('more__args')
      expect(JSON.stringify(model.requests[1])).toContain('There is no tool')
    },
  )

  test('what was allowed for a run holds in the process that goes on with it', async () => {
    const [, open = memoryRows] = stores.find(([name]) => name.includes('sqlite')) ?? []
    const rows = open()
    const grant = { ...MAY_START, ask: ['exec:*', 'tool:all__echo'] }
    const model = scriptedModel(({ messages }) => {
      const isDone = messages.some(({ role }) => role === 'tool')
      return isDone ? 'Done.' : { calls: [{ name: 'all__echo', input: { message: 'x' } }] }
    })
    const make = () => agent({ name: 'caller', instructions: '', model, sources: { all: oddServer('x') }, grant })
    const first = createRuntime({ store: rows.open() })
    const run = first.run(make(), 'go')
    const answer = async (runtime: Runtime, request: string) =>
      runtime.answer((await asked(runtime, request)).nodeId, { allow: true })
    await answer(first, 'exec:node')
    await asked(first, 'tool:all__echo')
    await first.close()
    const second = openRuntime({ store: rows.open(), agents: [make()] })
    await second.resume()
    const events = eventsOf(await second.attach(run.id))
    await answer(second, 'tool:all__echo')

    expect(only(await events, 'approval-request').map(({ request }) => request)).toEqual([
      expect.stringMatching(/^exec:node \S+server\.mjs x/),
      'tool:all__echo',
    ])
    expect(only(await events, 'tool-result')[0]?.content).toBe('Echo: x')
  })
})

describe('I2: a secret is decided with the start that it is for', () => {
  const SECRETS = { envKeys: ['FIRST_TOKEN', 'SECOND_TOKEN'], secrets: (name: string) => `value-of-${name}` }
  const OPEN = { ...MAY_START, use: [...MAY_START.use, 'secret:*'] }

  test('a person answers once for a program and all of its secrets, and sees where they go', async () => {
    const grant = { ...OPEN, ask: ['exec:*', 'secret:*'] }
    const { who } = caller({ all: oddServer('x', SECRETS) }, [], grant)
    const runtime = openRuntime()
    const run = runtime.run(who, 'go')
    const one = await asked(runtime, 'exec:node')

    expect(one.input).toMatchObject({ command: 'node', secrets: SECRETS.envKeys })
    expect(JSON.stringify(one)).not.toContain('value-of')
    expect(await answering(runtime, run, {})).toEqual([
      `${one.request}: caller asks for exec:*; caller asks for secret:*`,
    ])
    expect((await run.result).status).toBe('completed')
  })

  test.each(['run', 'conversation', 'runtime'] as const)(
    'I1 a child that asks is asked, also where its host has the same server open, with scope %s',
    async (scope) => {
      const word = mark()
      const server = () => oddServer('x', { ...SECRETS, args: [word], scope })
      const call = { calls: [{ name: 'all__echo', input: { message: 'x' } }] }
      const child = agent({
        ...{ name: 'child', instructions: '', model: scriptedModel([call, 'done']), sources: { all: server() } },
        grant: { ...OPEN, ask: ['exec:*', 'secret:*'] },
      })
      const makeHost = (ask: readonly string[]) =>
        agent({
          ...{ name: 'host', instructions: '', sources: { all: server() }, subagents: { child } },
          model: scriptedModel([call, { calls: [{ name: 'child', input: { message: 'go' } }] }, 'Done.']),
          grant: { ...OPEN, ask },
        })
      const runtime = openRuntime()
      const byRule = await answering(runtime, runtime.run(makeHost([]), 'go'), { allow: false })
      expect(byRule).toEqual([
        expect.stringMatching(/^exec:node .*: child asks for exec:\*; child asks for secret:\*$/),
      ])
      // A yes to what the host asks is no yes to what the child asks.
      const byPerson = await answering(runtime, runtime.run(makeHost(['exec:*', 'secret:*']), 'go'), {})
      expect(byPerson).toHaveLength(2)
    },
  )

  test('a yes holds for a child that asks for no more than its host, while the server runs', async () => {
    const word = mark()
    const server = () => oddServer('x', { ...SECRETS, args: [word] })
    const call = { calls: [{ name: 'all__echo', input: { message: 'x' } }] }
    const child = agent({
      ...{ name: 'child', instructions: '', model: scriptedModel([call, 'done']), sources: { all: server() } },
      grant: OPEN,
    })
    const host = agent({
      ...{ name: 'host', instructions: '', sources: { all: server() }, subagents: { child } },
      model: scriptedModel([call, { calls: [{ name: 'child', input: { message: 'go' } }] }, 'Done.']),
      grant: { ...OPEN, ask: ['exec:*', 'secret:*'] },
    })
    const runtime = openRuntime()
    const run = runtime.run(host, 'go')
    expect(await answering(runtime, run, {})).toHaveLength(1)
    expect((await run.result).status).toBe('completed')
  })

  test('where a rule allows the program, they are asked for by their names, once', async () => {
    const { who } = caller({ all: oddServer('x', SECRETS) }, [], { ...OPEN, ask: ['secret:*'] })
    const runtime = openRuntime()
    const run = runtime.run(who, 'go')
    const { input } = await asked(runtime, 'secret:FIRST_TOKEN')

    expect(input).toMatchObject({ mcp: expect.stringMatching(/^node .*server\.mjs x$/), secrets: SECRETS.envKeys })
    expect(await answering(runtime, run, {})).toEqual(['secret:FIRST_TOKEN: caller asks for secret:*'])
    expect((await run.result).status).toBe('completed')
  })

  test('a denial of one of them names all that is missing, and nothing starts', async () => {
    const word = mark()
    const grant = { use: ['tool:*', 'model:*', 'secret:FIRST_*'] }
    const server = extensionSources(
      [
        {
          ...{ type: 'stdio', name: 'all', description: '', availableTools: [], required: true, timeoutSeconds: null },
          ...{ cmd: 'node', args: [word], envs: {}, envKeys: ['FIRST_TOKEN', 'SECOND_TOKEN'] },
        },
      ],
      { secrets: SECRETS.secrets },
    )
    const { who } = caller(server.sources, [], grant)
    const { status, error } = await openRuntime().run(who, 'go').result

    expect([status, error?.message]).toEqual([
      'denied',
      `The tools of "all" are not available: no rule of caller allows exec:node ${word} and secret:SECOND_TOKEN; to let a secret pass, add 'secret:SECOND_TOKEN' to its rules`,
    ])
  })

  test('I11 always for a secret is no yes for another server that wants it', async () => {
    const sources = { first: oddServer('x', SECRETS), same: oddServer('x', SECRETS), other: oddServer('args', SECRETS) }
    const { who } = caller(sources, [], { ...OPEN, ask: ['secret:*'] })
    const runtime = openRuntime()

    expect(await answering(runtime, runtime.run(who, 'go'), { always: true })).toEqual([
      'secret:FIRST_TOKEN: caller asks for secret:*',
      'secret:FIRST_TOKEN: caller asks for secret:*, and it has changed since it was allowed',
    ])
  })

  test('five servers on one host, and five that get one secret, are asked for one by one, and none counts as a change', async () => {
    const names = ['a', 'b', 'c', 'd', 'e']
    const far = names.map((name) => [name, mcpServer({ url: `http://127.0.0.1:9/${name}`, required: false })] as const)
    const near = names.map((name) => [name, oddServer('x', { ...SECRETS, args: [name] })] as const)
    for (const [sources, grant] of [
      [far, { use: ['tool:*', 'net:*'], ask: ['net:*'] }],
      [near, { ...OPEN, ask: ['secret:*'] }],
    ] as const) {
      const { who } = caller(Object.fromEntries<ReturnType<typeof mcpServer>>(sources), [], grant)
      const runtime = openRuntime()
      const run = runtime.run(who, 'go')
      expect(await answering(runtime, run, {})).toHaveLength(5)
      expect((await run.result).status).toBe('completed')
    }
  })

  test('I11 a host that a secret is part of is decided and shown after the secret', async () => {
    const names: Readonly<Record<string, string>> = { PLACE: 'http://127.0.0.1:9/mcp' }
    const server = mcpServer({
      url: `$${'{'}PLACE}`,
      envKeys: ['PLACE'],
      secrets: (name) => names[name],
      required: false,
    })
    const { who } = caller({ far: server }, [], { use: ['tool:*', 'net:*'], ask: ['net:*', 'secret:*'] })
    const runtime = openRuntime()
    const run = runtime.run(who, 'go')
    const first = await asked(runtime, 'secret:PLACE')

    expect(JSON.stringify(first)).not.toContain('127.0.0.1')
    expect(await answering(runtime, run, {})).toEqual([
      'secret:PLACE: caller asks for secret:*',
      'net:127.0.0.1: caller asks for net:*',
    ])
    expect((await run.result).status).toBe('completed')
  })

  test('I11 what refuses a host that a secret is part of, and what tells that it cannot be reached, does not show it', async () => {
    const place = 'Tenant-abc123XYZ789'
    const server = mcpServer({
      ...{ url: `https://$${'{'}PLACE}.invalid/mcp`, envKeys: ['PLACE'], secrets: () => place },
      required: false,
    })
    for (const net of [[], ['net:*']]) {
      const { who, model } = caller({ far: server }, [], { use: ['tool:*', ...net] })
      const runtime = openRuntime()
      const run = runtime.run(who, 'go')
      const shown = JSON.stringify([await eventsOf(run), await run.result, model.requests]).toLowerCase()
      expect(shown).toContain('are not available')
      expect(shown).toContain('***')
      for (let from = 0; from + 8 <= place.length; from++) {
        expect(shown).not.toContain(place.toLowerCase().slice(from, from + 8))
      }
    }
  })

  test('a secret with a default that is not set is no secret, and it is not passed if it is set afterwards', async () => {
    const values: Record<string, string> = {}
    const options = { envFrom: { MODE: `$${'{'}LATE:-plain}` }, secrets: (name: string) => values[name] }
    const server = oddServer('x', options)
    expect(server.needs.map(({ domain }) => domain)).toEqual(['exec'])
    const decided = server.needs
    values['LATE'] = 'value-of-late'
    const logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
    const opened = await server.open({ name: 'all', logger, signal: new AbortController().signal, decided })
    const told = await opened.tools.get('env')?.tool.execute({}, { signal: new AbortController().signal } as never)
    await opened.close()

    expect(JSON.stringify(told)).toContain('plain')
    expect(JSON.stringify(told)).not.toContain('value-of-late')
    expect(server.needs.map(requestText)).toContain('secret:LATE')
  })

  test('explain says which layer lets a secret of the code pass', async () => {
    const who = caller({ all: oddServer('x', SECRETS) }, [], MAY_START).who
    const runtime = openRuntime({ grant: { deny: ['tool:none'] } })

    expect((await runtime.explain(who, 'secret:FIRST_TOKEN')).text.split('\n')).toEqual([
      'secret:FIRST_TOKEN: allow, every layer allows it',
      '  the runtime: allow by secret:*',
      '  caller: allow by secret:FIRST_TOKEN',
    ])
    expect(await runtime.explain(who, 'secret:THIRD_TOKEN')).toMatchObject({ verdict: 'deny', by: 'caller' })
  })
})

test('a tool that changed since it was allowed for the conversation is asked for again', async () => {
  const file = path.join(tempFolder(), 'changed')
  const grant = { ...MAY_START, ask: ['tool:odd__act'] }
  const calls = [1, 2, 3].map(() => ['odd__act', {}] as [string, unknown])
  const { who, model } = caller({ odd: oddServer('changing', { args: [file] }) }, calls, grant)
  const runtime = openRuntime()
  const asked = await answering(runtime, runtime.run(who, 'go'), { always: true })

  expect(asked).toEqual([
    'tool:odd__act: caller asks for tool:odd__act',
    'tool:odd__act: caller asks for tool:odd__act, and it has changed since it was allowed',
  ])
  expect(model.requests.map(({ tools }) => tools[0]?.description)).toEqual(['Acts', ...Array(3).fill('Acts otherwise')])
})

test('a server of a run that waits for a person is there when the answer comes', async () => {
  const word = mark()
  const grant = { ...MAY_START, ask: ['tool:all__echo'] }
  const { who, model } = caller({ all: oddServer('x', { args: [word] }) }, [['all__echo', { message: 'x' }]], grant)
  const runtime = openRuntime()
  const run = runtime.run(who, 'go')
  await answering(runtime, run, {})

  expect(resultIn(model.requests[1])).toBe('Echo: x')
  await noneRunning(word)
})
