import { chmodSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { agent, type Grant } from 'legate'
import { hostRequest } from 'legate/grant'
import { mcpServer } from 'legate/mcp'
import { recipeAgent } from 'legate/recipe'
import { scriptedModel } from 'legate/testing'
import { developerTools, diskFiles, runProcess } from 'legate/tools'
import { describe, expect, test } from 'vitest'
import { folderWith } from '../recipe/support/folder.ts'
import { openRuntime, resultsIn } from '../support/reading.ts'
import { tempFolder } from '../support/temp-folder.ts'
import { caller, mark, running } from '../tools/mcp/support.ts'

const FILES = ['tool:*', 'file.*:/workspace/**', 'file.list:/workspace']

/** A workspace in which every hostile name leads to a program that leaves a file behind. */
function hostileWorkspace(): string {
  const workspace = path.join(tempFolder(), 'work')
  const program = `#!/bin/sh\ntouch '${workspace}/ran'\n`
  for (const name of ['ls', 'bin/ls', 'ls x', 'git-evil', 'scripts/../evil', 'ls\u00a0x', 'ls*', "l's"]) {
    const file = path.join(workspace, name)
    mkdirSync(path.dirname(file), { recursive: true })
    writeFileSync(file, program)
    chmodSync(file, 0o755)
  }
  for (const folder of ['ls x.d', 'scripts', 'git']) mkdirSync(path.join(workspace, folder), { recursive: true })
  symlinkSync('/bin/sh', path.join(workspace, 'scripts/link'))
  return workspace
}

async function shell(use: readonly string[], inputs: readonly object[], more: Grant = {}) {
  const workspace = hostileWorkspace()
  const model = scriptedModel([
    ...inputs.map((input) => ({ calls: [{ name: 'shell', input: input as never }] })),
    'Done.',
  ])
  const who = agent({
    name: 'dev',
    instructions: '',
    model,
    tools: developerTools(),
    grant: { use: [...FILES, ...use], ...more },
  })
  await openRuntime({ files: diskFiles({ workspace }), compaction: false }).run(who, 'go').result
  const results = resultsIn(model.requests.at(-1)).map(({ content }) => String(content))
  return { results, hasRun: existsSync(path.join(workspace, 'ran')), workspace }
}

const TOUCH = 'touch ran'

describe('I11: where a program runs is a part of what is decided', () => {
  const rules = ['exec:sh server.sh', 'exec:./scripts/*', 'file.write:/workspace/tmp/**']
  const server = { path: '/workspace/tmp/server.sh', content: 'touch ran' }

  test.each([{ cwd: '/workspace/tmp' }, { cwd: '/workspace/tmp/' }, { cwd: 'tmp' }, { cwd: './tmp' }])(
    'a folder that the model chose: %j',
    async ({ cwd }) => {
      const workspace = path.join(tempFolder(), 'work')
      const model = scriptedModel([
        { calls: [{ name: 'write_file', input: server }] },
        { calls: [{ name: 'shell', input: { command: 'sh server.sh', cwd } }] },
        { calls: [{ name: 'shell', input: { command: 'sh server.sh' } }] },
        'Done.',
      ])
      mkdirSync(path.join(workspace, 'tmp'), { recursive: true })
      writeFileSync(path.join(workspace, 'server.sh'), 'echo ours')
      const grant = { use: [...FILES, ...rules], deny: ['file.write:/workspace/server.sh'] }
      const who = agent({ name: 'dev', instructions: '', model, tools: developerTools(), grant })
      await openRuntime({ files: diskFiles({ workspace }) }).run(who, 'go').result

      const [, elsewhere, here] = resultsIn(model.requests.at(-1)).map(({ content }) => String(content))
      expect(elsewhere).toContain('no rule of dev allows exec:cd /workspace/tmp && sh server.sh')
      expect(here).toBe('ours')
      expect(existsSync(path.join(workspace, 'tmp/ran'))).toBe(false)
    },
  )
})

test.each(['', '.', 'bin:.', ':'])(
  'I11: programs are not looked for in the folder they run in: PATH=%j',
  async (PATH) => {
    const cwd = tempFolder()
    writeFileSync(path.join(cwd, 'tool'), '#!/bin/sh\necho hostile\n', { mode: 0o755 })
    const { exitCode, stdout } = await runProcess('tool', [], {
      cwd,
      env: { PATH },
      signal: new AbortController().signal,
    })

    expect({ exitCode, stdout }).toEqual({ exitCode: 127, stdout: '' })
  },
)

describe('I11: an address is decided by the host that it leads to', () => {
  test.each([
    'http:/127.0.0.1:1/',
    'http:127.0.0.1:1',
    'http:\\\\127.0.0.1:1/',
    'http:\t//127.0.0.1:1/',
    'HTTP:/127.0.0.1:1',
    'ws:/127.0.0.1:1',
    'ftp:\\127.0.0.1',
    ' http:/127.0.0.1/',
    'http:///127.0.0.1/',
    'http:/x@127.0.0.1/',
  ])('%j', (address) => {
    const { name, url } = hostRequest(address)

    expect(name).toBe('127.0.0.1')
    expect(new URL(url).hostname).toBe('127.0.0.1')
    expect(url).toBe(new URL(address).href)
  })
})

describe('I11: with a rule for ls and another for git and npm, the shell runs nothing else', () => {
  const rules = ['exec:ls', 'exec:ls *', 'exec:git', 'exec:git *', 'exec:npm test *', 'exec:./scripts/*']

  test.each<[string, object]>([
    ['a folder that begins like the program', { argv: ['ls x.d/../../../../../../../bin/sh', '-c', TOUCH] }],
    ['a program whose name holds a space', { argv: ['ls x'] }],
    ['the same in quotes', { command: "'ls x'" }],
    ['a no-break space', { argv: ['ls\u00a0x'] }],
    ['a no-break space in a command', { command: 'ls\u00a0x' }],
    ['a star in the name', { argv: ['ls*'] }],
    ['a quote in the name', { argv: ["l's", 'x'] }],
    ['one of its name in the workspace', { argv: ['./ls', 'x'] }],
    ['one below', { command: 'bin/ls x' }],
    ['one above the folder that is allowed', { argv: ['./scripts/../evil'] }],
    ['up and down again', { argv: ['./scripts/../scripts/../evil'] }],
    ['env before it', { command: `env X=1 sh -c '${TOUCH}'` }],
    ['a variable before it', { command: `X=1 ${TOUCH}` }],
    ['a list', { command: `ls; ${TOUCH}` }],
    ['and', { command: `git status && ${TOUCH}` }],
    ['or', { command: `ls nothing || ${TOUCH}` }],
    ['a pipe', { command: `ls | xargs ${TOUCH}` }],
    ['a second line', { command: `ls x\n${TOUCH}` }],
    ['a return', { command: `ls x\r\n${TOUCH}` }],
    ['in the background', { command: `ls & ${TOUCH}` }],
    ['a substitution', { command: `ls $(${TOUCH})` }],
    ['the old form of one', { command: `ls \`${TOUCH}\`` }],
    ['one in quotes', { command: `ls "$(${TOUCH})"` }],
    ['a redirection', { command: 'ls > ran' }],
    ['a here document', { command: `sh <<E\n${TOUCH}\nE` }],
    ['a function', { command: `ls() { ${TOUCH}; }; ls` }],
    ['a brace', { command: `{ ${TOUCH},}` }],
    ['an alias', { command: `alias ls='${TOUCH}'\nls` }],
    ['the shell’s own eval', { argv: ['eval', TOUCH] }],
    ['the shell’s own exec', { argv: ['exec', 'touch', 'ran'] }],
    ['the shell’s own command', { argv: ['command', 'touch', 'ran'] }],
    ['the shell’s own dot', { argv: ['.', './ls'] }],
    ['a name that looks like an option', { argv: ['-c', TOUCH] }],
    ['options of the shell that starts it', { argv: ['--', 'sh', '-c', TOUCH] }],
    ['no name', { argv: ['', 'ls'] }],
    ['a NUL', { argv: ['ls\0x'] }],
    ['a NUL in a command', { command: 'ls\0; touch ran' }],
    ['half a character', { argv: ['ls\ud800', 'x'] }],
    ['other letters', { argv: ['ｌｓ', 'x'] }],
    ['upper case', { argv: ['LS', 'x'] }],
    ['npm that runs something else', { command: 'npm run test' }],
    ['npm with its words as one', { argv: ['npm test x'] }],
    ['both ways to say it', { command: 'ls', argv: ['touch', 'ran'] }],
  ])('%s', async (_, input) => {
    const { results, hasRun } = await shell(rules, [input])

    expect(hasRun).toBe(false)
    expect(results[0]).toMatch(/^shell is not allowed here: no rule of dev allows /)
  })

  test('arguments are the program’s own, whatever they hold', async () => {
    const words = ['-d', 'a b', '$(touch ran)', ';', "it's", 'x\ny', '*', '~', '']
    const { results, hasRun } = await shell(rules, [{ argv: ['ls', ...words] }, { command: 'ls -d git' }])

    expect(hasRun).toBe(false)
    expect(results[0]).toContain('$(touch ran)')
    expect(results[1]).toBe('git')
  })

  test('more arguments than the system takes are an error', async () => {
    const large = await shell(['exec:ls *'], [{ argv: ['ls', 'x'.repeat(200_000)] }])
    const many = await shell(['exec:ls *'], [{ argv: ['ls', ...Array.from({ length: 300 }, () => 'x'.repeat(9_000))] }])

    expect(large.results[0]).toMatch(/more than 100000 characters/)
    expect(many.results[0]).toMatch(/100000 characters/)
  })
})

describe('I11: names of programs', () => {
  test('the shell that leads a process group runs programs only, none of its own commands', async () => {
    const cwd = tempFolder()
    for (const argv of [
      ['eval', TOUCH],
      ['exec', 'touch', 'ran'],
      ['command', 'touch', 'ran'],
      ['trap', TOUCH, 'EXIT'],
    ]) {
      const [program = '', ...args] = argv
      const { exitCode } = await runProcess(program, args, { signal: new AbortController().signal, cwd })
      expect(exitCode).toBe(127)
    }
    expect(existsSync(path.join(cwd, 'ran'))).toBe(false)
  })

  test('are not looked for in the folder where they run', async () => {
    const cwd = tempFolder()
    writeFileSync(path.join(cwd, 'some-name'), `#!/bin/sh\n${TOUCH}\n`)
    chmodSync(path.join(cwd, 'some-name'), 0o755)
    for (const PATH of ['.:/usr/bin:/bin', ':/usr/bin:/bin', '/usr/bin:/bin:', './:/bin', 'bin/..:/bin']) {
      const { exitCode } = await runProcess('some-name', [], {
        signal: new AbortController().signal,
        cwd,
        env: { PATH },
      })
      expect(exitCode).toBe(127)
    }
    expect(existsSync(path.join(cwd, 'ran'))).toBe(false)
  })
})

test('I11: a check of a recipe is decided by the command line that is run', async () => {
  const cwd = hostileWorkspace()
  const check = async (command: string) => {
    const retry = `retry:\n  max_retries: 1\n  checks:\n    - type: shell\n      command: ${JSON.stringify(command)}\n`
    const file = path.join(folderWith({ 'r.yaml': `title: T\ndescription: D\nprompt: Go\n${retry}` }), 'r.yaml')
    const who = await recipeAgent(file, { cwd, grant: { use: ['tool:*', 'model:*', 'exec:ls *'] } })
    return openRuntime({ model: scriptedModel(() => 'done') as never }).run(who as never, undefined as never).result
  }
  for (const command of ["'ls x'", `'ls x.d/../../../../../../bin/sh' -c '${TOUCH}'`, `ls x; ${TOUCH}`, './ls x']) {
    expect((await check(command)).error?.message).toMatch(
      /^Retry logic encountered an error: exec:.* is not allowed here/,
    )
  }
  expect((await check('ls .')).status).toBe('completed')
  expect(existsSync(path.join(cwd, 'ran'))).toBe(false)
})

describe('I11: the request of a server is its whole command line', () => {
  test('a rule for node alone starts no node with a script', async () => {
    const word = mark()
    const source = mcpServer({ command: 'node', args: ['-e', `/* ${word} */ setInterval(() => 0, 1000)`] })
    const { who } = caller({ evil: source }, [], { use: ['tool:*', 'exec:node', 'exec:node server.mjs'] })
    const outcome = await openRuntime().run(who, 'go').result

    expect(outcome.status).toBe('denied')
    expect(outcome.error?.message).toContain(`no rule of caller allows exec:node -e '/* ${word}`)
    expect(running(word)).toEqual([])
  })

  test('the words of a command line are not mixed up', async () => {
    const source = mcpServer({ command: 'node server.mjs', args: ['x'] })
    const { who } = caller({ evil: source }, [], { use: ['tool:*', 'exec:node server.mjs *'] })

    expect((await openRuntime().run(who, 'go').result).error?.message).toContain("allows exec:'node server.mjs' x")
  })
})

describe('I11: a host that is denied is denied in every spelling', () => {
  test.each([
    'http://LOCALHOST:1/',
    'http://localhost.:1/',
    'http://user:pw@localhost:1/',
    'http://127.0.0.1:1/',
    'http://[::ffff:127.0.0.1]:1/',
    'http://[::ffff:7f00:1]:1/',
    'http://2130706433:1/',
    'http://0x7f000001:1/',
    'http://0177.0.0.1:1/',
    'http://127.1:1/',
    'http://１２７.0.0.1:1/',
    'http://localhost%2e:1/',
  ])('%s', async (url) => {
    const grant = { use: ['tool:*', 'net:*'], deny: ['net:localhost', 'net:127.0.0.1'] }
    const outcome = await openRuntime().run(caller({ far: mcpServer({ url }) }, [], grant).who, 'go').result

    expect(outcome).toMatchObject({ status: 'denied', error: { message: expect.stringMatching(/caller denies net:/) } })
  })

  test('an address that is other than it was when it was decided is not reached', async () => {
    let host = 'good.test'
    const secrets = () => {
      const now = host
      host = '127.0.0.1:1'
      return now
    }
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the server fills it in
    const source = mcpServer({ url: 'http://${WHERE}/', envKeys: ['WHERE'], secrets, startTimeoutMs: 2_000 })
    const { who } = caller({ far: source }, [], { use: ['tool:*', 'net:good.test'] })
    const outcome = await openRuntime().run(who, 'go').result

    expect(outcome.error?.message).not.toMatch(/ECONNREFUSED/)
  })
})
