import { execFileSync, spawnSync } from 'node:child_process'
import { beforeEach, describe, expect, test } from 'vitest'
import { COMMANDS } from '../../src/cli/commands.ts'
import { helpText } from '../../src/cli/help-text.ts'
import { Place, program, root, skipUnlessBuilt } from './support/cli.ts'

beforeEach(skipUnlessBuilt)

describe('help', () => {
  test('names every command; the help of each has its usage, its options and examples', async () => {
    const place = new Place()
    const { stdout } = await place.run(['--help'])

    for (const { name, summary } of COMMANDS) expect(stdout).toContain(`  ${name.padEnd(12)}${summary}\n`)
    for (const [asked, other] of [
      [
        ['log', '--help'],
        ['help', 'log'],
      ],
      [
        ['resume', '-h'],
        ['help', 'resume'],
      ],
    ] as const) {
      const { code, stdout: text } = await place.run(asked)
      expect(code).toBe(0)
      expect(text).toMatch(/^Usage: legate \w+ .*\n\n[\s\S]+\nOptions\n[\s\S]+--store PATH[\s\S]+\nExamples\n {2}/)
      expect((await place.run(other)).stdout).toBe(text)
    }
  })

  test('no line of it is wider than a terminal of 110 columns', () => {
    for (const { name } of COMMANDS) {
      const text = helpText(COMMANDS, name)
      expect(Math.max(...text.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(110)
    }
  })
})

describe('what makes no sense', () => {
  test.each([
    [['lg'], 'There is no command "lg".'],
    [['lo'], 'There is no command "lo". Did you mean "log"?'],
    [['log'], '"log" needs more: legate log ID'],
    [['show', 'a', 'b'], '"show" takes less: legate show ID'],
    [['ps', '--follow'], "Unknown option '--follow'"],
    [['ps', '--store'], "Option '--store <value>' argument missing"],
    [['cancel', 'a', '--timeout', 'soon'], '--timeout is a number of seconds'],
    [['completion', 'tcsh'], 'There is no completion for "tcsh"'],
    [['help', 'nonsense'], 'There is no command "nonsense".'],
  ])('%j is refused on stderr with exit code 2', async (args, message) => {
    const { code, stdout, stderr } = await new Place().run(args)

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr.startsWith(`legate: ${message}`), stderr).toBe(true)
    expect(stderr).toMatch(/See legate (\w+ )?--help\.\n$/)
  })
})

describe('completion', () => {
  test('for bash completes commands, options and files', () => {
    const script = execFileSync(process.execPath, [program, 'completion', 'bash'], { encoding: 'utf8' })
    const complete = (...words: readonly string[]) => {
      const line = `COMP_WORDS=(legate ${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length}; _legate; echo "\${COMPREPLY[@]}"`
      return execFileSync('bash', ['-c', `${script}\n${line}`], { encoding: 'utf8', cwd: root }).trim()
    }

    expect(complete('re')).toBe('resume')
    expect(complete('log', '--')).toBe('--follow --json --store --help')
    expect(complete('completion', 'z')).toBe('zsh')
    expect(complete('resume', '--module', 'package.j')).toBe('package.json')
  })

  test.each(['zsh', 'fish'])('for %s is a script of its own', (shell) => {
    const script = execFileSync(process.execPath, [program, 'completion', shell], { encoding: 'utf8' })

    for (const { name } of COMMANDS) expect(script).toContain(name)
    const checked = spawnSync(shell, ['-n'], { input: script })
    if (checked.error === undefined) expect(checked.status).toBe(0)
  })
})

test('legate --help answers within 120 ms', () => {
  const empty: number[] = []
  const help: number[] = []
  for (let round = 0; round < 9; round++) {
    empty.push(msOf(['-e', '0']))
    help.push(msOf([program, '--help']))
  }

  console.info(`legate --help: median ${median(help).toFixed(0)} ms; node -e 0: ${median(empty).toFixed(0)} ms`)
  // On a busy machine an empty program takes longer too: then what we add to it counts.
  expect(median(help)).toBeLessThan(Math.max(120, median(empty) * 2 + 20))
})

function msOf(args: readonly string[]): number {
  const started = performance.now()
  execFileSync(process.execPath, args, { stdio: 'ignore' })
  return performance.now() - started
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}
