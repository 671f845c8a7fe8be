import path from 'node:path'
import { agent, createRuntime, type Runtime } from 'legate'
import { sqliteStore } from 'legate/store/sqlite'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { emptyCommit } from '../../src/core/graph/commit.ts'
import { connectTo } from '../../src/stores/sqlite/driver.ts'
import { commitOf, conversationRow, nodeRow, placeIn, turnRow } from '../../src/testing/conformance/store-rows.ts'
import { lasting } from '../support/stores.ts'
import { tempFolder } from '../support/temp-folder.ts'

const today = () => new Date().toISOString().slice(0, 10)
const week = () => ({ from: '2020-01-01', to: '2999-12-31' })

function lead() {
  const usage = { inputTokens: 10, outputTokens: 5, cacheReadTokens: 0, cacheWriteTokens: 0 }
  const search = agent({
    name: 'search',
    description: 'Searches.',
    instructions: 'Search.',
    model: scriptedModel([
      { text: 'Found.', usage },
      { text: 'Found.', usage },
    ]),
  })
  return agent({
    name: 'lead',
    instructions: 'Lead.',
    model: scriptedModel([
      { calls: [{ name: 'search', input: { message: 'x' } }], usage },
      { text: 'Here.', usage },
      { calls: [{ name: 'search', input: { message: 'x' } }], usage },
      { text: 'Here.', usage },
    ]),
    subagents: { search },
  })
}

async function spentBy(runtime: Runtime, owner: string) {
  const days = await runtime.store.usage({ owner, ...week() })
  return {
    runs: days.reduce((sum, { runs }) => sum + runs, 0),
    calls: days.reduce((sum, { modelCalls }) => sum + modelCalls, 0),
    tokens: days.reduce((sum, { usage }) => sum + usage.inputTokens + usage.outputTokens, 0),
    agents: [...new Set(days.map((one) => one.agent))].toSorted(),
    days: [...new Set(days.map(({ day }) => day))],
  }
}

describe.each(lasting)('in a %s store', (_, create) => {
  test('an owner sees what his runs used, which of his trees went on, and no tree of another; also after a restart', async () => {
    const rows = create()
    const store = rows.open()
    const host = lead()
    const runtime = createRuntime({ store, agents: [host] })
    const before = today()
    const run = runtime.run(host, 'One.', { owner: 'ann' })
    const outcome = await run.result
    expect(outcome.text).toBe('Here.')
    await runtime.run(host, 'Two.').result
    const spent = await spentBy(runtime, 'ann')
    expect(spent).toMatchObject({ runs: 1, calls: 3, tokens: 45, agents: ['lead', 'search'] })
    expect(outcome.usage.inputTokens + outcome.usage.outputTokens).toBe(45)
    expect([before, today()]).toContain(spent.days[0])
    expect((await runtime.store.usage(week())).every(({ owner }) => owner === 'ann')).toBe(true)
    await runtime.close()

    const again = createRuntime({ store: rows.open(), agents: [host] })
    expect(await spentBy(again, 'ann')).toEqual(spent)
    const { changes } = await again.store.changes(null, 99)
    expect(changes.filter(({ owner }) => owner === 'ann').map(({ types }) => types)).toEqual([
      ['run-start'],
      ['run-end'],
    ])
    const [mine, ...others] = await again.store.roots({ owner: 'ann', limit: 9 })
    expect([mine?.owner, others]).toEqual(['ann', []])
    expect(await again.store.roots({ owner: 'ann', state: 'completed', agent: 'lead', limit: 9 })).toHaveLength(1)
    await again.forget(mine?.id ?? '')
    expect(await spentBy(again, 'ann')).toEqual(spent)
    await again.store.archive?.forgetOwner('ann')
    expect(await again.store.usage(week())).toEqual([])
    expect((await again.store.changes(null, 99)).changes.some(({ owner }) => owner === 'ann')).toBe(false)
    await again.close()
    await rows.drop()
  })
})

const anyNode = { now: 5_000, limit: 4, kinds: ['task'], agents: ['editor'] }

/** A file in which `ann` has many runnable nodes, and `bo` and a tree without an owner one each. */
async function flooded(count: number) {
  const file = path.join(tempFolder(), `${count}.db`)
  const store = sqliteStore(file)
  const ready = (rootId: string, owner: string | null, nodes: number) => {
    const place = placeIn(rootId)
    const rows = Array.from({ length: nodes }, (_, n) => nodeRow(place, `${rootId}-${n}`, { ordinal: n, createdAt: n }))
    const conversations = [conversationRow(rootId, { owner })]
    return commitOf(rootId, { conversations, turns: [turnRow(place)], nodes: rows })
  }
  await store.commit(ready('a', 'ann', count))
  await store.commit(ready('b', 'bo', 1))
  await store.commit(ready('x', null, 1))
  return { file, store }
}

test('a SQLite file whose runnable nodes wait in one queue for all owners is taken over', async () => {
  const { file, store } = await flooded(3)
  await store.close()
  const db = connectTo(file)
  db.exec("UPDATE rows SET queue = 'r' WHERE queue > 'r' AND queue < 's'; PRAGMA user_version = 10")
  db.close()

  const again = sqliteStore(file)
  expect(again.runnable(anyNode).map(({ id }) => id)).toEqual(['x-0', 'a-0', 'b-0', 'a-1'])
  expect((await again.archive?.verify())?.findings).toEqual([])
  await again.close()
})

test('an audit finds a runnable node that waits in the queue of another owner', async () => {
  const { file, store } = await flooded(3)
  await store.close()
  for (const queue of ["'r'", "'rbo'"]) {
    const db = connectTo(file)
    db.exec(`UPDATE rows SET queue = ${queue} WHERE data ->> '$.node' = 'a-1'`)
    db.close()
    const again = sqliteStore(file)
    const report = await again.archive?.verify()
    expect(report?.findings.map(({ type, id }) => [type, id])).toEqual([['altered_index', 'a-1']])
    await again.close()
  }
})

test('to find whose turn it is costs no more when one owner has 20,000 runnable nodes', async () => {
  const times: number[] = []
  for (const count of [20, 20_000]) {
    const { store } = await flooded(count)
    const ask = () => {
      const started = performance.now()
      expect(store.runnable({ ...anyNode, limit: 3, after: 'bo' }).map(({ id }) => id)).toEqual(['x-0', 'a-0', 'b-0'])
      return performance.now() - started
    }
    ask()
    times.push(Math.min(...Array.from({ length: 30 }, ask)))
    await store.close()
  }
  expect(times[1]).toBeLessThan(3 * (times[0] ?? 0) + 0.5)
})

test('a SQLite store of 1,000,000 nodes and 1,000 owners lists the trees of one in the time that a small one needs', async ({
  skip,
}) => {
  skip(process.env['LEGATE_FULL'] !== '1', 'it writes 1,000,000 nodes: npm run test:full')
  const times: number[] = []
  for (const perTree of [10, 1_000]) {
    const store = sqliteStore(path.join(tempFolder(), `${perTree}.db`))
    for (let n = 0; n < 1_000; n++) await store.commit(treeWith(`root-${n}`, `owner-${n}`, perTree))
    const ask = () => {
      const started = performance.now()
      expect(store.roots({ owner: 'owner-500', limit: 50 })).toHaveLength(1)
      expect(store.awaiting({ owner: 'owner-500', limit: 50 })).toHaveLength(1)
      return performance.now() - started
    }
    store.reopen()
    ask()
    times.push(Math.min(...Array.from({ length: 20 }, ask)))
    await store.close()
  }
  expect(times[1]).toBeLessThan(3 * (times[0] ?? 0) + 1)
})

function treeWith(rootId: string, owner: string, count: number) {
  const place = placeIn(rootId)
  const nodes = Array.from({ length: count }, (_, n) =>
    nodeRow(
      place,
      `${rootId}-${n}`,
      n === 0 ? { state: 'awaiting_approval', wakeAt: 5 } : { ordinal: n, state: 'finished' },
    ),
  )
  const conversations = [conversationRow(rootId, { owner })]
  return commitOf(rootId, { ...emptyCommit('say', 1, rootId), conversations, turns: [turnRow(place)], nodes })
}
