// Every command that looks or answers, once on the store and once through a server: the same output and the same exit code.

import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { isRemote } from '../../src/cli/command/command.ts'
import { COMMANDS } from '../../src/cli/commands.ts'
import { localStore } from '../support/rows.ts'
import { agentsModule, type Ended, Place, skipUnlessBuilt, until } from './support/cli.ts'
import { served } from './support/served.ts'
import { Terminal } from './support/terminal.ts'

beforeEach(skipUnlessBuilt)

const made = new Place(afterAll)
const ids: Record<string, string> = {}

beforeAll(async () => {
  // Who speaks at the command line is its user; who speaks through a server is the principal of the token.
  made.more['USER'] = 'local'
  made.more['LEGATE_TEST_MARKS'] = path.join(made.folder, 'marks')
  const { worker, ids: killed } = await made.startRuns(['payer'])
  await until('it has paid', () => isThere(path.join(made.folder, 'marks')))
  worker.kill('SIGKILL')
  await worker.ended
  made.open()
  await made.run(['resume', '-m', agentsModule])
  const names = ['lead', 'talker', 'failing']
  const ended = await made.endedRuns(...names)
  const parked = await made.parkedRuns('careful', 'curious', 'careful')
  Object.assign(ids, {
    payer: killed[0],
    ...zipped(names, ended),
    ...zipped(['careful', 'curious', 'waiting'], parked),
  })
  const runtime = made.runtime(afterAll)
  const call = localStore(runtime)
    .openNodes(ids['careful'] ?? '')
    .find(({ state }) => state === 'awaiting_approval')
  ids['call'] = call?.id ?? ''
  for (const item of await runtime.inbox()) {
    if (item.type === 'uncertain') ids['doubt'] = item.seen
    if (item.type === 'approval' && item.nodeId === call?.id) ids['request'] = item.approval.seen
  }
}, 60_000)

function zipped(names: readonly string[], values: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name, at) => [name, values[at] ?? '']))
}

function isThere(file: string): boolean {
  try {
    return readFileSync(file, 'utf8') !== ''
  } catch {
    return false
  }
}

/** The words of a command; `@name` stands for the end of an id, `#name` for a hash. */
function wordsOf(line: string): string[] {
  return line
    .split(' ')
    .map((word) =>
      word
        .replace(/^@(\w+)$/, (_, name: string) => ids[name]?.slice(-8) ?? '')
        .replace(/^#(\w+)$/, (_, name: string) => ids[name] ?? ''),
    )
}

/** Output without what differs from one moment, or one new id, to the next. */
function shape(text: string): string {
  const known = new Map<string, string>()
  const own = new Set(Object.values(ids).map((id) => id.slice(-8)))
  const named = (id: string) => {
    if (own.has(id.slice(-8))) return id
    if (!known.has(id)) known.set(id, `ID${known.size}`)
    return known.get(id) ?? ''
  }
  return (
    text
      // What leads to the server, or stands for its store.
      .replaceAll(/ --server \S+(?: --token TOKEN)?| --store STORE-OF-SERVER/g, '')
      .replaceAll(/(?:Continue|Follow it) with: legate .*|(?<=waits for an input: ).*/g, 'NEXT')
      .replaceAll(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, named)
      .replaceAll(/\b(?=[0-9a-f]*\d)[0-9a-f]{8}\b/g, named)
      .replaceAll(/hash [\w-]{43}/g, 'HASH')
      .replaceAll(/\b1[789]\d{11}\b|"elapsedMs":\d+/g, 'TIME')
      .replaceAll(/\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{3}Z)?/g, 'MOMENT')
      .replaceAll(/\b(?:\d+(?:\.\d)? (?:s|min|h|d)|\d+[mhd] \d+[smh])\b/g, 'AGO')
      // A column is as wide as its widest time: one of the two may have reached "1m 00s", and the other not yet.
      .replaceAll(/(?<=\S) {2,}/g, '  ')
  )
}

function shapeOf({ code, stdout, stderr }: Ended): Ended {
  return { code, stdout: shape(stdout), stderr: shape(stderr) }
}

const LOOKS: readonly string[] = [
  'ps',
  'ps --json',
  'ps --all',
  'ps -q',
  'show @lead',
  'show @lead --json',
  'show @lead --nodes',
  'show @lead --nodes --json',
  'show @lead --graph',
  'show @lead --graph --dot',
  'show @careful',
  'show @payer',
  'show @failing --json',
  'show',
  'tree @lead',
  'tree @lead --json',
  'tree @waiting',
  'tree -f @lead',
  'log @lead',
  'log @talker --json',
  'log -f @talker',
  'transcript @lead',
  'transcript @talker --json',
  'why @careful',
  'why @curious --json',
  'why @lead',
  'approvals',
  'approvals --json',
  'inbox',
  'inbox --json',
  'inbox --owner nobody',
  'diff @lead @talker',
  'diff @lead @lead --json',
  'audit',
  'audit @lead --verify',
  'export @lead',
  'prune --keep 1 --dry-run',
  'show zzzzzzzz',
  'show 0123456789ab',
  'show 00',
  'cancel',
  'approve',
  'retry @lead',
]

describe('commands that look', () => {
  let server: Awaited<ReturnType<typeof served>>
  let base: Place

  beforeAll(async () => {
    base = made
    server = await served(base, ['--workers', '0'])
  })

  it.each(LOOKS)('legate %s', async (line) => {
    const words = wordsOf(line)
    const [local, remote] = await Promise.all([base.run(words), base.run([...words, '--server', server.url])])
    expect(shapeOf(remote)).toEqual(shapeOf(local))
    expect(local.stdout + local.stderr).not.toBe('')
  })

  it('finds the server by LEGATE_SERVER and LEGATE_TOKEN, or by its socket', async () => {
    const local = await base.run(['show', ids['lead'] ?? ''])
    const env = { LEGATE_SERVER: server.base, LEGATE_TOKEN: server.token, LEGATE_DB: '/nowhere/at/all.db' }
    expect(shapeOf(await base.run(['show', ids['lead'] ?? ''], { env }))).toEqual(shapeOf(local))
    const socket = path.join(base.folder, 'both.sock')
    await base.legate(['serve', '--socket', socket, '--workers', '0']).says('unix:')
    const over = await base.run(['show', ids['lead'] ?? '', '--server', `unix:${socket}`])
    expect(shapeOf(over)).toEqual(shapeOf(local))
  })

  it('shows a token of another owner nothing, as if there were nothing', async () => {
    const token = (await base.run(['token', 'add', 'stranger', '--scopes', 'read,approve'])).stdout.trim()
    const args = ['--server', server.base, '--token', token]
    const shown = await base.run(['show', ids['lead'] ?? '', ...args])
    expect(shown).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('No id here ends in') })
    expect((await base.run(['ps', ...args])).stdout).toBe('There are no runs in this store yet.\n')
    expect((await base.run(['inbox', ...args])).stdout).toBe('Nothing needs a person.\n')
  })
})

it('a token without the scope approve hears that, whatever it names', async () => {
  const server = await served(made, ['--workers', '0'])
  const token = (await made.run(['token', 'add', 'watcher', '--scopes', 'read,audit', '--sees', 'all'])).stdout.trim()
  const there = ['--server', server.base, '--token', token]
  for (const line of [
    'approve @call',
    'approve @call --seen #request',
    'deny @call',
    'deny 00000000',
    'settle @payer --leave',
  ]) {
    const { code, stderr } = await made.run([...wordsOf(line), ...there])
    expect([line, code, stderr]).toEqual([line, 1, 'legate: watcher lacks the scope approve.\n'])
  }
})

/** In this order, on two copies of one store. */
const CHANGES: readonly string[] = [
  'approve @careful',
  'approve @call',
  'approve @call --seen 000000000000',
  'approve @call --seen 0000000000000000',
  'approve @call --seen #doubt',
  'deny @call --reason later',
  'deny @call',
  'approve @call',
  'approve @call --seen #request',
  'approve @lead',
  'answer @curious 8080',
  'answer @curious 8080',
  'settle @payer --leave',
  'settle @payer --seen #request --leave',
  'settle @payer --seen #doubt --happened --result {"receipt":7}',
  'settle @payer --leave',
  'settle @lead --leave',
  'fork @lead',
  'fork @talker --json',
  'edit @lead Other-words',
  'retry @failing',
  'retry @talker',
  'cancel @waiting',
  'cancel @waiting',
  'forget @lead',
  'show @lead',
  'forget @failing',
  'cancel @failing',
  'ps --all',
  'inbox',
  'forget --owner nobody',
  'forget --owner nobody --yes',
  'prune --keep 0',
  'prune --keep 0',
  'show @talker',
  'forget @talker',
]

it('commands that answer or change something', { timeout: 120_000 }, async () => {
  const [here, there] = [made.copy(), made.copy()]
  for (const place of [here, there]) place.more['USER'] = 'local'
  const [server] = await Promise.all([served(there, ['--workers', '0']), served(here, ['--workers', '0'])])
  const said = new Map<string, string>()
  for (const line of CHANGES) {
    const words = wordsOf(line)
    const [local, remote] = await Promise.all([here.run(words), there.run([...words, '--server', server.url])])
    expect({ line, ...shapeOf(remote) }).toEqual({ line, ...shapeOf(local) })
    said.set(line, remote.stdout)
  }
  // The next step is one that the server takes, and its token is not printed.
  const follow = new RegExp(` Follow it with: legate log -f \\w{8} --server ${server.base} --token TOKEN\n$`)
  expect(said.get('edit @lead Other-words')).toMatch(follow)
  expect(said.get('retry @failing')).toMatch(follow)
  expect(said.get('fork @lead')).toMatch(/ It waits for an input: POST \/v1\/conversations\/[\w-]{36}\/messages\n$/)
  const lines = (await made.run(['export', ids['talker'] ?? ''])).stdout
  const [fresh, far] = [new Place(), new Place()]
  const farServer = await served(far, ['--workers', '0'])
  for (const [local, remote, url] of [
    [fresh, far, farServer.url],
    [here, there, server.url],
  ] as const) {
    const [first, second] = await Promise.all([
      local.run(['import'], { input: lines }),
      remote.run(['import', '--server', url], { input: lines }),
    ])
    expect(shapeOf(second)).toEqual(shapeOf(first))
    expect(first.code).toBe(local === fresh ? 0 : 1)
  }
})

describe('legate run --server', () => {
  it('starts an agent of the server by its name, and prints what legate run prints', async () => {
    const place = new Place()
    place.open()
    const server = await served(place, [agentsModule])
    const there = ['--server', server.url]
    for (const [agent, input] of [
      ['lead', 'What?'],
      ['typed', '{"place":"here"}'],
      ['failing', 'What?'],
    ] as const) {
      const local = await place.run(['run', agentsModule, '--agent', agent, input])
      const remote = await place.run(['run', agent, input, ...there])
      expect([agent, remote.code, remote.stdout]).toEqual([agent, local.code, local.stdout])
      expect(remote.stderr).toContain(`${agent} `)
    }
    const allowed = await place.run(['run', 'careful', 'What?', '--yes', ...there])
    expect(allowed).toMatchObject({ code: 0, stdout: 'Done: It is blue.\n' })
    const parked = await place.run(['run', 'careful', 'What?', ...there])
    expect(parked).toMatchObject({ code: 3, stdout: '', stderr: expect.stringContaining('waits for a person') })
    expect(parked.stderr).toContain(`--server ${server.base}`)
    expect(parked.stderr).not.toContain(server.token)
    const unknown = await place.run(['run', 'nobody', 'What?', ...there])
    expect(unknown).toMatchObject({ code: 1, stdout: '' })
    expect(unknown.stderr.trim().split('\n')).toHaveLength(1)
  })

  it('stops the run at Ctrl-C', async () => {
    const place = new Place()
    const server = await served(place, [agentsModule])
    const run = place.legate(['run', 'lead', 'What?', '--server', server.url])
    await run.says('calls look')
    run.kill('SIGINT')
    expect((await run.ended).code).toBe(130)
    const { stdout } = await place.run(['ps', '--json'])
    expect(JSON.parse(stdout.split('\n')[0] ?? '')).toMatchObject({ agent: 'lead', state: 'cancelled' })
  })
})

describe('commands that work on this machine only', () => {
  const local = COMMANDS.filter(({ name }) => !isRemote(name)).map(({ name }) => name)

  it.each(local)('legate %s says so in one line', async (name) => {
    const place = new Place()
    const { code, stdout, stderr } = await place.run([name, '--server', 'http://127.0.0.1:1'])
    expect({ code, stdout, stderr }).toEqual({
      code: 2,
      stdout: '',
      stderr: `legate: "${name}" works on this machine only: it takes no --server.\n`,
    })
  })

  it('say so when LEGATE_SERVER is set, and parts of commands too', async () => {
    const place = new Place()
    const resumed = await place.run(['resume'], { env: { LEGATE_SERVER: 'http://127.0.0.1:1' } })
    expect(resumed).toMatchObject({ code: 2, stderr: expect.stringContaining('LEGATE_SERVER names a server') })
    const repaired = await place.run(['audit', '--repair', '--server', 'http://127.0.0.1:1'])
    expect(repaired).toMatchObject({ code: 2, stderr: expect.stringContaining('--repair works on the store itself') })
  })

  it('and every other command says in one line what is wrong with a server', async () => {
    const place = new Place()
    const cases: readonly (readonly [args: readonly string[], words: string])[] = [
      [['--server', 'http://127.0.0.1:1'], 'cannot be reached'],
      [['--server', 'unix:/nowhere.sock'], 'cannot be reached'],
      [['--server', 'nonsense'], 'is not an address of a server'],
      [['--server', ''], '--server is empty'],
      [['--server', 'http://127.0.0.1:1', '--store', 'x.db'], 'give one of them'],
    ]
    for (const [args, words] of cases) {
      const { code, stdout, stderr } = await place.run(['ps', ...args])
      expect([args, code === 0, stdout, stderr.trim().split('\n').length]).toEqual([args, false, '', 1])
      expect(stderr).toContain(words)
    }
    const server = await served(place)
    const stranger = await place.run(['ps', '--server', server.base])
    expect(stranger).toMatchObject({ code: 1, stderr: expect.stringContaining('The server does not know you') })
  })
})

describe('legate open', () => {
  it('prints the address of the server of the store, and of a run', async () => {
    const place = new Place()
    const [id = ''] = await place.endedRuns('talker')
    expect(await place.run(['open'])).toMatchObject({ code: 1, stderr: expect.stringContaining('legate serve') })
    const server = await served(place, ['--workers', '0'])
    expect((await place.run(['open'])).stdout).toBe(`${server.url}\n`)
    expect((await place.run(['open', id.slice(-8)])).stdout).toBe(`${server.url}&run=${id}\n`)
    expect((await place.run(['open', 'zzzzzzzz'])).code).toBe(2)
  })

  it('finds each of several servers of a folder, of one store the one that was started last', async () => {
    const place = new Place()
    await place.endedRuns('talker')
    const other = ['--store', path.join(place.folder, 'other.db')]
    const first = await served(place, ['--workers', '0'])
    const second = await served(place, ['--workers', '0'])
    const third = await served(place, ['--workers', '0', ...other])
    expect((await place.run(['open'])).stdout).toBe(`${second.url}\n`)
    expect((await place.run(['open', ...other])).stdout).toBe(`${third.url}\n`)
    second.process.kill('SIGTERM')
    await second.process.ended
    expect((await place.run(['open'])).stdout).toBe(`${first.url}\n`)
    third.process.kill('SIGKILL')
    await third.process.ended
    expect((await place.run(['open', ...other])).code).toBe(1)
    expect((await place.run(['open'])).stdout).toBe(`${first.url}\n`)
  })

  it('says so where the server has no page', async () => {
    const place = new Place()
    await place.endedRuns('talker')
    await served(place, ['--workers', '0', '--no-ui'])
    const terminal = new Terminal(place, ['open'], { cols: 200, rows: 10, env: { BROWSER: 'true' } })
    expect(await terminal.ended).toBe(0)
    expect(terminal.written).toContain('This server has no page')
    expect(terminal.written).not.toContain('Opened')
  })

  it('opens the page in a browser from a terminal, and keeps the token out of the list of processes', async () => {
    const place = new Place()
    const [id = ''] = await place.endedRuns('talker')
    const server = await served(place, ['--workers', '0'])
    const opened = path.join(place.folder, 'opened')
    const browser = path.join(place.folder, 'browser')
    writeFileSync(browser, `#!/bin/sh\nprintf '%s\\n' "$@" > '${opened}'\n`, { mode: 0o755 })
    const terminal = new Terminal(place, ['open', id.slice(-8)], { cols: 200, rows: 10, env: { BROWSER: browser } })
    expect(await terminal.ended).toBe(0)
    expect(terminal.written).toContain(`${server.url}&run=${id}`)
    expect(terminal.written).toContain('Opened in your browser.')
    const file = await until('the browser is started', () => existsSync(opened) && readFileSync(opened, 'utf8').trim())
    expect(file).toBe(path.join(place.folder, 'legate', `serve-${server.process.pid}.html`))
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFileSync(file, 'utf8')).toContain(`content="0;url=${server.url}&amp;run=${id}"`)
    server.process.kill('SIGTERM')
    await server.process.ended
    expect(existsSync(file)).toBe(false)
  })

  it('says where it is where there is no browser', async () => {
    const place = new Place()
    const server = await served(place, ['--workers', '0'])
    const none = { BROWSER: path.join(place.folder, 'no-such-program') }
    const terminal = new Terminal(place, ['open'], { cols: 200, rows: 10, env: none })
    expect(await terminal.ended).toBe(0)
    expect(terminal.written).toContain(server.url)
    expect(terminal.written).toContain('There is no browser here to open')
  })
})
