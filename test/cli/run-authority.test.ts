import { chmodSync, existsSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import type { LLMock } from '@copilotkit/aimock'
import { beforeEach, describe, expect, test } from 'vitest'
import { localStore } from '../support/rows.ts'
import { type Place, root, skipUnlessBuilt, until } from './support/cli.ts'
import { serveModel } from './support/model-server.ts'
import { project } from './support/project.ts'
import { ask, served } from './support/served.ts'
import { Terminal } from './support/terminal.ts'

beforeEach(skipUnlessBuilt)

const HEAD = 'title: T\ndescription: D\nprompt: Go.\n'
const DEVELOPER = 'extensions:\n  - {type: builtin, name: developer}\n'
const HEARD = /then Enter >$/m

/** A model that makes these calls, one after the other, and then says what came of the last. */
function calls(...all: readonly (readonly [tool: string, input: object])[]): (mock: LLMock) => void {
  return (mock) => {
    for (const [at, [name, input]] of all.entries()) {
      const toolCalls = [{ id: `c${at}`, name, arguments: JSON.stringify(input) }]
      const isNext = (request: { messages: readonly { role: string }[] }) =>
        request.messages.filter(({ role }) => role === 'tool').length === at
      mock.on({ predicate: isNext }, { toolCalls })
    }
    mock.on({}, { content: 'Done.' })
  }
}

/** What the model was told of the last call. */
function lastResult(mock: LLMock): string {
  return JSON.stringify(mock.getLastRequest()?.body)
}

/** What the model was told of each call. */
function results(mock: LLMock): string[] {
  const body = mock.getLastRequest()?.body as { messages: readonly { role: string; content: unknown }[] } | undefined
  return (body?.messages ?? []).filter(({ role }) => role === 'tool').map(({ content }) => JSON.stringify(content))
}

function written(place: Place): string | undefined {
  const file = path.join(place.folder, 'out.txt')
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined
}

const shell = (command: string) => ['shell', { command }] as const
const WRITE = ['write_file', { path: '/workspace/out.txt', content: 'made' }] as const

interface Waiting {
  readonly approvals: readonly { readonly request: string }[]
}

const built = (file: string) => JSON.stringify(pathToFileURL(path.join(root, 'dist', file)).href)

/** A module with an agent that has a shell and files, under this grant, and another one of its runtime. */
function codedModule(grant: string, ofRuntime = 'undefined'): string {
  return `import { agent } from ${built('index.js')}
import { developerTools, diskFiles } from ${built('doors/tools.js')}
export const coder = agent({ name: 'coder', instructions: 'You work.', tools: developerTools(), grant: ${grant} })
export default { agents: [coder], files: diskFiles({ workspace: process.cwd() }), grant: ${ofRuntime} }
`
}

describe('what legate run may do', () => {
  test('the agent reads below the current folder without asking, and nothing outside of it; an extension that there is not is told with what to use instead', async () => {
    const place = project({
      'a.yaml': `${HEAD}${DEVELOPER}  - {type: builtin, name: computercontroller}\n`,
      'notes.txt': 'blue',
    })
    const outside = ['read_text_file', { path: '/workspace/../../../etc/hostname' }] as const
    const mock = await serveModel(place, calls(['read_text_file', { path: '/workspace/notes.txt' }], outside))

    const { code, stdout, stderr } = await place.run(['run', 'a.yaml'])

    expect({ code, stdout }).toEqual({ code: 0, stdout: 'Done.\n' })
    expect(results(mock)).toHaveLength(2)
    expect(results(mock)[0]).toContain('blue')
    expect(results(mock)[1]).not.toContain(readFileSync('/etc/hostname', 'utf8').trim())
    expect(stderr).toMatch(/computercontroller.*not available.*(?:MCP server|playwright)/)
  })

  test('an agent file with a list of tools reads below the current folder, and asks before it writes', async () => {
    const head = '---\nname: reviewer\ndescription: Reviews\n'
    const place = project({
      '.claude/agents/reviewer.md': `${head}tools: Read, Grep, Write\n---\n\nYou review.\n`,
      'notes.txt': 'blue',
    })
    const mock = await serveModel(place, calls(['read_text_file', { path: 'notes.txt' }], WRITE))

    const { code, stderr } = await place.run(['run', 'reviewer', 'Review.'])

    expect({ code, written: written(place) }).toEqual({ code: 3, written: undefined })
    expect(stderr).toMatch(/waits for a person:\n {2}file\.write:\/workspace\/out\.txt for write_file/)
    expect(results(mock)[0]).toContain('blue')
  })

  test('the programs that a Claude file names run without asking, but for lines of git that write a file', async () => {
    const head = '---\nname: fixer\ndescription: Fixes\n'
    const place = project({
      '.claude/agents/fixer.md': `${head}tools: Read, Bash(echo:*), Bash(git log:*)\n---\n\nYou fix.\n`,
    })
    const mock = await serveModel(place, calls(shell('echo named'), shell('git log --output=made.txt')))
    const named = await place.run(['run', 'fixer', 'Fix.'])

    expect({ code: named.code, first: results(mock)[0] }).toEqual({ code: 3, first: expect.stringContaining('named') })
    expect(named.stderr).toContain('note: it runs these without asking you: echo, echo *, git log, git log *')
    expect(named.stderr).toMatch(/waits for a person:\n {2}exec:git log --output=made\.txt for shell/)
  })

  test.each([
    ['a recipe', 'a.yaml', `${HEAD}${DEVELOPER}grant:\n  free: ["exec:*", "secret:*", "file.write:**", "net:*"]\n`],
    [
      'an agent file of our own',
      'a.md',
      '---\nname: a\ndescription: D\ngrant:\n  free: ["exec:*", "secret:*", "file.write:**"]\n---\n\nYou work.\n',
    ],
    [
      'a Claude file that names programs too',
      '.claude/agents/a.md',
      '---\nname: a\ndescription: D\ntools: Write, Bash(git log:*), Bash(*:*)\ngrant:\n  free: ["exec:*", "file.write:**"]\n---\n\nYou work.\n',
    ],
  ])('%s that calls everything free is asked about as if it had not', async (_, file, text) => {
    const place = project({ [file]: text })
    for (const call of [shell('echo free'), WRITE]) {
      await serveModel(place, calls(call))
      const { code, stderr } = await place.run(['run', file, 'Go.'])

      expect({ code, written: written(place) }).toEqual({ code: 3, written: undefined })
      expect(stderr).toMatch(/waits for a person/)
    }
  })

  test('what a person allows runs without asking, what they forbid is denied, and all else waits', async () => {
    const place = project({ 'a.yaml': `${HEAD}${DEVELOPER}` })
    const mock = await serveModel(place, calls(shell('echo free'), WRITE, shell('echo other')))
    const rules = ['--allow', 'exec:echo free', '--deny', 'file.write:**']
    const ruled = await place.run(['run', 'a.yaml', ...rules])

    expect(results(mock)[0]).toContain('free')
    expect(results(mock)[1]).toContain('denies file.write:**')
    expect({ code: ruled.code, written: written(place) }).toEqual({ code: 3, written: undefined })
    expect(ruled.stderr).toMatch(/waits for a person:\n {2}exec:echo other for shell/)
  })

  test('a rule that could never match is refused, for files and modules', async () => {
    const place = project({ 'a.yaml': HEAD, 'm.mjs': codedModule('{ use: ["tool:*"] }') })
    const refused = { code: 2, stderr: expect.stringContaining('the rule "npm test" must start with') }

    expect(await place.run(['run', 'a.yaml', '--allow', 'npm test'])).toMatchObject(refused)
    expect(await place.run(['run', 'm.mjs', 'x', '--deny', 'npm test'])).toMatchObject(refused)
    expect(await place.run(['run', 'a', 'x', '--server', 'http://127.0.0.1:9', '--allow', 'exec:a'])).toMatchObject({
      code: 2,
    })
  })

  describe('of an agent in code', () => {
    const ASKS = '{ use: ["tool:*", "exec:echo *", "file.*:/workspace/**"], ask: ["exec:*"] }'
    const rules = ['--allow', 'exec:echo free', '--allow', 'exec:touch out.txt', '--deny', 'file.write:**']

    test.each([
      ['run', ['Go.'], ''],
      ['chat', [], 'Go.\n'],
    ])(
      'legate %s takes --allow and --deny: one answers what its grant asks for, the other forbids',
      async (...given) => {
        const [name, words, input] = given
        const place = project({ 'm.mjs': codedModule(ASKS) })
        const mock = await serveModel(place, calls(shell('echo free'), WRITE, shell('touch out.txt')))
        const { code, stderr } = await place.run([name, 'm.mjs', ...words, ...rules], { input })

        expect(results(mock)[0]).toContain('free')
        expect(results(mock)[1]).toContain('denies file.write:**')
        expect({ code, written: written(place) }).toEqual({ code: 3, written: undefined })
        // Its `use` does not name that: a person decides.
        expect(stderr).toMatch(/waits for a person:\n {2}exec:touch out\.txt for shell/)
      },
    )

    test('serve takes both, beside another module', async () => {
      const other = `import { agent } from ${built('index.js')}\nexport const a = agent({ name: 'a', reply: () => 'A.' })`
      const place = project({ 'm.mjs': codedModule(ASKS), 'other.mjs': other })
      const mock = await serveModel(place, calls(shell('echo free'), WRITE, shell('echo other')))
      const server = await served(place, ['m.mjs', 'other.mjs', ...rules])
      await ask(server, '/v1/runs', { method: 'POST', body: JSON.stringify({ agent: 'coder', input: 'Go.' }) })
      const waiting = async () => ((await (await ask(server, '/v1/approvals')).json()) as Waiting).approvals
      while ((await waiting()).length === 0) await new Promise((resolve) => setTimeout(resolve, 20))

      expect((await waiting()).map(({ request }) => request)).toEqual(['exec:echo other'])
      expect(results(mock)).toEqual([expect.stringContaining('free'), expect.stringContaining('denies file.write:**')])
    })

    test('--allow answers what the options of its module ask for', async () => {
      const use = '{ use: ["tool:*", "exec:*", "file.list:/workspace"] }'
      const place = project({ 'm.mjs': codedModule(use, '{ ask: ["exec:*"] }') })
      const mock = await serveModel(place, calls(shell('echo free'), shell('echo other')))
      const { code, stderr } = await place.run(['run', 'm.mjs', 'Go.', ...rules])

      expect({ code, said: results(mock) }).toEqual({ code: 3, said: [expect.stringContaining('free')] })
      expect(stderr).toMatch(/waits for a person:\n {2}exec:echo other for shell/)
    })
  })

  test('the agent asks before it keeps or forgets something for all later runs; to recall needs nobody', async () => {
    const place = project({ 'a.yaml': `${HEAD}extensions:\n  - {type: builtin, name: memory}\n` })
    place.more['XDG_DATA_HOME'] = path.join(place.folder, 'data')
    const remember = ['memory_remember', { category: 'facts', text: 'All tests may be skipped.' }] as const
    const mock = await serveModel(place, calls(['memory_recall', {}], remember))
    const kept = () => existsSync(path.join(place.folder, 'data/legate/memory/facts.jsonl'))

    const parked = await place.run(['run', 'a.yaml'])
    const before = kept()
    const allowed = await place.run(['run', 'a.yaml', '--yes'])

    expect(parked).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(/waits for a person:\n {2}memory_remember \{"category":"facts"/),
    })
    expect(results(mock)[0]).toContain('Nothing has been remembered yet.')
    expect([before, allowed.code, kept()]).toEqual([false, 0, true])
  })

  test('a name is found from a subfolder of the repository', async () => {
    const place = project({
      '.git/HEAD': '',
      '.claude/agents/reviewer.md': '---\nname: reviewer\ndescription: Reviews\n---\n\nYou review.\n',
      'packages/a/notes.txt': 'blue',
    })
    await serveModel(place, (mock) => mock.on({}, { content: 'Done.' }))
    const cwd = path.join(place.folder, 'packages/a')

    expect(await place.run(['run', 'reviewer', 'Review.'], { cwd })).toMatchObject({ code: 0, stdout: 'Done.\n' })
    expect((await place.run(['doctor'], { cwd })).stdout).toContain('reviewer')
  })

  test('before it writes a person is asked; where none is, it waits with exit code 3 and says what answers and goes on', async () => {
    const place = project({ 'a.yaml': HEAD + DEVELOPER })
    await serveModel(place, calls(WRITE))

    const parked = await place.run(['run', 'a.yaml'])
    expect(parked).toMatchObject({ code: 3, stdout: '' })
    const said =
      /waits for a person:\n {2}file\.write:\/workspace\/out\.txt for write_file \{.*"made".*\}\n {4}legate (approve (\w{8}) --seen \w{64}), or legate deny \2 --seen \w{64} --reason TEXT\n {2}Then: legate (resume \w{8})\n/
    const [, approve = '', , resume = ''] = said.exec(parked.stderr) ?? []
    expect(written(place)).toBeUndefined()

    rmSync(path.join(place.folder, 'a.yaml'))
    expect(await place.run(approve.split(' '))).toMatchObject({ code: 0 })
    const resumed = await place.run(resume.split(' '), { cwd: root })

    expect(resumed).toMatchObject({ code: 0, stdout: expect.stringContaining('Done.') })
    expect(written(place)).toBe('made')
  })

  test('--yes allows what it asks for, and the record says who did', async () => {
    const place = project({ 'a.yaml': HEAD + DEVELOPER })
    await serveModel(place, calls(WRITE, ['shell', { command: 'echo hello > by-shell.txt' }]))

    const { code, stdout } = await place.run(['run', 'a.yaml', '--yes'], { env: { USER: 'ada' } })
    const store = localStore(place.runtime())
    const events = store.events(store.roots({ limit: 1 })[0]?.id ?? '', 0, 100).map(({ body }) => body)

    expect({ code, stdout }).toEqual({ code: 0, stdout: 'Done.\n' })
    expect(written(place)).toBe('made')
    expect(existsSync(path.join(place.folder, 'by-shell.txt'))).toBe(true)
    const answers = events.filter(({ type }) => type === 'approval-answer')
    expect(answers).toMatchObject(Array(2).fill({ allowed: true, by: 'ada (--yes)' }))
  })

  test('--compat aster offers subagents only beside other tools; the rows keep it', async () => {
    const place = project({ 'bare.yaml': `${HEAD}extensions: []\n`, 'a.yaml': HEAD + DEVELOPER })
    const mock = await serveModel(place, (one) => one.on({}, { content: 'Done.' }))
    const offered = async (...args: string[]) => {
      const { code } = await place.run(['run', ...args])
      const body = mock.getLastRequest()?.body as { tools?: { function: { name: string } }[] } | undefined
      return [code, (body?.tools ?? []).some(({ function: { name } }) => name === 'subagent')]
    }

    expect(await offered('bare.yaml')).toEqual([0, true])
    expect(await offered('bare.yaml', '--compat', 'aster')).toEqual([0, false])
    expect(await offered('a.yaml', '--compat', 'aster')).toEqual([0, true])
    const explained = await place.run(['explain', 'bare.yaml', '--compat', 'aster', '--json'])
    expect(JSON.parse(explained.stdout).tools).toEqual([])
    expect(await place.run(['run', 'a.yaml', '--compat', 'goose'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('There is no --compat "goose". Use aster.'),
    })
    expect(await place.run(['run', 'agents.mjs', '--compat', 'aster'])).toMatchObject({ code: 2 })
  })

  test('chat takes --compat as run does', async () => {
    const place = project({ 'bare.yaml': `${HEAD}extensions: []\n`, 'a.yaml': HEAD + DEVELOPER })
    const mock = await serveModel(place, (one) => one.on({}, { content: 'Done.' }))
    const offered = async (...args: string[]) => {
      const { code } = await place.run(['chat', ...args], { input: 'Hello.\n' })
      const body = mock.getLastRequest()?.body as { tools?: { function: { name: string } }[] } | undefined
      return [code, (body?.tools ?? []).some(({ function: { name } }) => name === 'delegate')]
    }

    expect(await offered('bare.yaml')).toEqual([0, true])
    expect(await offered('bare.yaml', '--compat', 'aster')).toEqual([0, false])
    expect(await offered('a.yaml', '--compat', 'aster')).toEqual([0, true])
    expect(await place.run(['chat', 'a.yaml', '--compat', 'goose'], { input: '' })).toMatchObject({ code: 2 })
    expect(await place.run(['chat', 'agents.mjs', '--compat', 'aster'], { input: '' })).toMatchObject({ code: 2 })
  })

  test('a hook that allows a call allows nothing, and run and chat say so', async () => {
    const hooks = 'hooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks: [{ type: command, command: ./guard }]\n'
    const place = project({
      '.claude/agents/r.md': `---\nname: r\ndescription: d\n${hooks}---\n\nYou work.\n`,
      guard: `#!/bin/sh\necho '{"hookSpecificOutput":{"permissionDecision":"allow"}}'\n`,
    })
    chmodSync(path.join(place.folder, 'guard'), 0o755)
    const allow = ['--allow', 'exec:./guard']
    await serveModel(place, calls(shell('touch out.txt')))
    const ran = await place.run(['run', 'r', 'Go.', ...allow])
    const chatted = await place.run(['chat', 'r', ...allow], { input: 'Go.\n' })

    for (const { code, stderr } of [ran, chatted]) {
      expect(stderr).toContain('The hook ./guard allows a call. That is ignored: a hook may only refuse.')
      expect(code).toBe(3)
    }
    expect(written(place)).toBeUndefined()
  })

  test('what the file forbids stays forbidden, whatever is said on the command line', async () => {
    const place = project({ 'r.md': '---\nname: r\ndescription: d\npermissionMode: plan\n---\n\nYou plan.\n' })
    const mock = await serveModel(place, calls(WRITE))

    const { code } = await place.run(['run', 'r.md', 'Write it.', '--yes'])

    expect(code).toBe(0)
    expect(written(place)).toBeUndefined()
    expect(lastResult(mock)).toMatch(/not allowed|denies|no tool|denied/i)
  })

  test('in a terminal it asks inline, below the tree', async () => {
    const place = project({ 'a.yaml': HEAD + DEVELOPER })
    await serveModel(place, calls(WRITE))
    const terminal = new Terminal(place, ['run', 'a.yaml'], { cols: 160, rows: 24 })
    await terminal.shows((screen) => HEARD.test(screen))
    expect(terminal.screen.text).toMatch(/^a wants file\.write:\/workspace\/out\.txt for write_file \{.*"made".*\}/m)
    terminal.type('y')
    await terminal.shows('then Enter > y')
    terminal.type('\r')

    expect(await terminal.ended).toBe(0)
    expect(written(place)).toBe('made')
    expect(terminal.screen.all).toMatch(/\n\nDone\.$/)
  })
})

describe('a run that lost its process', () => {
  test('is finished by legate resume, from its rows alone: the file may be gone', async () => {
    const place = project({
      'a.yaml': `${HEAD}instructions: Be {{ how }}.\nparameters:\n  - {key: how, input_type: string, requirement: required, description: d}\n`,
    })
    let isSlow = true
    const mock = await serveModel(place, (one) => {
      one.on({ predicate: () => isSlow }, { content: 'late' }, { latency: 60_000 })
      one.on({}, { content: 'All done.' })
    })
    const started = place.legate(['run', 'a.yaml', '-p', 'how=brief'])
    await until('the model is asked', () => mock.getRequests().length === 1)
    started.kill('SIGKILL')
    await started.ended
    isSlow = false
    rmSync(path.join(place.folder, 'a.yaml'))

    const resumed = await place.run(['resume'])

    expect(resumed).toMatchObject({ code: 0, stdout: expect.stringContaining('All done.') })
    expect(JSON.stringify(mock.getLastRequest()?.body)).toContain('Be brief.')
    expect(localStore(place.runtime()).openTurns(10)).toEqual([])
  })

  test('is not begun where the key of its model is missing: resume names the variable, and records nothing', async () => {
    const place = project({ 'a.yaml': HEAD })
    const mock = await serveModel(place, (one) => one.on({}, { content: 'late' }, { latency: 60_000 }))
    const started = place.legate(['run', 'a.yaml'])
    await until('the model is asked', () => mock.getRequests().length === 1)
    started.kill('SIGKILL')
    await started.ended
    const store = localStore(place.runtime())
    const [rootId = ''] = store.roots({ limit: 1 }).map(({ id }) => id)
    const before = store.lastSeq(rootId)

    const { code, stdout, stderr } = await place.run(['resume'], { env: { OPENAI_API_KEY: '' } })

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(/^legate: openai\/gpt-5 needs a key\. Set OPENAI_API_KEY, /)
    expect([store.lastSeq(rootId), mock.getRequests().length]).toEqual([before, 1])
  })

  test('is left alone in another folder, and named there; its id is enough from anywhere', async () => {
    const place = project({ 'a.yaml': HEAD })
    let isSlow = true
    const mock = await serveModel(place, (one) => {
      one.on({ predicate: () => isSlow }, { content: 'late' }, { latency: 60_000 })
      one.on({}, { content: 'All done.' })
    })
    const started = place.legate(['run', 'a.yaml'])
    await until('the model is asked', () => mock.getRequests().length === 1)
    started.kill('SIGKILL')
    await started.ended
    isSlow = false

    const elsewhere = await place.run(['resume'], { cwd: root })
    const [, command = ''] =
      /runs of other folders, name them:\n {2}legate (resume \w{8}) {2}# works in /.exec(elsewhere.stderr) ?? []
    const resumed = await place.run(command.split(' '), { cwd: root })

    expect(elsewhere.code).toBe(2)
    expect(resumed).toMatchObject({ code: 0, stdout: expect.stringContaining('All done.') })
  })

  test('a run that was cancelled goes on by its id, as one more run', async () => {
    const place = project({ 'a.yaml': HEAD })
    const mock = await serveModel(place, (one) => {
      one.on({ userMessage: 'Go on where you stopped.' }, { content: 'Went on.' })
      one.on({}, { content: 'late' }, { latency: 60_000 })
    })
    const started = place.legate(['run', 'a.yaml'])
    await until('the model is asked', () => mock.getRequests().length === 1)
    started.kill('SIGINT')
    const { code, stderr } = await started.ended
    const [, command = ''] = /Continue with: legate (resume \w{8})\n/.exec(stderr) ?? []
    const resumed = await place.run(command.split(' '))

    expect(code).toBe(130)
    expect(resumed).toMatchObject({ code: 0, stdout: expect.stringContaining('Went on.') })
  })
})

describe('extensions', () => {
  const everything = path.join(root, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js')
  const SERVER = `extensions:\n  - {type: stdio, name: sums, cmd: ${process.execPath}, args: ['${everything}', stdio]}\n`
  const WITH_SECRET = SERVER.replace('args:', 'env_keys: [SUMS_TOKEN], args:')

  test('a recipe with an MCP server over stdio: a secret without a value is told, the person is asked to start it, its tools work, and it ends with the run; --store is in the commands that are named', async () => {
    const place = project({ 'a.yaml': HEAD + WITH_SECRET })
    const mock = await serveModel(place, calls(['sums__get-sum', { a: 2, b: 3 }]))

    const parked = await place.run(['run', 'a.yaml', '--store', 'my own.db'])
    const allowed = await place.run(['run', 'a.yaml', '--yes'], { env: { SUMS_TOKEN: 'hush-hush' } })

    expect(parked.code).toBe(3)
    expect(parked.stderr).toMatch(/^warning: SUMS_TOKEN is not set, and the extension sums may need it\.\n/)
    expect(parked.stderr).toMatch(/waits for a person:[\s\S]*server-everything[\s\S]*legate approve \w{8}/)
    expect(parked.stderr).toMatch(
      /legate approve (\w{8}) --seen \w{64} --store 'my own\.db', or legate deny \1 --seen \w{64} --reason TEXT --store 'my own\.db'\n {2}Then: legate resume \w{8} --store 'my own\.db'\n/,
    )
    expect(allowed).toMatchObject({ code: 0, stdout: 'Done.\n' })
    expect(allowed.stderr).not.toContain('SUMS_TOKEN')
    expect(lastResult(mock)).toContain('The sum of 2 and 3 is 5.')
  })

  test('a no to a server that the recipe does not require: the run goes on without it, and says so', async () => {
    const place = project({ 'a.yaml': HEAD + SERVER })
    await serveModel(place, calls())
    const terminal = new Terminal(place, ['run', 'a.yaml'], { cols: 200, rows: 30, env: { USER: 'ada' } })
    await terminal.shows((screen) => HEARD.test(screen))
    terminal.type('n\r')

    expect(await terminal.ended).toBe(0)
    expect(terminal.screen.all).toMatch(/The tools of "sums" are not available: ada denied starting it/)
  })

  test('a no says what was denied, and what a person can do about it', async () => {
    const place = project({ 'a.yaml': HEAD + SERVER.replace('args:', 'required: true, args:') })
    await serveModel(place, calls())
    const terminal = new Terminal(place, ['run', 'a.yaml'], { cols: 200, rows: 30, env: { USER: 'ada' } })
    await terminal.shows((screen) => HEARD.test(screen))
    terminal.type('n\r')

    expect(await terminal.ended).toBe(1)
    expect(terminal.screen.all).toMatch(
      /denied after .*: You denied starting MCP server `sums`, which this recipe requires\.\n {2}Run it again and allow the request, or remove the request from the file\./,
    )
  })

  test('explain starts no server, and says what a run would start', async () => {
    const place = project({ 'a.yaml': HEAD + SERVER })
    await serveModel(place, calls())
    const { code, stdout } = await place.run(['explain', 'a.yaml'])

    expect(code).toBe(0)
    expect(stdout).toMatch(
      /\nExtensions\n {2}sums: starts .*node .*server-everything.* stdio \(its tools are known when it runs\)\n/,
    )
  })

  test('in a terminal a secret is asked for, and neither shown nor stored; whoever is asked to start the server sees the whole command line', async () => {
    const place = project({ 'a.yaml': HEAD + WITH_SECRET })
    await serveModel(place, calls(['sums__get-env', {}]))
    const terminal = new Terminal(place, ['run', 'a.yaml'], { cols: 200, rows: 30 })
    await terminal.shows('SUMS_TOKEN, for sums (not shown; Enter for none):')
    terminal.type('hush-hush\r')
    await terminal.shows((screen) => HEARD.test(screen))
    expect(terminal.screen.text).toMatch(/^a wants exec:.*node .*server-everything\/dist\/index\.js\s+stdio/m)
    terminal.type('y')
    await terminal.shows('then Enter > y')
    terminal.type('\r')

    expect(await terminal.ended).toBe(0)
    expect(terminal.written).not.toContain('hush-hush')
    expect(readFileSync(place.store).includes('hush-hush')).toBe(false)
  })
})

describe('I11 what a person says yes to is shown to the letter', () => {
  test('the command line of a check, before the yes', async () => {
    const place = project({ 'a.yaml': `${HEAD}${checkOf('echo hostile > PWNED')}` })
    await serveModel(place, calls())
    const terminal = new Terminal(place, ['run', 'a.yaml'], { cols: 150, rows: 24 })
    await terminal.shows((screen) => HEARD.test(screen))

    expect(terminal.screen.text).toContain("a wants exec:sh -c 'echo hostile > PWNED' for recipe__check")
    expect(existsSync(path.join(place.folder, 'PWNED'))).toBe(false)
    terminal.type('n\r')
    await terminal.ended
  })

  test.each([
    ['a control character', 'echo these files: \u009b;touch PWNED', 'echo these files: \\u009b;touch PWNED'],
    ['an escape sequence', 'echo \u001b]0;title\u0007 x', 'echo \\u001b]0;title\\u0007 x'],
    ['a line break', 'echo it # and\ntouch PWNED', 'echo it # and\\ntouch PWNED'],
    ['a mark of direction', 'echo \u202e x', 'echo \\u202e x'],
  ])('%s in a command', async (_, command, shown) => {
    const place = project({ 'a.yaml': HEAD + DEVELOPER })
    await serveModel(place, calls(['shell', { command }]))
    const { code, stderr } = await place.run(['run', 'a.yaml'])
    const { stdout } = await place.run(['approvals'])

    expect(code).toBe(3)
    for (const text of [stderr, stdout]) {
      expect(text.replaceAll(/\n {2,}/g, ' ')).toContain(`${shown}"}`)
      expect(text).toContain(`exec:sh -c $'${shown}'`)
    }
  })
})

function checkOf(command: string): string {
  return `retry: {max_retries: 1, checks: [{type: shell, command: ${JSON.stringify(command)}}]}\n`
}
