// `legate worker` and `legate ps --processes`, as processes on one file.

import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Agent, createRuntime, type Runtime } from 'legate'
import { sqliteStore } from 'legate/store/sqlite'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { localStore } from '../support/rows.ts'
import { agentsModule, Place, type Process, root, skipUnlessBuilt, until } from './support/cli.ts'

const versionedModule = path.join(root, 'test/cli/programs/versioned.mjs')

beforeEach(skipUnlessBuilt)

interface Listed {
  readonly pid: number
  readonly isAlive: boolean
  readonly isDraining: boolean
  readonly host: string
  readonly running: readonly { readonly path: readonly string[]; readonly tool: string | null }[]
}

async function processesOf(place: Place): Promise<Listed[]> {
  const { stdout } = await place.run(['ps', '--processes', '--json'])
  const lines = stdout.split('\n').filter((line) => line !== '')
  return lines.map((line) => JSON.parse(line) as Listed)
}

/** Starts a worker and waits until it works. */
async function working(place: Place, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Process> {
  const worker = place.legate(['worker', ...args], { env })
  await worker.says(' works on ')
  return worker
}

/** A process that starts runs and works on none. */
class Starter {
  readonly runtime: Runtime

  constructor(place: Place) {
    this.runtime = createRuntime({ store: sqliteStore(place.store), engine: { workers: 0 } })
    onTestFinished(() => this.runtime.close())
  }

  async start(file: string, name: string): Promise<string> {
    const agents = (await import(file)) as Record<string, Agent>
    const run = this.runtime.run(agents[name] as Agent, 'What colour is it?')
    await until('it is recorded', () => localStore(this.runtime).turn(run.id) !== undefined)
    return run.id
  }

  /** Waits until so many tools run for a run. */
  toolsRun(id: string, count: number): Promise<unknown> {
    const store = localStore(this.runtime)
    const isRunning = (child: string) =>
      store.openNodes(child).some(({ kind, state }) => kind === 'task' && state === 'running')
    return until('the tools run', () => store.openLinks(id).filter((link) => isRunning(link.id)).length === count)
  }

  outcomeOf(id: string): Promise<string> {
    return until('the run has ended', () => localStore(this.runtime).turn(id)?.outcome?.status)
  }
}

describe('legate worker', () => {
  it('works on runs that others start, and ps --processes shows what it runs', async () => {
    const place = new Place()
    const starter = new Starter(place)
    const worker = await working(place, ['-m', agentsModule])
    const id = await starter.start(agentsModule, 'lead')
    await starter.toolsRun(id, 2)
    const listed = (await processesOf(place)).find(({ pid }) => pid === worker.pid)
    const agents = expect.arrayContaining(['lead', 'scout'])
    const look = { path: ['lead', 'scout'], tool: 'look' }
    expect(listed).toMatchObject({ isAlive: true, agents, running: [look, look], host: expect.stringMatching(/./) })
    const { stdout } = await place.run(['ps', '--processes'])
    expect(stdout).toMatch(/PID +MACHINE +STATE +HEARD +UP +STEPS +AGENTS +NOW\n/)
    expect(stdout).toMatch(new RegExp(`${worker.pid} .* alive .* 2 .*lead > scout: look; lead > scout: look`))
    place.open()
    expect(await starter.outcomeOf(id)).toBe('completed')
  })

  it.each(['worker', 'serve'])('%s says that it waits for a database which does not answer', async (command) => {
    const args = [command, '-m', agentsModule, '--store', 'postgres://ann:secret@127.0.0.1:1/app']
    const waiting = new Place().legate(args)
    await waiting.says('legate: Waiting for postgres://ann@127.0.0.1:1/app, which has not answered yet.')
    waiting.kill('SIGKILL')
    expect((await waiting.ended).stdout).toBe('')
  })

  it('drains at SIGTERM: its claims go back, it leaves the list, and another worker ends the run', async () => {
    const place = new Place()
    const starter = new Starter(place)
    const first = await working(place, ['-m', agentsModule])
    const id = await starter.start(agentsModule, 'lead')
    await starter.toolsRun(id, 2)
    first.kill('SIGTERM')
    expect((await first.ended).code).toBe(0)
    expect(first.stderr).toContain('Draining')
    expect((await processesOf(place)).map(({ pid }) => pid)).not.toContain(first.pid)
    expect(localStore(starter.runtime).claimants()).toEqual([])
    place.open()
    await working(place, ['-m', agentsModule])
    expect(await starter.outcomeOf(id)).toBe('completed')
  })

  it('is shown while it drains, with what it runs, and keeps its lease however long its grace is', async () => {
    const place = new Place()
    const starter = new Starter(place)
    const module = path.join(place.folder, 'patient.mjs')
    const engine = '{ graceMs: 20_000, leaseMs: 1_500 }'
    writeFileSync(
      module,
      `export default { agents: [...Object.values(await import('${agentsModule}'))], engine: ${engine} }`,
    )
    const first = await working(place, ['-m', module], { LEGATE_TEST_DEAF: '1' })
    const id = await starter.start(agentsModule, 'lead')
    await starter.toolsRun(id, 2)
    const other = await working(place, ['-m', agentsModule])
    first.kill('SIGTERM')
    const listed = async () => (await processesOf(place)).find(({ pid }) => pid === first.pid)
    await until('it says that it drains', async () => (await listed())?.isDraining)
    await sleep(4_000)
    expect(await listed()).toMatchObject({
      isAlive: true,
      isDraining: true,
      running: [{ tool: 'look' }, { tool: 'look' }],
    })
    expect((await place.run(['ps', '--processes'])).stdout).toMatch(new RegExp(`${first.pid} .* draining .* 2 `))
    place.open()
    expect((await first.ended).code).toBe(0)
    expect(await starter.outcomeOf(id)).toBe('completed')
    expect(
      localStore(starter.runtime)
        .nodesOf(id)
        .map(({ recoveries }) => recoveries),
    ).not.toContain(1)
    other.kill('SIGKILL')
  })

  it('stays in the list as gone after it was killed and others have taken over its work', async () => {
    const place = new Place()
    const starter = new Starter(place)
    const first = await working(place, ['-m', agentsModule])
    const id = await starter.start(agentsModule, 'lead')
    await starter.toolsRun(id, 2)
    first.kill('SIGKILL')
    await first.ended
    place.open()
    await working(place, ['-m', agentsModule])
    expect(await starter.outcomeOf(id)).toBe('completed')
    await sleep(2_500)
    const listed = (await processesOf(place)).find(({ pid }) => pid === first.pid)
    expect(listed).toMatchObject({ isAlive: false, running: [] })
  })

  it('names definitions where processes have different ones of the same agent', async () => {
    const place = new Place()
    await working(place, ['-m', versionedModule])
    await working(place, ['-m', versionedModule], { LEGATE_TEST_VERSION: 'two' })
    const { stdout } = await place.run(['ps', '--processes'])
    const found = [...stdout.matchAll(/poet@([\w-]{8})/g)].map(([, hash]) => hash)
    expect(new Set(found).size).toBe(2)
    expect(await processesOf(place)).toMatchObject([{ definitions: { poet: expect.any(String) }, queue: null }, {}])
  })

  it('takes only steps whose code it has, and why says which code is missing where', async () => {
    const place = new Place()
    const starter = new Starter(place)
    const talker = await working(place, ['-m', agentsModule, '--agents', 'talker'])
    const id = await starter.start(agentsModule, 'lead')
    const why = await place.run(['why', id])
    expect(why.stdout).toMatch(new RegExp(`process ${talker.pid} on \\S+ has no code for it`))
    expect(localStore(starter.runtime).turn(id)?.outcome).toBeNull()
    place.open()
    await working(place, ['-m', agentsModule, '--agents', 'typed, lead'])
    expect(await starter.outcomeOf(id)).toBe('completed')
  })

  it('leaves runs of another definition to workers that have it, if it is told to wait', async () => {
    const place = new Place()
    const starter = new Starter(place)
    const id = await starter.start(versionedModule, 'poet')
    await working(place, ['-m', versionedModule, '--on-changed', 'wait'], { LEGATE_TEST_VERSION: 'two' })
    const why = await place.run(['why', id])
    expect(why.stdout).toContain('has another definition of it, and waits')
    expect(localStore(starter.runtime).turn(id)?.outcome).toBeNull()
    await working(place, ['-m', versionedModule, '--on-changed', 'wait'])
    expect(await starter.outcomeOf(id)).toBe('completed')
    expect((await starter.runtime.attach(id).then(({ result }) => result)).text).toBe('version one')
  })

  it('goes on with its own definition where it is not told to wait', async () => {
    const place = new Place()
    const starter = new Starter(place)
    const id = await starter.start(versionedModule, 'poet')
    await working(place, ['-m', versionedModule], { LEGATE_TEST_VERSION: 'two' })
    expect(await starter.outcomeOf(id)).toBe('completed')
    expect((await starter.runtime.attach(id).then(({ result }) => result)).text).toBe('version two')
  })

  it('says in one line what is wrong with its options', async () => {
    const place = new Place()
    const cases = [
      [['--agents', 'nobody', '-m', agentsModule], 'There is no agent "nobody": there are careful'],
      [['--agents', 'nobody'], 'name the module that exports it with --module FILE'],
      [['--workers', '0'], 'a worker that does not work'],
      [['--on-changed', 'stop'], '--on-changed is continue or wait, not "stop"'],
    ] as const
    for (const [args, words] of cases) {
      const { code, stderr } = await place.run(['worker', ...args])
      expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(words) })
    }
  })
})
