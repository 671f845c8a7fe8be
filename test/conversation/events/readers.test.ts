import { type AnyAgent, agent, type Run, type RunEvent, type Runtime, tool } from 'legate'
import { memoryStore } from 'legate/store/memory'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { makeGate } from '../../support/gate.ts'
import { eventsOf, isDurable, only, openRuntime } from '../../support/reading.ts'
import { localStore } from '../../support/rows.ts'

/** A host that calls a tool and a child, and answers in three pieces. */
function host(): AnyAgent {
  const expert = agent({
    name: 'expert',
    instructions: '',
    model: scriptedModel(() => ({ chunks: ['It ', 'is ', 'fast.'] })),
    input: z.object({ topic: z.string() }),
  })
  const look = tool({ description: 'Look', input: { type: 'object' }, execute: () => 'seen' })
  const calls = [
    { name: 'look', input: {} },
    { name: 'ask', input: { topic: 'QUIC' } },
  ]
  const model = scriptedModel([{ text: 'Let me see.', calls }, { chunks: ['So: ', 'it is ', 'fast.'] }])
  return agent({ name: 'host', instructions: '', model, tools: { look }, subagents: { ask: expert } })
}

function start(runtime: Runtime): Run {
  return runtime.run(host(), 'go' as never)
}

describe('the readers of a run', () => {
  test('all see the same, from the beginning, each at its own pace', async () => {
    const run = start(openRuntime())

    const [first, second, slow] = await Promise.all([eventsOf(run), eventsOf(run.events()), slowly(run)])

    expect(second).toEqual(first)
    expect(slow).toEqual(first)
    expect(first.at(0)?.type).toBe('run-start')
    expect(first.at(-1)?.type).toBe('run-end')
  })

  test('a late one sees all that is durable, and nothing twice', async () => {
    const runtime = openRuntime()
    const run = start(runtime)
    const live = await eventsOf(run)
    await run.result

    const late = await eventsOf(run)

    expect(late).toEqual(live.filter(isDurable))
    expect(await eventsOf(await runtime.attach(run.id))).toEqual(late)
  })

  test('a reader that comes while the model speaks sees all it has said so far, and then the rest', async () => {
    const [half, end] = [makeGate(), makeGate()]
    const model = {
      id: 'own/model',
      async *stream() {
        yield { type: 'text-delta', text: 'I was ' } as const
        yield { type: 'text-delta', text: 'saying ' } as const
        half.open()
        await end.opened
        yield { type: 'text-delta', text: 'this.' } as const
        yield { type: 'finish', reason: 'stop', usage: NO_USAGE } as const
      },
    }
    const run = openRuntime().run(agent({ name: 'a', instructions: '', model }), 'go')
    await half.opened

    const late = eventsOf(run)
    await new Promise((resolve) => setTimeout(resolve, 5))
    end.open()
    const events = await late

    expect(textIn(events)).toBe('I was saying this.')
    expect(sequenceOf(events)).toBe('grows')
  })

  test('the order of a whole run', async () => {
    const events = (await eventsOf(start(openRuntime()))).filter(isDurable)

    const told = events.map((event) => `${event.path.at(-1)} ${event.type}`)
    expect(told.filter((line) => line.startsWith('host'))).toEqual([
      'host run-start',
      'host message',
      'host usage',
      'host message',
      'host tool-call',
      'host tool-call',
      ...told.filter((line) => /^host (tool-result|delegation)/.test(line)),
      'host usage',
      'host message',
      'host run-end',
    ])
    expect(told.filter((line) => line.startsWith('expert'))).toEqual([
      'expert run-start',
      'expert message',
      'expert usage',
      'expert message',
      'expert run-end',
    ])
  })
})

describe('a reader does not matter to the run', () => {
  test('a slow one does not slow it', async () => {
    const run = start(openRuntime())
    let isRead = false
    const reading = slowly(run, 15).finally(() => {
      isRead = true
    })

    await run.result

    expect(isRead).toBe(false)
    expect((await reading).length).toBeGreaterThan(15)
  })

  test('a reader that throws in its loop ends for itself only', async () => {
    const run = start(openRuntime())
    const other = eventsOf(run)

    const thrown = await (async () => {
      for await (const event of run) if (event.type === 'tool-call') throw new Error('my own fault')
    })().catch((error: unknown) => error)

    expect(thrown).toMatchObject({ message: 'my own fault' })
    expect((await run.result).status).toBe('completed')
    expect((await other).at(-1)?.type).toBe('run-end')
  })

  test('a reader that breaks out leaves nothing behind', async () => {
    const runtime = openRuntime()
    const run = start(runtime)

    for await (const _event of run) break
    for await (const _event of run.events()) break
    const iterator = run[Symbol.asyncIterator]()
    await iterator.next()
    await iterator.return?.()
    await run.result
    for await (const _event of run) break

    expect(openFeeds(runtime)).toBe(0)
    expect(await iterator.next()).toEqual({ value: undefined, done: true })
  })

  test('a reader that ends before the run is recorded leaves nothing behind', async () => {
    const runtime = openRuntime()
    const run = start(runtime)
    const iterator = run[Symbol.asyncIterator]()

    const first = iterator.next()
    await iterator.return?.()
    await first
    await run.result

    expect(openFeeds(runtime)).toBe(0)
  })

  test('a reader that asks for many at once gets them in order, and then the end', async () => {
    const run = start(openRuntime())
    const events = eventsOf(run)
    const iterator = run[Symbol.asyncIterator]()

    const results = await Promise.all(Array.from({ length: 60 }, () => iterator.next()))

    const got = results.flatMap(({ value, done }) => (done === true ? [] : [value as RunEvent]))
    expect(got).toEqual(await events)
    expect(results.at(-1)?.done).toBe(true)
  })

  test('a run without readers completes', async () => {
    const runtime = openRuntime()

    expect((await start(runtime).result).status).toBe('completed')
    expect(openFeeds(runtime)).toBe(0)
  })

  test('a thousand of them see the same', async () => {
    const run = start(openRuntime())

    const all = await Promise.all(Array.from({ length: 1_000 }, () => eventsOf(run)))

    expect(new Set(all.map((events) => events.map(({ seq }) => seq).join())).size).toBe(1)
  })
})

describe('a run of a child', () => {
  test('may be read by itself: only its own events and those below it', async () => {
    const runtime = openRuntime()
    const run = start(runtime)
    await run.result
    const [link] = localStore(runtime).linksOf(run.id)

    const events = await eventsOf(await runtime.attach(link?.id ?? ''))

    expect(new Set(events.map(({ path }) => path.join('/')))).toEqual(new Set(['host/expert']))
    expect(events.at(0)?.type).toBe('run-start')
    expect(events.at(-1)?.type).toBe('run-end')
  })

  test('shows no other run of its conversation', async () => {
    const model = scriptedModel(['one', 'two', 'three'])
    const clerk = agent({ name: 'clerk', instructions: '', model })
    const runtime = openRuntime()
    const first = runtime.run(clerk, 'a')
    await first.result
    const second = runtime.run(clerk, 'b', { conversationId: first.conversationId })
    await second.result
    await runtime.run(clerk, 'c', { conversationId: first.conversationId }).result

    const events = await eventsOf(second)

    expect(new Set(events.map(({ runId }) => runId))).toEqual(new Set([second.id]))
    expect(only(events, 'message').map(({ content }) => content)).toEqual(['b', 'two'])
  })
})

test('a run that the store has forgotten says so to who reads it', async () => {
  const runtime = openRuntime({ store: memoryStore({ keep: 1 }) })
  const clerk = agent({ name: 'clerk', instructions: '', model: scriptedModel(() => 'ok') })
  const first = runtime.run(clerk, 'a')
  await first.result
  await runtime.run(clerk, 'b').result
  await runtime.run(clerk, 'c').result

  await expect(eventsOf(first)).rejects.toThrow(/no longer in this store.*memoryStore\(\{ keep \}\)/)
})

test('reading one run of a long conversation reads no more of the log than that run', async () => {
  const store = memoryStore()
  const asked: { after: number; rows: number }[] = []
  const events: typeof store.events = (rootId, after, limit) => {
    const rows = store.events(rootId, after, limit)
    asked.push({ after, rows: rows.length })
    return rows
  }
  const runtime = openRuntime({ store: { ...store, events } })
  const clerk = agent({ name: 'clerk', instructions: '', model: scriptedModel(() => 'ok') })
  const { conversationId } = await runtime.run(clerk, 'first').result
  for (let round = 0; round < 100; round++) await runtime.run(clerk, 'more', { conversationId }).result
  const total = store.lastSeq(conversationId)
  const run = runtime.run(clerk, 'last', { conversationId })

  const live = await eventsOf(run)

  expect(live.map(({ type }) => type)).toContain('run-end')
  expect(asked.every(({ after }) => after >= total)).toBe(true)
  expect(asked.reduce((sum, { rows }) => sum + rows, 0)).toBeLessThan(20)
  expect(await eventsOf(run.events())).toEqual(live.filter(isDurable))
})

test('a reader of an earlier run joins those of a later one in the same conversation', async () => {
  const runtime = openRuntime()
  const held = makeGate()
  const model = scriptedModel(async ({ messages }) => {
    if (messages.at(-1)?.content === 'slow') await held.opened
    return 'ok'
  })
  const clerk = agent({ name: 'clerk', instructions: '', model })
  const first = runtime.run(clerk, 'slow')
  const second = runtime.run(clerk, 'queued', { conversationId: first.conversationId })
  const late = eventsOf(second)
  await new Promise((resolve) => setImmediate(resolve))
  const early = eventsOf(first)
  held.open()

  expect(only(await early, 'message').map(({ content }) => content)).toEqual(['slow', 'ok'])
  expect((await late).filter(isDurable).map(({ type }) => type)).toEqual([
    'run-queued',
    'message',
    'run-start',
    'usage',
    'message',
    'run-end',
  ])
})

const NO_USAGE = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

function textIn(events: readonly RunEvent[]): string {
  return only(events, 'text-delta')
    .map(({ text }) => text)
    .join('')
}

function sequenceOf(events: readonly RunEvent[]): string {
  const at = events.findIndex((event, index) => index > 0 && event.seq <= (events[index - 1]?.seq ?? 0))
  return at < 0 ? 'grows' : `${events[at - 1]?.seq} is followed by ${events[at]?.seq}`
}

async function slowly(run: Run, ms = 1): Promise<RunEvent[]> {
  const events: RunEvent[] = []
  for await (const event of run) {
    events.push(event)
    await new Promise((resolve) => setTimeout(resolve, ms))
  }
  return events
}

/** How many trees a process keeps events of. */
function openFeeds(runtime: Runtime): number {
  return (runtime['live'].feeds as unknown as { trees: Map<string, unknown> }).trees.size
}
