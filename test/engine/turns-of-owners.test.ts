import { agent, type Runtime, type RuntimeOptions, tool } from 'legate'
import type { Model } from 'legate/models'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { LocalStore, Store } from '../../src/core/store/store.ts'
import { makeGate } from '../support/gate.ts'
import { startProcess } from '../support/process.ts'
import { openRuntime } from '../support/reading.ts'
import { openStore } from '../support/remote.ts'
import { localStore } from '../support/rows.ts'
import { lasting, memoryRows, type Rows, stores } from '../support/stores.ts'

const NONE = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }
const everyStore = [...stores, ...lasting.filter(([name]) => name === 'json')]
const OTHERS = ['bo', 'cy', 'dee']
/** Fewer where every row is read again before each node. */
const isFresh = process.env['LEGATE_FRESH'] === '1'
const FLOOD = isFresh ? 60 : 300
const LONG = isFresh ? 24 : 60

/** A model that notes whom it answers, and answers nobody before the gate opens. */
function heldModel() {
  const gate = makeGate()
  const asked: string[] = []
  const model: Model = {
    id: 'test/held',
    async *stream({ messages }) {
      asked.push(String(messages.at(-1)?.content).split(' ')[0] ?? '')
      await gate.opened
      yield { type: 'text-delta', text: 'done' }
      yield { type: 'finish', reason: 'stop', usage: NONE }
    },
  }
  return { model, gate, asked, speaker: agent({ name: 'speaker', instructions: 'Speak.', model }) }
}

function newRows(create: () => Rows): Rows {
  const rows = create()
  onTestFinished(() => rows.drop())
  return rows
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 2))
}

function openRuns(runtime: Runtime): number {
  return localStore(runtime).openRoots({ limit: 1_000 }).length
}

/** How many calls began before the last one of the others. */
function lastOfOthers(asked: readonly string[]): number {
  return asked.findLastIndex((owner) => owner !== 'ann')
}

describe.each(everyStore)('owners take turns on %s', (_, create) => {
  const two: RuntimeOptions = { engine: { workers: 2 } }

  test(`an owner with ${FLOOD} runs does not hold up three others with 3 each`, async () => {
    const { speaker, gate, asked } = heldModel()
    const runtime = openRuntime({ store: openStore(newRows(create)), agents: [speaker], ...two })
    const start = (owner: string, count: number) =>
      Array.from({ length: count }, (__, n) => runtime.run(speaker, `${owner} ${n}`, { owner }).result)
    const flood = start('ann', FLOOD)
    const others = OTHERS.flatMap((owner) => start(owner, 3))
    await until(() => openRuns(runtime) === FLOOD + 9)

    gate.open()
    await Promise.all(others)
    // Two that ran before the gate opened, then three rounds of four.
    expect(lastOfOthers(asked)).toBeLessThan(2 + 12 + 2)

    await Promise.all(flood)
    expect(asked).toHaveLength(FLOOD + 9)
  })

  test('owners take turns at once with what another process left', async () => {
    const rows = newRows(create)
    const { speaker, gate, asked } = heldModel()
    const before = startProcess(rows, { agents: [speaker], engine: { workers: 0 } })
    for (let n = 0; n < 40; n++) before.runtime.run(speaker, `ann ${n}`, { owner: 'ann' })
    for (const owner of OTHERS) before.runtime.run(speaker, `${owner} 0`, { owner })
    before.runtime.run(speaker, 'nobody 0')
    await until(() => before.store.openRoots({ limit: 99 }).length === 44)
    await before.runtime.close()
    expect(asked).toEqual([])

    const runtime = openRuntime({ store: openStore(rows), agents: [speaker], ...two })
    gate.open()
    await runtime.resume()
    await until(() => openRuns(runtime) === 0)

    expect(asked).toHaveLength(44)
    expect(lastOfOthers(asked)).toBeLessThan(5 + 2)
  })

  test('runs that go on and on give way to those that wait', async () => {
    let calls = 0
    let whenServed = 0
    const look = tool({ description: 'Looks.', input: { type: 'object' }, effect: 'pure', execute: () => 'seen' })
    const model: Model = {
      id: 'test/busy',
      async *stream({ messages }) {
        const isLate = messages.some(({ content }) => String(content) === 'late')
        calls++
        if (isLate) whenServed = calls
        await new Promise((resolve) => setTimeout(resolve, calls % 3))
        if (isLate || messages.length > LONG) yield { type: 'text-delta', text: 'done' }
        else yield { type: 'tool-call', id: `c${calls}`, name: 'look', input: {} }
        yield { type: 'finish', reason: 'stop', usage: NONE }
      },
    }
    const worker = agent({ name: 'worker', instructions: 'Work.', model, tools: { look }, budget: { modelCalls: 99 } })
    const runtime = openRuntime({ store: openStore(newRows(create)), agents: [worker], ...two })
    const busy = Array.from({ length: 6 }, () => runtime.run(worker, 'go', { owner: 'ann' }).result)
    await until(() => calls > 4)
    const before = calls

    const outcome = await runtime.run(worker, 'late', { owner: 'bo' }).result

    expect(outcome.status).toBe('completed')
    expect(whenServed - before).toBeLessThan(6)
    for (const { status } of await Promise.all(busy)) expect(status).toBe('completed')
  })

  test('a call limit and turns hold together', async () => {
    const { speaker, gate, asked } = heldModel()
    const limits = { owners: { ann: { concurrency: 1 } }, models: { 'test/*': { concurrency: 2 } } }
    const runtime = openRuntime({ store: openStore(newRows(create)), agents: [speaker], limits, ...two })
    const start = (owner: string, count: number) =>
      Array.from({ length: count }, (__, n) => runtime.run(speaker, `${owner} ${n}`, { owner }).result)
    const flood = start('ann', 40)
    const others = OTHERS.flatMap((owner) => start(owner, 2))
    await until(() => openRuns(runtime) === 46)

    gate.open()
    const outcomes = await Promise.all(others)

    expect(outcomes.map(({ status }) => status)).toEqual(Array(6).fill('completed'))
    expect(lastOfOthers(asked)).toBeLessThan(2 + 8 + 4)
    for (const { status } of await Promise.all(flood)) expect(status).toBe('completed')
    expect(asked).toHaveLength(46)
  })
})

test('a worker that became free is not taken by the owner who has the others, however long the look for work takes', async () => {
  const rows = newRows(memoryRows)
  const gates = [makeGate(), makeGate()]
  const asked: string[] = []
  const model: Model = {
    id: 'test/held',
    async *stream({ messages }) {
      const at = asked.push(String(messages.at(-1)?.content)) - 1
      await gates[at]?.opened
      yield { type: 'text-delta', text: 'done' }
      yield { type: 'finish', reason: 'stop', usage: NONE }
    },
  }
  const speaker = agent({ name: 'speaker', instructions: 'Speak.', model })
  let looks = 0
  let holding: Promise<void> | undefined
  const slow = (store: LocalStore): LocalStore => {
    const runnable: Store['runnable'] = (query) => {
      looks++
      return holding === undefined ? store.runnable(query) : holding.then(() => store.runnable(query))
    }
    return Object.assign({ ...store }, { runnable })
  }
  const { runtime } = startProcess(rows, { agents: [speaker], engine: { workers: 2 }, store: slow })
  const start = (owner: string, what: string) => runtime.run(speaker, what, { owner }).result
  const all = [start('ann', 'ann 0')]
  await until(() => asked.length === 1)
  all.push(start('ann', 'ann 1'))
  await until(() => asked.length === 2)
  all.push(start('bo', 'bo 0'))
  const before = looks
  await until(() => looks > before + 6)

  const look = makeGate()
  holding = look.opened
  const free = looks
  gates[0]?.open()
  await all[0]
  await until(() => looks > free)
  all.push(start('ann', 'ann 2'))
  await until(() => openRuns(runtime) === 3)
  const states = localStore(runtime)
    .openTurns(9)
    .flatMap(({ id }) => localStore(runtime).openNodes(id))
    .map(({ state }) => state)
  expect(states.toSorted()).toEqual(['pending', 'pending', 'running'])

  holding = undefined
  look.open()
  await until(() => asked.length >= 3)
  gates[1]?.open()
  await Promise.all(all)
  expect(asked).toEqual(['ann 0', 'ann 1', 'bo 0', 'ann 2'])
  await runtime.close()
})

test('owners take turns in two processes on one SQLite file', async () => {
  const [, create] = stores.find(([name]) => name === 'sqlite') ?? expect.fail('no SQLite')
  const rows = newRows(create)
  const { speaker, gate, asked } = heldModel()
  const options = { agents: [speaker], engine: { workers: 2 } }
  const first = startProcess(rows, options)
  const second = startProcess(rows, options)
  const start = (owner: string, count: number, { runtime } = first) =>
    Array.from({ length: count }, (_, n) => runtime.run(speaker, `${owner} ${n}`, { owner }).result)
  const flood = [...start('ann', FLOOD / 2), ...start('ann', FLOOD / 2, second)]
  const others = OTHERS.flatMap((owner, at) => start(owner, 3, at === 0 ? second : first))
  await until(() => first.store.openRoots({ limit: 999 }).length === FLOOD + 9)

  gate.open()
  await Promise.all(others)
  expect(lastOfOthers(asked)).toBeLessThan(4 + 12 + 12)

  await Promise.all(flood)
  expect(asked).toHaveLength(FLOOD + 9)
  expect([...first.errors, ...second.errors]).toEqual([])
  await first.runtime.close()
  await second.runtime.close()
})
