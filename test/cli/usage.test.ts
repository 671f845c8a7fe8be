import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { COMMAND_GROUPS } from '../../src/cli/command/command.ts'
import { helpText } from '../../src/cli/commands/help.ts'
import { COMMANDS } from '../../src/cli/commands.ts'
import { Place, program, root, skipUnlessBuilt } from './support/cli.ts'

beforeEach(skipUnlessBuilt)

describe('help', () => {
  test('names every command; the help of each has its usage, its options and examples', async () => {
    const place = new Place()
    const { stdout } = await place.run(['--help'])

    for (const { name, summary } of COMMANDS)
      expect(stdout.replaceAll(/\n {14}/g, ' ')).toContain(`  ${name.padEnd(12)}${summary}\n`)
    const groups = stdout.split('\n\n').filter((part) => COMMAND_GROUPS.some((one) => part.startsWith(`${one}\n  `)))
    expect(groups.map((part) => part.split('\n')[0])).toEqual([...COMMAND_GROUPS])
    expect(groups[1]).toMatch(/^Look\n {2}ps [\s\S]*\n {2}log /)
    const helps = await Promise.all(
      [
        ['log', '--help'],
        ['log', '-h'],
        ['help', 'log'],
      ].map((args) => place.run(args)),
    )
    for (const { code, stdout: text } of helps) {
      expect(code).toBe(0)
      expect(text).toMatch(/^Usage: legate log .*\n\n[\s\S]+\nOptions\n[\s\S]+--store PATH[\s\S]+\nExamples\n {2}/)
      expect(text).toBe(helps[0]?.stdout)
    }
    for (const { name } of COMMANDS)
      expect(helpText(COMMANDS, name, 80)).toMatch(/^Usage: legate [\s\S]+\nExamples\n {2}/)
  })

  test.each([40, 80, 200])(
    'in a terminal of %d columns no line is wider than it, or than 80, but for what is there to be copied',
    (columns) => {
      for (const name of [undefined, ...COMMANDS.map((command) => command.name)]) {
        for (const line of helpText(COMMANDS, name, columns).split('\n')) {
          const isCopied = columns < 80 && line.startsWith('  legate ')
          if (!isCopied) expect(line.length, line).toBeLessThanOrEqual(Math.min(80, columns))
        }
      }
    },
  )
})

describe('what makes no sense', () => {
  test.each([
    [['lg'], 'There is no command "lg".'],
    [['lo'], 'There is no command "lo". Did you mean "log"?'],
    [['rnu'], 'There is no command "rnu". Did you mean "run"?'],
    [['export'], 'missing ID: legate export ID'],
    [['show', 'a', 'b'], 'too many arguments: legate show [ID]'],
    [['ps', '--follow'], "Unknown option '--follow'"],
    [['ps', '--store', ''], '--store is empty: name the file of the store'],
    [['ps', '--store', 'postgers://db/app'], 'A store is a file, or an address that begins with postgres://'],
    [
      ['ps', '--store', 'postgres:/db/app'],
      'A store is a file, or an address that begins with postgres://, not with postgres:.',
    ],
    [['worker', '--store', 'mysql://db/app'], 'A store is a file, or an address that begins with postgres://'],
    [['ps', '--store'], "Option '--store <value>' argument missing"],
    [['cancel', 'a', '--timeout', 'soon'], '--timeout is a number of seconds'],
    [['completion', 'tcsh'], 'There is no completion for "tcsh"'],
    [['prune'], 'missing --keep or --older-than: legate prune --keep N, or --older-than TIME'],
    [['prune', '--keep', 'all'], '--keep is a whole number'],
    [['prune', '--keep=-1'], '--keep is a whole number'],
    [['prune', '--older-than', '30'], '--older-than is a time with its unit'],
    [['prune', '--keep', '1', 'x'], '"prune" takes no arguments'],
    [['help', 'nonsense'], 'There is no command "nonsense".'],
    [['help', 'runn'], 'There is no command "runn". Did you mean "run"?'],
    [['mcp', 'a.md', '--aprove'], 'Unknown option \'--aprove\'. Did you mean "--approve"?'],
    [['run', 'a.md', '--modle', 'x'], 'Unknown option \'--modle\'. Did you mean "--model"?'],
  ])('%j is refused on stderr with exit code 2', async (args, message) => {
    const { code, stdout, stderr } = await new Place().run(args)

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr.startsWith(`legate: ${message}`), stderr).toBe(true)
    expect(stderr).toMatch(/See legate (\w+ )?--help\.\n$/)
  })
})

describe('completion', () => {
  let script = ''
  beforeAll(() => {
    if (existsSync(program)) script = scriptFor('bash')
  })

  test('for bash completes commands and options', () => {
    const complete = (...words: readonly string[]) => {
      const line = `COMP_WORDS=(legate ${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length}; _legate; echo "\${COMPREPLY[@]}"`
      return execFileSync('bash', ['-c', `${script}\n${line}`], { encoding: 'utf8', cwd: root }).trim()
    }

    expect(complete('resu')).toBe('resume')
    expect(complete('log', '--')).toBe('--follow --json --store --server --token --help')
    expect(complete('completion', 'z')).toBe('zsh')
  })

  test('for bash asks the store of the line for the ids of recent runs', () => {
    const asked = (line: string) => {
      const words = `COMP_WORDS=(legate ${line} ''); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))`
      const own = `legate() { echo "$@" | tr ' ' '+' >&3; }`
      return execFileSync('bash', ['-c', `exec 3>&1\n${script}\n${own}\n${words}; _legate`], {
        encoding: 'utf8',
        env: { ...process.env, HOME: '/home/me' },
      }).trim()
    }

    expect(asked('show')).toBe('ps+-q')
    expect(asked(`show --store './a b.db'`)).toBe('ps+-q+--store+./a+b.db')
    expect(asked(`--store = '~/runs.db' log`)).toBe('ps+-q+--store+/home/me/runs.db')
  })

  test.each(['zsh', 'fish'])('for %s is a script of its own', (shell) => {
    const own = scriptFor(shell)

    for (const { name } of COMMANDS) expect(own).toContain(name)
  })
})

function scriptFor(shell: string): string {
  return execFileSync(process.execPath, [program, 'completion', shell], { encoding: 'utf8' })
}

test('legate --help takes less than 120 ms of the processor', () => {
  const rounds = [1, 2, 3].map(() => ({ empty: workMsOf(['-e', '0']), help: workMsOf([program, '--help']) }))
  // What disturbs it only adds to it: the smallest is what it takes.
  const emptyMs = Math.min(...rounds.map(({ empty }) => empty))
  const helpMs = Math.min(...rounds.map(({ help }) => help))

  console.info(`legate --help: ${helpMs.toFixed(0)} ms; node -e 0: ${emptyMs.toFixed(0)} ms`)
  // On a busy machine an empty program takes more too: then what we add to it counts.
  expect(helpMs).toBeLessThan(Math.max(120, emptyMs * 2 + 20))
})

/** Says at its end what it took of the processor: how long it waited for one is not ours. */
const TELLS = `data:text/javascript,${encodeURIComponent(`
import { writeSync } from 'node:fs'
process.on('exit', () => writeSync(2, JSON.stringify(process.cpuUsage())))
`)}`

function workMsOf(args: readonly string[]): number {
  const { stderr } = spawnSync(process.execPath, ['--import', TELLS, ...args], { encoding: 'utf8' })
  const { user, system } = JSON.parse(stderr) as NodeJS.CpuUsage
  return (user + system) / 1_000
}
