import { readFileSync } from 'node:fs'
import path from 'node:path'
import { agent, type RuntimeOptions } from 'legate'
import type { Model } from 'legate/models'
import { fakeClock } from 'legate/testing'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { systemScheduler } from '../../src/core/base/clock.ts'
import { CallGate, type CallPlace, HeldBack } from '../../src/core/engine/call-gate.ts'
import type { CallLimits } from '../../src/core/grant/call-limits.ts'
import { memoryStore } from '../../src/core/store/memory/index.ts'
import type { Store } from '../../src/core/store/store.ts'
import { nodeRow, placeIn, treeCommit } from '../../src/testing/conformance/store-rows.ts'
import { useWorld } from '../support/agents.ts'
import { until } from '../support/process.ts'
import { runProgram, skipUnlessBuilt } from '../support/program.ts'
import { openRuntime } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'
import { stores } from '../support/stores.ts'
import { tempFolder } from '../support/temp-folder.ts'

/** A model that notes who calls it and how many calls are under way. */
function watchedModel(ms: number) {
  const begun: { at: number; asked: string }[] = []
  let live = 0
  let most = 0
  const model: Model = {
    id: 'test/watched',
    async *stream({ messages }) {
      begun.push({ at: Date.now(), asked: String(messages.at(-1)?.content) })
      most = Math.max(most, ++live)
      await new Promise((resolve) => setTimeout(resolve, ms))
      live--
      yield { type: 'text-delta', text: 'done' }
      yield { type: 'finish', reason: 'stop', usage: NONE }
    },
  }
  return { model, begun, most: () => most }
}

const NONE = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

describe.each(stores)('limits of model calls on %s', (_, create) => {
  const withLimits = (model: Model, limits: RuntimeOptions['limits'], more: RuntimeOptions = {}) => {
    const rows = create()
    const speaker = agent({ name: 'speaker', instructions: 'Speak.', model })
    const open = () =>
      openRuntime({ store: rows.open(), agents: [speaker], ...(limits === undefined ? {} : { limits }), ...more })
    onTestFinished(() => rows.drop())
    return { rows, speaker, open }
  }

  test('at most so many calls of an owner run at a time, others wait without using an attempt', async () => {
    const { model, most, begun } = watchedModel(20)
    const { speaker, open } = withLimits(model, { owner: { concurrency: 2 } })
    const runtime = open()
    const runs = Array.from({ length: 8 }, (_, n) => runtime.run(speaker, `ask ${n}`, { owner: 'ann' }))

    const outcomes = await Promise.all(runs.map(({ result }) => result))

    expect(outcomes.map(({ status }) => status)).toEqual(Array(8).fill('completed'))
    expect(most()).toBe(2)
    expect(begun).toHaveLength(8)
    const answers = runs.map(({ id }) => localStore(runtime).nodesOf(id).at(-1))
    expect(answers.map((node) => node?.attempt)).toEqual(Array(8).fill(1))
  })

  test('owners take turns at a model that has one place', async () => {
    const { model, begun } = watchedModel(10)
    const { speaker, open } = withLimits(model, { models: { 'test/*': { concurrency: 1 } } })
    const runtime = open()
    const ask = (owner: string, n: number) => runtime.run(speaker, `${owner} ${n}`, { owner }).result
    const all = [...Array.from({ length: 6 }, (_, n) => ask('ann', n))]
    await new Promise((resolve) => setTimeout(resolve, 5))
    all.push(ask('bob', 0), ask('bob', 1))

    await Promise.all(all)

    const order = begun.map(({ asked }) => asked.split(' ')[0])
    expect(order.indexOf('bob')).toBeLessThan(5)
    expect(order.filter((name) => name === 'ann')).toHaveLength(6)
  })

  test('two processes share one limit', async () => {
    const { model, most } = watchedModel(20)
    const { speaker, open } = withLimits(model, { models: { '*': { concurrency: 1 } } })
    const [first, second] = [open(), open()]

    await Promise.all(
      [first, second].flatMap((runtime) =>
        [0, 1].map((n) => runtime.run(speaker, `ask ${n}`, { owner: 'ann' }).result),
      ),
    )

    expect(most()).toBe(1)
  })

  test('a minute has at most so many calls', async () => {
    const { model, begun } = watchedModel(0)
    const clock = fakeClock()
    const { speaker, open } = withLimits(model, { owners: { ann: { perMinute: 3 } } }, { clock })
    const runtime = open()
    const runs = Array.from({ length: 5 }, (_, n) => runtime.run(speaker, `ask ${n}`, { owner: 'ann' }))
    const others = runtime.run(speaker, 'ask', { owner: 'bob' })
    await others.result
    await settle()
    expect(begun.filter(({ asked }) => asked.startsWith('ask ')).length).toBe(3)

    await clock.advance(62_000)
    await Promise.all(runs.map(({ result }) => result))

    expect(begun).toHaveLength(6)
  })

  test('a provider that asks for a pause holds back all nodes of its model', async () => {
    const clock = fakeClock()
    let calls = 0
    const model: Model = {
      id: 'test/busy',
      async *stream() {
        if (++calls === 1) throw Object.assign(new Error('slow down'), { statusCode: 429, retryAfterMs: 30_000 })
        yield { type: 'text-delta', text: 'done' }
        yield { type: 'finish', reason: 'stop', usage: NONE }
      },
    }
    const { speaker, open } = withLimits(model, undefined, { clock })
    const runtime = open()
    const first = runtime.run(speaker, 'first')
    await settle()
    const second = runtime.run(speaker, 'second')
    await settle()
    expect(calls).toBe(1)

    await clock.advance(31_000)
    const outcomes = [await first.result, await second.result]

    expect(outcomes.map(({ status }) => status)).toEqual(['completed', 'completed'])
    expect(calls).toBe(3)
  })

  test('a call that is stopped while it waits ends at once', async () => {
    const { model, begun } = watchedModel(300)
    const { speaker, open } = withLimits(model, { owner: { concurrency: 1 } })
    const runtime = open()
    const first = runtime.run(speaker, 'first', { owner: 'ann' })
    await settle()
    const second = runtime.run(speaker, 'second', { owner: 'ann' })
    await settle()

    await second.cancel()

    expect((await second.result).status).toBe('cancelled')
    expect((await first.result).status).toBe('completed')
    expect(begun).toHaveLength(1)
  })
})

describe.each(stores)('those who wait at a limit, on %s', (_, create) => {
  const world = useWorld(create)
  const speakerOf = (model: Model) => agent({ name: 'speaker', instructions: 'Speak.', model })

  test('are told of every place that becomes free, though no time passes at all', async () => {
    const { model, most } = watchedModel(1)
    const limits = { owner: { concurrency: 2 }, models: { 'test/*': { concurrency: 3 }, '*': { concurrency: 2 } } }
    const { runtime } = world.start({ clock: fakeClock(), limits, agents: [speakerOf(model)] })
    const ask = (owner: string, n: number) => runtime.run(speakerOf(model), `${owner} ${n}`, { owner }).result
    const all = ['ann', 'bo', 'cy'].flatMap((owner) => Array.from({ length: 15 }, (__, n) => ask(owner, n)))

    const outcomes = await Promise.all(all)

    expect(outcomes.map(({ status }) => status)).toEqual(Array(45).fill('completed'))
    expect(most()).toBe(2)
  })

  test('are told although the ones before them in line were stopped', async () => {
    const { model, begun } = watchedModel(150)
    const { runtime } = world.start({
      clock: fakeClock(),
      limits: { owner: { concurrency: 1 } },
      agents: [speakerOf(model)],
    })
    const runs = Array.from({ length: 5 }, (__, n) => runtime.run(speakerOf(model), `ask ${n}`, { owner: 'ann' }))
    await until('all to wait', () => world.store.openRoots({ limit: 9 }).length === 5 && begun.length === 1)
    await settle()
    const waiting = runs.filter(({ id }) => world.store.nodesOf(id).at(-1)?.state === 'pending')
    expect(waiting).toHaveLength(4)
    for (const run of waiting.slice(0, 3)) await run.cancel()

    expect((await waiting[3]?.result)?.status).toBe('completed')
    expect(begun).toHaveLength(2)
  })

  test('a process that was killed with all places in its hands leaves them to the next', async () => {
    const hanging: Model = {
      id: 'test/watched',
      async *stream() {
        hung++
        await new Promise(() => undefined)
        yield { type: 'finish', reason: 'stop', usage: NONE }
      },
    }
    let hung = 0
    const limits = { owner: { concurrency: 2 } }
    const first = world.start({ limits, agents: [speakerOf(hanging)] })
    for (const n of [0, 1, 2])
      first.runtime.run(speakerOf(hanging), `ask ${n}`, { owner: 'ann' }).result.catch(() => null)
    await until('all places to be taken', () => hung === 2)
    await first.kill()

    const { model, begun, most } = watchedModel(1)
    const second = world.start({ limits, agents: [speakerOf(model)] })
    await second.runtime.resume()
    const outcome = await second.runtime.run(speakerOf(model), 'ask 3', { owner: 'ann' }).result

    expect(outcome.status).toBe('completed')
    await until('the runs of the first', () => world.store.openRoots({ limit: 9 }).length === 0)
    expect(begun).toHaveLength(4)
    expect(most()).toBeLessThanOrEqual(2)
  })

  test('a clock that is set back an hour holds up nobody for long', async () => {
    const clock = fakeClock(7_200_000)
    const { model, begun } = watchedModel(0)
    const limits = { owner: { perMinute: 2 } }
    const first = world.start({ clock, limits, agents: [speakerOf(model)] })
    for (const n of [0, 1]) await first.runtime.run(speakerOf(model), `ask ${n}`, { owner: 'ann' }).result
    await first.runtime.close()

    const earlier = fakeClock(3_600_000)
    const second = world.start({ clock: earlier, limits, agents: [speakerOf(model)] })
    const outcomes = [0, 1].map((n) => second.runtime.run(speakerOf(model), `again ${n}`, { owner: 'ann' }).result)
    expect((await Promise.all(outcomes)).map(({ status }) => status)).toEqual(['completed', 'completed'])
    const third = second.runtime.run(speakerOf(model), 'third', { owner: 'ann' })
    await settle()
    expect(begun).toHaveLength(4)
    await earlier.advance(62_000)
    expect((await third.result).status).toBe('completed')
  })

  test('an owner who is forgotten leaves no row of his limit', async () => {
    const { model } = watchedModel(0)
    const { runtime, store } = world.start({ limits: { owner: { concurrency: 1 } }, agents: [speakerOf(model)] })
    await runtime.run(speakerOf(model), 'ask', { owner: 'ann' }).result
    expect(await store.registry.get('limit', 'owner:ann')).toMatchObject({ owner: 'ann' })

    await store.archive?.forgetOwner('ann')

    expect(await store.registry.list('limit', { limit: 9 })).toEqual([])
  })
})

const at = (model: string): CallPlace => ({ owner: 'ann', model, rootId: 'r', nodeId: 'n', epoch: 1 })

function gateOn(store: Store, clock: ReturnType<typeof fakeClock>, limits?: CallLimits) {
  const woken: string[] = []
  const wake = ({ nodeId }: CallPlace) => Promise.resolve(woken.push(nodeId) > 0)
  return Object.assign(new CallGate({ store, clock, scheduler: systemScheduler, limits, wake }), { woken })
}

test('a place that becomes free between the refusal and the wait is told of, once', async () => {
  const store = memoryStore()
  const place = placeIn('root')
  const holder = nodeRow(place, 'holder', { state: 'running', epoch: 1 })
  await store.commit(treeCommit('root', { nodes: [holder] }))
  const gate = gateOn(store, fakeClock(), { models: { '*': { concurrency: 1 } } })
  const call = (nodeId: string) => ({ ...at('test/a'), rootId: 'root', nodeId })
  const refusalOf = (nodeId: string) => gate.enter(call(nodeId)).catch((error: unknown) => error)
  await gate.enter(call('holder'))
  const [early, late] = [await refusalOf('early'), await refusalOf('late')]
  if (!(early instanceof HeldBack && late instanceof HeldBack)) return expect.fail('a second call has entered')

  gate.stand(early)
  expect(gate.woken).toEqual([])
  await gate.leave(call('holder'))
  expect(gate.woken).toEqual(['early'])
  gate.stand(late)
  expect(gate.woken).toEqual(['early', 'late'])
})

describe('a pause', () => {
  test('is forgotten when it is over, also that of a model nobody calls again', async () => {
    const clock = fakeClock()
    const gate = gateOn(memoryStore(), clock)
    await gate.pause('test/a', clock.now() + 10_000)
    await gate.enter(at('test/b'))
    expect(gate.isOpen).toBe(false)
    await expect(gate.enter(at('test/a'))).rejects.toThrow('asked for a pause')

    await clock.advance(10_001)
    await gate.enter(at('test/b'))

    expect(gate.isOpen).toBe(true)
  })

  test('is heard in other processes among the limits of 1,500 owners', async () => {
    const clock = fakeClock()
    const store = memoryStore()
    const first = gateOn(store, clock, { owner: { concurrency: 1 } })
    for (let n = 0; n < 1_500; n++) await first.enter({ ...at('test/a'), owner: `${n}`, nodeId: `n${n}` })
    await first.pause('test/a', clock.now() + 10_000)

    await expect(gateOn(store, clock).enter(at('test/a'))).rejects.toThrow('asked for a pause')
  })

  test('a pause that was asked for before the clock was set back an hour holds nobody', async () => {
    const store = memoryStore()
    const late = fakeClock(7_200_000)
    await gateOn(store, late).pause('test/a', late.now() + 10_000)

    const early = fakeClock(3_600_000)
    const gate = gateOn(store, early)
    await gate.enter(at('test/a'))
    await gate.pause('test/a', early.now() + 10_000)

    await expect(gateOn(store, early).enter(at('test/a'))).rejects.toThrow('asked for a pause')
  })
})

describe('processes of their own', () => {
  beforeEach(skipUnlessBuilt)

  /** Notes when each call begins and ends. With LEGATE_DIES, it is killed as soon as all places are taken. */
  const PROGRAM = `
    import { appendFileSync } from 'node:fs'
    import { agent, createRuntime } from 'legate'
    import { sqliteStore } from 'legate/store/sqlite'
    const { LEGATE_PLACE: place, LEGATE_DIES: dies, LEGATE_NAME: name } = process.env
    const note = (what) => appendFileSync(place + '/notes', what + '\\n')
    let live = 0
    const model = {
      id: 'test/model',
      async *stream() {
        note('begin ' + name)
        if (dies === '1') {
          if (++live === 3) process.kill(process.pid, 'SIGKILL')
          await new Promise((resolve) => setTimeout(resolve, 60_000))
        }
        await new Promise((resolve) => setTimeout(resolve, 3))
        note('end ' + name)
        yield { type: 'text-delta', text: 'done' }
        yield { type: 'finish', reason: 'stop', usage: null }
      },
    }
    const speaker = agent({ name: 'speaker', instructions: 'Speak.', model })
    const store = sqliteStore(place + '/rows.db')
    const runtime = createRuntime({ store, agents: [speaker], limits: { models: { '*': { concurrency: 3 } } } })
    const runs = Array.from({ length: 25 }, (_, n) => runtime.run(speaker, 'ask ' + n, { owner: name }))
    const outcomes = await Promise.all(runs.map(({ result }) => result))
    console.log(outcomes.filter(({ status }) => status === 'completed').length)
    await runtime.close()
  `
  const notesIn = (folder: string) => readFileSync(path.join(folder, 'notes'), 'utf8').trim().split('\n')
  /** The most calls that were under way at a time. */
  const mostIn = (notes: readonly string[]) => {
    let live = 0
    return Math.max(...notes.map((note) => (live += note.startsWith('begin') ? 1 : -1)))
  }

  test('50 nodes of two processes contend for three places, and each gets one', async () => {
    const folder = tempFolder(onTestFinished)
    const start = (name: string) => runProgram(PROGRAM, { LEGATE_PLACE: folder, LEGATE_NAME: name })

    const told = await Promise.all([start('ann'), start('bo')])

    expect(told).toEqual(['25\n', '25\n'])
    expect(notesIn(folder)).toHaveLength(100)
    expect(mostIn(notesIn(folder))).toBeLessThanOrEqual(3)
  })

  test('kill -9 of the process that holds all places frees them', async () => {
    const folder = tempFolder(onTestFinished)
    const env = { LEGATE_PLACE: folder, LEGATE_NAME: 'ann' }
    await expect(runProgram(PROGRAM, { ...env, LEGATE_DIES: '1' })).rejects.toMatchObject({ signal: 'SIGKILL' })
    expect(notesIn(folder)).toEqual(['begin ann', 'begin ann', 'begin ann'])

    expect(await runProgram(PROGRAM, { ...env, LEGATE_NAME: 'bo' })).toBe('25\n')
    expect(mostIn(notesIn(folder).slice(3))).toBeLessThanOrEqual(3)
  })
})

async function settle(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 60))
}
