import path from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { mcpServer } from 'legate/mcp'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { messageOf } from '../../../src/core/base/error.ts'
import { decide } from '../../../src/core/grant/decide.ts'
import { useLayer } from '../../../src/core/grant/grant.ts'
import { programRequest, readRequest, requestText } from '../../../src/core/grant/request.ts'
import { plainEnvironment } from '../../../src/core/tool/environment.ts'
import { StdioTransport } from '../../../src/core/tools/mcp/stdio-transport.ts'
import { PROMPTLY_MS, watchWork } from '../../support/pace.ts'
import { eventsOf, only, openRuntime, resultIn, resultsIn, toolNamesIn } from '../../support/reading.ts'
import { localStore } from '../../support/rows.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import { caller, mark, noneRunning, oddServer } from './support.ts'

afterEach(() => {
  vi.unstubAllEnvs()
})

async function results(mode: string, calls: readonly string[], options: object = {}) {
  const names = calls.map((name) => [`odd__${name}`, {}] as [string, unknown])
  const { who, model } = caller({ odd: oddServer(mode, options) }, names)
  const runtime = openRuntime()
  const outcome = await runtime.run(who, 'go').result
  const shown = resultsIn(model.requests.at(-1)).map(({ content, isError }) => ({ content: String(content), isError }))
  return { outcome, shown, model }
}

const MANY = 'odd: it has more than 500 tools: those after the first 500 were left out'

describe('I10: a server that does not start', () => {
  test.each([
    ['silent', /it did not start: .*timed out/i, 700],
    ['nolist', /timed out/i, 700],
    // It answers: a busy machine may take a while to start it.
    ['notools', /it gave no list of tools/, 10_000],
  ])('%s', async (mode, reason, startTimeoutMs) => {
    const word = mark()
    const started = performance.now()
    const { outcome } = await results(mode, [], { args: [word], startTimeoutMs })

    expect([outcome.status, outcome.error?.code]).toEqual(['unavailable', 'unavailable'])
    expect(outcome.error?.message).toMatch(reason)
    expect(outcome.error?.message).toMatch(/^The tools of "odd" are not available: /)
    expect(performance.now() - started).toBeLessThan(startTimeoutMs + 15_000)
    await noneRunning(word)
  })

  test('a program that is not there, and one that ends at once, say so without secrets', async () => {
    const absent = await results('x', [], { command: 'no-such-program-here' })
    const failed = await results('stderr', [], { envKeys: ['DB_PASSWORD'], secrets: () => 'hunter2hunter2' })

    expect(absent.outcome.error?.message).toMatch(/not allowed|no rule of caller allows exec:no-such-program-here/)
    expect(failed.outcome.error?.message).toMatch(/exit code 1; it said: could not reach the database with \*\*\*/)
    expect(JSON.stringify(failed.outcome)).not.toContain('hunter2')
  })

  test('a server that is not required is told of, and the run goes on', async () => {
    const { who, model } = caller({ odd: oddServer('silent', { required: false, startTimeoutMs: 300 }) }, [])
    const run = openRuntime().run(who, 'go')
    const events = await eventsOf(run)

    expect((await run.result).status).toBe('completed')
    expect(only(events, 'warning').map(({ message }) => message)).toEqual([
      expect.stringMatching(/^The tools of "odd" are not available: it did not start/),
    ])
    expect(model.requests[0]?.messages[0]?.content).toMatch(/The tools of "odd" are not available/)
  })
})

describe('I10: a server that starts and misbehaves', () => {
  test('output that is no message is passed over', async () => {
    const { shown } = await results('garbage', ['pid'])

    expect(shown[0]?.content).toMatch(/^\d+$/)
  })

  test('a flood of output does not keep it from being used', async () => {
    const { shown } = await results('flood', ['pid'])

    expect(shown[0]?.content).toMatch(/^\d+$/)
  })

  test.each([
    ['words', []],
    ['JSON that is no message', ['null']],
    ['objects that are no messages', ['{}']],
    ['empty lines', ['']],
  ])('a server that writes nothing but %s is given up, and holds up nobody', async (_name, args) => {
    const yes = mcpServer({ command: 'yes', args, startTimeoutMs: 20_000 })
    const { who } = caller({ yes }, [['yes__x', {}]], { use: ['tool:*', 'exec:*'] })
    const late = monitorEventLoopDelay({ resolution: 10 })
    late.enable()
    const { status, error } = await openRuntime().run(who, 'go').result
    late.disable()

    expect(status).toBe('unavailable')
    expect(error?.message).toMatch(/it wrote 10000 lines in a row that are no messages/)
    expect(late.max / 1e6).toBeLessThan(PROMPTLY_MS)
  })

  test.each(['objects', 'notices'])('tens of thousands of %s in the middle of a call hold up nobody', async (name) => {
    const late = monitorEventLoopDelay({ resolution: 10 })
    late.enable()
    const { outcome, shown } = await results('usual', [name], { timeoutMs: 60_000 })
    late.disable()

    expect(outcome.status).toBe('completed')
    expect(shown[0]?.content).toMatch(name === 'objects' ? /10000 lines in a row that are no messages/ : /^done$/)
    expect(late.max / 1e6).toBeLessThan(PROMPTLY_MS)
  })

  test('results that are no objects, too deep or too many: the call fails at once, and the next one works', async () => {
    const names = ['no_result', 'a_number', 'a_list', 'very_deep', 'too_many', 'echo']
    const began = performance.now()

    const { outcome, shown } = await results('usual', names, { timeoutMs: 60_000 })

    expect(outcome.status).toBe('completed')
    expect(shown.slice(0, 5).map(({ isError }) => isError)).toEqual([true, true, true, true, true])
    for (const { content } of shown.slice(0, 3))
      expect(content).toMatch(/the server gave a result that is not an object/)
    expect(shown[3]?.content).toMatch(/nested more than 1000 levels deep/)
    expect(shown[4]?.content).toMatch(/more than 100000 values/)
    expect(shown[5]).toEqual({ content: 'Echo: undefined', isError: false })
    expect(performance.now() - began).toBeLessThan(30_000)
  })

  test('errors that are too deep or no errors: the call fails at once, and the next one works', async () => {
    const began = performance.now()

    const { outcome, shown } = await results('usual', ['deep_error', 'odd_error', 'echo'], { timeoutMs: 60_000 })

    expect(outcome.status).toBe('completed')
    expect(shown.map(({ isError }) => isError)).toEqual([true, true, false])
    expect(shown[0]?.content).toMatch(/nested more than 1000 levels deep/)
    expect(shown[1]?.content).toMatch(/the server gave an error without a code and a message/)
    expect(performance.now() - began).toBeLessThan(30_000)
  })

  test('names that are invalid, too long, double or missing', async () => {
    const { who, model } = caller({ odd: oddServer('names') }, [
      ['odd__good', {}],
      ['odd__constructor', {}],
      ['odd____proto__', {}],
    ])
    const events = await eventsOf(openRuntime().run(who, 'go'))
    const names = toolNamesIn(model.requests[0])

    expect(names.every((name) => /^[a-zA-Z0-9_-]{1,64}$/.test(name))).toBe(true)
    expect(new Set(names).size).toBe(names.length)
    expect(names.filter((name) => name.startsWith('odd__read_file_'))).toHaveLength(2)
    expect(names).not.toContain('odd__task_only')
    const told = only(events, 'warning').map(({ message }) => message)
    expect(told).toContain('odd: two tools are named "good": the second was left out')
    expect(told).toContain(`odd: the tool "${'y'.repeat(64)}..." was left out: its name has more than 256 characters`)
    expect(told).toContain('odd: the tool "no_schema" was left out: its input schema does not describe an object')
    expect(told).toContain('odd: the tool "task_only" was left out: it runs as a task only')
    expect(resultsIn(model.requests.at(-1)).map(({ content }) => content)).toEqual([
      'called good',
      'called constructor',
      'called __proto__',
    ])
    expect(model.requests[0]?.tools.find(({ name }) => name === 'odd__hidden')?.description).toBe('Plain words')
  })

  test('schemas that multiply, never end, are huge or invalid are refused', async () => {
    const input = { a: `${'a'.repeat(40)}!` }
    const { who, model } = caller({ odd: oddServer('schemas') }, [
      ['odd__doubling', input],
      ['odd__pattern', input],
      ['odd__circle', input],
      ['odd__broken', input],
      ['odd__pattern', {}],
    ])
    const workMs = watchWork()
    const events = await eventsOf(openRuntime().run(who, 'go'))
    const shown = resultsIn(model.requests.at(-1)).map(({ content }) => String(content))

    expect(shown.slice(0, 4)).toEqual(['doubling', 'pattern', 'circle', 'broken'].map((name) => `called ${name}`))
    expect(shown[4]).toMatch(/arguments of odd__pattern are wrong/)
    expect(only(events, 'warning').map(({ message }) => message)).toEqual([
      expect.stringMatching(/"deep" was left out: its input schema is not plain JSON/),
      expect.stringMatching(/"huge" was left out: its input schema is larger than 256 KB/),
    ])
    expect(workMs()).toBeLessThan(5_000)
  })

  test.each([
    ['10,000 tools at once', 'many', 500, [MANY]],
    ['10,000 tools in pages', 'paged', 500, [MANY]],
    [
      'pages without end',
      'endless',
      50,
      ['odd: its list of tools has more than 50 pages: the tools after them were left out'],
    ],
    ['a page that leads to itself', 'repeating', 1, ['odd: two tools are named "one": the second was left out']],
  ])('%s', async (_, mode, offered, warnings) => {
    const { who, model } = caller({ odd: oddServer(mode) }, [])
    const workMs = watchWork()
    const run = openRuntime().run(who, 'go')
    const events = await eventsOf(run)

    expect((await run.result).status).toBe('completed')
    expect(toolNamesIn(model.requests[0])).toHaveLength(offered)
    expect(only(events, 'warning').map(({ message }) => message)).toEqual(warnings)
    expect(workMs()).toBeLessThan(5_000)
  })

  test('control characters of a server are shown to nobody', async () => {
    const { who, model } = caller({ odd: oddServer('controls') }, [])
    await openRuntime().run(who, 'go').result
    const [tool] = model.requests[0]?.tools ?? []

    expect(tool?.name).toMatch(/^odd__red_31m_line$/)
    expect(tool?.description).toBe('Red[31m words\nand\ta line')
  })

  test('a result of 50 MB ends the connection, and the next call starts it again', async () => {
    const { shown } = await results('x', ['big', 'pid'])

    expect(shown[0]).toMatchObject({ isError: true, content: expect.stringMatching(/a message of more than 16 MB/) })
    expect(shown[0]?.content).toMatch(/may or may not have taken effect/)
    expect(shown[1]?.content).toMatch(/^\d+$/)
  })

  test('a long result is cut, and kept', async () => {
    const { shown, model } = await results('x', ['long'])

    expect(shown[0]?.content).toMatch(/\[cut: 65536 of 200003 bytes shown\./)
    expect(toolNamesIn(model.requests[1])).toContain('read_result')
  })

  test('a server that dies in the middle of a call is started again for the next', async () => {
    const { shown, outcome } = await results('x', ['pid', 'dies', 'pid', 'killed', 'pid'])
    const pids = [shown[0], shown[2], shown[4]].map((one) => one?.content)

    expect(outcome.status).toBe('completed')
    expect(shown[1]).toMatchObject({ isError: true, content: expect.stringMatching(/it ended with exit code 3/) })
    expect(shown[1]?.content).toMatch(/may or may not have taken effect/)
    expect(shown[3]?.isError).toBe(true)
    expect(new Set(pids).size).toBe(3)
  })

  test('a server that dies at every start is not started for ever', async () => {
    const file = path.join(tempFolder(), 'dead')
    const { shown, outcome } = await results('crashloop', ['pid', 'pid'], { args: [file], required: false })

    expect(outcome.status).toBe('completed')
    expect(shown[0]?.isError).toBe(true)
    expect(shown[1]?.content).toMatch(/There is no tool "odd__pid"/)
  })

  test('a call that is never answered ends with its time', async () => {
    const { shown } = await results('x', ['never'], { timeoutMs: 400 })

    expect(shown[0]?.content).toMatch(/took longer than 400 ms and was stopped/)
  })

  test('thousands of notes of progress are not thousands of events', async () => {
    const { who } = caller({ odd: oddServer('chatty', { timeoutMs: 800 }) }, [['odd__never', {}]])
    const events = await eventsOf(openRuntime().run(who, 'go'))

    expect(only(events, 'progress').length).toBeGreaterThan(0)
    expect(only(events, 'progress').length).toBeLessThan(50)
  })

  test('invalid results, results nested too deeply and results of an unknown kind are errors that the model reads', async () => {
    const { shown } = await results('x', ['wrong', 'odd', 'error', 'media', 'deep_result'])

    expect(shown.map(({ isError }) => isError ?? false)).toEqual([true, true, true, false, false])
    expect(shown[2]?.content).toMatch(/of this \. The end\.$/)
    expect(shown[3]?.content).toMatch(/\[image left out: it has 6000000 characters/)
  })

  test('a server that never reads its input makes no buffer grow without limit: further messages are refused', async () => {
    const request = programRequest([process.execPath, '-e', 'setInterval(() => undefined, 1_000)'])
    const transport = new StdioTransport({ request, cwd: undefined, env: plainEnvironment() })
    await transport.start()
    const send = (id: number, size: number) =>
      transport.send({
        jsonrpc: '2.0',
        id,
        method: 'tools/call',
        params: { name: 'a', arguments: 'x'.repeat(size) },
      } as never)
    const waiting = Array.from({ length: 4 }, (_, id) => send(id, 3_900_000).catch(messageOf))

    await expect(send(4, 3_900_000)).rejects.toThrow(
      'the server does not read its input: no more than 16 MB wait for it',
    )
    await expect(send(5, 3_900_000)).rejects.toThrow('no more than 16 MB')
    await transport.close()
    for (const said of await Promise.all(waiting)) expect(said).toBeTypeOf('string')
  })

  test('one message of the largest size waits for a server that has not begun to read', async () => {
    const program = 'let size = 0; setTimeout(() => process.stdin.on("data", (c) => (size += c.length)), 100)'
    const request = programRequest([process.execPath, '-e', program])
    const transport = new StdioTransport({ request, cwd: undefined, env: plainEnvironment() })
    await transport.start()

    await transport.send({ jsonrpc: '2.0', id: 1, method: 'a', params: { a: 'x'.repeat(17_000_000) } } as never)
    await transport.send({ jsonrpc: '2.0', id: 2, method: 'a', params: { a: 'x'.repeat(15_000_000) } } as never)
    await transport.close()
  })

  test('a server that does not hear that it should end is killed', async () => {
    const word = mark()
    const { outcome } = await results('stubborn', ['pid'], { args: [word] })

    expect(outcome.status).toBe('completed')
    await noneRunning(word)
  })
})

test('what the environment of a server holds, and what of it is shown', async () => {
  process.env['LEGATE_TEST_OURS'] = 'ours-only'
  const given: Readonly<Record<string, string>> = { API_TOKEN: 'very-secret-token', LD_PRELOAD: '/tmp/evil.so' }
  const hidden = `$${'{'}API_TOKEN}`
  const options = {
    env: { LOG_LEVEL: 'plain', MY_API_KEY: 'inline-secret' },
    envFrom: { node_options: hidden, PYTHONUSERBASE: `${hidden}/x` },
    envKeys: ['API_TOKEN', 'NOT_SET', 'LD_PRELOAD'],
    secrets: (name: string) => given[name],
  }
  const warned: string[] = []
  const note = (message: string) => {
    warned.push(message)
  }
  const logger = { debug: note, info: note, warn: note, error: note }
  const grant = { use: ['tool:*', 'model:*', 'exec:env MY_API_KEY=***(13:*) node *'] }
  const { who, model } = caller({ odd: oddServer('x', options) }, [['odd__env', {}]], grant)
  const runtime = openRuntime({ logger })
  const run = runtime.run(who, 'go')
  const events = await eventsOf(run)
  const shown = resultIn(model.requests[1])

  expect(shown).toContain('"LOG_LEVEL":"plain"')
  expect(shown).toContain('"API_TOKEN":"***"')
  expect(shown).not.toMatch(/ours-only|LD_PRELOAD|node_options|PYTHONUSERBASE/)
  expect(warned).toContain('odd: LD_PRELOAD may decide what is loaded, and its value cannot be shown; it was dropped.')
  expect(only(events, 'warning').map(({ message }) => message)).toContain('odd: NOT_SET is not set, and it may need it')
  const everything = JSON.stringify([events, warned, model.requests, localStore(runtime).nodesOf(run.id)])
  expect(everything).not.toMatch(/very-secret-token|inline-secret/)
})

test.each(['very-secret-token', 'abc123abc'])('the secret %s of a server is shown nowhere', async (secret) => {
  const source = oddServer('leaky', { envKeys: ['API_TOKEN'], secrets: () => secret })
  const shown = ['split', 'failing', 'telling', 'blob', 'structured', 'link']
  const calls: [string, unknown][] = [
    ...shown.map((name) => [`odd__${name}`, {}] as [string, unknown]),
    ['odd__list_resources', {}],
    ['odd__read_resource', { uri: 'note://x' }],
    ['odd__list_prompts', {}],
    ['odd__get_prompt', { name: 'x' }],
  ]
  const { who, model } = caller({ odd: source }, calls)
  const logged: unknown[] = []
  const log = (...words: unknown[]) => void logged.push(words)
  const runtime = openRuntime({ logger: { debug: log, info: log, warn: log, error: log } })
  const run = runtime.run(who, 'go')
  const events = await eventsOf(run)
  const everything = JSON.stringify([
    events,
    model.requests,
    localStore(runtime).nodesOf(run.id),
    await run.result,
    logged,
  ])

  expect(resultsIn(model.requests.at(-1)).map(({ content }) => content)).toEqual([
    '***\n***',
    '***\n***',
    'Error: failed with ***',
    '[file left out: it holds a secret]',
    '{"***":["***"]}',
    '[resource x://y] n ***: ***',
    'note://*** - n[2J ***: d *** more\n[There are more, but their cursor holds a secret.]',
    '[note://***]\n***\n[note://***]\n***',
    'p ***(***?)\n[There are more, but their cursor holds a secret.]',
    'user:\n***\nassistant:\n***',
  ])
  expect(only(events, 'progress').map(({ message }) => message)).toEqual(['at ***[2J'])
  expect(everything).not.toContain(secret)
  expect(everything).not.toContain(secret.slice(0, 7))
  expect(everything).not.toContain(Buffer.from(secret).toString('base64').slice(0, 8))
})

/** Variables of ours that no program gets unless its definition names them. */
/** Settings of git that every program gets. */
const OF_GIT = /^GIT_(?:CONFIG_(?:COUNT|KEY_\d+|VALUE_\d+)|PROXY_COMMAND)$/

const CREDENTIALS = {
  npm_config__authToken: 'npm-auth-value',
  PIP_INDEX_URL: 'https://me:pip-value@pypi.example.com/simple',
  DATABASE_URL: 'postgres://me:database-value@db/app',
  SMTP_PASS: 'smtp-pass-value',
  GITHUB_PAT: 'github-pat-value',
  DEPLOY_TOKEN: 'deploy-token-value',
  SENTRY: 'ghp_0123456789abcdefghijABCDEFGHIJ0123',
  HTTPS_PROXY: 'http://me:proxy-value@proxy:3128',
  https_proxy: 'http://user-value@proxy:3128',
  XDG_API_TOKEN: 'xdg-value',
  LC_SECRET: 'lc-value',
}

describe('the environment of a program that is not ours', () => {
  test('a server gets what it needs to start, and a proxy without a password', async () => {
    for (const [name, value] of Object.entries({ ...CREDENTIALS, npm_config_registry: 'https://npm.example.com' })) {
      vi.stubEnv(name, value)
    }
    vi.stubEnv('HTTP_PROXY', 'http://proxy:3128')
    vi.stubEnv('LC_TIME', 'C')
    // A command of the shell gets these: nothing says that they are secrets.
    vi.stubEnv('XDG_NOTE', 'xdg-note-value')
    vi.stubEnv('ALL_PROXY', 'http://proxy:3128/?ticket=query-value')
    vi.stubEnv('LEGATE_TEST_HARMLESS', 'a word')
    const helpers = [
      '!f() { echo username=x; echo password=git-script-value; }; f',
      '!printf "password=%s" git-printf-value',
    ]
    const settings = [...helpers, 'https://x:git-url-value@x.example', '!gh auth git-credential']
    vi.stubEnv('GIT_CONFIG_COUNT', String(settings.length))
    for (const [at, value] of settings.entries()) {
      vi.stubEnv(`GIT_CONFIG_KEY_${at}`, 'credential.https://x.example.helper')
      vi.stubEnv(`GIT_CONFIG_VALUE_${at}`, value)
    }
    const { shown } = await results('x', ['env'])
    const env = JSON.parse(shown[0]?.content ?? '{}') as Record<string, string>
    // PWD is of the shell that starts it.
    const needed =
      /^(?:PWD|HOME|USER|LOGNAME|PATH|SHELL|TERM|TMPDIR|TZ|NO_COLOR|LANG|LANGUAGE|LC_\w+|XDG_\w+|\w+_PROXY|\w+_proxy|SSL_CERT_\w+|NODE_EXTRA_CA_CERTS|__CF_USER_TEXT_ENCODING)$/

    expect(env).toMatchObject({ HOME: process.env['HOME'], HTTP_PROXY: 'http://proxy:3128', LC_TIME: 'C' })
    expect(
      Object.keys(env)
        .filter((name) => !OF_GIT.test(name))
        .filter((name) => name in CREDENTIALS || !needed.test(name)),
    ).toEqual([])
    expect(JSON.stringify(env)).not.toMatch(/-value|ghp_/)
    expect(Object.values(env)).toContain('!gh auth git-credential')
  })

  test('I11 where a program is loaded from is part of what is decided and shown', async () => {
    const env = {
      npm_config_registry: 'https://evil.example.com',
      PIP_INDEX_URL: 'https://evil.example.com',
      UV_DEFAULT_INDEX: 'https://evil.example.com',
      GIT_CONFIG_COUNT: '1',
      LD_LIBRARY_PATH: '/evil',
      DATABASE_URL: 'postgres://db/app',
    }
    const line =
      /exec:env npm_config_registry=https:\/\/evil\S+ PIP_INDEX_URL=\S+ UV_DEFAULT_INDEX=\S+ GIT_CONFIG_COUNT=1 LD_LIBRARY_PATH=\/evil DATABASE_URL=\S+ node \S+server\.mjs x/
    const unseen = await results('x', ['env'], { env })
    const grant = { use: ['tool:*', 'model:*', 'exec:*'], ask: ['exec:env *'] }
    const { who, model } = caller({ odd: oddServer('x', { env }) }, [['odd__env', {}]], grant)
    const runtime = openRuntime()
    const run = runtime.run(who, 'go')
    const asked: string[] = []
    for await (const event of run) {
      if (event.type !== 'approval-request') continue
      asked.push(event.request)
      await runtime.answer(event.nodeId ?? '', { allow: true })
    }

    expect(unseen.outcome.error?.message).toMatch(line)
    expect(asked).toEqual([expect.stringMatching(line)])
    expect(resultIn(model.requests[1])).toMatch(/"LD_LIBRARY_PATH":"\/evil"/)
    expect(resultIn(model.requests[1])).toContain('"DATABASE_URL":"postgres://db/app"')
  })

  test.each([
    ...['HOME', 'PYTHONUSERBASE', 'PYTHONPYCACHEPREFIX', 'OPENSSL_CONF', 'GCONV_PATH', 'DOTNET_STARTUP_HOOKS', 'PHPRC'],
    ...['_JAVA_OPTIONS', 'JDK_JAVA_OPTIONS', 'LUA_INIT', 'R_PROFILE', 'BUN_OPTIONS', 'RUSTC_WRAPPER', 'MAKEFLAGS'],
    ...['GIT_ASKPASS', 'LESSOPEN', 'COREPACK_NPM_REGISTRY', 'SHELLOPTS', 'PS4', 'XDG_CONFIG_HOME', 'HTTP_PROXY'],
    ...['SOME_NEW_LOADER', 'NODE_CONFIG_ID_DIR', 'npm_config_token'],
  ])('I11 a rule for the command line does not cover it with %s', async (name) => {
    const { who } = caller({ odd: oddServer('x', { env: { [name]: '/evil' } }) }, [])
    const { status, error } = await openRuntime().run(who, 'go').result

    expect(status).toBe('denied')
    expect(error?.message).toContain(`exec:env ${name}=/evil node `)
  })

  test('I11 a rule without plain data covers it, unless its value could be a path; a key or an account is no plain data', () => {
    const decided = (env: Readonly<Record<string, string>>) => {
      const [request = readRequest('')] = mcpServer({ command: 'python3', args: ['s.py'], env }).needs
      const allowed = decide([useLayer('a', { use: ['exec:python3 s.py'] })], request).verdict
      const denied = decide([useLayer('a', { use: ['exec:*'], deny: ['exec:python3 s.py'] })], request).verdict
      return [requestText(request), allowed, denied]
    }
    const plain = { LANG: 'C.UTF-8', TZ: 'UTC', NO_COLOR: '1', LOG_LEVEL: 'debug', NODE_ENV: 'production' }

    expect(decided(plain)).toEqual([
      'exec:env LANG=C.UTF-8 TZ=UTC NO_COLOR=1 LOG_LEVEL=debug NODE_ENV=production python3 s.py',
      'allow',
      'deny',
    ])
    for (const [name, value] of [
      ['LANG', '../evil'],
      ['NODE_ENV', '/evil'],
      ['SLACK_TEAM_ID', 'T1'],
      ['GIT_AUTHOR_EMAIL', 'a@b.test'],
    ] as const) {
      expect(decided({ [name]: value })).toEqual([`exec:env ${name}=${value} python3 s.py`, 'deny', 'deny'])
    }
    for (const [name, value] of [
      ['OPENAI_API_KEY', 'a/b c'],
      ['GITHUB_PERSONAL_ACCESS_TOKEN', 'x'],
      ['DB_PASSWORD', 'y'],
      ['AUTH_HEADER', 'z'],
    ] as const) {
      const [line, allowed, denied] = decided({ ...plain, [name]: value })
      expect([line?.includes(`'${name}=***(${value.length}:`), allowed, denied]).toEqual([true, 'deny', 'deny'])
    }
  })

  test('I11 a name with a sign sets another variable, so it is shown, and dropped where its value is not', async () => {
    const trick = 'NODE_OPTIONS=--require /evil.cjs _KEY'
    const { needs } = mcpServer({ command: 'node', env: { [trick]: 'x' } })

    expect(needs.map(requestText)).toEqual([`exec:env '${trick}=x' node`])
    const { shown } = await results('x', ['env'], { envFrom: { [trick]: `$${'{'}HOME}` } })
    expect(shown[0]?.content).not.toContain('NODE_OPTIONS')
  })

  test.each(['exec:node *', 'exec:*', 'exec:env *'])('I11 a rule that forbids %s holds for it too', async (rule) => {
    const grant = { use: ['tool:*', 'exec:*'], deny: [rule] }
    const { who } = caller({ odd: oddServer('x', { env: { NODE_OPTIONS: '--no-warnings' } }) }, [], grant)

    expect(await openRuntime().run(who, 'go').result).toMatchObject({ status: 'denied', modelCalls: 0 })
  })

  test('a command of the shell gets ours without secrets', () => {
    for (const [name, value] of Object.entries(CREDENTIALS)) vi.stubEnv(name, value)
    vi.stubEnv('JAVA_HOME', '/opt/java')
    const env = plainEnvironment()

    expect(env).toMatchObject({ PATH: process.env['PATH'], JAVA_HOME: '/opt/java' })
    expect(JSON.stringify(env)).not.toMatch(/-value|ghp_/)
  })
})
