import { existsSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { localStore } from '../support/rows.ts'
import { agentsModule, Place, program, root, skipUnlessBuilt, until } from './support/cli.ts'

beforeEach(skipUnlessBuilt)

/** What a killed process has left; each test has a copy of it to itself. */
const killed = new Place(afterAll)
let [talkerId, leadId] = ['', '']
beforeAll(async () => {
  if (!existsSync(program)) return
  ;[talkerId = '', leadId = ''] = await killed.orphans('talker', 'lead')
})

describe('cancel', () => {
  test('stops a run of another process with all it started, and says so', async () => {
    const place = new Place()
    const { ids, worker } = await place.startRuns(['lead'])
    const store = localStore(place.runtime())
    await until('both subagents work', () => store.openLinks(ids[0] ?? '').length === 2)

    const { code, stdout } = await place.run(['cancel', ids[0] ?? '', '--reason', 'wrong topic'])
    await worker.says('over')

    expect({ code }).toEqual({ code: 0 })
    expect(stdout).toMatch(
      /^lead \w{8} has stopped: cancelled, and 2 subagents with it\. Its results are kept: legate show \w{8}\n$/,
    )
    expect((await place.run(['show', ids[0] ?? ''])).stdout).toContain('wrong topic')
  })

  test('stops a run whose process is gone', async () => {
    const place = killed.copy()

    const { code, stdout } = await place.run(['cancel', talkerId])
    const again = await place.run(['cancel', talkerId])

    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining('has stopped: cancelled') })
    expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining('has already ended: cancelled.') })
  })
})

describe('resume', () => {
  test('goes on with everything a killed process has left, and exits with how it ended', async () => {
    const place = killed.copy()
    place.open()

    const { code, stdout, stderr } = await place.run(['resume', '--module', agentsModule])

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/lead \w{8} completed after .*, 2 subagents\n\n {2}All of them saw it: 2\.\n/)
    expect(stdout).toMatch(/talker \w{8} completed after/)
    expect(stdout).not.toContain('\u001b')
    const nothing = await place.run(['resume', '--module', agentsModule])
    expect(nothing).toMatchObject({ code: 0, stdout: 'Nothing is unfinished in this store.\n' })
  })

  const left = new Place(afterAll)
  let starterId = ''
  beforeAll(async () => {
    if (existsSync(program)) starterId = await leftInBackground(left)
  })

  test('names the agents of what was left in the background', async () => {
    expect((await left.run(['resume'])).stderr).toContain('1 unfinished run of "talker"')
  })

  test('waits for what was left in the background, and for the turn that tells of it', async () => {
    const place = left.copy()
    const store = localStore(place.runtime())
    place.open()

    const { code, stdout, stderr } = await place.run(['resume', '--module', agentsModule])

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/talker \w{8} completed after/)
    expect(stdout).toMatch(/starter \w{8} completed after .*\n\n {2}It said: what it should\.\n/)
    expect(store.openTurns(10)).toEqual([])
  })

  test('as run does', async () => {
    const place = new Place()
    place.open()

    const { code } = await place.run(['run', agentsModule, '--agent', 'starter', 'Go.'])

    const store = localStore(place.runtime())
    const [root] = store.roots({ limit: 1 })
    expect({ code, open: store.openTurns(10) }).toEqual({ code: 0, open: [] })
    expect(store.turnsOf(root?.id ?? '', { limit: 9 })).toHaveLength(2)
  })

  test('with an id does the same for the tree of a run that is over; in a pipe stdout has its answer alone, as of run', async () => {
    const place = left.copy()
    const store = localStore(place.runtime())
    place.open()

    const { code, stdout, stderr } = await place.run(['resume', starterId.slice(-8), '--module', agentsModule])

    expect({ code, stdout }).toEqual({ code: 0, stdout: 'It said: what it should.\n' })
    expect(stderr).toMatch(/ talker +completed \(/)
    expect(store.openTurns(10)).toEqual([])
  })

  test('goes on with one run only, when it is named', async () => {
    const place = killed.copy()
    place.open()

    const { code, stdout } = await place.run(['resume', leadId.slice(-8), '--module', agentsModule, '--json'])

    expect(code).toBe(0)
    const events = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { type: string; path: string[] })
    expect(new Set(events.map((event) => event.path[0]))).toEqual(new Set(['lead']))
    expect(events.at(-1)?.type).toBe('run-end')
    expect(localStore(place.runtime()).turn(talkerId)?.state).toBe('running')
  })

  test('exits with 1 when a run fails', async () => {
    const place = new Place()
    await place.orphans('failing')
    place.open()

    const { code, stdout } = await place.run(['resume', '--module', agentsModule])

    expect(code).toBe(1)
    expect(stdout).toMatch(/failing \w{8} failed after .*: the model said .*no/)
  })

  test('exits with 3 when a person is needed, and names the command that answers; then it goes on', async () => {
    const place = new Place()
    place.open()
    const { ids, worker } = await place.startRuns(['careful', 'careful'])
    const store = localStore(place.runtime())
    const isAsked = (id: string) => store.openNodes(id).some(({ state }) => state === 'awaiting_approval')
    await until('both ask', () => ids.every(isAsked))
    worker.kill('SIGKILL')
    await worker.ended

    const [parked, json] = await Promise.all([
      place.run(['resume', '--module', agentsModule]),
      place.run(['resume', '--module', agentsModule, '--json']),
    ])

    expect(parked.code).toBe(3)
    expect(parked.stdout).toMatch(/\n {2}Then: legate resume \w{8} --module .*agents\.mjs\n/)
    expect(json).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(/waits for a person:\n.*\n {4}legate approve /),
    })
    const [, approve = ''] =
      /careful \w{8} waits for a person:\n {2}look \{"where":"here"\}\n {4}legate (approve \w{8} --seen \w{64}), or/.exec(
        parked.stdout,
      ) ?? []
    const answered = await place.run(approve.split(' '))
    expect(answered).toMatchObject({ code: 0, stdout: 'Allowed: look {"where":"here"}\n' })
    const other = ids.find(isAsked) ?? ''
    const denied = await place.run(['deny', other, '--reason', 'not today'])
    expect(denied).toMatchObject({ code: 0, stdout: 'Denied: look {"where":"here"}\n' })
    const again = await place.run(['deny', other])
    expect(again).toMatchObject({ code: 2, stdout: '' })

    const done = await place.run(['resume', '--module', agentsModule])

    expect(done.code).toBe(0)
    expect(done.stdout).toContain('Done: It is blue.')
    expect(done.stdout).toContain('Done: Error: this call was denied. not today')
  })

  test('says what it needs when it has no module, a wrong one, or one without the agent', async () => {
    const place = new Place()
    await place.orphans('talker')
    const module = (name: string, text: string) => {
      const file = path.join(place.folder, name)
      writeFileSync(file, text)
      return file
    }
    const resume = (...args: readonly string[]) => place.run(['resume', ...args])
    const other = `import { agent } from '${path.join(root, 'dist/index.js')}'
      export default [agent({ name: 'other', instructions: '', model: { id: 'x/y', stream: () => [] } })]`

    const none = await resume()
    const missing = await resume('-m', 'nowhere.mjs')
    const broken = await resume('-m', module('broken.mjs', 'throw new Error("no luck")'))
    const empty = await resume(
      '-m',
      module('empty.mjs', 'export const answer = 42\nsetInterval(() => undefined, 1_000)'),
    )
    const wrong = await resume('-m', module('other.mjs', other))

    expect(none).toMatchObject({ code: 2, stdout: '' })
    expect(none.stderr).toContain('--module FILE, an ES module that exports them. 1 unfinished run of "talker".')
    expect(missing).toMatchObject({ code: 2, stderr: expect.stringContaining('There is no module ') })
    expect(broken).toMatchObject({ code: 2, stderr: expect.stringContaining('broken.mjs: Error: no luck') })
    expect(empty).toMatchObject({ code: 2, stderr: expect.stringContaining('exports no agent (it exports answer)') })
    expect(wrong).toMatchObject({ code: 1, stdout: expect.stringContaining('export the agent "talker".') })
    const json = await resume('-m', path.join(place.folder, 'other.mjs'), '--json')
    expect(json).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('export the agent "talker".') })
  })

  test('says in a line what is wrong with a module', async () => {
    const place = new Place()
    await place.endedRuns('talker')
    const define = `import { agent } from '${path.join(root, 'dist/index.js')}'
      const make = (name) => agent({ name, instructions: '', model: { id: 'x/y', stream: () => [] } })\n`
    const modules = [
      ['export default { agents: 5 }', 'which must be a list of agents: it is not a list.'],
      [`${define}export default { agents: [make('a'), 5] }`, 'which must be a list of agents: number 1 is not one.'],
      [`${define}export const a = make('twin'); export const b = make('twin')`, 'two agents of the name "twin".'],
      ['', 'is not a file. Name the module'],
    ] as const

    const ended = await Promise.all(
      modules.map(([text], at) => {
        const file = path.join(place.folder, `${at}.mjs`)
        writeFileSync(file, text)
        return place.run(['resume', '-m', text === '' ? '.' : file])
      }),
    )

    for (const [at, { code, stdout, stderr }] of ended.entries()) {
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr).toContain(modules[at]?.[1])
      expect(stderr.trim().split('\n')).toHaveLength(1)
    }
  })

  test('a plain kill hands the work back, and the next worker goes on', async () => {
    const place = killed.copy()
    const worker = place.legate(['resume', leadId, '--module', agentsModule])
    await worker.seen(() => worker.stderr.split('repeats its tool call').length === 3)
    const store = localStore(place.runtime())

    worker.kill('SIGTERM')
    await worker.says('Leaving unfinished runs to the next worker.')
    place.open()

    expect(await worker.ended).toMatchObject({ code: 143, stdout: '' })
    expect(store.turn(leadId)?.state).toBe('running')
    const next = await place.run(['resume', leadId, '--module', agentsModule])
    expect(next).toMatchObject({ code: 0, stdout: expect.stringContaining('All of them saw it: 2.') })
  })

  test('SIGINT in a pipe stops the runs and exits with 130; a reader that goes away stops nothing', async () => {
    const place = killed.copy()
    const [first, second] = [talkerId, leadId]
    const store = localStore(place.runtime())
    const isRunning = (id: string) =>
      store.openNodes(id).some(({ epoch }) => epoch > 1) || store.openLinks(id).length > 0
    const stopped = place.legate(['resume', first, '--module', agentsModule])
    await until('it works', () => isRunning(first))

    stopped.kill('SIGINT')

    const command = `legate resume ${first.slice(-8)} --module ${agentsModule}`
    expect(await stopped.ended).toMatchObject({
      code: 130,
      stderr: expect.stringMatching(new RegExp(`cancelled after .*\n  Continue with: ${command}\n`)),
    })
    expect((await place.run(['show', first])).stdout).toContain('So far\n  Once upon a time')
    const unread = place.legate(['resume', second, '--module', agentsModule])
    unread.closeOutput()
    place.open()
    expect((await unread.ended).code).toBe(0)
    expect(store.turn(second)?.outcome?.status).toBe('completed')
  })

  test('a run that was cancelled is named when nothing else is left, and goes on by its id, also with a schema', async () => {
    const place = new Place()
    const [id = '', other = ''] = await place.orphans('typed', 'typed')
    const runtime = place.runtime()
    await Promise.all([id, other].map((each) => runtime.cancel(each)))
    await runtime.resume()
    await Promise.all([id, other].map(async (each) => (await runtime.attach(each)).result))
    const [without, none] = await Promise.all([place.run(['resume']), place.run(['resume', '-m', agentsModule])])
    place.open()

    expect(none.code).toBe(0)
    expect(none.stdout).toMatch(
      new RegExp(
        `^Nothing is unfinished [^]*\n  legate resume ${id.slice(-8)} --module ${agentsModule}  # typed, .* ago\n`,
      ),
    )
    expect(without.stdout).toContain(`legate resume ${id.slice(-8)} --module FILE`)
    const named = await place.run(['resume', id])
    expect(named).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        `an ES module that exports them. Continue with: legate resume ${id.slice(-8)} --module FILE`,
      ),
    })
    const again = await place.run(['resume', id, '-m', agentsModule])
    expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining('Asked 2 times: {"place":"the sky"}') })
    const changed = path.join(place.folder, 'changed.mjs')
    writeFileSync(
      changed,
      `import { agent } from '${path.join(root, 'dist/index.js')}'
      export default agent({ name: 'typed', instructions: '', input: { type: 'object', required: ['room'] },
        model: { id: 'x/y', stream: () => [] } })`,
    )
    const refused = await place.run(['resume', other, '-m', changed])
    expect(refused.code).toBe(1)
    expect(refused.stderr).toMatch(/does not accept its input.*room.*runtime\.run\(agent, input, \{ conversationId: /)
  })

  test('a run that has ended otherwise, or is a subagent of another, is not taken up again', async () => {
    const place = new Place()
    const [id = ''] = await place.endedRuns('lead')
    const [link] = localStore(place.runtime()).linksOf(id)

    const over = await place.run(['resume', id, '-m', agentsModule])
    const child = await place.run(['resume', link?.id ?? '', '-m', agentsModule])

    expect(over).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('has ended: completed. There is nothing to resume.'),
    })
    expect(child).toMatchObject({ code: 1, stdout: '' })
    expect(await place.run(['resume', id])).toMatchObject({ code: 1, stderr: over.stderr })
  })
})

/** A run that is over and the child it has left behind, whose process was killed; gives the id of the run. */
async function leftInBackground(place: Place): Promise<string> {
  const { worker, ids } = await place.startRuns(['starter'])
  const [id = ''] = ids
  const store = localStore(place.runtime(afterAll))
  await until('its child works on without it', () => {
    const [link] = store.openLinks(id)
    return store.turn(id)?.state === 'ended' && store.openNodes(link?.id ?? '').some(({ state }) => state === 'running')
  })
  worker.kill('SIGKILL')
  await worker.ended
  return id
}
