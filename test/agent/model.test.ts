import { agent, isLegateError, ModelError, tool } from 'legate'
import type { Model, Part } from 'legate/models'
import { fakeClock, type ScriptedAnswer, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { makeGate } from '../support/gate.ts'
import { PROMPTLY_MS } from '../support/pace.ts'
import { eventsOf, only, openRuntime } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'

const passing = (message = 'busy') => Object.assign(new Error(message), { statusCode: 429, retryAfterMs: 1 })
const FINISH: Part = {
  type: 'finish',
  reason: 'stop',
  usage: { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 },
}

/** A model written by hand: `parts` is called for each request. */
function model(parts: (call: number, signal: AbortSignal) => AsyncIterable<Part> | Iterable<Part>): Model {
  let calls = 0
  return {
    id: 'own/model',
    async *stream(_request, { signal }) {
      yield* parts(calls++, signal)
    },
  }
}

describe('a model that fails', () => {
  const refused = Object.assign(new Error('not found'), { statusCode: 404 })
  test.each<[string, unknown, string, string]>([
    ['an Error', new Error('bad key'), 'model', 'bad key'],
    ['a status that will not pass', refused, 'model_refused', 'not found'],
    ['a string', 'no', 'model', 'no'],
    ['null', null, 'model', 'null'],
    ['one of our errors', new ModelError('model', 'refused'), 'model', 'refused'],
  ])('with %s ends the run as failed at the first try', async (_name, error, code, message) => {
    const thrower = model(() => {
      throw error
    })

    const outcome = await openRuntime().run(agent({ name: 'a', instructions: '', model: thrower }), 'go').result

    expect(outcome).toMatchObject({ status: 'failed', error: { code, message }, text: '', modelCalls: 0 })
  })

  test('by ending its stream with an error is tried again, and fails in the end', async () => {
    let calls = 0
    const ending = model(() => {
      calls++
      return [{ type: 'text-delta', text: 'Half' }, { ...FINISH, reason: 'error' } as Part]
    })
    const clock = fakeClock()
    const run = openRuntime({ clock }).run(agent({ name: 'a', instructions: '', model: ending }), 'go')

    for await (const event of run) if (event.type === 'retry') await clock.advance(event.wakeAt - clock.now())

    expect(await run.result).toMatchObject({ status: 'failed', text: 'Half', error: { code: 'model' } })
    expect(calls).toBe(4)
  })

  test('keeps what it had said', async () => {
    const outcome = await openRuntime().run(
      agent({
        name: 'a',
        instructions: '',
        model: scriptedModel([{ chunks: ['Half ', 'of it'], error: new Error('x') }]),
      }),
      'go',
    ).result

    expect(outcome).toMatchObject({ status: 'failed', text: 'Half of it' })
  })

  test('in the middle of calls makes no task of them', async () => {
    let runs = 0
    const it = tool({ description: 'It', input: { type: 'object' }, execute: () => ++runs })
    const cut = model(() => [{ type: 'tool-call', id: '1', name: 'it', input: {} }, fail()])

    const outcome = await openRuntime().run(agent({ name: 'a', instructions: '', model: cut, tools: { it } }), 'go')
      .result

    expect(outcome.status).toBe('failed')
    expect(runs).toBe(0)
  })

  test.each<[string, ScriptedAnswer]>([
    ['a rate limit', { error: passing() }],
    ['a cut stream', { text: 'Half', cut: true }],
    ['a reset connection', { error: Object.assign(new Error('reset'), { code: 'ECONNRESET' }) }],
  ])('in a way that may pass, as %s, is tried again on the same node', async (_name, turn) => {
    const scripted = scriptedModel([turn, 'done'])
    const clock = fakeClock()
    const runtime = openRuntime({ clock })

    const run = runtime.run(agent({ name: 'a', instructions: '', model: scripted }), 'go')
    const seen: object[] = []
    for await (const event of run) {
      if (event.type === 'retry' || event.type === 'reset') seen.push([event.type, event.attempt])
      if (event.type === 'retry') await clock.advance(event.wakeAt - clock.now())
    }

    expect(await run.result).toMatchObject({ status: 'completed', text: 'done', modelCalls: 1 })
    expect(seen).toEqual([
      ['retry', 2],
      ['reset', 2],
    ])
    expect(
      localStore(runtime)
        .nodesOf(run.id)
        .filter(({ kind }) => kind === 'agent_message'),
    ).toHaveLength(1)
    expect(localStore(runtime).nodesOf(run.id).at(-1)?.attempt).toBe(2)
  })

  test('four times in passing ways ends the run as failed', async () => {
    const scripted = scriptedModel(Array(5).fill({ error: passing('still busy') }))

    const run = openRuntime().run(agent({ name: 'a', instructions: '', model: scripted }), 'go')
    const events = await eventsOf(run)

    expect(await run.result).toMatchObject({ status: 'failed', error: { message: 'still busy' } })
    expect(scripted.requests).toHaveLength(4)
    expect(only(events, 'retry').map(({ attempt }) => attempt)).toEqual([2, 3, 4])
  })

  test('is cancelled while it waits for the next try', async () => {
    const scripted = scriptedModel([
      { error: Object.assign(new Error('busy'), { statusCode: 503, retryAfterMs: 20_000 }) },
    ])
    const run = openRuntime().run(agent({ name: 'a', instructions: '', model: scripted }), 'go')
    for await (const event of run) if (event.type === 'retry') break

    await run.cancel()

    expect(await run.result).toMatchObject({ status: 'cancelled' })
    expect(scripted.requests).toHaveLength(1)
  })
})

describe('a run that is cancelled while its model speaks', () => {
  test('ends at once with what was said, though the model ignores its signal', async () => {
    const spoken = makeGate()
    const deaf = model(async function* () {
      yield { type: 'text-delta', text: 'I was ' } as const
      yield { type: 'text-delta', text: 'saying' } as const
      spoken.open()
      await new Promise(() => undefined)
    })
    const run = openRuntime({ engine: { graceMs: 50 } }).run(agent({ name: 'a', instructions: '', model: deaf }), 'go')
    await spoken.opened
    const start = Date.now()

    await run.cancel()
    const outcome = await run.result

    expect(outcome).toMatchObject({ status: 'cancelled', text: 'I was saying' })
    expect(Date.now() - start).toBeLessThan(PROMPTLY_MS)
  })

  test('aborts its signal with a reason, and drops what comes later', async () => {
    const spoken = makeGate()
    const aborted = makeGate<unknown>()
    const polite = model(async function* (_call, signal) {
      yield { type: 'text-delta', text: 'first' } as const
      spoken.open()
      await new Promise<void>((resolve) => {
        signal.addEventListener('abort', () => {
          aborted.open(signal.reason)
          resolve()
        })
      })
      yield { type: 'text-delta', text: ' and second' } as const
      yield FINISH
    })
    const run = openRuntime().run(agent({ name: 'a', instructions: '', model: polite }), 'go')
    await spoken.opened

    await run.cancel('enough')

    expect(await run.result).toMatchObject({ status: 'cancelled', text: 'first' })
    expect(isLegateError(await aborted.opened, 'aborted')).toBe(true)
  })

  test('before it said anything ends as cancelled without words', async () => {
    const controller = new AbortController()
    controller.abort()
    const slow = scriptedModel([{ text: 'never', delayMs: 5_000 }])

    const run = openRuntime().run(agent({ name: 'a', instructions: '', model: slow }), 'go', {
      abortSignal: controller.signal,
    })

    expect(await run.result).toMatchObject({ status: 'cancelled', text: '', output: null })
  })

  test('a second cancel, and one after the end, change nothing', async () => {
    const run = openRuntime().run(agent({ name: 'a', instructions: '', model: scriptedModel(['done']) }), 'go')
    const outcome = await run.result

    await run.cancel()
    await run.cancel('again')

    expect(await run.result).toBe(outcome)
    expect(outcome.status).toBe('completed')
  })
})

describe('a model whose stream is written by hand', () => {
  const handMade = (iterator: object): Model => ({
    id: 'hand/made',
    stream: () => ({ [Symbol.asyncIterator]: () => iterator }) as AsyncIterable<Part>,
  })

  test.each<[string, object]>([
    ['throws at once', { next: () => fail() }],
    ['gives no promise', { next: () => ({ done: true }) }],
    ['has a return that throws', { next: () => Promise.reject(new Error('no')), return: () => fail() }],
    ['has a return that gives nothing', { next: () => Promise.reject(new Error('no')), return: () => undefined }],
    ['gives a part that is nothing', { next: async () => ({ done: false, value: undefined }) }],
  ])('and %s ends the run as failed', async (_name, iterator) => {
    const outcome = await openRuntime().run(agent({ name: 'a', instructions: '', model: handMade(iterator) }), 'go')
      .result

    expect(outcome.status).toBe('failed')
  })

  test('a model that returns no stream at all ends the run as failed', async () => {
    const none = { id: 'no/stream', stream: () => undefined } as unknown as Model

    expect((await openRuntime().run(agent({ name: 'a', instructions: '', model: none }), 'go').result).status).toBe(
      'failed',
    )
  })
})

test('an agent without a model, in a runtime without one, is refused with what to do', async () => {
  const bare = agent({ name: 'bare', instructions: '' })

  const { result } = openRuntime().run(bare, 'go')

  await expect(result).rejects.toThrow(/"bare" has no model: name one in agent\(\{ model \}\).*Set LEGATE_MODEL/)
})

test('an agent without a model uses the runtime’s', async () => {
  const fallback = scriptedModel(['from the runtime'])

  const outcome = await openRuntime({ model: fallback }).run(agent({ name: 'bare', instructions: '' }), 'go').result

  expect(outcome.text).toBe('from the runtime')
})

test('settings reach the model as they are', async () => {
  const scripted = scriptedModel(['ok'])
  const settings = { temperature: 0, maxOutputTokens: 99, providerOptions: { own: { effort: 'low' } } }

  await openRuntime().run(agent({ name: 'a', instructions: 'I', model: scripted, settings }), 'go').result

  expect(scripted.requests[0]).toMatchObject({ settings, path: ['a'], outputSchema: null })
})

test('usage of every call is summed', async () => {
  const it = tool({ description: 'It', input: { type: 'object' }, execute: () => 'ok' })
  const scripted = scriptedModel([
    { calls: [{ name: 'it', input: {} }], usage: { inputTokens: 10, outputTokens: 2, cacheReadTokens: 5 } },
    { text: 'done', usage: { inputTokens: 20, outputTokens: 3, cacheWriteTokens: 7 } },
  ])

  const { usage } = await openRuntime().run(
    agent({ name: 'a', instructions: '', model: scripted, tools: { it } }),
    'go',
  ).result

  expect(usage).toEqual({ inputTokens: 30, outputTokens: 5, cacheReadTokens: 5, cacheWriteTokens: 7 })
})

test('is given the schemas as they were written, objects or not, and who calls', async () => {
  const outputSchema = { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] } as const
  const input = { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'number' } }] } as const
  const script = scriptedModel(() => '{"a":1}')
  const look = tool({ description: 'Looks.', input, execute: () => 1 })
  const who = agent({ name: 'who', instructions: '', model: script, tools: { look }, output: outputSchema })
  await openRuntime().run(who, 'go').result

  expect(script.requests[0]).toMatchObject({ outputSchema, path: ['who'], settings: {} })
  expect(script.requests[0]?.tools).toEqual([{ name: 'look', description: 'Looks.', inputSchema: input }])
})

function fail(): never {
  throw new Error('cut')
}

describe('a model that', () => {
  const spoken = (call: number) => (call === 0 ? 'Half of' : 'All of it.')

  test('falls silent in the middle of its answer is asked again after five minutes', async () => {
    const clock = fakeClock()
    const signals: AbortSignal[] = []
    const silent = model(async function* (call, signal) {
      signals.push(signal)
      yield { type: 'text-delta', text: spoken(call) }
      if (call === 0) await new Promise(() => undefined)
      yield FINISH
    })
    const run = openRuntime({ clock }).run(agent({ name: 'a', instructions: '', model: silent }), 'go')
    const reading = eventsOf(run)
    await new Promise((resolve) => setTimeout(resolve, 5))

    await clock.advance(299_000)
    expect(signals).toHaveLength(1)
    await clock.advance(40_000)

    expect(await run.result).toMatchObject({ status: 'completed', text: 'All of it.' })
    expect(only(await reading, 'retry')).toMatchObject([{ error: expect.stringContaining('silent for too long') }])
    expect(signals[0]?.aborted).toBe(true)
    expect((await reading).map(({ type }) => type)).toEqual(expect.arrayContaining(['reset', 'run-end']))
  })

  test('drips is not silent, however long it takes', async () => {
    const clock = fakeClock()
    const drip = model(async function* () {
      for (let minute = 0; minute < 12; minute++) {
        yield { type: 'text-delta', text: `${minute} ` }
        await new Promise<void>((resolve) => clock.at(clock.now() + 60_000, resolve))
      }
      yield FINISH
    })
    const run = openRuntime({ clock }).run(agent({ name: 'a', instructions: '', model: drip }), 'go')
    await new Promise((resolve) => setTimeout(resolve, 5))

    await clock.advance(15 * 60_000)

    expect(await run.result).toMatchObject({ status: 'completed', text: '0 1 2 3 4 5 6 7 8 9 10 11 ' })
  })

  test('never ends its answer is left off at 16 MB, and not asked again', async () => {
    let calls = 0
    let isLeft = false
    const endless = model(async function* () {
      calls++
      try {
        for (;;) yield { type: 'text-delta', text: 'x'.repeat(1_000_000) }
      } finally {
        isLeft = true
      }
    })

    const outcome = await openRuntime().run(agent({ name: 'a', instructions: '', model: endless }), 'go').result

    expect(outcome).toMatchObject({
      status: 'failed',
      error: { code: 'model', message: expect.stringContaining('16 MB') },
    })
    expect([calls, isLeft]).toEqual([1, true])
  })
  const metadata = { key: 'x'.repeat(10_000) }
  test.each<[string, Part, limit?: string]>([
    ['calls', { type: 'tool-call', id: 'c', name: 'it', input: JSON.stringify(metadata) }, '4 MB'],
    ['calls that are parsed', { type: 'tool-call', id: 'c', name: 'it', input: metadata }, '4 MB'],
    ['calls with metadata', { type: 'tool-call', id: 'c', name: 'it', input: {}, providerMetadata: metadata }],
    ['small calls', { type: 'tool-call', id: 'c', name: 'it', input: {} }, '100000 values'],
    ['files', { type: 'block', block: { type: 'image', mediaType: 'image/png', data: 'x'.repeat(10_000) } }],
    ['blocks', { type: 'block', block: { type: 'reasoning', text: 'x'.repeat(10_000) } }],
    ['ends of texts', { type: 'text-end', providerMetadata: metadata }],
  ])('never ends with %s is left off at a limit', async (_, part, limit = '16 MB') => {
    let parts = 0
    const endless = model(async function* () {
      for (; parts < 2_000_000; parts++) yield part
    })

    const outcome = await openRuntime().run(agent({ name: 'a', instructions: '', model: endless }), 'go').result

    expect(outcome).toMatchObject({
      status: 'failed',
      error: { code: 'model', message: expect.stringContaining(limit) },
    })
    expect(parts).toBeLessThan(1_000_000)
  })

  test('streams 9 MB of arguments, or of thoughts, before they come whole: that is 9 MB', async () => {
    const half = 'x'.repeat(4_500_000)
    const long = model(async function* () {
      for (const text of [half, half]) yield { type: 'reasoning-delta', text }
      yield { type: 'block', block: { type: 'reasoning', text: half + half } }
      yield { type: 'text-delta', text: 'done' }
      yield FINISH
    })

    const outcome = await openRuntime().run(agent({ name: 'a', instructions: '', model: long }), 'go').result

    expect(outcome).toMatchObject({ status: 'completed', text: 'done' })
  })
})
