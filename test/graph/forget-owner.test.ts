import { agent, type Runtime } from 'legate'
import { jsonSession } from 'legate/store/json'
import { fakeClock, scriptedModel } from 'legate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startProcess } from '../support/process.ts'
import { openRuntime } from '../support/reading.ts'
import { lasting, type Rows, stores } from '../support/stores.ts'
import { tempFolder } from '../support/temp-folder.ts'

/** All stores, and rows that come later. */
const all = [...lasting, ...stores.filter(([name]) => name.includes('later'))]

const clerk = agent({ name: 'clerk', instructions: 'Sell.', model: scriptedModel(() => 'sold') })
const endless = agent({
  name: 'endless',
  instructions: 'Wait.',
  model: scriptedModel(() => new Promise<string>(() => undefined)),
})
const host = agent({
  name: 'host',
  instructions: 'Delegate.',
  subagents: [endless],
  model: scriptedModel(() => ({ calls: [{ name: 'call_endless', input: { message: 'Go.' } }] })),
})

function open(rows: Rows): Runtime {
  const { runtime } = startProcess(rows)
  onTestFinished(() => runtime.close())
  return runtime
}

function rowsOf(create: () => Rows): Rows {
  const rows = create()
  onTestFinished(() => rows.drop())
  return rows
}

describe.each(all)('forgetting an owner, in a store in %s', (_, create) => {
  test('cancels what is open, deletes all trees of the owner, and touches no other', async () => {
    const runtime = open(rowsOf(create))
    for (let at = 0; at < 3; at++) await runtime.run(clerk, 'x', { owner: 'ann' }).result
    const others = [await runtime.run(clerk, 'x', { owner: 'bob' }).result, await runtime.run(clerk, 'x').result]
    const running = [runtime.run(host, 'x', { owner: 'ann' }), runtime.run(endless, 'x', { owner: 'ann' })]
    const kept = runtime.run(endless, 'x', { owner: 'bob' })
    while ((await runtime.store.openTurns(10)).length < 4) await new Promise((resolve) => setTimeout(resolve, 5))

    const done = await runtime.forgetOwner('ann', 'asked for')

    expect(done).toMatchObject({ owner: 'ann', trees: 5 })
    expect(done.cancelled).toBeGreaterThanOrEqual(2)
    expect(await runtime.runs({ owner: 'ann' })).toEqual([])
    const ids = (await runtime.conversations()).map(({ id }) => id)
    expect(new Set(ids)).toEqual(new Set([...others.map(({ conversationId }) => conversationId), kept.conversationId]))
    for (const run of running) await run.result.catch(() => undefined)
    await expect(runtime.attach(running[0]?.id ?? '')).rejects.toThrow(/was deleted at .*forgotten/)
    expect((await runtime.audit()).findings).toEqual([])
    expect(await runtime.forgetOwner('ann')).toEqual({ owner: 'ann', trees: 0, cancelled: 0, files: 0 })
    await kept.cancel()
    await kept.result
  })

  test('erases usage, changes and rows of the registry, and old keys start nothing again', async () => {
    const rows = rowsOf(create)
    const runtime = open(rows)
    const { store } = runtime
    for (const owner of ['ann', 'bob']) {
      await runtime.run(clerk, 'x', { owner, key: 'once' }).result
      await store.registry.put({ kind: 'token', id: owner, owner, version: 1, at: 1, data: {} })
    }

    await runtime.forgetOwner('ann', 'asked for')

    expect((await store.changes(null, 99)).changes.map(({ owner }) => owner)).toEqual(['bob', 'bob'])
    const days = await store.usage({ from: '2020-01-01', to: '2999-12-31' })
    expect(new Set(days.map(({ owner }) => owner))).toEqual(new Set(['bob']))
    expect((await store.registry.list('token', { limit: 9 })).map(({ id }) => id)).toEqual(['bob'])
    await expect(runtime.run(clerk, 'x', { owner: 'ann', key: 'once' }).result).rejects.toMatchObject({
      code: 'deleted',
    })
    expect(JSON.stringify(await store.archive?.tombstones())).not.toMatch(/ann|clerk|asked for/)
    expect(await runtime.runs({ owner: 'ann' })).toEqual([])
  })

  test('pruning one owner keeps what others have', async () => {
    const runtime = open(rowsOf(create))
    for (const owner of ['ann', 'bob', 'ann', 'bob', 'ann']) await runtime.run(clerk, 'x', { owner }).result
    await runtime.run(clerk, 'x').result

    expect(await runtime.prune({ keep: 1, owner: 'ann', dryRun: true })).toHaveLength(2)
    const stones = await runtime.prune({ keep: 1, owner: 'ann' })

    expect(stones.map(({ owner }) => owner)).toEqual(['ann', 'ann'])
    expect((await runtime.conversations()).map(({ owner }) => owner)).toEqual([null, 'ann', 'bob', 'bob'])
    expect(await runtime.prune({ olderThanMs: 0, owner: 'bob' })).toHaveLength(2)
    expect((await runtime.conversations()).map(({ owner }) => owner)).toEqual([null, 'ann'])
  })
})

test('retention differs by owner', async () => {
  const clock = fakeClock(1_000)
  const runtime = openRuntime({ clock })
  for (const owner of ['ann', 'bob']) await runtime.run(clerk, 'x', { owner }).result
  await clock.advance(86_400_000)
  await runtime.run(clerk, 'x', { owner: 'ann' }).result

  expect(await runtime.prune({ olderThanMs: 86_400_000, owner: 'ann' })).toHaveLength(1)
  expect(await runtime.prune({ olderThanMs: 2 * 86_400_000, owner: 'bob' })).toHaveLength(0)
  expect(await runtime.runs()).toHaveLength(2)
})

describe.each(stores)('an owner whose runs another process runs, in a store in %s', (_, create) => {
  test('is forgotten from any process', async () => {
    const rows = rowsOf(create)
    const worker = open(rows)
    const run = worker.run(host, 'x', { owner: 'ann' })
    while ((await worker.store.openTurns(10)).length < 2) await new Promise((resolve) => setTimeout(resolve, 5))
    const { runtime: admin } = startProcess(rows, { engine: { workers: 0 } })
    onTestFinished(() => admin.close())

    expect(await admin.forgetOwner('ann')).toMatchObject({ trees: 1 })
    await run.result.catch(() => undefined)
    expect(await worker.runs({ owner: 'ann' })).toEqual([])
  })
})

test('copies of sessions go with the trees of the owner', async () => {
  const sessions = jsonSession(tempFolder())
  const helper = agent({ name: 'helper', instructions: 'Help.', model: scriptedModel(() => 'helped') })
  const lead = agent({
    name: 'lead',
    instructions: 'Lead.',
    subagents: { helper: { agent: helper, session: sessions } },
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === 'user' ? { calls: [{ name: 'helper', input: { message: 'Help.' } }] } : 'done',
    ),
  })
  const runtime = openRuntime()
  await runtime.run(lead, 'x', { owner: 'ann' }).result
  await runtime.run(lead, 'x', { owner: 'bob' }).result
  await runtime.idle()
  expect(sessions.list()).toHaveLength(2)

  await runtime.forgetOwner('ann')

  expect(sessions.list()).toHaveLength(1)
})

test.each(['', 5 as never])('no owner is no owner: %j', async (owner) => {
  await expect(openRuntime().forgetOwner(owner)).rejects.toMatchObject({ code: 'invalid_input' })
})
