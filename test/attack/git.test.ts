// What a repository says to git is not what an agent says: neither by its files nor by the settings in them does a model run a program.

import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { agent, createRuntime, type Grant, type Json, LegateError } from 'legate'
import { scriptedModel } from 'legate/testing'
import { developerTools, diskFiles, type Files, fileTools, runProcess } from 'legate/tools'
import { describe, expect, onTestFinished, test } from 'vitest'
import { askUserSettings, NEUTRAL, REMAINING } from '../../src/core/tool/git-environment.ts'
import { tempFolder } from '../support/temp-folder.ts'

const hasGit = (() => {
  try {
    execFileSync('git', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})()

/** A repository with one commit and a changed file. */
function repository(): { folder: string; marker: string; git: (...args: readonly string[]) => string } {
  const top = tempFolder()
  const folder = path.join(top, 'repo')
  mkdirSync(folder)
  const git = (...args: readonly string[]) =>
    execFileSync('git', args, { cwd: folder, encoding: 'utf8', stdio: 'pipe' })
  git('init', '-q', '-b', 'main')
  for (const [key, value] of Object.entries({ 'user.name': 'A', 'user.email': 'a@example.com' }))
    git('config', key, value)
  writeFileSync(path.join(folder, 'f.txt'), 'one\n')
  git('add', '.')
  git('commit', '-qm', 'one')
  writeFileSync(path.join(folder, 'f.txt'), 'two\n')
  return { folder, marker: path.join(top, 'marker'), git }
}

const filesOf = (folder: string, grant: Grant): Files => diskFiles({ workspace: folder }).open(grant)
const WIDE: Grant = { use: ['file.*:/workspace/**', 'exec:git *'] }

async function refusal(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (cause: unknown) => cause,
  )
  return LegateError.isInstance(error) ? `${error.code}: ${error.message}` : 'allowed'
}

/** A model that makes one call and answers with what came of it. */
function saying(call: { readonly name: string; readonly input: Json }) {
  return scriptedModel(({ messages }) => {
    const last = messages.at(-1)
    return last?.role === 'tool' ? String(last.content) : { calls: [call] }
  })
}

describe('I11: files that tell git which programs to run need a rule that names them', () => {
  const guarded = [
    '.git/config',
    '.git/config.worktree',
    '.git/hooks/pre-commit',
    '.git/info/attributes',
    '.git/modules/sub/config',
    '.git/worktrees/w/commondir',
    '.git/commondir',
    '.git',
    'sub/.git/config',
    'sub/deep/.git',
    '.GIT/config',
    '.g\u200cit/config',
    '.ｇit/config',
    '.git /config',
    'GIT~1/config',
    '.gitconfig',
  ]

  test.each(guarded)('%s is not written, edited or deleted without one', async (name) => {
    const folder = tempFolder()
    const at = `/workspace/${name}`
    for (const grant of [WIDE, { use: ['file.*:**'] }, { use: ['file.*:/**', 'exec:*'] }]) {
      const files = filesOf(folder, grant)
      for (const work of [files.write(at, 'x'), files.edit(at, [{ oldText: 'a', newText: 'b' }]), files.delete(at)]) {
        expect(await refusal(work)).toMatch(/^denied: .* it may decide which programs git runs/)
      }
    }
    expect(existsSync(path.join(folder, name))).toBe(false)
  })

  test('a rule that names it allows it, and any rule allows reading it', async () => {
    const folder = tempFolder()
    const named = filesOf(folder, { use: ['file.*:/workspace/**', 'file.write:/workspace/.git/**'] })
    await named.write('/workspace/.git/config', '[core]')
    expect(await refusal(named.write('/workspace/sub/.git/config', ''))).toContain('file.write:/workspace/sub/.git/**')
    expect(await refusal(named.delete('/workspace/.git/config'))).toContain('file.delete:/workspace/.git/**')
    expect(await filesOf(folder, WIDE).readText('/workspace/.git/config')).toBe('[core]')
    const everywhere = filesOf(folder, { use: ['file.*:/workspace/**', 'file.*:/**/.git/**'] })
    await everywhere.write('/workspace/sub/.git/hooks/x', '')
    await everywhere.delete('/workspace/.git/config')
    for (const name of ['.github/a.yml', '.gitignore', 'git/config', 'digit/hooks/x', 'config', 'src/hooks/use.ts']) {
      await filesOf(folder, WIDE).write(`/workspace/${name}`, 'x')
    }
  })

  test('every layer must name it: a host that does not withholds it from whatever it starts', async () => {
    const folder = tempFolder()
    const child = agent({
      name: 'child',
      instructions: '',
      tools: fileTools(),
      grant: { use: ['tool:*', 'file.*:/workspace/.git/**'] },
      model: saying({ name: 'write_file', input: { path: '/workspace/.git/config', content: 'x' } }),
    })
    const host = agent({
      name: 'host',
      instructions: '',
      subagents: { child },
      grant: { use: ['tool:*', 'agent:*', 'file.*:/workspace/**'] },
      model: saying({ name: 'child', input: { message: 'go' } }),
    })
    await using runtime = createRuntime({ files: diskFiles({ workspace: folder }) })
    const { text } = await runtime.run(host, 'go').result
    expect(text).toContain('no rule of host allows file.write:/workspace/.git/config')
    expect(existsSync(path.join(folder, '.git'))).toBe(false)
  })

  test('a person is not asked for what no rule names', async () => {
    const folder = tempFolder()
    const model = scriptedModel([
      { calls: [{ name: 'write_file', input: { path: '/workspace/.git/config', content: 'x' } }] },
      'done',
    ])
    const grant = { use: ['tool:*', 'file.*:/workspace/**'], ask: ['file.write:/workspace/**'] }
    await using runtime = createRuntime({ files: diskFiles({ workspace: folder }) })
    const { status } = await runtime.run(agent({ name: 'a', instructions: '', tools: fileTools(), grant, model }), 'go')
      .result
    expect(status).toBe('completed')
    expect(JSON.stringify(model.requests)).toContain('it may decide which programs git runs')
  })

  test('attributes that send files through a program need one too', async () => {
    const files = filesOf(tempFolder(), WIDE)
    const at = '/workspace/sub/.gitattributes'
    await files.write(at, '*.txt text eol=lf\n*.md diff\n')
    for (const line of ['*.psd filter=lfs', '*.x\tdiff=evil', '[attr]m merge=evil', '*.a -text filter=x']) {
      expect(await refusal(files.write(at, `${line}\n`))).toContain('it may decide which programs git runs')
      expect(await refusal(files.edit(at, [{ oldText: '*.md diff', newText: line }]))).toContain(
        'which programs git runs',
      )
    }
    expect(await files.readText(at)).toBe('*.txt text eol=lf\n*.md diff\n')
    const folder = tempFolder()
    await filesOf(folder, { use: ['file.*:/workspace/**', 'file.write:/workspace/.gitattributes'] }).write(
      '/workspace/.gitattributes',
      '*.psd filter=lfs\n',
    )
  })

  test.runIf(hasGit)('the folder of a repository is known by what is in it, whatever its name', async () => {
    const folder = tempFolder()
    const run = (...args: readonly string[]) => execFileSync('git', args, { cwd: folder, stdio: 'pipe' })
    run('init', '-q', '--separate-git-dir', 'store.git', 'work')
    run('init', '-q', '--bare', 'bare')
    expect(readFileSync(path.join(folder, 'work/.git'), 'utf8')).toContain('store.git')
    const files = filesOf(folder, WIDE)
    for (const name of [
      'store.git/config',
      'store.git/hooks/pre-commit',
      'bare/config',
      'bare/info/attributes',
      'bare/CONFIG',
    ]) {
      expect(await refusal(files.write(`/workspace/${name}`, 'x'))).toContain('it may decide which programs git runs')
      expect(await refusal(files.delete(`/workspace/${name}`))).toContain('it may decide which programs git runs')
    }
    expect(await refusal(files.write('/workspace/store.git/notes.txt', 'x'))).toBe('allowed')
    expect(await refusal(files.write('/workspace/work/config', 'x'))).toBe('allowed')
    const named = filesOf(folder, { use: ['file.*:/workspace/**', 'file.write:/workspace/bare/config'] })
    expect(await refusal(named.write('/workspace/bare/config', '[core]\nbare = true\n'))).toBe('allowed')
  })
})

describe.runIf(hasGit)('I11: a program that a repository names is not started through git', () => {
  test('an agent with `exec:git status` and all of the workspace runs nothing else', async () => {
    const { folder, marker } = repository()
    const write = (at: string, content: string) => ({
      name: 'write_file',
      input: { path: `/workspace/${at}`, content },
    })
    const shell = (command: string) => ({ name: 'shell', input: { command } })
    const tools = { ...developerTools(), ...fileTools() }
    const model = scriptedModel([
      {
        calls: [
          write('.git/config', `[core]\n\tfsmonitor = touch ${marker}\n[diff "x"]\n\ttextconv = touch ${marker}\n`),
          write('.gitattributes', '* diff=x filter=x\n'),
          write('.git/hooks/pre-commit', `#!/bin/sh\ntouch ${marker}\n`),
        ],
      },
      { calls: [shell('git status'), shell('git diff'), shell('sh -c "touch x"')] },
      'done',
    ])
    const grant = { use: ['tool:*', 'file.*:/workspace/**', 'exec:git status', 'exec:git diff'] }
    await using runtime = createRuntime({ files: diskFiles({ workspace: folder }) })
    await runtime.run(agent({ name: 'a', instructions: '', tools, grant, model }), 'go').result
    const said =
      model.requests.at(-1)?.messages.flatMap((one) => (one.role === 'tool' ? [String(one.content)] : [])) ?? []
    expect(said.slice(0, 3).every((one) => one.includes('which programs git runs'))).toBe(true)
    expect(said[3]).toContain('modified:   f.txt')
    expect(said[4]).toContain('+two')
    expect(existsSync(marker)).toBe(false)
  })

  const TOUCH = 'touch MARKER; false'
  /** Each setting that names a program, with a command by which git would start it. */
  const started: [key: string, command: readonly string[], value: string][] = [
    ['core.fsmonitor', ['status'], TOUCH],
    ['core.editor', ['commit', '--allow-empty'], TOUCH],
    ['sequence.editor', ['rebase', '-i', '--root', '--autostash'], TOUCH],
    ['core.sshCommand', ['ls-remote', 'ssh://127.0.0.1:1/x'], TOUCH],
    ['core.alternateRefsCommand', ['fetch', '.'], TOUCH],
    ['core.gitProxy', ['ls-remote', 'git://127.0.0.1:1/x'], 'PROGRAM'],
    ['core.askPass', ['credential', 'fill'], 'PROGRAM'],
    ['credential.helper', ['credential', 'fill'], '!touch MARKER'],
    ['gpg.program', ['commit', '--allow-empty', '-S', '-m', 'x'], 'PROGRAM'],
    ['gpg.openpgp.program', ['commit', '--allow-empty', '-S', '-m', 'x'], 'PROGRAM'],
    [
      'gpg.ssh.program',
      ['-c', 'gpg.format=ssh', '-c', 'user.signingKey=k', 'commit', '--allow-empty', '-S', '-m', 'x'],
      'PROGRAM',
    ],
    ['gpg.ssh.defaultKeyCommand', ['-c', 'gpg.format=ssh', 'commit', '--allow-empty', '-S', '-m', 'x'], 'PROGRAM'],
    ['protocol.ext.allow', ['ls-remote', 'ext::touch MARKER'], 'always'],
  ]

  test.each(started)('%s', async (key, words, value) => {
    const { folder, marker, git } = repository()
    const program = path.join(path.dirname(folder), 'program')
    writeFileSync(program, `#!/bin/sh\ntouch ${marker}\n`, { mode: 0o755 })
    const filled = (text: string) => text.replace('MARKER', marker).replace('PROGRAM', program)
    if (key === 'core.alternateRefsCommand') alternate(folder)
    git('config', key, filled(value))
    const line = words.map(filled)
    const input = 'protocol=https\nhost=example.com\n\n'
    const env = { ...process.env, GIT_TERMINAL_PROMPT: '0' } as Record<string, string>
    const signal = AbortSignal.timeout(20_000)
    await runProcess('git', line, { signal, cwd: folder, env, input })
    expect([key, existsSync(marker)]).toEqual([key, false])
    // Without the settings of the runtime, git starts it.
    try {
      execFileSync('git', line, { cwd: folder, env, input, stdio: 'pipe', timeout: 10_000 })
    } catch {
      // It need not work.
    }
    expect([key, existsSync(marker)]).toEqual([key, true])
  })

  /** A second repository, whose objects this one uses: what others have fetched from it need not be sent. */
  function alternate(folder: string): void {
    const other = path.join(path.dirname(folder), 'other')
    execFileSync('git', ['clone', '-q', '--bare', folder, other], { stdio: 'pipe' })
    writeFileSync(path.join(folder, '.git/objects/info/alternates'), `${path.join(other, 'objects')}\n`)
  }

  test('a whole command line of `git diff` keeps the drivers out that its settings name', async () => {
    const { folder, marker, git } = repository()
    git('config', 'diff.external', `touch ${marker};`)
    git('config', 'diff.x.textconv', `touch ${marker}; cat`)
    writeFileSync(path.join(folder, '.git/info/attributes'), '* diff=x\n')
    const options = { signal: AbortSignal.timeout(20_000), cwd: folder }
    const { stdout } = await runProcess('git', ['diff', '--no-ext-diff', '--no-textconv'], options)
    expect([stdout.includes('+two'), existsSync(marker)]).toEqual([true, false])
    await runProcess('git', ['diff'], options)
    expect(existsSync(marker)).toBe(true)
  })

  test('hooks of the repository do not run, wherever it says they are', async () => {
    const { folder, marker, git } = repository()
    mkdirSync(path.join(folder, '.husky'))
    for (const place of ['.husky/pre-commit', '.git/hooks/pre-commit']) {
      writeFileSync(path.join(folder, place), `#!/bin/sh\ntouch ${marker}\n`, { mode: 0o755 })
    }
    const commit = ['commit', '--allow-empty', '-m', 'x']
    for (const place of ['.husky', '.git/hooks']) {
      git('config', 'core.hooksPath', place)
      const { exitCode } = await runProcess('git', commit, { signal: AbortSignal.timeout(20_000), cwd: folder })
      expect([place, exitCode, existsSync(marker)]).toEqual([place, 0, false])
      git(...commit)
      expect([place, existsSync(marker)]).toEqual([place, true])
      rmSync(marker)
    }
  })

  test('a repository that somebody put into a folder is not taken for one', async () => {
    const { folder, marker } = repository()
    const bare = path.join(folder, 'bare')
    execFileSync('git', ['init', '-q', '--bare', bare])
    execFileSync('git', ['--git-dir', bare, 'config', 'core.fsmonitor', `touch ${marker}`])
    const { stderr, exitCode } = await runProcess('git', ['rev-parse', '--git-dir'], {
      signal: AbortSignal.timeout(20_000),
      cwd: bare,
    })
    expect(exitCode).not.toBe(0)
    expect(stderr).toContain('cannot use bare repository')
  })

  test('the settings of the user stay, and those in the environment win', async () => {
    const { folder, marker, git } = repository()
    const home = tempFolder()
    const names = ['HOME', 'XDG_CONFIG_HOME', 'GIT_CONFIG_NOSYSTEM']
    const before = names.map((name) => [name, process.env[name]] as const)
    writeFileSync(
      path.join(home, '.gitconfig'),
      '[core]\n\teditor = vim\n\thooksPath = hooks\n[gpg]\n\tprogram = ./gpg\n[credential]\n\thelper = store\n[credential "https://x.example"]\n\thelper =\n\thelper = !/usr/bin/gh auth git-credential\n[user]\n\tname = me\n',
    )
    Object.assign(process.env, { HOME: home, XDG_CONFIG_HOME: home, GIT_CONFIG_NOSYSTEM: '1' })
    onTestFinished(() => {
      for (const [name, value] of before) {
        if (value === undefined) Reflect.deleteProperty(process.env, name)
        else process.env[name] = value
      }
    })
    expect(await askUserSettings()).toEqual([
      ['core.editor', 'vim'],
      ['credential.helper', 'store'],
      ['credential.https://x.example.helper', ''],
      ['credential.https://x.example.helper', '!/usr/bin/gh auth git-credential'],
    ])
    git('config', 'core.fsmonitor', 'false')
    const env = {
      ...(process.env as Record<string, string>),
      GIT_CONFIG_COUNT: '2',
      GIT_CONFIG_KEY_0: 'core.fsmonitor',
      GIT_CONFIG_VALUE_0: `touch ${marker}; false`,
      GIT_CONFIG_KEY_1: 'user.name',
      GIT_CONFIG_VALUE_1: 'from the environment',
    }
    const options = { signal: AbortSignal.timeout(20_000), cwd: folder }
    const { stdout } = await runProcess('git', ['config', 'user.name'], { ...options, env })
    expect(stdout).toBe('from the environment\n')
    await runProcess('git', ['status'], { ...options, env })
    expect(existsSync(marker)).toBe(true)
    const half = { ...(process.env as Record<string, string>), GIT_CONFIG_COUNT: '2', GIT_CONFIG_VALUE_0: 'x' }
    expect((await runProcess('git', ['status'], { ...options, env: half })).exitCode).toBe(0)
  })

  test('every setting that git lists is known: neutral, named as remaining, or no program', () => {
    const names = execFileSync('git', ['help', '--config'], { encoding: 'utf8', env: { ...process.env, PAGER: 'cat' } })
    const listed = names.split('\n').filter((name) => /^[a-zA-Z][\w-]*\.\S+$/.test(name))
    expect(listed.length).toBeGreaterThan(400)
    const plain = (name: string) => name.replaceAll(/<[^>]*>/g, '*').toLowerCase()
    const known = new Set([
      ...NEUTRAL.map(([key]) => plain(key)),
      ...REMAINING.map(plain),
      ...NO_PROGRAM.map(plain),
      'core.gitproxy',
    ])
    const programs = listed.map(plain).filter((name) => LIKE_A_PROGRAM.test(name) && !LOOKS.test(name))
    const unknown = programs.filter((name) => !known.has(name))
    expect(unknown).toEqual([])
    const security = readFileSync(path.join(import.meta.dirname, '../../SECURITY.md'), 'utf8')
    expect(REMAINING.filter((name) => !security.includes(`\`${name}\``))).toEqual([])
  })
})

const LIKE_A_PROGRAM =
  /(?:cmd|command|program|helper|editor|pager|askpass|hook|hookspath|fsmonitor|textconv|clean|smudge|process|driver|proxy|exec|tool|browser|viewer|alias|tunnel|server|httpd|uploadpack|receivepack|vcs|update|difffilter|external|allow|\.path)(?:\.\*)?$/

/** They look like programs by their names, and are none: numbers, yes or no, the names of tools, and addresses. */
const NO_PROGRAM = [
  // Read from the settings of the user alone.
  'uploadpack.packObjectsHook',
  // The name of a tool, whose program is in `*tool.*.cmd`, `browser.*.cmd` or `man.*.cmd`.
  ...[
    'diff.guitool',
    'diff.tool',
    'merge.guitool',
    'merge.tool',
    'help.browser',
    'instaweb.browser',
    'man.viewer',
    'web.browser',
  ],
  // Another file of settings, whose settings are these.
  ...['include.path', 'includeIf.*.path'],
  ...['http.proxy', 'remote.*.proxy', 'sendemail.smtpServer', 'gitcvs.dbDriver', 'core.commentChar'],
  ...['protocol.allow', 'protocol.*.allow', 'uploadpackfilter.allow', 'uploadpackfilter.*.allow'],
  ...['rerere.autoUpdate', 'receive.shallowUpdate', 'rebase.rescheduleFailedExec', 'remote.*.skipDefaultUpdate'],
  ...['diff.*.cachetextconv', 'repack.updateServerInfo', 'receive.updateServerInfo'],
  // Its formats are openpgp, x509 and ssh.
  'gpg.*.program',
]
/** How something is shown or checked. */
const LOOKS = /^(?:advice|clone|color|column|(?:\w+\.)?fsck)\./
