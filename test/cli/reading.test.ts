import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { sqliteStore } from 'legate/store/sqlite'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { connectTo } from '../../src/stores/sqlite/driver.ts'
import { commitOf, conversationRow, placeIn, turnRow } from '../../src/testing/conformance/store-rows.ts'
import { localStore } from '../support/rows.ts'
import { leaveUnaudited } from '../support/unaudited.ts'
import { agentsModule, type Ended, Place, program, root, skipUnlessBuilt } from './support/cli.ts'
import { Terminal } from './support/terminal.ts'

beforeEach(skipUnlessBuilt)

/** What a killed process has left: to be read only. */
const killed = new Place(afterAll)
let killedId = ''
beforeAll(async () => {
  if (existsSync(program)) [killedId = ''] = await killed.orphans('talker')
})

describe('a run that is over', () => {
  const place = new Place(afterAll)
  let [id, failedId, pricedId] = ['', '', '']
  const reads = new Map<string, Promise<Ended>>()
  /** The runs stay what they are: each command is run once for all tests. */
  const read = (...args: readonly string[]): Promise<Ended> => {
    const line = args.join(' ')
    const ended = reads.get(line) ?? place.run(args)
    reads.set(line, ended)
    return ended
  }
  beforeAll(async () => {
    if (!existsSync(program)) return
    ;[id = '', failedId = ''] = await place.endedRuns('lead', 'failing')
    vi.stubEnv('LEGATE_TEST_MODEL', 'openai/gpt-5')
    ;[pricedId = ''] = await place.endedRuns('lead').finally(() => vi.unstubAllEnvs())
  })

  test('is listed, shown, drawn as a tree and told event by event', async () => {
    const short = id.slice(-8)

    const [ps, show, tree, log] = await Promise.all([
      read('ps'),
      read('show', short),
      read('tree', short.toUpperCase()),
      read('log', id.replaceAll('-', '')),
    ])

    for (const { code, stderr, stdout } of [ps, show, tree, log]) {
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(stdout).not.toContain('\u001b')
    }
    expect(ps.stdout).toMatch(
      new RegExp(`^ID .* STATE .*\n[\\s\\S]*${short}  completed  lead .* 7\\.4k .*What colour is it\\?\n`),
    )
    expect(show.stdout).toMatch(/^lead \w{8} {2}completed\n/)
    expect(show.stdout).toContain('\nInput\n  What colour is it?\n')
    expect(show.stdout).toContain('\nAnswer\n  All of them saw it: 2.\n')
    expect(show.stdout).toMatch(/tokens +7\.2k in, 204 out/)
    expect(tree.stdout).toMatch(
      /^✓ lead +completed: All of them saw it: 2\. .*\n├─ ✓ scout: topic 0 .*\n└─ ✓ scout: topic 1 .*\n$/,
    )
    expect(log.stdout).toMatch(/lead +input: What colour is it\?\n/)
    expect(log.stdout).toMatch(/ {2}scout +calls look \{"where":"the sky"/)
    expect(log.stdout).toMatch(/ {2}scout +look gave: It is blue\.\n/)
    expect(log.stdout).toMatch(
      /lead +scout completed\n[\s\S]*lead +says: All of them saw it: 2\.\n.*lead +completed \(/,
    )
  })

  test('is read by programs as JSON, one object a line', async () => {
    const [all = [], [shown] = [], [grown] = [], events = []] = await Promise.all(
      [['ps'], ['show', id], ['tree', id], ['log', id]].map(async (args) => jsonOf(await read(...args, '--json'))),
    )

    const listed = all.find((run) => run['id'] === id)
    expect(listed).toMatchObject({ id, agent: 'lead', state: 'completed', tokens: 7_404 })
    expect(shown).toMatchObject({ id, outcome: { status: 'completed', text: 'All of them saw it: 2.' } })
    expect(grown).toMatchObject({ id, agent: 'lead', children: [{ agent: 'scout' }, { agent: 'scout' }] })
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at + 1))
    expect([events[0]?.['type'], events.at(-1)?.['type']]).toEqual(['run-start', 'run-end'])
  })

  test('tells what it has cost where the price is known, and that it is unknown where not', async () => {
    const [known] = jsonOf(await read('show', pricedId, '--json'))
    const [unknown] = jsonOf(await read('show', id, '--json'))
    const [{ stdout }, shown] = await Promise.all([read('ps'), read('show', id.slice(-8))])

    expect(Number(known?.['usd'])).toBeGreaterThan(0)
    expect(stdout).toMatch(/ 7\.4k +\$0\.\d+ /)
    expect(unknown?.['usd']).toBe(null)
    expect(stdout).toMatch(new RegExp(`${id.slice(-8)} .* 7\\.4k +unknown `))
    expect(stdout).toMatch(/ failed +failing .* 0 +- /)
    expect(shown.stdout).toMatch(/^ {2}cost +unknown$/m)
  })

  test('is found by the id of its conversation, and a subagent by its own', async () => {
    const store = localStore(place.runtime())
    const conversationId = store.turn(id)?.conversationId ?? ''
    const [link] = store.linksOf(id)

    const whole = await place.run(['show', conversationId])
    const child = await place.run(['log', link?.id ?? ''])

    expect(whole.stdout).toContain(id)
    expect(child.stdout).toContain('scout')
    expect(child.stdout).not.toMatch(/^ +\S+ s {2}lead/m)
  })

  test('a run that failed says why, and the words of a model are only words', async () => {
    const [show, log] = await Promise.all([place.run(['show', failedId]), place.run(['log', failedId])])

    expect(show.stdout).toMatch(
      /^failing \w{8} {2}failed\n[\s\S]*\nSo far\n {2}Almost\n\nWhy\n {2}model: the model said .*no/,
    )
    expect(log.stdout).not.toContain('\u001b')
  })

  test('has colours only where they are wanted', async () => {
    const forced = await place.run(['tree', id], { env: { FORCE_COLOR: '1' } })
    const refused = await place.run(['tree', id], { env: { FORCE_COLOR: '1', NO_COLOR: '1' } })

    expect(forced.stdout).toContain('\u001b[32m')
    expect(refused.stdout).not.toContain('\u001b')
  })
})

describe('ps', () => {
  test('shows all that go on and the ten that ended last; with --all every one', async () => {
    const place = new Place()
    await place.endedRuns(...Array.from({ length: 13 }, () => 'talker'))

    const [recent, all, ids] = await Promise.all([
      place.run(['ps']),
      place.run(['ps', '-a']),
      place.run(['ps', '--all', '--quiet']),
    ])

    expect(recent.stdout.trim().split('\n').length).toBe(11)
    expect(all.stdout.trim().split('\n').length).toBe(14)
    expect(ids.stdout).toMatch(/^(\w{8}\n){13}$/)
  })

  test('leaves columns out where the terminal has no room', async () => {
    const place = new Place()
    const [id = ''] = await place.endedRuns('lead')
    const terminals = [40, 80].map((cols) => new Terminal(place, ['ps'], { cols, rows: 10 }))
    await Promise.all(terminals.map(({ ended }) => ended))
    const [narrow = '', wide = ''] = terminals.map(({ screen }) => screen.text)

    expect(narrow).toMatch(new RegExp(`^ID +STATE +AGENT.*\n${id.slice(-8)}  completed  lead.*$`))
    expect(wide).toMatch(/ COST +NOW\n.*unknown {2}What/)
  })

  test('says that a run waits for a person, and for what', async () => {
    const place = new Place()
    await place.parkedRuns('careful')

    const { stdout } = await place.run(['ps'])

    expect(stdout).toMatch(/ parked +careful .*needs a person: look \{"where":"here"\}/)
  })

  test('says that nobody works on a run whose process is gone', async () => {
    const [ps, log] = await Promise.all([killed.run(['ps']), followed(killed, killedId)])

    expect(ps.stdout).toMatch(/ unattended +talker .*its process is gone: continue with legate resume/)
    expect(log).toContain(
      `No process works on it. Continue with: legate resume ${killedId.slice(-8)} --module FILE (agents: talker)`,
    )
  })
})

describe('what is wrong is said on stderr', () => {
  test('an id that nobody has, one of too few letters, and for what changes something that of a node', async () => {
    const [place, id] = [killed, killedId]
    const [node] = localStore(place.runtime()).openNodes(id)
    const ending = node?.id.slice(-8) ?? ''

    const [wrong, short, approve, cancel, show] = await Promise.all([
      place.run(['show', 'zzzz\u001b[31m']),
      place.run(['cancel', id.slice(-3)]),
      place.run(['approve', ending.slice(-3)]),
      place.run(['cancel', ending]),
      place.run(['show', ending]),
    ])

    for (const { code, stdout } of [wrong, short, approve, cancel])
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(wrong.stderr).toContain('No id here ends in "zzzz\\u001b[31m". legate ps --all lists the runs.')
    for (const { stderr } of [short, approve])
      expect(stderr).toContain('is too short for an id. Type at least its last 4')
    expect(cancel.stderr).toContain(`No id here ends in "${ending}".`)
    expect(show.stdout).toContain(id)
    expect(localStore(place.runtime()).turn(id)?.cancel).toBe(null)
  })

  test('an id that several runs end in: they are listed, and nothing is stopped', async () => {
    const place = new Place()
    const store = sqliteStore(place.store)
    for (const tree of ['one', 'two']) {
      const rootId = `${tree}-0000-abcd1234`
      const at = { ...placeIn(rootId), turnId: `${tree}-run-5678ffff` }
      await store.commit(
        commitOf(rootId, { conversations: [conversationRow(rootId, { turnCount: 1 })], turns: [turnRow(at)] }),
      )
    }
    await store.close()

    const answers = await Promise.all(['show', 'cancel'].map((command) => place.run([command, 'ffff'])))

    for (const { code, stdout, stderr } of answers) {
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr).toMatch(/More than one id ends in "ffff":\n .*5678ffff.*\n .*5678ffff.*\nType more characters\./)
    }
    const after = localStore(place.runtime())
    leaveUnaudited(after)
    expect(['one', 'two'].map((tree) => after.turn(`${tree}-run-5678ffff`)?.cancel)).toEqual([null, null])
  })

  test('a store that is not there; to look for it makes none', async () => {
    const place = new Place()

    for (const command of [['ps'], ['log', '-f', 'a'], ['cancel', 'a'], ['resume', '-m', agentsModule]]) {
      const { code, stdout, stderr } = await place.run(command)
      expect(stderr).toContain(`There is no store at ${place.store}.`)
      expect({ code: code === 0, stdout }).toEqual({ code: false, stdout: '' })
    }

    expect(readdirSync(place.folder)).toEqual([])
  })

  test('a store that lies in the working folder is not taken, whatever its name', async () => {
    const place = new Place()
    await place.endedRuns('talker')
    for (const name of ['legate.db', 'legate/legate.db', '.legate/legate.db', 'runs.db']) {
      mkdirSync(path.dirname(path.join(place.folder, name)), { recursive: true })
      if (!existsSync(path.join(place.folder, name))) copyFileSync(place.store, path.join(place.folder, name))
    }
    const state = path.join(place.folder, 'state')

    const { code, stderr } = await place.run(['ps'], { env: { LEGATE_DB: '', XDG_STATE_HOME: state } })

    expect(code).toBe(1)
    expect(stderr).toContain(`There is no store at ${state}/legate/legate.db.`)
    expect(existsSync(state)).toBe(false)
  })

  test('a file that is no store, and one that may not be read', async () => {
    const place = new Place()
    writeFileSync(place.store, 'something else\n')
    const foreign = await place.run(['ps'])
    chmodSync(place.folder, 0o755)
    chmodSync(place.store, 0o600)
    const isRoot = process.getuid?.() === 0
    if (!isRoot) chmodSync(place.store, 0)
    const refused = await place.run(['ps'], isRoot ? { uid: 65_534 } : {})

    expect(foreign).toMatchObject({ code: 1, stdout: '' })
    expect(foreign.stderr).toMatch(/^legate: The file \S+ is not a SQLite database; it was left as it is\./)
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toMatch(/^legate: Permission denied: \S+ may not be read by this user\./)
  })

  test('a folder that may not be looked into is not one without a store', async ({ skip }) => {
    const place = new Place()
    writeFileSync(place.store, '')
    const isRoot = process.getuid?.() === 0
    skip(process.getuid === undefined, 'this system has no users of that kind')
    chmodSync(place.folder, isRoot ? 0o700 : 0)
    const { code, stderr } = await place.run(['ps'], isRoot ? { uid: 65_534, cwd: root } : { cwd: root })
    chmodSync(place.folder, 0o700)

    expect(code).toBe(1)
    expect(stderr).toBe(`legate: Permission denied: you may not read the folder of ${place.store}.\n`)
  })

  test('a file without a byte stays so, whatever is asked of it', async () => {
    const place = new Place()
    writeFileSync(place.store, '')

    const ended = await Promise.all(
      [['ps'], ['cancel', 'aaaa'], ['resume', '-m', agentsModule]].map((args) => place.run(args)),
    )

    for (const { code, stderr } of ended) {
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: expect.stringContaining(`${place.store} is empty: no program`),
      })
    }
    expect(statSync(place.store).size).toBe(0)
    expect(readdirSync(place.folder)).toEqual(['runs.db'])
  })

  test('a store that may only be read is read', async ({ skip }) => {
    skip(process.getuid === undefined, 'this system has no users of that kind')
    const place = new Place()
    place.open()
    // Made by a process that is gone: what this one has opened it may still let go of.
    const { worker, ids } = await place.startRuns(['talker'])
    await worker.ended
    const [id = ''] = ids
    const before = readdirSync(place.folder)
    const bytes = readFileSync(place.store)
    chmodSync(place.store, 0o444)
    chmodSync(place.folder, 0o555)
    const as = process.getuid?.() === 0 ? { uid: 65_534 } : {}
    const looks = ['show', 'tree', 'transcript', 'why', 'audit', 'export'].map((command) => [command, id])
    const read = [['ps'], ...looks, ['log', '-f', id], ['diff', id, id], ['approvals'], ['audit', '--verify']]
    const [ended, cancelled] = await Promise.all([
      Promise.all(read.map((args) => place.run(args, as))),
      place.run(['cancel', id], as),
    ])
    chmodSync(place.folder, 0o755)

    for (const { code, stderr } of ended) expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(cancelled).toMatchObject({ code: 1, stderr: expect.stringContaining('Cannot write') })
    expect(readdirSync(place.folder)).toEqual(before)
    expect(readFileSync(place.store).equals(bytes)).toBe(true)
  })

  test('a store that another process has locked', async () => {
    const place = killed.copy()
    const holder = connectTo(place.store)
    for (const words of ['PRAGMA locking_mode = EXCLUSIVE', 'BEGIN EXCLUSIVE', 'CREATE TABLE held (x)'])
      holder.exec(words)

    const { code, stdout, stderr } = await place.run(['ps'])
    holder.close()

    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/^legate: Another process has kept \S+ locked for too long\./)
  })
})

describe('a reader that goes away', () => {
  test('ends the command quietly', async () => {
    const place = new Place()
    const [id = ''] = await place.endedRuns('lead')
    const line = `set -o pipefail; "${process.execPath}" "${program}" log ${id} --json | head -1`

    const stdout = execFileSync('bash', ['-c', line], {
      env: place.env,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })

    expect(stdout).toMatch(/^\{.*"type":"run-start".*\}\n$/)
  })

  test('ends one that follows as soon as there is something to say', async () => {
    const place = new Place()
    const { ids } = await place.startRuns(['talker'])
    const follower = place.legate(['log', '-f', ids[0] ?? ''])
    await follower.says('Once upon')

    follower.closeOutput()
    place.open()

    expect(await follower.ended).toMatchObject({ code: 0, stderr: '' })
    expect(existsSync(place.store)).toBe(true)
  })
})

function jsonOf({ stdout }: Ended): Record<string, unknown>[] {
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
}

async function followed(place: Place, id: string): Promise<string> {
  const follower = place.legate(['log', '-f', id])
  await follower.says('No process works on it')
  follower.kill('SIGINT')
  expect((await follower.ended).code).toBe(130)
  return follower.stderr
}
