import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Run } from '../../src/core/conversation/run.ts'
import { createRuntime, type Runtime } from '../../src/core/runtime/runtime.ts'
import { agent } from '../../src/core/runtime/standalone.ts'
import { tool } from '../../src/core/tool/tool.ts'
import type { PostgresPool } from '../../src/stores/postgres/connection/driver.ts'
import { postgresStore } from '../../src/stores/postgres/index.ts'
import { scriptedModel } from '../../src/testing/stand-ins/scripted-model.ts'
import { noPostgres, usePostgres } from '../support/postgres.ts'
import { leaveUnaudited } from '../support/unaudited.ts'

const echo = agent({ name: 'echo', instructions: 'Answer.', model: scriptedModel(() => 'done') })

describe.skipIf(noPostgres !== undefined)('runs that processes on one PostgreSQL start and stop', async () => {
  const url = noPostgres === undefined ? (await usePostgres()).url() : ''
  let schemas = 0
  const schema = () => `s${++schemas}`

  interface Opening {
    readonly sent?: string[]
    /** Called with each statement before it is sent. */
    readonly before?: (statement: string) => Promise<unknown> | undefined
    readonly workers?: number
    readonly sweepMs?: number
  }

  function open(name: string, { sent = [], before, workers = 8, sweepMs = 60_000 }: Opening = {}): Runtime {
    const noted = (statement: string) => {
      sent.push(statement)
      return before?.(statement)
    }
    const pool = new pg.Pool({ connectionString: url, max: 6 })
    const store = postgresStore({ pool: listening(pool as unknown as PostgresPool, noted), schema: name })
    const runtime = createRuntime({
      store,
      agents: [echo, waiting.agent],
      engine: { sweepMs, workers },
      logger: SILENT,
    })
    onTestFinished(async () => {
      await runtime.close()
      await pool.end()
    })
    return runtime
  }

  test('two processes that start one key at the same moment make one run', async () => {
    const name = schema()
    const [a, b] = [open(name), open(name)]

    for (let round = 0; round < 10; round++) {
      const runs = [a, b, a].map((runtime) => runtime.run(echo, 'hi', { key: `k${round}` }))
      const outcomes = await Promise.all(runs.map(({ result }) => result))

      expect(outcomes.map(({ status }) => status)).toEqual(['completed', 'completed', 'completed'])
      expect(new Set(runs.map(({ id }) => id)).size).toBe(1)
      expect(new Set(runs.map(({ conversationId }) => conversationId)).size).toBe(1)
    }
    expect(await a.store.roots({ limit: 100 })).toHaveLength(10)
  })

  test('a start under a new key asks nothing: it writes', async () => {
    const sent: string[] = []
    const runtime = open(schema(), { sent })
    await runtime.run(echo, 'hi').result
    sent.length = 0

    await runtime.run(echo, 'hi', { key: 'once' }).result

    expect(isCommit(sent[0] ?? '')).toBe(true)
  })

  test('the key of a run that another process deleted starts no second one, and nobody can cancel that run', async () => {
    const name = schema()
    const [a, b] = [open(name), open(name)]
    const run = a.run(echo, 'hi', { key: 'k' })
    await run.result
    await b.forget(run.conversationId)

    // One that knew the run, one that deleted it, and one that knows nothing of it.
    for (const runtime of [a, b, open(name)]) {
      await expect(runtime.run(echo, 'hi', { key: 'k' }).result).rejects.toMatchObject({ code: 'deleted' })
    }
    await expect(a.cancel(run.id)).rejects.toMatchObject({ code: 'not_found' })
  })

  test('a key that is started while another process deletes its run starts no second one', async () => {
    const name = schema()
    const [a, run] = await startedIn(name)
    const deletion = gate()
    const reached = gate()
    const before = (statement: string) => {
      if (statement !== 'COMMIT') return undefined
      reached.open()
      return deletion.passed
    }
    const forgotten = open(name, { before }).forget(run.conversationId)
    await reached.passed
    const again = open(name).run(echo, 'hi', { key: 'k' }).result
    again.catch(quiet)
    await sleep(300)
    deletion.open()

    await forgotten
    await expect(again).rejects.toMatchObject({ code: 'deleted' })
    expect(await a.store.roots({ limit: 10 })).toEqual([])
  })

  test('a tree that somebody has locked for long holds up no other', async () => {
    const name = schema()
    const runtime = open(name)
    const ids = (await Promise.all(Array.from({ length: 12 }, () => runtime.run(echo, 'hi').result))).map(
      (outcome) => outcome.conversationId,
    )
    const admin = new pg.Client({ connectionString: url })
    await admin.connect()
    await admin.query('BEGIN')
    await admin.query(`SELECT 1 FROM ${name}.trees WHERE ${name}.id_text(root_id) = $1 FOR UPDATE`, [ids[2]])
    const began = performance.now()
    // All of them are sent at the same moment.
    const results = ids.map((conversationId) => runtime.run(echo, 'more', { conversationId }).result)
    const others = await Promise.all(results.filter((_, at) => at !== 2))
    const tookMs = performance.now() - began
    await admin.query('ROLLBACK')
    await admin.end()

    expect(new Set(others.map(({ status }) => status))).toEqual(new Set(['completed']))
    // They went with it once, and gave up waiting for its lock.
    expect(tookMs).toBeLessThan(7_000)
    expect((await results[2])?.status).toBe('completed')
  })

  test('a run whose start is stored only after a worker became free is taken up at once', async () => {
    const model = gate()
    const slow = agent({
      name: 'slow',
      instructions: 'Answer.',
      model: scriptedModel(() => model.passed.then(() => 'done')),
    })
    const start = gate()
    let isHeld = false
    const before = (statement: string) => {
      return isHeld && isCommit(statement) ? start.passed : undefined
    }
    const runtime = open(schema(), { before, workers: 1 })
    const first = runtime.run(slow, 'hi')
    await firstEvent(first as Run)
    isHeld = true
    const second = runtime.run(echo, 'hi')
    await sleep(50)
    isHeld = false
    model.open()
    await first.result
    // By now the engine has looked for work, and found nothing.
    await sleep(200)
    start.open()

    expect((await second.result).status).toBe('completed')
  }, 15_000)

  async function startedIn(name: string): Promise<readonly [Runtime, Run]> {
    const runtime = open(name)
    const run = runtime.run(echo, 'hi', { key: 'k' })
    await run.result
    return [runtime, run as Run]
  }

  test('the conversation of a key may be there already: then the run goes on with it', async () => {
    const name = schema()
    const first = open(name).run(echo, 'hi', { key: 'k' })
    await first.result
    const elsewhere = open(schema())
    await elsewhere.run(echo, 'hi', { conversationId: first.conversationId, createConversation: true }).result

    const run = elsewhere.run(echo, 'hi', { key: 'k' })

    expect((await run.result).status).toBe('completed')
    expect(run.conversationId).toBe(first.conversationId)
    expect(await elsewhere.store.roots({ limit: 10 })).toHaveLength(1)
  })

  test('a tree that somebody changed holds up no other', async () => {
    const name = schema()
    const waits = open(name, { workers: 0 })
    const [bad, good] = ['bad', 'good'].map((text) => waits.run(echo, text))
    await Promise.all([bad, good].map((run) => firstEvent(run as Run)))
    const admin = new pg.Client({ connectionString: url })
    await admin.connect()
    await admin.query(
      `UPDATE ${name}.rows r SET data = replace(data, 'bad', 'BAD') FROM ${name}.trees h WHERE h.t = r.t AND ${name}.id_text(h.root_id) = $1`,
      [bad?.conversationId],
    )
    await admin.end()

    const works = open(name, { sweepMs: 100 })
    bad?.result.catch(() => undefined)
    await works.resume()

    expect((await good?.result)?.status).toBe('completed')
    leaveUnaudited(works.store)
    leaveUnaudited(waits.store)
  })

  test('a cancel is the first thing that is sent, and stops the node of another process that sweeps once a minute', async () => {
    const name = schema()
    const sent: string[] = []
    const [a, b] = [open(name, { sent, workers: 0 }), open(name)]
    await b.run(echo, 'hi').result
    const run = a.run(waiting.agent, 'hi')
    await waiting.begun
    sent.length = 0
    const began = performance.now()

    await a.cancel(run.id)

    expect(isCommit(sent[0] ?? '')).toBe(true)
    expect((await run.result).status).toBe('cancelled')
    expect(performance.now() - began).toBeLessThan(10_000)
  })
})

const quiet = () => undefined
const SILENT = { debug: quiet, info: quiet, warn: quiet, error: quiet }

/** Whoever waits for it goes on once it is open. */
function gate(): { readonly passed: Promise<void>; readonly open: () => void } {
  let open: () => void = quiet
  const passed = new Promise<void>((resolve) => {
    open = resolve
  })
  return { passed, open }
}

async function firstEvent(run: Run): Promise<void> {
  for await (const _ of run) return
}

function isCommit(statement: string): boolean {
  return statement.includes('.commit_1(')
}

/** Tells of each statement before it is sent. */
function listening(pool: PostgresPool, tell: (statement: string) => Promise<unknown> | undefined): PostgresPool {
  return {
    connect: async () => {
      const client = await pool.connect()
      return {
        query: async (asked) => {
          await tell((asked as { text: string }).text)
          return client.query(asked)
        },
        on: (event, heard) => client.on(event, heard),
        off: (event, heard) => client.off(event, heard),
        release: (isBroken) => client.release(isBroken),
      }
    },
    end: () => pool.end(),
    on: (event, heard) => pool.on(event, heard),
  }
}

/** An agent whose tool runs until it is stopped. */
const waiting = (() => {
  let tell: () => void = () => undefined
  const begun = new Promise<void>((resolve) => {
    tell = resolve
  })
  const wait = tool({
    description: 'Waits.',
    input: { type: 'object' },
    effect: 'pure',
    execute: (_, { signal }) => {
      tell()
      return new Promise<string>((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason))
      })
    },
  })
  const model = scriptedModel(() => ({ calls: [{ name: 'wait', input: {} }] }))
  return { begun, agent: agent({ name: 'waiting', instructions: 'Wait.', tools: { wait }, model }) }
})()
