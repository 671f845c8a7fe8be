import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createRuntime, type Runtime } from '../../src/core/runtime/runtime.ts'
import { agent } from '../../src/core/runtime/standalone.ts'
import { tool } from '../../src/index.ts'
import { readUsage, tidy } from '../../src/stores/postgres/changes.ts'
import { Database } from '../../src/stores/postgres/connection/database.ts'
import { postgresStore } from '../../src/stores/postgres/index.ts'
import { outcomeOf, placeIn, treeCommit, turnRow, warningEvent } from '../../src/testing/conformance/store-rows.ts'
import { scriptedModel } from '../../src/testing/stand-ins/scripted-model.ts'
import { figure } from '../crash/support/figure.ts'
import { isFull } from '../crash/support/full.ts'
import { noPostgres, type PostgresServer, usePostgres } from '../support/postgres.ts'
import { leaveUnaudited } from '../support/unaudited.ts'
import { COUNTING, StatementCounter, sumOf } from './support/statements.ts'

const FEW = 100
/** How many workers are idle, and for how long they are watched; how many runs are handed over to them. */
const WORKERS = 6
const SECONDS = 5
const RUNS = 9
const MANY = isFull ? 5_000 : 1_000
/** How many trees are pruned. */
const GONE = isFull ? 500 : 50
/** So many are made at the same time. */
const LOT = 250
/** A small table is read as a whole. */
const SMALL = 200

describe.skipIf(noPostgres !== undefined)('on PostgreSQL', async () => {
  const server =
    noPostgres === undefined ? await usePostgres({ settings: COUNTING }) : (undefined as unknown as PostgresServer)

  test('a child of a wide tree costs the server what a child of a small tree costs', async () => {
    const counter = await StatementCounter.open(server.url())
    const store = postgresStore(server.url())
    leaveUnaudited(store)
    const runtime = createRuntime({ store })
    await children(runtime, FEW)
    await counter.expectSmallTrees()
    const perChild = async (count: number) => {
      const found = await counter.during(() => children(runtime, count))
      return { all: sumOf(found).blocks / count, commits: sumOf(found, /commit_1/).blocks / count }
    }
    const [few, many] = [await perChild(FEW), await perChild(MANY)]
    const told = [few, many].map(({ all, commits }) => `${Math.round(all)}, by commits ${Math.round(commits)}`)
    figure('growth on PostgreSQL', `blocks read for each of ${FEW} children ${told[0]}; of ${MANY} ${told[1]}`)
    expect(many.commits / few.commits).toBeLessThan(1.3)
    // Of a large tree, the process keeps a part, and reads the rows of a child that ends.
    expect(many.all / few.all).toBeLessThan(1.3)
    await runtime.close()
    await store.close()
    await counter.close()
  })

  test('to prune costs what is deleted, however much stays, before the server knows its tables and after', async () => {
    const counter = await StatementCounter.open(server.url())
    const [few, many] = [4 * GONE, (isFull ? 200 : 80) * GONE]
    const [small, large] = [await pruneBeside(few, counter), await pruneBeside(many, counter)]
    const told = 'statements, rows, blocks to prune, blocks to find nothing; the same after VACUUM'
    figure('growth on PostgreSQL', `${told}: ${GONE} beside ${few} trees ${small}, beside ${many} ${large}`)
    for (const [at, cost] of large.entries()) expect(cost).toBeLessThanOrEqual(2 * (small[at] ?? 0))
    await counter.close()
  })

  /** What it costs to prune some trees, twice, where so many stay. */
  async function pruneBeside(stay: number, counter: StatementCounter): Promise<readonly number[]> {
    const schema = `stay${stay}`
    const store = postgresStore({ url: server.url(), schema, durability: 'process' })
    leaveUnaudited(store)
    for (let at = 0; at < stay + 2 * GONE; at += LOT) {
      const count = Math.min(LOT, stay + 2 * GONE - at)
      await Promise.all(
        Array.from({ length: count }, (_, of) => store.commit(endedTree(`${schema}-${at + of}`, at + of))),
      )
    }
    const runtime = createRuntime({ store })
    await runtime.prune({ keep: stay + 2 * GONE })
    const before = await pruneOnce(runtime, stay + GONE, counter)
    const admin = new pg.Client({ connectionString: server.url() })
    await admin.connect()
    for (const table of ['trees', 'rows', 'commits']) await admin.query(`VACUUM (ANALYZE) ${schema}.${table}`)
    await admin.end()
    const after = await pruneOnce(runtime, stay, counter)
    await runtime.close()
    await store.close()
    return [...before, ...after]
  }

  test('a tree that nobody has written to since an older version made it is pruned by its last event', async () => {
    const store = postgresStore({ url: server.url(), schema: 'undated' })
    leaveUnaudited(store)
    for (let at = 0; at < 4; at++) await store.commit(endedTree(`tree-${at}`, 10 - at))
    const client = new pg.Client({ connectionString: server.url() })
    await client.connect()
    await client.query("UPDATE undated.trees SET active = NULL WHERE root_id <> '\\xff747265652d31'")
    const runtime = createRuntime({ store })
    expect((await runtime.prune({ keep: 2 })).map(({ rootId }) => rootId)).toEqual(['tree-3', 'tree-2'])
    // What is open stays, and is not counted.
    await store.commit(treeCommit('open'))
    expect((await runtime.prune({ keep: 0, dryRun: true })).map(({ rootId }) => rootId)).toEqual(['tree-1', 'tree-0'])
    await runtime.close()
    await store.close()
    await client.end()
  })

  test('a page of fifty runs, of approvals or of the inbox takes a handful of statements', async () => {
    const counter = await StatementCounter.open(server.url())
    const url = `${server.url()}?schema=lists`
    const clerk = agent({
      name: 'clerk',
      instructions: '',
      grant: { use: ['tool:pay'], ask: ['tool:pay'] },
      tools: { pay: tool({ description: 'Pay', input: z.object({}), effect: 'effectful', execute: () => 'paid' }) },
      model: scriptedModel(() => ({ calls: [{ name: 'pay', input: {} }] })),
    })
    const [near, far] = [postgresStore(url), postgresStore(url)]
    for (const store of [near, far]) leaveUnaudited(store)
    const asks = createRuntime({ store: near, agents: [clerk] })
    for (let at = 0; at < 60; at++) asks.run(clerk, `job ${at}`).result.catch(() => undefined)
    while ((await asks.approvals()).length < 60) await sleep(50)
    await asks.close()
    await near.close()
    const reads = createRuntime({ store: far })
    await reads.usageByDay({ from: '2026-01-01', to: '2026-01-01' })
    const lists = {
      runs: () => reads.runs({ limit: 50 }),
      approvals: () => reads.approvals({ limit: 50 }),
      inbox: () => reads.inbox({ limit: 50 }),
    }
    for (const [name, list] of Object.entries(lists)) {
      const found = await counter.during(async () => expect(await list()).toHaveLength(50))
      const { calls } = sumOf(found)
      figure('growth on PostgreSQL', `statements for a page of 50 of ${name}: ${calls}`)
      expect(calls, name).toBeLessThanOrEqual(5)
    }
    await reads.close()
    await far.close()
    await counter.close()
  })

  test('an idle worker asks little, however many there are, and a run that is handed over wakes few of them', async () => {
    const counter = await StatementCounter.open(server.url())
    const url = `${server.url()}?schema=idle`
    const clerk = agent({ name: 'clerk', instructions: '', model: scriptedModel(() => 'done') })
    const stores = Array.from({ length: WORKERS + 1 }, () => postgresStore(url))
    const [starts, ...works] = stores.map((store, at) => {
      leaveUnaudited(store)
      return createRuntime({ store, agents: [clerk], engine: at === 0 ? { workers: 0 } : {} })
    })
    for (const work of works) await work.resume()
    const run = async () => (await starts?.run(clerk, 'go').result)?.status
    // All of them have heard somebody, and know one another.
    expect(await run()).toBe('completed')
    await sleep(2_500)
    const idle = await counter.during(() => sleep(SECONDS * 1_000))
    const each = sumOf(idle).calls / (WORKERS + 1) / SECONDS
    figure('growth on PostgreSQL', `statements a second of each of ${WORKERS} idle workers: ${each.toFixed(1)}`)
    expect(each).toBeLessThanOrEqual(3)

    // A sweep that happens to come at that moment sees the run, too: so the median counts.
    const looks: number[] = []
    for (let at = 0; at < RUNS; at++) {
      const handed = await counter.during(async () => expect(await run()).toBe('completed'))
      looks.push(sumOf(handed, /owners AS/).calls)
    }
    const usual = looks.toSorted((a, b) => a - b)[Math.floor(RUNS / 2)]
    figure('growth on PostgreSQL', `looks for work for a run that is handed over to ${WORKERS} workers: ${looks}`)
    expect(usual).toBeLessThanOrEqual(2)
    for (const runtime of [starts, ...works]) await runtime?.close()
    for (const store of stores) await store.close()
    await counter.close()
  })

  test('usage is a few rows, however many runs were counted', async () => {
    const place = { pool: undefined, schema: 'sums', readOnly: false, busyMs: 5_000, connections: 4 }
    const database = new Database({ ...place, url: server.url() })
    const count = async () => Number((await database.query('SELECT count(*) FROM @.spent'))[0]?.[0])
    const usage = () => readUsage(database, { from: '2026-01-01', to: '2026-12-31' })
    const runs = `INSERT INTO @.spent SELECT 'o' || n % 2, '2026-05-0' || n % 3 + 1, 'a', 'm', 1, 2, n, 4, 5, 6
      FROM generate_series(1, 25000) AS n`
    await database.query(runs)
    const before = await usage()
    await tidy(database)
    expect(await usage()).toEqual(before)
    expect(await count()).toBe(6)
    await database.query(runs)
    await Promise.all([tidy(database), tidy(database)])
    expect(await count()).toBe(6)
    const sum = (days: Awaited<ReturnType<typeof usage>>) => days.reduce((all, day) => all + day.usage.inputTokens, 0)
    expect(sum(await usage())).toBe(2 * sum(before))
    await database.close()
  })
})

async function pruneOnce(runtime: Runtime, keep: number, counter: StatementCounter): Promise<readonly number[]> {
  const found = await counter.during(async () => expect(await runtime.prune({ keep })).toHaveLength(GONE))
  const nothing = await counter.during(async () => {
    expect(await runtime.prune({ olderThanMs: Date.now() })).toEqual([])
  })
  const { calls, rows, blocks } = sumOf(found)
  return [calls, rows, blocks, sumOf(nothing).blocks + SMALL]
}

/** A tree that was over at a moment. */
function endedTree(rootId: string, at: number) {
  const place = placeIn(rootId)
  const ended = { state: 'ended', endedAt: at, outcome: outcomeOf(place.turnId, rootId) } as const
  const event = { ...warningEvent(place, 'end'), at }
  return { ...treeCommit(rootId, { turns: [turnRow(place, ended)], nodes: [], events: [event] }), at }
}

/** One answer of a host delegates so many times. */
async function children(runtime: Runtime, count: number): Promise<void> {
  const sub = agent({ name: 'sub', instructions: '', model: scriptedModel(() => 'found') })
  const calls = Array.from({ length: count }, () => ({ name: 'sub', input: { message: 'look' } }))
  const host = agent({
    name: `host of ${count}`,
    instructions: '',
    budget: { children: count, concurrency: count, toolCalls: count },
    subagents: { sub: { agent: sub, briefing: 'none' } },
    model: scriptedModel(({ messages }) => (messages.at(-1)?.role === 'tool' ? 'done' : { calls })),
  })
  const { status } = await runtime.run(host, 'go').result
  expect(status).toBe('completed')
}
