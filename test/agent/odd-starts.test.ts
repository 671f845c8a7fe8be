import { setTimeout as sleep } from 'node:timers/promises'
import { type Agent, agent, createRuntime, type RuntimeOptions } from 'legate'
import { extension } from 'legate/hooks'
import type { Model } from 'legate/models'
import { sqliteStore } from 'legate/store/sqlite'
import { fakeClock, scriptedModel } from 'legate/testing'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { until } from '../support/process.ts'
import { localStore } from '../support/rows.ts'
import { tempFolder } from '../support/temp-folder.ts'

function open(options: RuntimeOptions = {}) {
  const runtime = createRuntime(options)
  onTestFinished(() => runtime.close())
  return runtime
}

const clerk = (model: Model = scriptedModel(() => 'Yes.')) => agent({ name: 'clerk', instructions: '', model })

/** What it is given is checked for ever. */
function neverBegins(): Agent<string> {
  const standard = { version: 1, vendor: 'test', validate: () => new Promise<never>(() => undefined) }
  const input = { '~standard': { ...standard, jsonSchema: { input: () => ({}), output: () => ({}) } } }
  return agent({ name: 'slow', instructions: '', model: scriptedModel(['x']), input: input as never })
}

describe('what other processes do is heard of', () => {
  test('idle of a runtime that has started nothing ends with what another works on', async () => {
    const file = `${tempFolder()}/rows.db`
    const one = open({ store: sqliteStore(file) })
    const two = open({ store: sqliteStore(file) })
    const run = one.run(clerk(scriptedModel([{ text: 'Yes.', delayMs: 200 }])), 'go')
    await until('it is recorded', () => localStore(two).openTurns(1).length > 0)

    await two.idle()

    expect((await run.result).status).toBe('completed')
  })
})

describe('what is given wrongly is refused, or told as what it is', () => {
  test('a start that takes its time holds up no other', async () => {
    const runtime = open({ engine: { graceMs: 20 } })
    runtime.run(neverBegins(), 'go').result.catch(() => undefined)

    const spawned = await runtime.spawn(clerk(), 'go')

    expect((await spawned.result()).status).toBe('completed')
  })

  test.each<[string, () => unknown, RegExp]>([
    ['a promise that rejects', () => Promise.reject(new Error('no key')), /no key/],
    ['a promise of nothing', () => Promise.resolve(undefined), /gives no async iterable of parts/],
    ['nothing', () => undefined, /gives no async iterable of parts/],
    ['a list', () => [{ type: 'text-delta', text: 'x' }], /gives no async iterable of parts/],
  ])('a model whose stream gives %s', async (_, stream, message) => {
    const { status, error } = await open().run(clerk({ id: 'a/b', stream: stream as Model['stream'] }), 'go').result

    expect(status).toBe('failed')
    expect(error?.message).toMatch(message)
  })

  test('a model whose stream is an async function that gives parts is read', async () => {
    const { stream } = scriptedModel(['Yes.'])
    const late = { id: 'a/b', stream: (async (...asked: Parameters<Model['stream']>) => stream(...asked)) as never }

    expect((await open().run(clerk(late), 'go').result).text).toBe('Yes.')
  })

  test.each([[new AbortController()], [{}], ['x'], [5]])('%o is no signal, and nothing is begun', (abortSignal) => {
    const runtime = open()
    const model = scriptedModel(['x'])

    expect(() => runtime.run(clerk(model), 'go', { abortSignal: abortSignal as never })).toThrow(/controller\.signal/)
    expect(localStore(runtime).roots({ limit: 1 })).toEqual([])
  })

  test('null is no signal either, as if it were left out', async () => {
    const run = open().run(clerk(), 'go', { abortSignal: null as never })

    expect((await run.result).status).toBe('completed')
  })

  test('generate rejects where it cannot begin: it throws nothing', async () => {
    await expect(clerk().generate('go', { grant: { use: 5 } as never })).rejects.toThrow(/grant/)
  })

  test.each<[string, unknown, RegExp]>([
    ['a path as the store', { store: 'runs.db' }, /sqliteStore\(path\)/],
    ['a promise of a store', { store: Promise.resolve() }, /sqliteStore\(path\)/],
    ['agents that are no list', { agents: {} }, /agents must be a list/],
    ['a clock without hands', { clock: {} }, /now\(\) and at/],
    ['null', null, /an object of options/],
  ])('%s is refused', (_, options, message) => {
    expect(() => createRuntime(options as RuntimeOptions)).toThrow(message)
  })
})

describe('cancel', () => {
  test('a signal that was aborted before: the run is recorded as cancelled, whatever else is going on', async () => {
    const runtime = open()
    const model = scriptedModel(() => ({ text: 'Yes.', delayMs: 30 }))
    const first = runtime.run(clerk(model), 'go')
    const { conversationId } = first
    const options = { conversationId, abortSignal: AbortSignal.abort(new Error('never mind')) }
    const [behind, fresh] = [runtime.run(clerk(model), 'again', options), runtime.run(clerk(model), 'go', options)]

    const outcomes = await Promise.all([first, behind, fresh].map(({ result }) => result))

    expect(outcomes.map(({ status }) => status)).toEqual(['completed', 'cancelled', 'cancelled'])
    expect(JSON.stringify(outcomes[1])).toContain('never mind')
    expect(model.requests).toHaveLength(1)
    expect(localStore(runtime).openTurns(9)).toEqual([])
  })

  test('takes nothing from this process, though its lease is over', async () => {
    const clock = fakeClock()
    const runtime = open({ clock })
    const model = scriptedModel(() => ({ text: 'Yes.', delayMs: 50 }))
    const first = runtime.run(clerk(model), 'go')
    await until('it is asked', () => model.requests.length === 1)
    const second = runtime.run(clerk(model), 'again', { conversationId: first.conversationId })
    vi.spyOn(clock, 'now').mockReturnValue(clock.now() + 60_000)

    await second.cancel()

    expect((await first.result).status).toBe('completed')
    expect((await second.result).status).toBe('cancelled')
    expect(model.requests).toHaveLength(1)
  })

  test('of a run that was never recorded rejects with what was wrong with it', async () => {
    const picky = agent({ name: 'picky', instructions: '', model: scriptedModel(['x']), input: { type: 'number' } })
    const run = open().run(picky as Agent<unknown>, 'no number')
    await expect(run.result).rejects.toMatchObject({ code: 'invalid_input' })

    await expect(run.cancel()).rejects.toMatchObject({ code: 'invalid_input' })
  })

  test('of a run that takes for ever to begin holds up no close', async () => {
    const runtime = createRuntime({ engine: { graceMs: 20 } })
    const run = runtime.run(neverBegins(), 'go')
    run.cancel().catch(() => undefined)

    expect(await Promise.race([runtime.close().then(() => 'closed'), sleep(3_000)])).toBe('closed')
  })
})

describe('close', () => {
  test('waits for a hook that never ends only as long as its grace', async () => {
    const stuck = extension({ name: 'stuck', hooks: { onFinally: () => new Promise<never>(() => undefined) } })
    const runtime = createRuntime({ engine: { graceMs: 50 } })
    await runtime.run(clerk().use(stuck), 'go').result

    const closed = runtime.close()

    expect(await Promise.race([closed.then(() => 'closed'), sleep(3_000).then(() => 'not closed')])).toBe('closed')
  })

  test('what is asked after it rejects, and throws nothing', async () => {
    const runtime = createRuntime({ store: sqliteStore(`${tempFolder()}/rows.db`) })
    const run = runtime.run(clerk(), 'go')
    await run.result
    const attached = await runtime.attach(run.id)
    const spawned = await runtime.spawn(clerk(), 'go')
    await runtime.close()

    await expect(attached.result).rejects.toMatchObject({ code: 'store_closed' })
    await expect(spawned.result()).rejects.toMatchObject({ code: 'store_closed' })
  })
})

test('one signal for many runs leaks no listeners', async () => {
  const warnings: string[] = []
  const onWarning = ({ name }: Error) => void warnings.push(name)
  process.on('warning', onWarning)
  onTestFinished(() => void process.off('warning', onWarning))
  const runtime = open()
  const controller = new AbortController()
  const stuck = clerk(scriptedModel(() => ({ text: 'late', delayMs: 60_000 })))
  const runs = Array.from({ length: 20 }, () => runtime.run(stuck, 'go', { abortSignal: controller.signal }))
  await until('all run', () => localStore(runtime).openTurns(99).length === 20)

  controller.abort()

  const outcomes = await Promise.all(runs.map(({ result }) => result))
  expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(['cancelled']))
  expect(warnings).toEqual([])
})
