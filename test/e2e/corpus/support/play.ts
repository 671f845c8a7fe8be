import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { expect } from 'vitest'
import { type Place, until } from '../../../cli/support/cli.ts'
import { project } from '../../../cli/support/project.ts'
import { Terminal } from '../../../cli/support/terminal.ts'
import { FILES } from './tools.ts'

/** Some runs are a dozen processes, one after the other. Each of them has a limit of its own. */
export const LIMIT = { timeout: 180_000 } as const

export const MODES = ['in a terminal', 'in a terminal with --yes', 'in a pipe', 'in a pipe with --yes'] as const
export type Mode = (typeof MODES)[number]

/** How it went, as a person or a program sees it. */
export interface Played {
  readonly code: number
  /** All of it: the screen with what was scrolled away, or both pipes. */
  readonly printed: string
  /** Nothing but the answer, where that has a pipe of its own. */
  readonly stdout: string | null
  /** What a person was asked, or what `--yes` allowed. */
  readonly questions: readonly string[]
}

/** A folder of somebody's project, with a home folder of its own and stand-ins for programs that would fetch servers. */
export function workplace(): Place {
  const place = project({ ...FILES, 'home/.keep': '' })
  const bin = path.join(place.folder, 'bin')
  const programs = path.join(import.meta.dirname, '../programs')
  mkdirSync(bin)
  for (const name of ['npx', 'uvx', 'uv', 'docker']) {
    symlinkSync(path.join(programs, 'stand-in.mjs'), path.join(bin, name))
  }
  Object.assign(place.more, {
    PATH: `${bin}${path.delimiter}${path.dirname(process.execPath)}${path.delimiter}${process.env['PATH']}`,
    XDG_DATA_HOME: path.join(place.folder, 'home/data'),
    NODE_OPTIONS: `--import ${path.join(programs, 'offline.mjs')}`,
  })
  return place
}

/** The servers that stand-ins have been, and whether they still live. */
export function serversOf(place: Place): readonly { readonly args: readonly string[]; readonly isAlive: boolean }[] {
  const file = path.join(place.folder, 'home/started.jsonl')
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').trim().split('\n')
  return lines.map((line) => {
    const { pid, args } = JSON.parse(line) as { pid: number; args: string[] }
    return { args, isAlive: isAlive(pid) }
  })
}

/** What is only waiting to be reaped does not live. */
function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

/** Runs a file in one way; whatever is asked is allowed. Where nobody is there to type them, secrets are in the environment. */
export function play(mode: Mode, place: Place, words: readonly string[]): Promise<Played> {
  if (mode.startsWith('in a terminal')) return playInTerminal(place, words)
  return mode === 'in a pipe' ? playParked(place, words) : playAllowed(place, words)
}

export const SECRET = 'not-to-be-seen-7f3a'

/** A person at the screen: types a secret where one is wanted, and y where something is to be allowed. */
async function playInTerminal(place: Place, words: readonly string[]): Promise<Played> {
  const terminal = new Terminal(place, words, { cols: 100, rows: 40 })
  const questions: string[] = []
  let code: number | undefined
  terminal.ended.then(
    (ended) => {
      code = ended
    },
    () => undefined,
  )
  let isAnswered = false
  const act = (): number | undefined => {
    const word = wordFor(terminal.screen.text)
    if (word !== undefined && !isAnswered) terminal.type(`${word}\r`)
    if (word === YES && !isAnswered) questions.push(terminal.screen.text)
    isAnswered = word !== undefined
    return code
  }
  await until('the end', act).catch((error: unknown) => {
    throw new Error(`${error}\nOn the screen:\n${terminal.screen.all}`)
  })
  const printed = terminal.screen.all
  expect(terminal.screen.unknown).toEqual([])
  return {
    code: code ?? -1,
    printed,
    stdout: null,
    questions: words.includes('--yes') ? allowedIn(printed) : questions,
  }
}

const YES = 'y'

/** What is typed when the screen ends like this. What was typed stands behind the prompt, so it is typed once. */
function wordFor(screen: string): string | undefined {
  if (/Enter for none\):$/.test(screen)) return SECRET
  return /(?:Allow\?|\[n\]o).* >$/m.test(screen) ? YES : undefined
}

/** Nobody is there: whatever needs a person waits, and other commands answer and go on. */
async function playParked(place: Place, words: readonly string[]): Promise<Played> {
  const questions: string[] = []
  let printed = ''
  let ended = await place.run(words)
  for (;;) {
    printed += ended.stdout + ended.stderr
    const [, again] = /^ *Then: legate resume (\w+)$/m.exec(ended.stderr) ?? []
    if (ended.code !== 3 || again === undefined) break
    const [, waiting = ''] = ended.stderr.split(' waits for a person:')
    const asked = [...waiting.matchAll(/legate approve (\w+) --seen (\w+)/g)]
    questions.push(...asked.map(([, id = '']) => id))
    const answers = await Promise.all(asked.map(([, id = '', seen = '']) => place.run(['approve', id, '--seen', seen])))
    expect(answers, printed).toEqual(asked.map(() => expect.objectContaining({ code: 0, stderr: '' })))
    ended = await place.run(['resume', again])
  }
  return { code: ended.code ?? -1, printed, stdout: ended.stdout, questions }
}

async function playAllowed(place: Place, words: readonly string[]): Promise<Played> {
  const { code, stdout, stderr } = await place.run(words)
  return { code: code ?? -1, printed: stdout + stderr, stdout, questions: allowedIn(stderr) }
}

function allowedIn(printed: string): readonly string[] {
  return printed.split('\n').filter((line) => line.startsWith('Allowed '))
}
