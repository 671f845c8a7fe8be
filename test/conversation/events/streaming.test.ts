import { createHash } from 'node:crypto'
import { agent, type RunEvent } from 'legate'
import type { Part } from 'legate/models'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { makeGate } from '../../support/gate.ts'
import { watchWork } from '../../support/pace.ts'
import { eventsOf, isDurable, only, openRuntime } from '../../support/reading.ts'
import { localStore } from '../../support/rows.ts'

const FINISH: Part = {
  type: 'finish',
  reason: 'stop',
  usage: { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 },
}

function streaming(chunks: readonly string[]) {
  return agent({ name: 'a', instructions: '', model: scriptedModel([{ chunks }]) })
}

function textIn(events: readonly RunEvent[]): string {
  return only(events, 'text-delta')
    .map(({ text }) => text)
    .join('')
}

/** The last message an agent said. */
function messageIn(events: readonly RunEvent[]) {
  return only(events, 'message').findLast(({ role }) => role === 'agent')
}

describe('what is streamed', () => {
  const astral = '😀 漢字 é 👩‍👩‍👧'

  test.each<[string, readonly string[]]>([
    ['words', ['It ', 'is ', 'fast.']],
    ['characters of several bytes', [...astral]],
    ['halves of surrogate pairs', astral.split('')],
    ['empty pieces', ['', 'a', '', '', 'b', '']],
    ['line breaks and NUL', ['a\n', '\r\n', '\u0000', 'b']],
    ['one big piece and one small', ['x'.repeat(100_000), 'y']],
  ])('as %s concatenates exactly to the message', async (_name, chunks) => {
    const runtime = openRuntime()
    const run = runtime.run(streaming(chunks), 'go')

    const events = await eventsOf(run)

    const text = chunks.join('')
    expect(textIn(events)).toBe(text)
    expect(messageIn(events)?.content).toBe(text)
    expect((await run.result).text).toBe(text)
    expect(localStore(runtime).nodesOf(run.id).at(-1)?.output.content).toBe(text)
  })

  test('is replaced by one record of pieces, bytes and digest', async () => {
    const chunks = ['It is ', 'über ', '😀']
    const run = openRuntime().run(streaming(chunks), 'go')
    await run.result

    const events = await eventsOf(run)

    const text = chunks.join('')
    expect(messageIn(events)?.streamed).toEqual({
      chunks: 3,
      bytes: Buffer.byteLength(text),
      sha256: createHash('sha256').update(text).digest('hex'),
    })
    expect(events.every(isDurable)).toBe(true)
  })

  test('in one piece needs no record', async () => {
    const events = await eventsOf(openRuntime().run(streaming(['all at once']), 'go'))

    expect(messageIn(events)?.streamed).toBeNull()
    expect(textIn(events)).toBe('all at once')
  })

  test('can be read while it is said', async () => {
    const open = makeGate()
    const model = {
      id: 'own/model',
      async *stream(): AsyncGenerator<Part> {
        yield { type: 'text-delta', text: 'first ' }
        await open.opened
        yield { type: 'text-delta', text: 'second' }
        yield FINISH
      },
    }
    const runtime = openRuntime()
    const run = runtime.run(agent({ name: 'a', instructions: '', model }), 'go')
    const seen: string[] = []

    for await (const event of run) {
      if (event.type !== 'text-delta') continue
      seen.push(`${event.text}while ${localStore(runtime).nodesOf(run.id).at(-1)?.state}`)
      open.open()
    }

    expect(seen).toEqual(['first while running', 'secondwhile running'])
  })

  test('with reasoning and the arguments of calls is told apart', async () => {
    const parts: Part[] = [
      { type: 'reasoning-delta', text: 'Hmm, ' },
      { type: 'reasoning-delta', text: 'yes.' },
      { type: 'text-delta', text: 'Looking.' },
      { type: 'tool-input-delta', id: '7', name: 'nope', text: '{"q":' },
      { type: 'tool-input-delta', id: '7', name: 'nope', text: '1}' },
      { type: 'tool-call', id: '7', name: 'nope', input: '{"q":1}' },
      FINISH,
    ]
    let calls = 0
    const model = {
      id: 'own/model',
      async *stream(): AsyncGenerator<Part> {
        yield* calls++ === 0 ? parts : [{ type: 'text-delta', text: 'done' } as const, FINISH]
      },
    }

    const events = await eventsOf(openRuntime().run(agent({ name: 'a', instructions: '', model }), 'go'))

    expect(only(events, 'reasoning-delta').map(({ text }) => text)).toEqual(['Hmm, ', 'yes.'])
    expect(only(events, 'tool-input-delta')).toMatchObject([
      { callId: '7', tool: 'nope', text: '{"q":' },
      { callId: '7', tool: 'nope', text: '1}' },
    ])
    expect(textIn(events)).toBe('Looking.done')
  })

  test('live events lie between the whole numbers around them, and grow', async () => {
    const events = await eventsOf(openRuntime().run(streaming(['a', 'b', 'c']), 'go'))

    const live = events.filter((event) => !isDurable(event)).map(({ seq }) => seq)
    const before = events.findLast((event, at) => isDurable(event) && at < 4)?.seq ?? 0
    expect(live).toEqual(live.toSorted((a, b) => a - b))
    expect(new Set(live).size).toBe(3)
    for (const seq of live) expect(Math.floor(seq)).toBe(before)
  })

  test('10,000 pieces arrive whole and in order, in little time', async () => {
    const chunks = Array.from({ length: 10_000 }, (_, at) => `${at} `)
    const workMs = watchWork()

    const run = openRuntime().run(streaming(chunks), 'go')
    const events = await eventsOf(run)

    expect(textIn(events)).toBe(chunks.join(''))
    expect(only(events, 'text-delta')).toHaveLength(10_000)
    expect(new Set(events.map(({ seq }) => seq)).size).toBe(events.length)
    expect(messageIn(events)?.streamed?.chunks).toBe(10_000)
    expect(workMs()).toBeLessThan(2_000)
  })
})

describe('a call that is tried again', () => {
  const passing = { statusCode: 503, retryAfterMs: 1 }

  test('tells readers to forget: what follows the last reset is the message', async () => {
    const model = scriptedModel([
      { chunks: ['Half ', 'of'], error: passing },
      { chunks: ['Another '], error: passing },
      { chunks: ['The ', 'whole.'] },
    ])

    const events = await eventsOf(openRuntime().run(agent({ name: 'a', instructions: '', model }), 'go'))

    const told = events.flatMap((event) => {
      if (event.type === 'text-delta') return [event.text]
      return event.type === 'reset' || event.type === 'retry' ? [`${event.type} ${event.attempt}`] : []
    })
    expect(told).toEqual([...['Half ', 'of', 'retry 2', 'reset 2', 'Another ', 'retry 3', 'reset 3', 'The ', 'whole.']])
    expect(messageIn(events)).toMatchObject({ content: 'The whole.', streamed: { chunks: 2 } })
    expect(only(events, 'message')).toHaveLength(2)
  })

  test('a call that fails for good keeps the last words', async () => {
    const model = scriptedModel(() => ({ chunks: ['Half ', 'of it'], error: passing }))
    const run = openRuntime().run(agent({ name: 'a', instructions: '', model }), 'go')

    const events = await eventsOf(run)

    expect(messageIn(events)).toMatchObject({ content: 'Half of it', state: 'errored', streamed: { chunks: 2 } })
    expect(await run.result).toMatchObject({ status: 'failed', text: 'Half of it' })
  })
})

test('a stop while it streams keeps the partial text, and nothing changes it later', async () => {
  const spoken = makeGate()
  const model = {
    id: 'own/model',
    async *stream(): AsyncGenerator<Part> {
      yield { type: 'text-delta', text: 'I was ' }
      yield { type: 'text-delta', text: 'saying' }
      spoken.open()
      await new Promise((resolve) => setTimeout(resolve, 60))
      yield { type: 'text-delta', text: ' too much' }
      yield FINISH
    },
  }
  const runtime = openRuntime()
  const run = runtime.run(agent({ name: 'a', instructions: '', model }), 'go')
  const reading = eventsOf(run)
  await spoken.opened
  await run.cancel()
  await run.result
  await new Promise((resolve) => setTimeout(resolve, 100))

  const events = await reading

  expect(messageIn(events)).toMatchObject({ content: 'I was saying', state: 'stopped', streamed: { chunks: 2 } })
  expect(localStore(runtime).nodesOf(run.id).at(-1)).toMatchObject({
    state: 'stopped',
    output: { content: 'I was saying' },
  })
  expect(localStore(runtime).openNodes(run.id)).toEqual([])
})
