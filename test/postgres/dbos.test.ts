import { readFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { DBOS } from '@dbos-inc/dbos-sdk'
import { agent, createRuntime, type Run, type Runtime, type RuntimeOptions, tool } from 'legate'
import { dbos } from 'legate/engine/dbos'
import { postgresStore } from 'legate/store/postgres'
import { engineConformance, scriptedModel } from 'legate/testing'
import pg from 'pg'
import { afterAll, describe, expect, test } from 'vitest'
import type { Store, WakeTaker } from '../../src/core/store/store.ts'
import { requireVersion } from '../../src/stores/dbos/launch.ts'
import { commitOf, next, nodeRow, placeIn, treeCommit } from '../../src/testing/conformance/store-rows.ts'
import { brokenGraph } from '../../src/testing/crash/aftermath.ts'
import { unsettled, wrongEffects } from '../../src/testing/crash/laws.ts'
import { withRows } from '../../src/testing/crash/stored-rows.ts'
import { figure } from '../crash/support/figure.ts'
import { noPostgres, type PostgresServer, usePostgres } from '../support/postgres.ts'
import { tempFolder } from '../support/temp-folder.ts'
import { CommandWorker } from './support/command-worker.ts'

const isFull = process.env['LEGATE_FULL'] === '1'
const JOBS = isFull ? 400 : 24
/** So seldom that only wakes can be the cause of what a test waits for. */
const NEVER_MS = 600_000

describe.skipIf(noPostgres !== undefined)('I14: wakes of DBOS', async () => {
  const server = noPostgres === undefined ? await usePostgres() : (undefined as unknown as PostgresServer)
  const pool = new pg.Pool({ connectionString: server?.url() ?? '', max: 2 })
  pool.on('error', () => undefined)
  const opened: (() => Promise<void>)[] = []
  afterAll(async () => {
    await closeAll()
    await pool.end()
  })

  let schemas = 0
  /** A schema of its own for each test; the tables of DBOS, which take a second to make, are for all. */
  const freshSchema = () => `d${++schemas}`
  const shared = 'wakes'
  const tables = `${shared}_dbos`
  const storeIn = (schema: string, options: Parameters<typeof dbos>[0] = {}) =>
    postgresStore({ url: server.url(), schema, dispatch: dbos({ schema: tables, ...options }) })

  function runtimeOn(store: Store, options: RuntimeOptions = {}): Runtime {
    const logger = { debug() {}, info() {}, warn() {}, error() {} }
    const engine = { sweepMs: NEVER_MS, graceMs: 100, ...options.engine }
    const runtime = createRuntime({ logger, ...options, store, engine })
    opened.push(async () => {
      await runtime.close()
      await store.close()
    })
    return runtime
  }

  async function rows(sql: string, ...values: readonly unknown[]): Promise<Record<string, unknown>[]> {
    return (await pool.query(sql.replaceAll('@', `"${tables}"`), [...values])).rows as Record<string, unknown>[]
  }

  engineConformance({ name: 'DBOS', open: () => storeIn('laws'), test })

  test('a commit wakes in its own transaction: one that is refused wakes nobody', async () => {
    const store = storeIn(freshSchema())
    const rootId = `root-${Date.now()}`
    const node = nodeRow(placeIn(rootId), `${rootId}-work`)
    const wakes = (name: string) => [
      { id: `${rootId}:${name}`, at: null },
      { id: `${rootId}@${name}`, at: Date.now() + 3_600_000.5 },
    ]
    await store.commit(treeCommit(rootId, { nodes: [node], wakes: wakes('first') }))
    const stale = { ...next(node), version: 5 }
    await expect(store.commit(commitOf(rootId, { nodes: [stale], wakes: wakes('second') }))).rejects.toThrow()
    const found = await rows(
      'SELECT workflow_uuid AS id, status FROM @.workflow_status WHERE workflow_uuid LIKE $1 ORDER BY 1',
      `${rootId}%`,
    )
    expect(found).toEqual([
      { id: `${rootId}:first`, status: 'ENQUEUED' },
      { id: `${rootId}@first`, status: 'DELAYED' },
    ])
    await store.close()
  })

  test('a process without workers leaves work, and a wake brings it to one that has them', async () => {
    const schema = freshSchema()
    const worker = runtimeOn(storeIn(schema), { agents: [echo()] })
    await worker.resume()
    const submitter = runtimeOn(storeIn(schema), { agents: [echo()], engine: { workers: 0 } })
    const waits: number[] = []
    for (let at = 0; at < 10; at++) {
      const from = performance.now()
      const { status } = await submitter.run(echo(), 'go').result
      waits.push(performance.now() - from)
      expect(status).toBe('completed')
    }
    waits.sort((a, b) => a - b)
    figure('P-5', `a run handed to another process through DBOS, and its result: p50 ${Math.round(waits[5] ?? 0)} ms`)
  })

  test('a deadline is met by a delayed wake, whoever has set it', async () => {
    const schema = freshSchema()
    const worker = runtimeOn(storeIn(schema))
    await worker.resume()
    const submitter = runtimeOn(storeIn(schema), { engine: { workers: 0 } })
    const run = submitter.run(agent({ ...plain('nobody-has-it'), budget: { wallMs: 1_000 } }), 'go')
    const { id } = await recorded(run)
    await submitter.close()
    expect(await (await worker.attach(id)).result).toMatchObject({ status: 'timed_out' })
  })

  test('a question that nobody answers expires by a delayed wake', async () => {
    const schema = freshSchema()
    const execute = () => 'paid'
    const pay = tool({ description: 'Pays.', input: { type: 'object' }, approval: 'required', execute })
    const asker = () =>
      agent({
        name: 'asker',
        instructions: 'Ask.',
        tools: { pay },
        model: scriptedModel(({ messages }) =>
          messages.some(({ role }) => role === 'tool') ? 'not paid' : { calls: [{ name: 'pay', input: {} }] },
        ),
      })
    // Its clock is a day behind, but for a second: what it asks expires then.
    const behindMs = 24 * 3_600_000 - 1_000
    const clock = {
      now: () => Date.now() - behindMs,
      at: (time: number, go: () => void) => laterAt(time + behindMs, go),
    }
    const first = runtimeOn(storeIn(schema), { agents: [asker()], clock })
    const run = first.run(asker(), 'go')
    for await (const event of run) if (event.type === 'approval-request') break
    await first.close()
    const second = runtimeOn(storeIn(schema), { agents: [asker()] })
    await second.resume()
    expect(await (await second.attach(run.id)).result).toMatchObject({ status: 'denied' })
  })

  test('a retry comes by a delayed wake, also when the process that tried first is gone', async () => {
    const schema = freshSchema()
    const overloaded = Object.assign(new Error('overloaded'), { statusCode: 503 })
    const first = runtimeOn(storeIn(schema))
    const run = first.run(agent({ ...plain('flaky'), model: scriptedModel([{ error: overloaded }]) }), 'go')
    for await (const event of run) if (event.type === 'retry') break
    await first.close()
    const second = runtimeOn(storeIn(schema), {
      agents: [agent({ ...plain('flaky'), model: scriptedModel(['fine']) })],
    })
    await second.resume()
    expect(await (await second.attach(run.id)).result).toMatchObject({ status: 'completed', text: 'fine' })
  })

  test('the database may crash: then wakes come as before', async () => {
    const schema = freshSchema()
    const inside: unknown[] = []
    const look = () => {
      inside.push(DBOS.workflowID)
      return 'done'
    }
    const seen = agent({ ...plain('seen'), model: scriptedModel(look) })
    const worker = runtimeOn(storeIn(schema), { agents: [seen] })
    await worker.resume()
    const submitter = runtimeOn(storeIn(schema), { engine: { workers: 0 } })
    for (let crash = 0; crash < 2; crash++) {
      expect(await submitter.run(seen, 'go').result).toMatchObject({ status: 'completed' })
      if (crash > 0) break
      await server.stop('immediate')
      await server.start()
    }
    // Models are called outside of DBOS.
    expect(inside).toEqual([undefined, undefined])
  })

  test('the work of a wake that throws is found by the sweep', async () => {
    const schema = freshSchema()
    const store = storeIn(schema)
    let thrown = 0
    const listen = (taker: WakeTaker) =>
      (store.wakes as NonNullable<Store['wakes']>).listen({
        ...taker,
        wake: async () => {
          thrown++
          throw new Error('a wake that fails')
        },
      })
    const worker = runtimeOn({ ...store, wakes: { listen } }, { agents: [echo()], engine: { sweepMs: 1_500 } })
    await worker.resume()
    const submitter = runtimeOn(storeIn(schema), { engine: { workers: 0 } })
    const from = performance.now()
    expect(await submitter.run(echo(), 'go').result).toMatchObject({ status: 'completed' })
    expect(performance.now() - from).toBeLessThan(8_000)
    expect(thrown).toBeGreaterThan(0)
    const [ended] = await rows("SELECT count(*)::int AS errors FROM @.workflow_status WHERE status = 'ERROR'")
    expect(ended).toEqual({ errors: 0 })
  })

  test('a wake that comes to a process without the code is told to the others', async () => {
    const schema = freshSchema()
    const other = runtimeOn(postgresStore({ url: server.url(), schema }), { agents: [echo()] })
    await other.resume()
    const worker = runtimeOn(storeIn(schema), { agents: [agent(plain('another'))] })
    await worker.resume()
    const submitter = runtimeOn(storeIn(schema), { engine: { workers: 0 } })
    expect(await submitter.run(echo(), 'go').result).toMatchObject({ status: 'completed' })
  })

  test('wakes that are over, or that nobody needs any more, are removed', async () => {
    const schema = freshSchema()
    await closeAll()
    const worker = runtimeOn(storeIn(schema, { queue: 'short', keepMs: 300 }), { agents: [echo()] })
    await worker.resume()
    const submitter = runtimeOn(storeIn(schema, { queue: 'short' }), { engine: { workers: 0 } })
    const run = submitter.run(echo(), 'go')
    expect(await run.result).toMatchObject({ status: 'completed' })
    // One that woke the worker, and one for the deadline, which nobody needs any more.
    const left = () =>
      rows('SELECT workflow_uuid FROM @.workflow_input WHERE workflow_uuid LIKE $1', `${run.conversationId}%`)
    for (let tries = 0; tries < 50 && (await left()).length > 0; tries++) await sleep(100)
    expect(await left()).toEqual([])
  })

  test('says in one sentence that the tables of another version of DBOS do not fit', async () => {
    await closeAll()
    await rows('ALTER FUNCTION @.enqueue_workflow RENAME TO enqueue_workflow_of_later')
    const store = storeIn(freshSchema())
    await expect(store.roots({ limit: 1 })).rejects.toThrow(/^The schema wakes_dbos has no function enqueue_workflow/)
    await store.close()
    await rows('ALTER FUNCTION @.enqueue_workflow_of_later RENAME TO enqueue_workflow')
  })

  test('refuses names and versions that it cannot use', () => {
    expect(() => dbos({ queue: "it's" })).toThrow(/dbos\(\{ queue \}\)/)
    expect(() => storeIn('x', { schema: 'a"b' })).toThrow(/dbos\(\{ schema \}\)/)
    expect(() => postgresStore({ url: server.url(), dispatch: 'push' as never })).toThrow(/dispatch/)
    expect(() => requireVersion('5.4.0')).toThrow(
      /^Wakes through DBOS need version 5\.3 .* 5\.4\.0 is installed: npm install/,
    )
    requireVersion('5.3.7')
  })

  test(`${JOBS} runs, two workers, one killed: all end, nothing is doubled`, async () => {
    const url = `${server.url()}?schema=${shared}`
    const folder = tempFolder()
    const worker = () => new CommandWorker({ url, folder, queue: 'legate' })
    const workers = [worker(), worker()]
    await Promise.all(workers.map(({ ready }) => ready))
    const submitter = runtimeOn(postgresStore({ url, dispatch: dbos() }), { engine: { workers: 0, sweepMs: NEVER_MS } })
    const host = agent(plain('host'))
    const runs = Array.from({ length: JOBS }, (_, job) => submitter.run(host, 'go', { key: `job-${job}` }))
    await Promise.race(runs.map(({ result }) => result))
    workers[0]?.kill()
    const statuses = await Promise.all(runs.map(async ({ result }) => (await result).status))
    expect(new Set(statuses)).toEqual(new Set(['completed']))
    expect(await workers[1]?.end()).toBe(0)
    const found = await checkRuns(url, path.join(folder, 'effects'))
    figure(
      'D-1',
      `${JOBS} runs by two workers that DBOS wakes, one of them killed: ${found.events} events, ${found.uncertain} uncertain`,
    )
    expect(found.wrong).toEqual([])
    expect(found.trees).toBe(JOBS)
  })

  /** DBOS is one per process, and takes one queue. */
  async function closeAll(): Promise<void> {
    await Promise.all(opened.splice(0).map((close) => close()))
  }
})

/** Everything that is wrong with the rows, and with the effects that the workers wrote down. */
async function checkRuns(url: string, file: string) {
  const keys = readFileSync(file, 'utf8').trim().split('\n')
  const effects = keys.map((key) => ({ group: '', key, name: 'pay', pid: 0 }))
  return withRows(url, async ({ trees, wrongStore }) => {
    const nodes = trees.flatMap((tree) => [...tree.nodes.values()])
    return {
      trees: trees.length,
      events: trees.reduce((sum, { events }) => sum + events.length, 0),
      uncertain: nodes.filter(({ state }) => state === 'uncertain').length,
      wrong: [
        ...(await wrongStore()),
        ...trees.flatMap(brokenGraph),
        ...trees.flatMap(unsettled),
        ...wrongEffects(effects, trees),
      ],
    }
  })
}

function plain(name: string) {
  return { name, instructions: 'Work.', model: scriptedModel(() => 'done') }
}

const echo = () => agent(plain('echo'))

/** The id of a run once its rows are stored. */
async function recorded(run: Run): Promise<Run> {
  for await (const _ of run) break
  return run
}

function laterAt(time: number, go: () => void): () => void {
  const timer = setTimeout(go, Math.max(0, time - Date.now()))
  return () => clearTimeout(timer)
}
