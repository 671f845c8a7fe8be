import { type AnyAgent, agent, type RunEvent, type Runtime } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Model, Part } from '../../../src/core/model/model.ts'
import { type Gate, makeGate } from '../../support/gate.ts'
import { eventsOf, isDurable, only, openRuntime } from '../../support/reading.ts'
import { openStore } from '../../support/remote.ts'
import { type Rows, stores } from '../../support/stores.ts'

const NO_USAGE = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

interface Stage {
  readonly agent: AnyAgent
  /** Opens when the first half is said. */
  readonly half: Gate
  /** Lets it say the rest. */
  readonly rest: Gate
}

/** Says, thinks and begins a call, then waits, and says more. */
function stage(): Stage {
  const [half, rest] = [makeGate(), makeGate()]
  const model: Model = {
    id: 'own/model',
    async *stream(): AsyncGenerator<Part> {
      yield { type: 'reasoning-delta', text: 'Well, ' }
      yield { type: 'text-delta', text: 'I was ' }
      yield { type: 'reasoning-delta', text: 'hm.' }
      yield { type: 'text-delta', text: 'saying ' }
      yield { type: 'tool-input-delta', id: 'c1', name: 'look', text: '{"a"' }
      half.open()
      await rest.opened
      yield { type: 'tool-input-delta', id: 'c1', name: 'look', text: ':1}' }
      yield { type: 'text-delta', text: 'this.' }
      yield { type: 'finish', reason: 'stop', usage: NO_USAGE }
    },
  }
  return { agent: agent({ name: 'speaker', instructions: '', model }), half, rest }
}

/** Reads up to the first event of that type, and keeps on reading. */
function readTo(
  events: AsyncIterable<RunEvent>,
  type: RunEvent['type'],
): { first: Promise<void>; all: Promise<RunEvent[]> } {
  const gate = makeGate()
  const all = (async () => {
    const seen: RunEvent[] = []
    for await (const event of events) {
      seen.push(event)
      if (event.type === type) gate.open()
    }
    return seen
  })()
  return { first: gate.opened, all }
}

describe.each(stores)('on %s rows', (_name, create) => {
  function rows(): Rows {
    const made = create()
    onTestFinished(() => made.drop())
    return made
  }

  test('a reader that comes while a node speaks gets all of it as one event, then only what comes after', async () => {
    const { agent: speaker, half, rest } = stage()
    const run = openRuntime({ store: openStore(rows()) }).run(speaker, 'go' as never)
    await half.opened
    const { first, all } = readTo(run.events({ after: 2, live: true }), 'live')
    await first
    rest.open()
    const events = await all

    const [live, ...others] = only(events, 'live')
    expect(others).toEqual([])
    expect(live).toMatchObject({ runId: run.id, conversationId: run.conversationId, path: ['speaker'], attempt: 1 })
    expect(live).toMatchObject({ text: 'I was saying ', reasoning: 'Well, hm.' })
    expect(live?.calls).toEqual([{ callId: 'c1', tool: 'look', text: '{"a"' }])
    expect(only(events, 'text-delta').map(({ text }) => text)).toEqual(['this.'])
    expect(only(events, 'tool-input-delta').map(({ text }) => text)).toEqual([':1}'])
    expect(only(events, 'reasoning-delta')).toEqual([])
    expect(events.filter(isDurable)).toEqual((await eventsOf(run)).filter(({ seq }) => seq > 2))
    expect(events.map(({ seq }) => seq)).toEqual(events.map(({ seq }) => seq).toSorted((a, b) => a - b))
  })

  test('in another runtime too, from the blocks of the stream', async () => {
    const { agent: speaker, half, rest } = stage()
    const shared = rows()
    const run = openRuntime({ store: openStore(shared) }).run(speaker, 'go' as never)
    await half.opened
    const store = shared.open()
    onTestFinished(() => store.close())
    while (store.blocks(run.conversationId, 0).length === 0) await new Promise((resolve) => setTimeout(resolve, 10))
    const other = await openRuntime({ store: openStore(shared) }).attach(run.id)
    const { first, all } = readTo(other.events({ after: 2, live: true }), 'live')
    await first
    rest.open()
    const events = await all

    expect(only(events, 'live')).toHaveLength(1)
    expect(only(events, 'live')[0]).toMatchObject({ text: 'I was saying ', reasoning: 'Well, hm.', attempt: 1 })
    expect('I was saying this.').toContain(
      only(events, 'text-delta')
        .map(({ text }) => text)
        .join(''),
    )
    expect(only(events, 'message').at(-1)?.content).toBe('I was saying this.')
  })

  test('a node that another process runs, and that nobody here has heard, is shown empty: its reader hears all of it again', async () => {
    const { agent: speaker, half, rest } = stage()
    const shared = rows()
    const run = openRuntime({ store: openStore(shared) }).run(speaker, 'go' as never)
    await half.opened
    const other = await openRuntime({ store: openStore(shared) }).attach(run.id)
    const { first, all } = readTo(other.events({ after: 2, live: true }), 'live')
    await first
    rest.open()

    const [live] = only(await all, 'live')
    expect('I was saying '.startsWith(live?.text ?? '?')).toBe(true)
  })

  test('the words of a try that failed are not among those of the next', async () => {
    const [half, rest] = [makeGate(), makeGate()]
    let calls = 0
    const model: Model = {
      id: 'own/model',
      async *stream(): AsyncGenerator<Part> {
        yield { type: 'text-delta', text: calls === 0 ? 'wrong' : 'ri' }
        if (calls++ === 0) throw Object.assign(new Error('slow down'), { statusCode: 429, retryAfterMs: 1 })
        half.open()
        await rest.opened
        yield { type: 'text-delta', text: 'ght' }
        yield { type: 'finish', reason: 'stop', usage: NO_USAGE }
      },
    }
    const runtime = openRuntime({ store: openStore(rows()) })
    const run = runtime.run(agent({ name: 'a', instructions: '', model }), 'go')
    await half.opened
    const { first, all } = readTo(run.events({ live: true }), 'live')
    await first
    rest.open()
    const events = await all

    expect(only(events, 'live').map(({ attempt, text }) => [attempt, text])).toEqual([[2, 'ri']])
    expect(only(events, 'text-delta').map(({ text }) => text)).toEqual(['ght'])
    expect(only(events, 'reset')).toEqual([])
  })

  test('runtime.events reads the whole tree, run after run, until it is deleted', async () => {
    const runtime = openRuntime({ store: openStore(rows()) })
    const speaker = agent({ name: 'a', instructions: '', model: scriptedModel(() => 'yes') })
    const run = runtime.run(speaker, 'one')
    await run.result
    const reading = eventsOf(runtime.events(run.conversationId, { live: true }))
    const second = runtime.run(speaker, 'two', { conversationId: run.conversationId })
    await second.result
    const log = await durableOf(runtime, run.conversationId, second.id)
    await runtime.forget(run.conversationId)

    expect((await reading).filter(isDurable)).toEqual(log)
    expect(new Set(log.map(({ runId }) => runId))).toEqual(new Set([run.id, second.id]))
  })

  test('runtime.events ends when the runtime closes, and refuses an id that is no conversation', async () => {
    const runtime = openRuntime({ store: openStore(rows()) })
    const run = runtime.run(agent({ name: 'a', instructions: '', model: scriptedModel(() => 'yes') }), 'one')
    await run.result
    const { first, all } = readTo(runtime.events(run.conversationId), 'run-end')
    await first

    await expect(eventsOf(runtime.events('nobody'))).rejects.toMatchObject({ code: 'not_found' })
    await runtime.close()
    expect((await all).at(-1)?.type).toBe('run-end')
  })
})

async function durableOf(runtime: Runtime, rootId: string, runId: string): Promise<RunEvent[]> {
  const seen: RunEvent[] = []
  for await (const event of runtime.events(rootId)) {
    if (isDurable(event)) seen.push(event)
    if (event.type === 'run-end' && event.runId === runId) break
  }
  return seen
}

test('a node that ends while its reader comes in is heard once, as its message', async () => {
  for (let round = 0; round < 30; round++) {
    const { agent: speaker, half, rest } = stage()
    const run = openRuntime().run(speaker, 'go' as never)
    await half.opened
    rest.open()
    for (let wait = 0; wait < round; wait++) await Promise.resolve()
    const events = await eventsOf(run.events({ after: 1, live: true }))
    let text = ''
    for (const event of events) {
      if (event.type === 'live') text = event.text
      if (event.type === 'text-delta') text += event.text
    }
    expect(['', 'I was saying this.']).toContain(text)
    expect(only(events, 'message').at(-1)?.content).toBe('I was saying this.')
    expect(events.at(-1)?.type).toBe('run-end')
  }
})
