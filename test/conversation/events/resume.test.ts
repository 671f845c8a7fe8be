import { type AnyAgent, agent, type RunEvent, tool } from 'legate'
import type { Part } from 'legate/models'
import { scriptedModel } from 'legate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { makeGate } from '../../support/gate.ts'
import { eventsOf, isDurable, only, openRuntime } from '../../support/reading.ts'
import { type Rows, stores } from '../../support/stores.ts'

const NO_USAGE = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

function host(): AnyAgent {
  const expert = agent({
    name: 'expert',
    instructions: '',
    model: scriptedModel(() => ({ chunks: ['It ', 'is ', 'fast.'] })),
    input: z.object({ n: z.number() }),
  })
  const look = tool({ description: 'Look', input: { type: 'object' }, effect: 'pure', execute: () => 'seen' })
  const calls = [0, 1, 2].flatMap((n) => [
    { name: 'look', input: {} },
    { name: 'ask', input: { n } },
  ])
  const model = scriptedModel([{ chunks: ['Let me ', 'see.'], calls }, { chunks: ['So: ', 'fast.'] }])
  return agent({ name: 'host', instructions: '', model, tools: { look }, subagents: { ask: expert } })
}

test('events({ after }) goes on after any event, durable or live, without a gap and without one twice', async () => {
  const run = openRuntime().run(host(), 'go' as never)
  const all = await eventsOf(run)
  const durable = all.filter(isDurable)

  for (const { seq } of all) {
    const rest = await eventsOf(run.events({ after: seq }))
    expect(rest).toEqual(durable.filter((event) => event.seq > seq))
  }
  expect(await eventsOf(run.events({ after: 1_000_000 }))).toEqual([])
  expect(await eventsOf(run.events({ after: -1 }))).toEqual(durable)
})

test('a reader that stops and goes on again and again while the run goes on misses nothing durable', async () => {
  const run = openRuntime().run(host(), 'go' as never)
  const whole = eventsOf(run)
  const seen: RunEvent[] = []

  while (seen.at(-1)?.type !== 'run-end' || seen.at(-1)?.runId !== run.id) {
    for await (const event of run.events({ after: seen.at(-1)?.seq ?? 0 })) {
      seen.push(event)
      if (Math.random() < 0.3) break
    }
  }

  expect(seen.filter(isDurable)).toEqual((await whole).filter(isDurable))
  expect(new Set(seen.map(({ seq }) => seq)).size).toBe(seen.length)
})

describe.each(stores)('on %s rows', (_name, create) => {
  function rows(): Rows {
    const made = create()
    onTestFinished(() => made.drop())
    return made
  }

  test('another runtime reads the same durable events, from the beginning or after one', async () => {
    const shared = rows()
    const run = openRuntime({ store: shared.open() }).run(host(), 'go' as never)
    const durable = (await eventsOf(run)).filter(isDurable)
    const other = await openRuntime({ store: shared.open() }).attach(run.id)

    expect(await eventsOf(other)).toEqual(durable)
    for (const { seq } of durable.filter((_, at) => at % 5 === 0)) {
      expect(await eventsOf(other.events({ after: seq }))).toEqual(durable.filter((event) => event.seq > seq))
    }
    expect(await other.result).toEqual(await run.result)
  })

  test('another runtime follows the run while it runs, and its result', async () => {
    const open = makeGate()
    const entered = makeGate()
    const wait = tool({
      description: 'Wait',
      input: { type: 'object' },
      execute: async () => {
        entered.open()
        await open.opened
        return 'waited'
      },
    })
    const model = scriptedModel([{ calls: [{ name: 'wait', input: {} }] }, 'done'])
    const shared = rows()
    const runtime = openRuntime({ store: shared.open() })
    const run = runtime.run(agent({ name: 'host', instructions: '', model, tools: { wait } }), 'go')
    await entered.opened
    const other = await openRuntime({ store: shared.open() }).attach(run.id)
    const following = eventsOf(other)

    await new Promise((resolve) => setTimeout(resolve, 30))
    open.open()

    expect(await other.result).toMatchObject({ status: 'completed', text: 'done' })
    expect((await following).filter(isDurable)).toEqual((await eventsOf(run)).filter(isDurable))
  })

  test('another runtime sees what a model says while it says it, also after a long silence', async () => {
    const [spoken, more, end] = [makeGate(), makeGate(), makeGate()]
    const model = {
      id: 'own/model',
      async *stream(): AsyncGenerator<Part> {
        await new Promise((resolve) => setTimeout(resolve, 400))
        yield { type: 'text-delta', text: 'I am ' }
        yield { type: 'text-delta', text: 'saying' }
        spoken.open()
        await more.opened
        yield { type: 'text-delta', text: ' this' }
        await end.opened
        yield { type: 'text-delta', text: '.' }
        yield { type: 'finish', reason: 'stop', usage: NO_USAGE }
      },
    }
    const shared = rows()
    const run = openRuntime({ store: shared.open() }).run(agent({ name: 'host', instructions: '', model }), 'go')
    await spoken.opened
    const other = await openRuntime({ store: shared.open() }).attach(run.id)
    let heard = ''
    const events: RunEvent[] = []

    for await (const event of other) {
      events.push(event)
      if (event.type === 'text-delta') heard += event.text
      if (heard === 'I am saying') more.open()
      if (heard === 'I am saying this') end.open()
    }

    expect(heard).toMatch(/^I am saying this\.?$/)
    expect(only(events, 'message').at(-1)?.content).toBe('I am saying this.')
    expect(events.map(({ seq }) => seq)).toEqual(events.map(({ seq }) => seq).toSorted((a, b) => a - b))
  })

  test('what a lost process had begun to say is taken back before another says it again', async () => {
    const spoken = makeGate()
    const lost = {
      id: 'own/model',
      async *stream(): AsyncGenerator<Part> {
        yield { type: 'text-delta', text: 'Half of' }
        spoken.open()
        await new Promise(() => undefined)
      },
    }
    const shared = rows()
    const first = openRuntime({ store: shared.open(), engine: { graceMs: 20 } })
    const run = first.run(agent({ name: 'host', instructions: '', model: lost }), 'go')
    await spoken.opened
    const reader = await openRuntime({ store: shared.open() }).attach(run.id)
    const told: string[] = []
    const heard = makeGate()
    const reading = (async () => {
      for await (const event of reader) {
        if (event.type === 'reset') told.length = 0
        if (event.type === 'text-delta') told.push(event.text)
        if (event.type === 'text-delta') heard.open()
      }
    })()
    await heard.opened
    await first.close()
    const slow = {
      id: 'own/model',
      async *stream(): AsyncGenerator<Part> {
        yield { type: 'text-delta', text: 'The whole' }
        await new Promise((resolve) => setTimeout(resolve, 700))
        yield { type: 'text-delta', text: ' thing.' }
        yield { type: 'finish', reason: 'stop', usage: NO_USAGE }
      },
    }
    const second = openRuntime({
      store: shared.open(),
      agents: [agent({ name: 'host', instructions: '', model: slow })],
    })

    await second.resume()
    await reading

    expect(told.join('')).toMatch(/^The whole/)
    expect(await reader.result).toMatchObject({ status: 'completed', text: 'The whole thing.' })
  })

  test('a run can be cancelled from another runtime', async () => {
    const entered = makeGate()
    const hold = tool({
      description: 'Hold',
      input: { type: 'object' },
      execute: () => {
        entered.open()
        return new Promise<never>(() => undefined)
      },
    })
    const model = scriptedModel([{ text: 'Wait.', calls: [{ name: 'hold', input: {} }] }])
    const shared = rows()
    const run = openRuntime({ store: shared.open(), engine: { graceMs: 50 } }).run(
      agent({ name: 'host', instructions: '', model, tools: { hold } }),
      'go',
    )
    await entered.opened
    const other = await openRuntime({ store: shared.open() }).attach(run.id)

    await other.cancel('from elsewhere')

    expect(await run.result).toMatchObject({ status: 'cancelled', text: 'Wait.', error: { message: 'from elsewhere' } })
    expect(await other.result).toMatchObject({ status: 'cancelled' })
  })

  test('after all are closed and opened again everything durable is there', async () => {
    const shared = rows()
    const first = openRuntime({ store: shared.open() })
    const run = first.run(host(), 'go' as never)
    const durable = (await eventsOf(run)).filter(isDurable)
    const outcome = await run.result
    await first.close()

    const again = await openRuntime({ store: shared.open() }).attach(run.id)

    expect(await eventsOf(again)).toEqual(durable)
    expect(await again.result).toEqual(outcome)
    expect(await eventsOf(again.events({ after: 7 }))).toEqual(durable.slice(7))
  })
})
