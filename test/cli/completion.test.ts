import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { type IPty, spawn } from '@lydell/node-pty'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { tempFolder } from '../support/temp-folder.ts'
import { program, skipUnlessBuilt, until } from './support/cli.ts'

beforeEach(skipUnlessBuilt)

/** Names that do something where a shell expands them, and what is typed to complete each. */
const FILES: readonly (readonly [name: string, typed: string])[] = [
  ['$(touch owned-1).yaml', '\\$'],
  ['`touch owned-2`.yaml', '\\`'],
  ['a b.yaml', 'a'],
  ["it's.yaml", 'it'],
  ['q"q.yaml', 'q'],
  ['new\nline.yaml', 'new'],
  ['semi;touch owned-3;.yaml', 'semi'],
]

const SHELLS = {
  bash: { args: ['--norc', '--noprofile', '-i'], begin: 'source ./completion' },
  zsh: { args: ['-f', '-i'], begin: 'autoload -U compinit; compinit -u -D; source ./completion' },
  fish: { args: ['--no-config', '-i'], begin: 'source ./completion' },
} as const

type Shell = keyof typeof SHELLS

describe.each(Object.keys(SHELLS) as Shell[])('completion for %s, in a terminal', (shell) => {
  beforeEach(({ skip }) => {
    skip(spawnSync(shell, ['-c', 'exit']).error !== undefined, `there is no ${shell} on this machine`)
  })

  test.each(FILES)('runs nothing in the name of a file, and completes it: %j', async (name, typed) => {
    const line = new Line(shell)
    line.type(`legate run ${typed}\t`)
    await line.quiet()
    line.type('\r')

    const args = await line.args()
    expect(line.owned()).toEqual([])
    expect(args).toEqual(['run', name])
  })

  test('runs nothing that is in the folder when it lists all of it, nor after --store', async () => {
    const line = new Line(shell)
    line.type('legate run \t\t')
    await line.quiet()
    line.type('\u0003')
    await line.quiet()
    line.type('legate ps --store a\t')
    await line.quiet()
    line.type('\r')

    const args = await line.args()
    expect(line.owned()).toEqual([])
    expect(args).toEqual(['ps', '--store', 'a b.yaml'])
  })

  test('takes only ids for ids, and runs none', async () => {
    const line = new Line(shell)
    line.type('legate show ab\t')
    await line.quiet()
    line.type('\r')

    const args = await line.args()
    expect(line.owned()).toEqual([])
    expect(args).toEqual(['show', 'abcd1234'])
  })
})

/** A shell in a folder with such files, and a `legate` that writes down what it is called with. */
class Line {
  private readonly folder = tempFolder()
  private readonly pty: IPty
  private written = ''

  constructor(shell: Shell) {
    const { args, begin } = SHELLS[shell]
    const bin = path.join(this.folder, '.bin')
    mkdirSync(bin)
    const legate = path.join(bin, 'legate')
    const ids = `printf '%s\\n' 'abcd1234' '$(touch owned-4)' '\`touch owned-5\`' 'x y'`
    writeFileSync(
      legate,
      `#!/bin/sh\nif [ "$1 $2" = "ps -q" ]; then ${ids}; exit; fi\nprintf '%s\\0' "$@" > .args.new; mv .args.new .args\n`,
    )
    chmodSync(legate, 0o755)
    writeFileSync(
      path.join(this.folder, 'completion'),
      execFileSync(process.execPath, [program, 'completion', shell], { encoding: 'utf8' }),
    )
    for (const [name] of FILES) writeFileSync(path.join(this.folder, name), '')
    this.pty = spawn(shell, [...args], {
      name: 'xterm-256color',
      cols: 200,
      rows: 50,
      cwd: this.folder,
      env: { PATH: `${bin}:${process.env['PATH']}`, HOME: this.folder, TERM: 'xterm-256color', LANG: 'C.UTF-8' },
    })
    this.pty.onData((text) => {
      this.written += text
    })
    onTestFinished(() => {
      this.pty.kill('SIGKILL')
    })
    this.type(`${begin}\r`)
  }

  type(text: string): void {
    this.pty.write(text)
  }

  /** Waits until it has written something, and nothing more for a while. */
  async quiet(): Promise<void> {
    let [length, since] = [-1, performance.now()]
    await until('the shell is quiet', () => {
      if (this.written.length !== length) [length, since] = [this.written.length, performance.now()]
      return length > 0 && performance.now() - since > 700
    })
  }

  /** What `legate` was called with. */
  async args(): Promise<string[]> {
    const file = path.join(this.folder, '.args')
    await until(`legate is called in:\n${this.written}`, () => existsSync(file)).catch((error: unknown) => {
      throw new Error(`${error}\n${this.written}`)
    })
    return readFileSync(file, 'utf8').split('\0').slice(0, -1)
  }

  /** What was made by a name that was run. */
  owned(): string[] {
    return readdirSync(this.folder).filter((name) => name.startsWith('owned'))
  }
}
