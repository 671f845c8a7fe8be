import { existsSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { beforeEach, describe, expect, test } from 'vitest'
import { agentsModule, root, skipUnlessBuilt } from './support/cli.ts'
import { project } from './support/project.ts'
import { Terminal } from './support/terminal.ts'

beforeEach(skipUnlessBuilt)

const IMPORT = `import { agent } from '${pathToFileURL(path.join(root, 'dist/index.js')).href}'\n`
const ONE = `export { lead } from '${agentsModule}'\n`
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
const READS_TYPES = major > 22 || (major === 22 && minor >= 18)

describe('an agent written in code', () => {
  test.each([
    ['the only one of a file', ['run', 'one.mjs', 'Look.']],
    ['the only one of --module', ['run', '--module', 'one.mjs', 'Look.']],
    ['one of many, by its name', ['run', agentsModule, '--agent', 'lead', 'Look.']],
  ])('runs, with its subagents: %s', async (_, args) => {
    const place = project({ 'one.mjs': ONE })
    place.open()

    expect(await place.run(args)).toMatchObject({ code: 0, stdout: 'All of them saw it: 2.\n' })
  })

  test('takes JSON where it has an input schema, and text from stdin', async () => {
    const place = project({})
    place.open()
    const typed = await place.run(['run', agentsModule, '--agent', 'typed', '-'], { input: '{"place":"Rome"}' })
    const wrong = await place.run(['run', agentsModule, '--agent', 'typed', 'Rome'])
    const nothing = await place.run(['run', agentsModule, '--agent', 'lead'])

    expect(typed).toMatchObject({ code: 0, stdout: expect.stringContaining('Asked 1 times') })
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('takes JSON') })
    expect(nothing).toMatchObject({ code: 2, stderr: expect.stringContaining('has no prompt. Add one to the command') })
  })

  test('asks in a terminal what its grant asks for; elsewhere it waits, and the command that goes on names the module', async () => {
    const place = project({ 'careful.mjs': `export { careful } from '${agentsModule}'\n` })
    place.open()
    const parked = await place.run(['run', 'careful.mjs', 'Look.'])
    const [, approve = '', resume = ''] =
      /legate (approve \w{8} --seen \w{64}), [\s\S]*Then: legate (resume \w{8} --module careful\.mjs)\n/.exec(
        parked.stderr,
      ) ?? []
    await place.run(approve.split(' '))
    const resumed = await place.run(resume.split(' '))
    const terminal = new Terminal(place, ['run', 'careful.mjs', 'Look.'], { cols: 100, rows: 24 })
    await terminal.shows((screen) => /then Enter >$/m.test(screen))
    terminal.type('y\r')

    expect(parked.code).toBe(3)
    expect(resumed).toMatchObject({ code: 0, stdout: expect.stringContaining('Done: It is blue.') })
    expect(await terminal.ended).toBe(0)
    expect(terminal.screen.all).toMatch(/Done: It is blue\.$/)
  })

  test('can be talked with, and gone on with', async () => {
    const place = project({})
    place.open()
    const module = ['--module', agentsModule, '--agent', 'lead']
    const { code, stdout, stderr } = await place.run(['chat', ...module], { input: 'Look.\n' })
    const [, again = ''] = /Continue with: legate (chat .* --agent lead --continue \w{8})\n$/.exec(stderr) ?? []
    const more = await place.run(again.split(' '), { input: 'Go on where you stopped.\n' })

    expect({ code, stdout }).toEqual({ code: 0, stdout: 'All of them saw it: 2.\n' })
    expect(more).toMatchObject({ code: 0, stdout: 'I went on after 1 question.\n' })
  })

  test.each<[string, readonly string[], RegExp]>([
    [
      'several agents',
      ['run', agentsModule, 'x'],
      /exports \d+ agents: choose one with --agent\. There are: .*lead, .*talker/,
    ],
    [
      'a name that there is not',
      ['run', agentsModule, '--agent', 'x', 'x'],
      /exports no agent "x"\. There are: .*lead/,
    ],
    ['no agent', ['run', 'none.mjs', 'x'], /exports no agent/],
    ['a file that is not there', ['run', 'no.mjs', 'x'], /There is no module/],
    ['another kind of file', ['run', 'a.py', 'x'], /a\.py is neither a recipe .* nor a module/],
    ['--agent without a module', ['run', 'a.yaml', '--agent', 'x'], /--agent is for a module/],
    ['explain of a module without agents', ['explain', 'none.mjs'], /none\.mjs exports no agent/],
    [
      'explain of an agent that there is not',
      ['explain', 'one.mjs', '--agent', 'x'],
      /exports no agent "x"\. There are: lead/,
    ],
    ['explain --agent of a file', ['explain', 'a.yaml', '--agent', 'x'], /--agent is for a module/],
    ['nothing', ['run'], /missing FILE/],
    [
      'a module that throws',
      ['run', 'throws.mjs', 'x'],
      /^legate: Cannot load throws\.mjs: TypeError: no way, at all \(throws\.mjs:3\)\n$/,
    ],
    [
      'a module that throws, for resume',
      ['resume', '--module', 'throws.mjs'],
      /^legate: Cannot load throws\.mjs: TypeError: no way, at all \(throws\.mjs:3\)\n$/,
    ],
    [
      'a module that is no JavaScript',
      ['run', '-m', 'syntax.mjs', 'x'],
      /^legate: Cannot load syntax\.mjs: SyntaxError: Unexpected token '='\n$/,
    ],
    [
      'an import that there is not',
      ['chat', 'import.mjs'],
      /^legate: Cannot load import\.mjs: SyntaxError: The requested module .* 'nope' \(import\.mjs:1\)\n$/,
    ],
    ['a package that there is not', ['run', 'package.mjs'], /^legate: Cannot load package\.mjs: .*Cannot find package/],
    ['a module that throws no error', ['run', 'text.mjs'], /^legate: Cannot load text\.mjs: it threw a text\.\n$/],
    ['a model for one that has its own', ['run', 'one.mjs', 'x', '--model', 'openai/gpt-5'], /has a model in its code/],
  ])('is told in a line what is wrong: %s', async (_, args, message) => {
    const place = project({
      'none.mjs': 'export const x = 1\n',
      'a.py': 'print()',
      'a.yaml': 'title: T\n',
      'one.mjs': ONE,
      'throws.mjs': 'const x = 1\nfunction f() {\n  throw new TypeError("no way, at all")\n}\nf()\n',
      'syntax.mjs': 'export const a = 1\nexport const b = = 2\n',
      'import.mjs': "import { nope } from './none.mjs'\n",
      'package.mjs': "import 'no-such-package'\n",
      'text.mjs': "throw 'a text'\n",
    })
    const { code, stderr } = await place.run(args)

    expect(code).toBe(2)
    expect(stderr).toMatch(message)
    expect(stderr.trimEnd().split('\n')).toHaveLength(1)
  })

  test('in TypeScript it runs where Node can read it; elsewhere one line says what to do', async () => {
    const place = project({ 'one.ts': `${ONE}export const unused: number = 1\n`, 'package.json': '{"type":"module"}' })
    place.open()
    const { code, stdout, stderr } = await place.run(['run', 'one.ts', 'Look.'])

    if (READS_TYPES) expect({ code, stdout }).toEqual({ code: 0, stdout: 'All of them saw it: 2.\n' })
    else {
      expect(code).toBe(2)
      expect(stderr).toMatch(
        /^legate: Node v.* cannot load .*one\.ts: use Node 22\.18 or newer, or compile it to a \.mjs file\.\n$/,
      )
    }
  })
})

describe('what a module has is shown without running it', () => {
  const CODE = `
import { writeFileSync } from 'node:fs'
import { agent, tool } from '${pathToFileURL(path.join(root, 'dist/index.js')).href}'
import { mcpServer } from '${pathToFileURL(path.join(root, 'dist/doors/mcp.js')).href}'
const ran = () => { writeFileSync('ran', ''); return 'x' }
const made = (description) => tool({ description, input: { type: 'object' }, execute: ran })
const model = { id: 'test/small', async *stream() { ran() } }
const scout = agent({ name: 'scout', description: 'Looks.', instructions: 'You look.', model })
const quiet = agent({ name: 'quiet', instructions: 'You are asked.', model })
export const boss = agent({
  name: 'boss',
  description: 'Decides.',
  instructions: 'You decide.\\nBriefly.',
  tools: { read: made('Reads mail.'), send: made('Sends mail.'), wipe: made('Deletes mail.') },
  subagents: { look: scout, ask: quiet },
  sources: { mail: mcpServer({ command: 'node', args: ['server.mjs', '--token', 'Zq8hT3vLp0Xy7Rw2Kd9MfB4sJ6nC1uEa'] }) },
  grant: { use: ['tool:*', 'agent:*', 'exec:node *'], ask: ['tool:send'] },
  budget: { modelCalls: 3 },
})
export default { agents: [boss, scout], grant: { deny: ['tool:wipe'] }, model: 'openai/gpt-5' }
`

  test('explain lists its agents: model, tools, subagents, servers, grant', async () => {
    const place = project({ 'agents.mjs': CODE })
    const { code, stdout } = await place.run(['explain', 'agents.mjs'], { env: { OPENAI_API_KEY: 'k' } })

    expect(code).toBe(0)
    expect(stdout).toBe(`agents.mjs has 2 agents; --agent NAME shows one in full.

Grant of the module, for all of its agents
  deny      tool:wipe

boss
  about     Decides.
  model     openai/gpt-5, named by the module
  tools     read, send (asks), wipe (denied)
  subagents look (scout), ask (quiet)
  servers   mail
  grant     use tool:* agent:* exec:node *; ask tool:send

scout
  about     Looks.
  model     test/small, named by its code
  grant     none: its tools, agents and models; no files, programs, hosts or secrets
`)
    expect(existsSync(path.join(place.folder, 'ran'))).toBe(false)
  })

  test('explain --agent shows one whole, with what is decided of each tool and no secret', async () => {
    const place = project({ 'agents.mjs': CODE })
    const { code, stdout } = await place.run(['explain', 'agents.mjs', '--agent', 'boss'])
    const json = await place.run(['explain', 'agents.mjs', '--agent', 'boss', '--json'])

    expect(code).toBe(0)
    expect(stdout).toMatch(/^boss\n {2}module +agents\.mjs\n {2}about +Decides\.\n {2}model +openai\/gpt-5/)
    expect(stdout).toMatch(/\n {2}budget +\{"modelCalls":3\}\n/)
    expect(stdout).toMatch(
      /\nTools \(3\)\n {2}read {2}Reads mail\.\n {2}send {2}Sends mail\.\n {8}asks: boss asks for tool:send\n/,
    )
    expect(stdout).toContain('\nSubagents\n  look: scout, Looks.\n  ask: quiet\n')
    expect(stdout).toMatch(/\n {2}wipe {2}Deletes mail\.\n {8}denied: the runtime denies tool:wipe\n/)
    expect(stdout).toMatch(
      /\nServers\n {2}mail: exec:node server\.mjs --token '?\*\*\*\(32:[0-9a-f]{4}\)'? \(its tools are known when it runs\)\n/,
    )
    expect(stdout).toMatch(/\nInstructions\n {2}You decide\.\n {2}Briefly\.\n/)
    expect(JSON.parse(json.stdout)).toMatchObject({
      name: 'boss',
      model: 'openai/gpt-5',
      subagents: [
        { tool: 'look', agent: 'scout' },
        { tool: 'ask', agent: 'quiet' },
      ],
      grant: { runtime: { deny: ['tool:wipe'] }, agent: { ask: ['tool:send'] } },
    })
    expect(stdout + json.stdout).not.toContain('Zq8hT3vLp0Xy')
    expect(existsSync(path.join(place.folder, 'ran'))).toBe(false)
  })

  test('code that answers needs no model and no key: run, explain and validate say so', async () => {
    const place = project({
      'plain.mjs': `${IMPORT}export const plain = agent({ name: 'plain', reply: async (text) => 'got ' + text })\n`,
    })
    const env = { LEGATE_MODEL: undefined, OPENAI_API_KEY: undefined, OLLAMA_HOST: 'http://127.0.0.1:1' }

    expect(await place.run(['run', 'plain.mjs', 'x'], { env })).toMatchObject({ code: 0, stdout: 'got x\n' })
    const named = { env: { ...env, LEGATE_MODEL: 'openai/gpt-5' } }
    expect((await place.run(['explain', 'plain.mjs'], named)).stdout).toMatch(/model +none: its code answers/)
    expect((await place.run(['validate', 'plain.mjs'], named)).stdout).toMatch(/plain; no model: its code answers/)
  })

  test('validate names its agents and their models; a module that cannot be used is an error', async () => {
    const place = project({
      'agents.mjs': CODE,
      'none.mjs': 'export const x = 1\n',
      'bad.mjs': 'throw new Error("no\\nway")\n',
    })
    const env = { OPENAI_API_KEY: 'k' }
    const good = await place.run(['validate', 'agents.mjs'], { env })
    const bad = await place.run(['validate', 'bad.mjs', 'agents.mjs', 'none.mjs'], { env })
    const json = await place.run(['validate', 'agents.mjs', '--json'], { env })

    expect(good).toMatchObject({
      code: 0,
      stdout: 'agents.mjs: ok (module, boss; model openai/gpt-5, scout; model test/small)\n',
    })
    expect(bad.code).toBe(1)
    expect(bad.stdout).toMatch(
      /^bad\.mjs: error: Cannot load .*no way.*\nagents\.mjs: ok .*\nnone\.mjs: error: .* exports no agent/,
    )
    expect(JSON.parse(json.stdout)).toMatchObject({
      ok: true,
      dialect: 'module',
      agents: [{ name: 'boss' }, { name: 'scout' }],
    })
    expect(existsSync(path.join(place.folder, 'ran'))).toBe(false)
  })
})
