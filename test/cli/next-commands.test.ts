// Every command that a person is told to type reaches the store or the server that the command which tells it was given.

import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { isStoreless } from '../../src/cli/command/command.ts'
import { COMMANDS } from '../../src/cli/commands.ts'
import { localStore } from '../support/rows.ts'
import { agentsModule, type Ended, Place, root, skipUnlessBuilt, until } from './support/cli.ts'
import { commandsIn, wordsOf } from './support/printed.ts'
import { type Served, served } from './support/served.ts'

const made = new Place(afterAll)
const ids: Record<string, string> = {}

/** Tables of the help, scripts of shells, and the file that `legate init` writes: no store is known there. */
const WITHOUT_PLACE = [
  'commands.ts',
  'store-commands.ts',
  'server-commands.ts',
  'command/command.ts',
  'commands/help.ts',
  'commands/completion.ts',
  'commands/init.ts',
]

test('no file of the command line writes a command by hand', () => {
  const folder = path.join(root, 'src/cli')
  const names = COMMANDS.map(({ name }) => name).filter((name) => !isStoreless(name) && name !== 'doctor')
  const byHand = new RegExp(`\\blegate (?:${names.join('|')})\\b`)
  const found = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !WITHOUT_PLACE.includes(file) && !file.endsWith('.test.ts'))
    .flatMap((file) =>
      readFileSync(path.join(folder, file), 'utf8')
        .split('\n')
        .map((line, at) => ({ place: `${file}:${at + 1}`, line: line.trim() }))
        .filter(({ line }) => !/^(?:\*|\/\*|\/\/)/.test(line) && byHand.test(line)),
    )
  expect(found).toEqual([])
})

beforeEach(({ skip, task }) => {
  if (task.name !== 'no file of the command line writes a command by hand') skipUnlessBuilt({ skip })
})

beforeAll(async () => {
  made.more['LEGATE_TEST_MARKS'] = path.join(made.folder, 'marks')
  const { worker, ids: killed } = await made.startRuns(['payer'])
  await until('it has paid', () => readFileSync(path.join(made.folder, 'marks'), { flag: 'a+' }).length > 0)
  worker.kill('SIGKILL')
  await worker.ended
  made.open()
  await made.run(['resume', '-m', agentsModule])
  const [talker = '', failing = ''] = await made.endedRuns('talker', 'failing')
  const [careful = '', curious = '', waiting = ''] = await made.parkedRuns('careful', 'curious', 'careful')
  const chat = await made.run(['chat', agentsModule, '--agent', 'talker'], { input: 'one\ntwo\n' })
  const [, talk = ''] = /--continue (\w{8})/.exec(chat.stderr) ?? []
  rmSync(path.join(made.folder, 'gate'))
  const [lead = ''] = await made.orphans('lead')
  Object.assign(ids, { payer: killed[0], talker, failing, careful, curious, waiting, talk, lead })
  const runtime = made.runtime(afterAll)
  const waitingIn = (runId: string) => localStore(runtime).openNodes(runId)[0]?.id ?? ''
  Object.assign(ids, { call: waitingIn(careful), question: waitingIn(curious) })
}, 60_000)

/** Commands that print others. `@name` stands for the end of an id. */
const PRINT: readonly string[] = [
  'inbox',
  'approvals',
  'show @careful',
  'show @curious',
  'show @payer',
  'why @careful',
  'why @curious',
  'why @payer',
  'why @failing',
  'why @lead',
  'log @careful',
  'log @curious',
  'ps',
  'transcript @talk --turns 1',
  'show zzzzzzzz',
  'approve @call',
  'approve @question',
  'answer @call 80',
  'settle @payer --leave',
  'settle @talker --leave',
  'approve @call --seen nonsense',
  'retry @talker',
  'edit @talker 00000000 Other-words',
  'edit @talker Other-words',
  'retry @failing',
  'fork @talker',
  'cancel @waiting',
]

/** Commands that print others on a store of this machine only. */
const PRINT_HERE: readonly string[] = [
  'tree @lead',
  'audit',
  'resume -m AGENTS',
  'resume @careful -m AGENTS',
  'restored',
]

/** Commands that change nothing, so that many of them can be tried on one store. */
const LOOK = ['approvals', 'audit', 'inbox', 'log', 'ps', 'show', 'transcript', 'tree', 'why']
/** A run that goes on may stop again for a person, or fail. */
const GOES_ON = ['resume', 'chat']

function wordsFor(line: string): string[] {
  const put = (word: string) => word.replace(/^@(\w+)$/, (_, name: string) => ids[name]?.slice(-8) ?? '')
  return line.split(' ').map((word) => (word === 'AGENTS' ? agentsModule : put(word)))
}

/** The commands that a call printed, but for those that it was given itself. */
function printedBy({ stdout, stderr }: Ended): string[] {
  return [...new Set(commandsIn(`${stdout}\n${stderr}`))].filter((command) => !command.endsWith(' --help'))
}

/** A copy of the store in a folder of its own, which nothing in the environment names. */
function unnamed(): Place {
  const place = made.copy()
  place.more['LEGATE_DB'] = ''
  place.more['LEGATE_TEST_MARKS'] = path.join(place.folder, 'marks')
  return place
}

const STAND_INS = { TEXT: 'yes', RESULT: '7', FILE: agentsModule, JSON: '{}', TIME: '30d', N: '5', ID: '' }

async function tryAsPrinted(place: Place, command: string, standIns: Record<string, string>): Promise<void> {
  const [name = '', ...rest] = wordsOf(command, { ...STAND_INS, ...standIns })
  const choice = name === 'settle' && !command.endsWith(' --happened') ? ['--leave'] : []
  const { code, stdout, stderr } = await place.run([name, ...rest, ...choice], { input: '' })
  const isFine = code === 0 || (GOES_ON.includes(name) && !/^legate: /m.test(stderr))
  expect({ command, refused: isFine ? '' : stdout + stderr }).toEqual({ command, refused: '' })
}

test('the name of a file is one word of the command, whatever is in it', async () => {
  const place = new Place()
  const made = await place.run(['init', "ann's own.yaml"])
  expect(made.stdout).toContain(`legate run 'ann'\\''s own.yaml' --param topic="HTTP/3"\n`)
  writeFileSync(path.join(place.folder, 'my poet.md'), '---\nname: poet\ndescription: x\n---\nYou write.\n')
  const silent = await place.run(['run', 'my poet.md', '--store', 'runs.db'])
  expect(silent.stderr).toContain(`legate run 'my poet.md' "TEXT" --store runs.db.`)
})

test('a module with a store of its own: the commands name that store', async () => {
  const place = unnamed()
  place.open()
  const file = path.join(place.folder, 'own.mjs')
  const own = path.join(place.folder, 'own.db')
  const code = [
    `import { sqliteStore } from '${path.join(root, 'dist/stores/sqlite/index.js')}'`,
    `import { careful } from '${agentsModule}'`,
    `export default { agents: [careful], store: sqliteStore('${own}') }`,
  ]
  writeFileSync(file, code.join('\n'))
  const parked = await place.run(['run', file, 'What?'])
  expect(parked.code).toBe(3)
  const [approve = '', , resume = ''] = printedBy(parked)
  for (const command of [approve, resume]) {
    expect(command).toContain(` --store ${own}`)
    await tryAsPrinted(place, command, {})
  }
})

describe('with --store', () => {
  test.each([...PRINT, ...PRINT_HERE])('legate %s', { timeout: 60_000 }, async (line) => {
    const words = [...wordsFor(line), '--store', 'runs.db']
    const place = unnamed()
    if (line.includes(' -m ')) place.open()
    const commands = printedBy(await place.run(words))
    for (const command of commands) {
      expect(command).toContain(' --store runs.db')
      place.open()
      const isLook = LOOK.includes(command.split(' ')[1] ?? '')
      await tryAsPrinted(isLook ? place : copyOf(place), command, {})
    }
    expect([line, commands.length > 0]).toEqual([line, !PRINTS_NOTHING.includes(line)])
  })
})

describe('with --server', () => {
  test.each(PRINT)('legate %s', { timeout: 60_000 }, async (line) => {
    const works = WORKED_ON.includes(line)
    const begin = await servedCopy(works)
    const commands = printedBy(await begin.place.run([...wordsFor(line), '--server', begin.server.url]))
    for (const [at, command] of commands.entries()) {
      const isFirst = at === 0 || LOOK.includes(command.split(' ')[1] ?? '')
      const { place, server } = isFirst ? begin : await servedCopy(works)
      const again = isFirst ? commands : printedBy(await place.run([...wordsFor(line), '--server', server.url]))
      const own = again[at] ?? ''
      expect(own).toMatch(new RegExp(` --server ${server.base} --token TOKEN(?: |$)| --store STORE-OF-SERVER(?: |$)`))
      place.open()
      await tryAsPrinted(place, own, { TOKEN: server.token, 'STORE-OF-SERVER': place.store })
    }
    expect([line, commands.length > 0]).toEqual([line, !PRINTS_NOTHING.includes(line)])
  })
})

/** Only runs of files are listed with a command; a lane of an agent in code goes on in code. */
const PRINTS_NOTHING = ['ps', 'fork @talker']

/** Runs that begin here go on at the server. */
const WORKED_ON = ['edit @talker Other-words', 'retry @failing']

async function servedCopy(works: boolean): Promise<{ place: Place; server: Served }> {
  const place = unnamed()
  if (works) place.open()
  const args = works ? [agentsModule] : ['--workers', '0']
  return { place, server: await served(place, ['--store', 'runs.db', ...args]) }
}

function copyOf(place: Place): Place {
  const copy = place.copy()
  Object.assign(copy.more, place.more)
  copy.open()
  return copy
}
