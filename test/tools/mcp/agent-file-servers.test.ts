import { readFileSync } from 'node:fs'
import path from 'node:path'
import { agent } from 'legate'
import { openSubagents, recipeAgent, validateDefinition } from 'legate/recipe'
import { scriptedModel } from 'legate/testing'
import { missingSecrets } from 'legate/tools'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { delegating, resultsIn } from '../../recipe/open/support.ts'
import { folderWith } from '../../recipe/support/folder.ts'
import { eventsOf, only, openRuntime, toolNamesIn } from '../../support/reading.ts'
import { localStore } from '../../support/rows.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import { listen, oddServer } from './support.ts'

const PROGRAM = path.join(import.meta.dirname, 'programs/server.mjs')
const GRANT = { use: ['tool:*', 'agent:*', 'model:*', 'exec:*', 'net:*', 'secret:*'] }

const echo = { name: 'srv__echo', input: { message: 'x' } }
function markdown(fields: string): string {
  return `---\nname: helper\ndescription: Helps\n${fields}\n---\n\nYou help.\n`
}

/** The fields of a server in a line of YAML or JSON. */
function server(more: string, mode = 'x'): string {
  return `{command: node, args: ["${PROGRAM}", "${mode}"], ${more}}`
}

function toml(more: string): string {
  return `name = "helper"\ndescription = "Helps"\n[mcp_servers.srv]\ncommand = "node"\nargs = ["${PROGRAM}", "x"]\n${more}\n`
}

function fileWith(place: string, text: string): string {
  return path.join(folderWith({ [place]: text }), place)
}

/** Runs a file with a model that calls these tools, one after the other, and gives what it was offered and answered. */
async function runFile(file: string, names: readonly string[]) {
  const model = scriptedModel([...names.map((name) => ({ calls: [{ name, input: { message: 'x' } }] })), 'Done.'])
  const runtime = openRuntime({ model })
  const run = runtime.run(await recipeAgent(file, { grant: GRANT }), 'Go.')
  const events = await eventsOf(run)
  const results = resultsIn(model.requests.at(-1) ?? { messages: [] })
  const offered = toolNamesIn(model.requests[0]).filter((name) => name.includes('__'))
  return {
    outcome: await run.result,
    offered,
    results,
    warnings: only(events, 'warning').map(({ message }) => message),
  }
}

describe('a tool that an agent file excludes is not offered, and a call of it is refused', () => {
  test.each([
    ['Codex disabled_tools', '.codex/agents/a.toml', toml('disabled_tools = ["pid"]')],
    ['Codex enabled_tools', '.codex/agents/a.toml', toml('enabled_tools = ["echo"]')],
    ['Codex, both', '.codex/agents/a.toml', toml('enabled_tools = ["echo", "pid"]\ndisabled_tools = ["pid"]')],
    ['Gemini excludeTools', '.gemini/agents/a.md', markdown(`mcp_servers: {srv: ${server('excludeTools: [pid]')}}`)],
    ['Gemini includeTools', '.gemini/agents/a.md', markdown(`mcp_servers: {srv: ${server('includeTools: [echo]')}}`)],
    ['Copilot tools', '.github/agents/a.agent.md', markdown(`mcp-servers: {srv: ${server('tools: [echo]')}}`)],
    ['tools in one text', '.github/agents/a.agent.md', markdown(`mcp-servers: {srv: ${server('tools: "echo, env"')}}`)],
    ['Claude', '.claude/agents/a.md', markdown(`mcpServers: {srv: ${server('')}}\ndisallowedTools: mcp__srv__pid`)],
    ['opencode', '.opencode/agent/a.md', markdown(`mcp: {srv: ${server('')}}\ntools: {srv_pid: false}`)],
    ['Legate', '.legate/agents/a.md', markdown(`mcpServers: {srv: ${server('excludeTools: ["p*"]')}}`)],
  ])('%s', async (_, place, text) => {
    const { offered, results } = await runFile(fileWith(place, text), ['srv__echo', 'srv__pid'])

    expect(offered).toContain('srv__echo')
    expect(offered).not.toContain('srv__pid')
    expect(results).toEqual(['Echo: x', expect.stringMatching(/srv__pid is not allowed here|no tool "?srv__pid/)])
  })

  test.each([
    ['Codex', '.codex/agents/a.toml', toml('enabled = false')],
    ['Copilot', '.github/agents/a.agent.md', markdown(`mcp-servers: {srv: ${server('tools: []')}}`)],
    ['Gemini', '.gemini/agents/a.md', markdown(`mcp_servers: {srv: ${server('includeTools: []')}}`)],
    ['opencode', '.opencode/agent/a.md', markdown(`mcp: {srv: ${server('type: local, enabled: false')}}`)],
    ['Claude', '.claude/agents/a.md', markdown(`mcpServers: {srv: ${server('')}}\ndisallowedTools: mcp__srv`)],
    ['Cursor writes', '.legate/agents/a.md', markdown(`mcpServers: {srv: ${server('disabled: true')}}`)],
  ])('%s: a server of which nothing may be used is not started, and nobody is asked for it', async (_, place, text) => {
    const { offered, results, outcome } = await runFile(fileWith(place, text), ['srv__echo'])

    expect([outcome.status, outcome.absent, offered]).toEqual(['completed', [], []])
    expect(results[0]).toMatch(/srv__echo is not allowed here|no tool "?srv__echo/)
  })

  const claude = (more: string, fields = '') => markdown(`mcpServers: {srv: ${server(more)}}\n${fields}`)
  const codexTool = (more: string) => toml(`[mcp_servers.srv.tools.pid]\n${more}`)

  test.each([
    ['a map of what is excluded', '.claude/agents/a.md', claude('excludeTools: {pid: true}')],
    ['a map of what is included', '.claude/agents/a.md', claude('includeTools: {echo: true}')],
    ['a map of flags', '.claude/agents/a.md', claude('tools: {echo: true, pid: false}')],
    ['blanks between names', '.claude/agents/a.md', claude('excludeTools: "pid env"')],
    ['slashes between names', '.claude/agents/a.md', claude('excludeTools: "pid/env"')],
    [
      'two lists, of which one is short',
      '.claude/agents/a.md',
      claude('includeTools: [echo], enabledTools: [echo, pid]'),
    ],
    ['a server in capitals', '.claude/agents/a.md', claude('', 'disallowedTools: mcp__SRV__pid')],
    ['a tool in capitals', '.claude/agents/a.md', claude('', 'disallowedTools: mcp__srv__PID')],
    ['words without commas', '.claude/agents/a.md', claude('', 'disallowedTools: mcp__srv__pid mcp__srv__env')],
    ['a tool that Codex switches off', '.codex/agents/a.toml', codexTool('enabled = false')],
    ['a tool that Codex switches off in another way', '.codex/agents/a.toml', codexTool('disabled = true')],
    ['a mode that Codex does not have', '.codex/agents/a.toml', codexTool('approval_mode = "deny"')],
    ['a mode under a misspelt key', '.codex/agents/a.toml', codexTool('approvalMode = "never"')],
  ])('%s', async (_, place, text) => {
    const { offered, results } = await runFile(fileWith(place, text), ['srv__echo', 'srv__pid'])

    expect(offered).not.toContain('srv__pid')
    expect(results).toEqual(['Echo: x', expect.stringMatching(/srv__pid is not allowed here|no tool "?srv__pid/)])
  })

  test.each([
    ['excludeTools: {pid: true}', '`mcpServers.srv.excludeTools` is read as pid'],
    ['excludeTools: "pid env"', '`mcpServers.srv.excludeTools` is read as pid, env'],
    [
      'excludeTools: "pid (env)"',
      '`mcpServers.srv.excludeTools`: (env) names no tool, so all tools of the server are forbidden',
    ],
    [
      'excludeTools: true',
      '`mcpServers.srv.excludeTools`: true names no tool, so all tools of the server are forbidden',
    ],
    [
      'includeTools: {echo: true}',
      '`mcpServers.srv.includeTools` is a map: only the tools that are true in it may be used',
    ],
    [
      'default_tools_approval_mode: deny',
      '`mcpServers.srv.default_tools_approval_mode`: the mode of approval is not one of auto, prompt, approve; it is taken as forbidden',
    ],
  ])('a server with `%s` is told', async (more, message) => {
    const { notices } = await validateDefinition(fileWith('.claude/agents/a.md', claude(more)))

    expect(notices.filter(({ level }) => level === 'warning').map((one) => one.message)).toEqual([message])
  })

  test.each([
    ['Linear App', 'mcp__Linear_App__pid', 'linear_app'],
    ['Linear App', 'mcp__linear_app__pid', 'linear_app'],
    ['my_server', 'mcp__my_server__pid', 'my_server'],
    ['a.b', 'mcp__a_b', 'a_b'],
  ])('a server named %s, forbidden as %s', async (name, word, source) => {
    const text = markdown(`mcpServers: {"${name}": ${server('')}}\ndisallowedTools: ${word}`)
    const { results } = await runFile(fileWith('.claude/agents/a.md', text), [`${source}__pid`])

    expect(results[0]).toMatch(/is not allowed here|no tool/)
  })

  test('a server with an underscore, as Gemini writes its tools', async () => {
    const text = markdown(`mcp_servers: {my_server: ${server('')}}\ntools: [mcp_my_server_echo]`)
    const { offered, results } = await runFile(fileWith('.gemini/agents/a.md', text), [
      'my_server__echo',
      'my_server__pid',
    ])

    expect(offered).toEqual(['my_server__echo'])
    expect(results).toEqual(['Echo: x', expect.stringMatching(/not allowed here/)])
  })

  test('a tool whose name is shortened here is excluded by its own name', async () => {
    const long = 'x'.repeat(200)
    const text = markdown(`mcpServers: {srv: ${server('', 'names')}}\ndisallowedTools: [mcp__srv__${long}]`)
    const { offered } = await runFile(fileWith('.claude/agents/a.md', text), [])

    expect(offered).toContain('srv__good')
    expect(offered.filter((name) => name.startsWith('srv__xxx'))).toEqual([])
  })

  test.each(['prompt', 'Prompt'])(
    'Codex: a tool whose calls are to be prompted for (%s) is asked for',
    async (mode) => {
      const text = toml(`[mcp_servers.srv.tools.pid]\napproval_mode = "${mode}"`)
      const runtime = openRuntime({ model: scriptedModel(['x']) })
      const file = await recipeAgent(fileWith('.codex/agents/a.toml', text), { grant: GRANT })

      expect((await runtime.explain(file, 'tool:srv__pid')).verdict).toBe('ask')
      expect((await runtime.explain(file, 'tool:srv__echo')).verdict).toBe('allow')
    },
  )

  test('a server that is only named is its host’s, within what the file excludes', async () => {
    const text = 'name = "helper"\ndescription = "Helps"\n[mcp_servers.srv]\ndisabled_tools = ["pid"]\n'
    const folder = folderWith({ '.codex/agents/helper.toml': text })
    const call = { name: 'subagent', input: { subrecipe: 'helper', instructions: 'Do it.' } }
    const model = delegating([call], ({ messages }) => {
      const isDone = messages.some(({ role }) => role === 'tool')
      return isDone ? resultsIn({ messages }).join('; ') : { calls: [echo, { name: 'srv__pid', input: {} }] }
    })
    const sources = { srv: oddServer('x') }
    const tools = openSubagents({ discover: folder, cwd: folder })
    const host = agent({ name: 'host', instructions: '', model, sources, tools, grant: GRANT })
    const outcome = await openRuntime().run(host, 'go').result

    const offered = model.requests.find(({ path: at }) => at.length > 1)
    expect(toolNamesIn(offered)).toContain('srv__echo')
    expect(toolNamesIn(offered)).not.toContain('srv__pid')
    expect(outcome.text).toMatch(/Echo: x; .*srv__pid/)
  })

  test('what is not kept of a server is named when the file is read', async () => {
    const more = 'cwd: /elsewhere, sandbox: strict, trust: true'
    const file = fileWith('.gemini/agents/a.md', markdown(`mcp_servers: {srv: ${server(more)}}`))
    const { notices } = await validateDefinition(file)

    expect(notices.map(({ level, message }) => `${level}: ${message}`)).toEqual([
      'warning: `mcp_servers.srv.cwd` is ignored',
      'warning: `mcp_servers.srv.sandbox` is ignored',
      'note: `mcp_servers.srv.trust` is ignored',
    ])
  })

  test('a misspelt key of a server is named with the one that was meant', async () => {
    const more = 'headrs: {a: b}, timeuot: 5, sandbox: strict'
    const { notices } = await validateDefinition(
      fileWith('.gemini/agents/a.md', markdown(`mcp_servers: {srv: ${server(more)}}`)),
    )

    expect(notices.map(({ message, hint }) => `${message}: ${hint}`)).toEqual([
      '`mcp_servers.srv.headrs` is ignored: Did you mean `headers`?',
      '`mcp_servers.srv.timeuot` is ignored: Did you mean `timeout`?',
      '`mcp_servers.srv.sandbox` is ignored: If it restricts the server, it does not do so here.',
    ])
  })
})

/** As files write it. */
const braced = (text: string) => `$${'{'}${text}}`

/** Runs what gives `env` back, with these variables in the environment of this process, and none of them without a value. */
async function environmentOf(file: string, given: Readonly<Record<string, string>>) {
  for (const [name, value] of Object.entries(given)) vi.stubEnv(name, value)
  onTestFinished(() => void vi.unstubAllEnvs())
  const out = path.join(tempFolder(), 'env.json')
  vi.stubEnv('LEGATE_OUT', out)
  const { warnings, results } = await runFile(file, ['srv__tell'])
  const told = JSON.parse(readFileSync(out, 'utf8')) as Record<string, string>
  return { told, warnings, results }
}

describe('variables that an agent file passes to a server', () => {
  const claude = (env: string) =>
    fileWith(
      '.claude/agents/a.md',
      markdown(`mcpServers: {srv: ${server(`env: {OUT: "${braced('LEGATE_OUT')}", ${env}}`)}}`),
    )
  const gemini = (env: string) =>
    fileWith('.gemini/agents/a.md', markdown(`mcp_servers: {srv: ${server(`env: {OUT: $LEGATE_OUT, ${env}}`)}}`))
  const copilot = (env: string) =>
    fileWith('.github/agents/a.agent.md', markdown(`mcp-servers: {srv: ${server(`env: {OUT: $LEGATE_OUT, ${env}}`)}}`))

  test.each([
    ['the value of another', claude, `A: "${braced('LEGATE_B')}"`, 'value-of-b'],
    ['its own', claude, `LEGATE_B: "${braced('LEGATE_B')}", A: x`, 'x'],
    ['as an editor writes it', claude, `A: "${braced('env:LEGATE_B')}"`, 'value-of-b'],
    ['with something else instead', claude, `A: "${braced('LEGATE_NONE:-other')}"`, 'other'],
    ['with something else, not needed', claude, `A: "${braced('LEGATE_B:-other')}"`, 'value-of-b'],
    [
      'inside of a text',
      claude,
      `A: "http://${braced('LEGATE_B')}/${braced('LEGATE_NONE:-x')}"`,
      'http://value-of-b/x',
    ],
    ['with a dollar only', claude, 'A: $LEGATE_B', 'value-of-b'],
    ['a dollar inside of a text is one', claude, 'A: "pa$LEGATE_B"', 'pa$LEGATE_B'],
    ['but not for Gemini', gemini, 'A: "pa$LEGATE_B"', 'pavalue-of-b'],
    ['a secret of GitHub', copilot, `A: "$${'{'}{ secrets.LEGATE_B }}"`, 'value-of-b'],
    ['a variable of opencode', claude, 'A: "{env:LEGATE_B}"', 'value-of-b'],
  ])('%s', async (_, dialect, env, value) => {
    const { told, warnings } = await environmentOf(dialect(env), { LEGATE_B: 'value-of-b' })

    expect(told['A']).toBe(value)
    expect(warnings).toEqual([])
  })

  test('only the name that the file says', async () => {
    const { told } = await environmentOf(claude(`A: "${braced('LEGATE_B')}"`), { LEGATE_B: 'value-of-b' })

    expect(told).not.toHaveProperty('LEGATE_B')
  })

  test('a variable that is not set is named, with its server; nothing takes its place', async () => {
    vi.stubEnv('LEGATE_B', undefined)
    const { told, warnings } = await environmentOf(claude(`A: "x${braced('LEGATE_B')}"`), {})

    expect(told).not.toHaveProperty('A')
    expect(warnings).toEqual(['srv: LEGATE_B is not set, and it may need it'])
    expect(missingSecrets(await recipeAgent(claude(`A: "x${braced('LEGATE_B')}"`)))).toContainEqual({
      key: 'LEGATE_B',
      source: 'srv',
      agent: 'helper',
    })
  })

  test('what is no secret stays to be seen', async () => {
    const { results } = await environmentOf(claude(`A: "${braced('HOME')}/notes"`), { HOME: '/home/somebody' })

    expect(results[0]).toContain('/home/somebody/notes')
  })

  test('a variable that decides what is loaded is on the command line that is asked for; one whose value is hidden is not passed', async () => {
    const { told } = await environmentOf(claude(`PYTHONPATH: src, PATH: "${braced('PATH')}:/x"`), {})
    const file = claude(`PYTHONPATH: src, PATH: "${braced('PATH')}:/x"`)
    const source = (await recipeAgent(file, { grant: GRANT })).sources.get('srv')

    expect(told['PYTHONPATH']).toBe('src')
    expect(told['PATH']).not.toContain(':/x')
    expect(source?.needs.map(({ name }) => name)).toEqual([`env PYTHONPATH=src node ${PROGRAM} x`, 'LEGATE_OUT'])
    expect((await validateDefinition(file)).notices.map(({ message }) => message)).toEqual([
      `mcpServers.srv: PATH may decide what is loaded, and ${braced('PATH')}:/x cannot be shown; it is dropped`,
    ])
  })

  test('what cannot be filled in is named when the file is read', async () => {
    const file = claude(`A: "${braced('input:token')}"`)
    const { notices } = await validateDefinition(file)

    expect(notices.map(({ message }) => message)).toEqual([
      `mcpServers.srv.env.A: ${braced('input:token')} cannot be filled in here: it is passed as it stands`,
    ])
  })

  test('a variable on a command line is named too', async () => {
    const file = fileWith(
      '.claude/agents/a.md',
      markdown(`mcpServers: {srv: {command: x, args: ["${braced('KEY')}"]}}`),
    )

    expect((await validateDefinition(file)).notices[0]?.message).toBe(
      `mcpServers.srv: ${braced('KEY')} stays as it is: variables are not filled in on a command line`,
    )
  })
})

describe('keys for servers over HTTP', () => {
  const http = (url: string, more: string) => `{url: "${url}", ${more}}`

  test.each([
    [
      'Claude',
      '.claude/agents/a.md',
      (url: string) =>
        markdown(`mcpServers: {srv: ${http(url, `headers: {Authorization: "Bearer ${braced('LEGATE_KEY')}"}`)}}`),
    ],
    [
      'Gemini',
      '.gemini/agents/a.md',
      (url: string) =>
        markdown(`mcp_servers: {srv: {httpUrl: "${url}", headers: {Authorization: Bearer $LEGATE_KEY}}}`),
    ],
    ['Codex, a token', '.codex/agents/a.toml', (url: string) => codex(url, 'bearer_token_env_var = "LEGATE_KEY"')],
    [
      'Codex, a header',
      '.codex/agents/a.toml',
      (url: string) => codex(url, 'env_http_headers = { Authorization = "LEGATE_WHOLE" }'),
    ],
    [
      'goose',
      'recipe.yaml',
      (url: string) => goose(url, `headers: {Authorization: "Bearer ${braced('LEGATE_KEY')}"}, env_keys: [LEGATE_KEY]`),
    ],
  ])('%s: the server gets it, and an error, an event or a row does not', async (_, place, text) => {
    vi.stubEnv('LEGATE_KEY', 'key-of-mine-1234')
    vi.stubEnv('LEGATE_WHOLE', 'Bearer key-of-mine-1234')
    onTestFinished(() => void vi.unstubAllEnvs())
    const { url, seen } = await listen((request, response) =>
      response.writeHead(401).end(`who is ${request.headers.authorization}?`),
    )
    const runtime = openRuntime({ model: scriptedModel(['Done.']) })
    const run = runtime.run(await recipeAgent(fileWith(place, text(url)), { grant: GRANT }), 'Go.')
    const events = await eventsOf(run)
    const outcome = await run.result

    expect(seen[0]?.authorization).toBe('Bearer key-of-mine-1234')
    expect(outcome.absent[0]?.reason).toMatch(/who is (?:Bearer )?\*\*\*\?/)
    expect(JSON.stringify([events, outcome, localStore(runtime).nodesOf(run.id)])).not.toContain('key-of-mine')
  })

  test.each([
    ['one that no header can hold', 'line one\nline-two-of-it', /cannot|invalid/i],
    ['one that is not set', undefined, /its header Authorization needs LEGATE_KEY, which is not set/],
  ])('%s', async (_, value, message) => {
    vi.stubEnv('LEGATE_KEY', value)
    onTestFinished(() => void vi.unstubAllEnvs())
    const file = fileWith('.codex/agents/a.toml', codex('http://127.0.0.1:9/', 'bearer_token_env_var = "LEGATE_KEY"'))
    const { outcome } = await runFile(file, [])

    expect(outcome.absent).toEqual([{ name: 'srv', reason: expect.stringMatching(message) }])
    expect(JSON.stringify(outcome)).not.toMatch(/line-two|line one/)
  })
})

function codex(url: string, more: string): string {
  return `name = "helper"\ndescription = "Helps"\n[mcp_servers.srv]\nurl = "${url}"\n${more}\n`
}

function goose(uri: string, more: string): string {
  return `title: T\ndescription: D\nprompt: Go.\nextensions:\n  - {type: streamable_http, name: srv, uri: "${uri}", ${more}}\n`
}
