import {
  agent,
  ConflictError,
  createRuntime,
  isLegateError,
  NotFoundError,
  type Run,
  type RunEvent,
  type Runtime,
  type StartOptions,
  tool,
} from 'legate'
import { memoryStore } from 'legate/store/memory'
import { scriptedModel } from 'legate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { makeGate } from '../support/gate.ts'
import { startProcess } from '../support/process.ts'
import { openRuntime } from '../support/reading.ts'
import { lasting, type Rows, stores } from '../support/stores.ts'

/** All stores, and rows that come later. */
const all = [...lasting, ...stores.filter(([name]) => name.includes('later'))]

function clerk(name = 'clerk') {
  const model = scriptedModel(({ messages }) => `${messages.filter(({ role }) => role === 'user').length} so far`)
  return agent({ name, instructions: 'You sell shoes.', model })
}

function rowsOf(create: () => Rows): Rows {
  const rows = create()
  onTestFinished(() => rows.drop())
  return rows
}

function open(rows: Rows): Runtime {
  const { runtime } = startProcess(rows)
  onTestFinished(() => runtime.close())
  return runtime
}

async function durable(run: Run<unknown, unknown>): Promise<RunEvent[]> {
  const events: RunEvent[] = []
  for await (const event of run) if ('seq' in event) events.push(event)
  return events
}

async function failure(run: Run<unknown, unknown>): Promise<unknown> {
  return run.result.then(
    (outcome) => outcome,
    (error: unknown) => error,
  )
}

describe.each(all)('a start under a key, in a store in %s', (_, create) => {
  test('is made once: at the same moment, later, and after a restart', async () => {
    const rows = rowsOf(create)
    const seller = clerk()
    const start = { key: 'order-17', owner: 'ann' }
    const first = startProcess(rows).runtime
    const runs = [1, 2, 3].map(() => first.run(seller, 'one pair', start))
    const outcomes = await Promise.all(runs.map(({ result }) => result))
    const later = first.run(seller, 'one pair', start)
    expect(await later.result).toEqual(outcomes[0])
    const events = await durable(later)
    await first.close()

    const second = open(rows)
    const again = second.run(seller, 'one pair', start)

    expect(await again.result).toEqual(outcomes[0])
    expect(new Set([...runs, later, again].map(({ id }) => id)).size).toBe(1)
    expect(new Set([...runs, later, again].map(({ conversationId }) => conversationId)).size).toBe(1)
    expect(await durable(again)).toEqual(events)
    expect(events.at(-1)?.type).toBe('run-end')
    expect(await second.store.roots({ limit: 10 })).toHaveLength(1)
    expect((await (await second.conversation(again.conversationId)).row())?.turnCount).toBe(1)
    expect((await second.audit()).findings).toEqual([])
  })

  test('refuses another request, and names the run', async () => {
    const runtime = open(rowsOf(create))
    const start = { key: 'k', grant: { deny: ['tool:a'] }, budget: { modelCalls: 3 }, attributes: { a: 1, b: 2 } }
    const run = runtime.run(clerk(), 'one', start)
    await run.result
    const there = runtime.run(clerk(), 'other')
    await there.result
    const others: [string, Run<unknown, unknown>][] = [
      ['input', runtime.run(clerk(), 'two', start)],
      ['agent', runtime.run(clerk('baker'), 'one', start)],
      ['grant', runtime.run(clerk(), 'one', { ...start, grant: { deny: ['tool:b'] } })],
      ['no grant', runtime.run(clerk(), 'one', { key: 'k', budget: start.budget, attributes: start.attributes })],
      ['budget', runtime.run(clerk(), 'one', { ...start, budget: { modelCalls: 4 } })],
      ['attributes', runtime.run(clerk(), 'one', { ...start, attributes: { a: 1 } })],
      ['title', runtime.run(clerk(), 'one', { ...start, title: 'T' })],
      ['whileRunning', runtime.run(clerk(), 'one', { ...start, whileRunning: 'restart' })],
      ['conversationKey', runtime.run(clerk(), 'one', { ...start, conversationKey: 'c' })],
      ['conversationId', runtime.run(clerk(), 'one', { ...start, conversationId: there.conversationId })],
    ]

    for (const [what, other] of others) {
      const error = await failure(other)
      expect(isLegateError(error, 'conflict') && error.details, what).toEqual({ runId: run.id })
    }
    // In another order, and with a default written out, it is the same request.
    const same: StartOptions = { whileRunning: 'queue', ...start, attributes: { b: 2, a: 1 } }
    expect((await runtime.run(clerk(), 'one', same).result).text).toBe('1 so far')
    expect(await runtime.store.roots({ limit: 10 })).toHaveLength(2)
  })

  test('is each owner’s own', async () => {
    const runtime = open(rowsOf(create))
    const runs = [{}, { owner: 'ann' }, { owner: 'bob' }].map((who, at) =>
      runtime.run(clerk(), `request ${at}`, { key: 'same', ...who }),
    )
    await Promise.all(runs.map(({ result }) => result))

    expect(new Set(runs.map(({ id }) => id)).size).toBe(3)
    expect(new Set(runs.map(({ conversationId }) => conversationId)).size).toBe(3)
    await runtime.forget(runs[1]?.id ?? '')
    expect((await runtime.run(clerk(), 'request 2', { key: 'same', owner: 'bob' }).result).status).toBe('completed')
  })

  test('of a deleted run is refused as deleted, in every process, and starts nothing', async () => {
    const rows = rowsOf(create)
    const start = { key: 'k', owner: 'ann', conversationKey: 'chat' }
    const first = startProcess(rows).runtime
    const run = first.run(clerk(), 'one', start)
    await run.result
    await first.forget(run.id, 'asked for')
    await first.close()

    const second = open(rows)
    const error = await failure(second.run(clerk(), 'one', start))
    expect(error).toBeInstanceOf(NotFoundError)
    expect(isLegateError(error, 'deleted') && error.details).toMatchObject({
      runId: run.id,
      deleted: { rootId: run.conversationId, reason: 'asked for' },
    })
    expect(await failure(second.run(clerk(), 'another request', start))).toMatchObject({ code: 'deleted' })
    expect(await second.store.roots({ limit: 10 })).toEqual([])

    // The conversation begins anew under a new key of a run.
    const next = second.run(clerk(), 'one', { ...start, key: 'k2' })
    expect((await next.result).text).toBe('1 so far')
    expect(next.conversationId).not.toBe(run.conversationId)
    const repeated = second.run(clerk(), 'one', { ...start, key: 'k2' })
    expect([(await repeated.result).text, repeated.conversationId]).toEqual(['1 so far', next.conversationId])
  })

  test('goes on in a conversation once', async () => {
    const runtime = open(rowsOf(create))
    const { conversationId } = await runtime.run(clerk(), 'zero', { owner: 'ann' }).result
    const start = { key: 'k', owner: 'ann', conversationId }
    const texts = []
    for (let at = 0; at < 3; at++) texts.push((await runtime.run(clerk(), 'one', start).result).text)

    expect(texts).toEqual(['2 so far', '2 so far', '2 so far'])
    expect((await runtime.run(clerk(), 'two', { ...start, key: 'k2' }).result).text).toBe('3 so far')
  })

  test('at the same moment in two conversations starts in one', async () => {
    const rows = rowsOf(create)
    const here = open(rows)
    const there = here.store.shared ? open(rows) : here
    const places = [await here.run(clerk(), 'a').result, await here.run(clerk(), 'b').result]

    const runs = [here, there].map((runtime, at) =>
      runtime.run(clerk(), 'one', { key: 'k', conversationId: places[at]?.conversationId ?? '' }),
    )
    const ends = await Promise.all(runs.map(failure))

    expect(ends.filter((end) => ConflictError.isInstance(end))).toMatchObject([{ details: { runId: runs[0]?.id } }])
    expect(ends.filter((end) => !ConflictError.isInstance(end))).toMatchObject([{ status: 'completed' }])
    const counts = (await here.store.roots({ limit: 10 })).map(({ turnCount }) => turnCount)
    expect(counts.toSorted()).toEqual([1, 2])
  })

  test('I9: does not reach the conversation of another owner', async () => {
    const runtime = open(rowsOf(create))
    const { conversationId } = await runtime.run(clerk(), 'mine', { owner: 'ann' }).result

    const foreign = await failure(runtime.run(clerk(), 'x', { key: 'k', owner: 'bob', conversationId }))
    const unknown = await failure(
      runtime.run(clerk(), 'x', { key: 'k', owner: 'bob', conversationId: '01928c5e-5b00-7abc-8def-0123456789ab' }),
    )

    expect([foreign, unknown]).toMatchObject([{ code: 'not_found' }, { code: 'not_found' }])
    // Nothing was started: the key is still free.
    expect((await runtime.run(clerk(), 'x', { key: 'k', owner: 'bob' }).result).status).toBe('completed')
  })
})

describe.each(stores)('two processes and one key, in a store in %s', (_, create) => {
  test('make one run at the same moment, and both hear its end and its words', async () => {
    const rows = rowsOf(create)
    const processes = Array.from({ length: 4 }, () => open(rows))
    for (let round = 0; round < 10; round++) {
      const start = { key: `round ${round}`, conversationKey: 'chat', owner: 'ann' }
      const runs = processes.map((runtime) => runtime.run(clerk(), 'hello', start))
      const outcomes = await Promise.all(runs.map(({ result }) => result))

      expect(outcomes.map(({ text }) => text)).toEqual(outcomes.map(() => `${round + 1} so far`))
      const [events, ...others] = await Promise.all(runs.map(durable))
      expect(events?.filter(({ type }) => type === 'run-start')).toHaveLength(1)
      for (const other of others) expect(other).toEqual(events)
    }
    const [process] = processes
    expect(await process?.store.roots({ limit: 10 })).toMatchObject([{ turnCount: 10 }])
  })
})

test('an open run is joined: the words and the end of the first start', async () => {
  const runtime = openRuntime()
  const gate = makeGate()
  const model = scriptedModel(async () => {
    await gate.opened
    return 'late'
  })
  const slow = agent({ name: 'slow', instructions: 'Wait.', model })
  const first = runtime.run(slow, 'go', { key: 'k' })
  const second = runtime.run(slow, 'go', { key: 'k' })
  gate.open()

  expect([(await second.result).text, (await first.result).text]).toEqual(['late', 'late'])
  expect(model.requests).toHaveLength(1)
})

test('a signal of a repeated start cancels the run', async () => {
  const runtime = openRuntime()
  const model = scriptedModel(() => new Promise<string>(() => undefined))
  const slow = agent({ name: 'slow', instructions: 'Wait.', model })
  const first = runtime.run(slow, 'go', { key: 'k' })
  const second = runtime.run(slow, 'go', { key: 'k', abortSignal: AbortSignal.abort('enough') })

  expect([(await second.result).status, (await first.result).status]).toEqual(['cancelled', 'cancelled'])
})

test('a key inside of a tool is refused: there it is a delegation', async () => {
  const runtime = openRuntime()
  const start = tool({
    description: 'Starts.',
    input: z.object({}),
    execute: async () => (await runtime.run(clerk(), 'hi', { key: 'k' }).result).text,
  })
  const model = scriptedModel([{ calls: [{ name: 'start', input: {} }] }, 'done'])
  await runtime.run(agent({ name: 'host', instructions: 'Go.', tools: { start }, model }), 'go').result

  expect(JSON.stringify(model.requests.at(-1)?.messages)).toMatch(/\{ key \}.*inside a tool this is a delegation/)
})

test('the same input in another spelling of its schema is the same request', async () => {
  const runtime = openRuntime()
  const input = z.object({ size: z.number(), color: z.string().default('black') })
  const typed = agent({ name: 'typed', instructions: 'Sell.', input, model: scriptedModel(() => 'sold') })
  const run = runtime.run(typed, { size: 42, color: 'black' }, { key: 'k' })
  await run.result

  expect((await runtime.run(typed, { size: 42 } as never, { key: 'k' }).result).text).toBe('sold')
  expect(await failure(runtime.run(typed, { size: 43, color: 'black' }, { key: 'k' }))).toBeInstanceOf(ConflictError)
})

test('an input that does not fit takes no key', async () => {
  const runtime = openRuntime()
  expect(await failure(runtime.run(clerk(), '', { key: 'k' }))).toMatchObject({ code: 'invalid_input' })

  expect((await runtime.run(clerk(), 'one', { key: 'k' }).result).text).toBe('1 so far')
})

test('a run without a key keeps no hash of its request, one with a key has it in its row and in its export', async () => {
  const store = memoryStore()
  const runtime = createRuntime({ store })
  onTestFinished(() => runtime.close())
  const plain = runtime.run(clerk(), 'one')
  const keyed = runtime.run(clerk(), 'one', { key: 'k' })
  await Promise.all([plain.result, keyed.result])
  const copy: string[] = []
  for await (const line of runtime.export(keyed.conversationId)) copy.push(line)
  const other = openRuntime()
  await other.import(copy)

  expect(store.turn(plain.id)?.requestHash).toBeNull()
  expect(store.turn(keyed.id)?.requestHash).toMatch(/^[\w-]{43}$/)
  // Where the tree was moved to, its key is known too.
  expect((await other.run(clerk(), 'one', { key: 'k' }).result).text).toBe('1 so far')
  expect(await other.store.roots({ limit: 10 })).toHaveLength(1)
  expect(await failure(other.run(clerk(), 'two', { key: 'k' }))).toMatchObject({ code: 'conflict' })
})
