import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { agent } from 'legate'
import type { Part } from 'legate/models'
import { describe, expect, onTestFinished, test } from 'vitest'
import { useWorld } from '../support/agents.ts'
import { eventsOf, only } from '../support/reading.ts'
import { lasting } from '../support/stores.ts'
import { Wire } from './support/wire.ts'
import { ask } from './support/world.ts'

const NONE = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

/** A model of one's own that says it used this. */
function saying(usage: unknown) {
  return {
    id: 'own/model',
    stream: async function* () {
      yield { type: 'text-delta', text: 'hello' } as const
      yield { type: 'finish', reason: 'stop', usage } as Part
    },
  }
}

describe.each(lasting)('what a model says it used, on %s', (_, create) => {
  const world = useWorld(create)

  test.each<[string, unknown, string]>([
    ['is left out', undefined, 'nothing'],
    ['is null', null, 'nothing'],
    ['is a text', 'many', '"many"'],
    ['is below nothing', { ...NONE, inputTokens: -5 }, 'inputTokens -5'],
    ['is not a number', { ...NONE, outputTokens: Number.NaN }, 'outputTokens NaN'],
    ['has no end', { ...NONE, outputTokens: Number.POSITIVE_INFINITY }, 'outputTokens Infinity'],
    ['is in words', { ...NONE, inputTokens: '12' }, 'inputTokens "12"'],
    ['is half a token', { ...NONE, cacheReadTokens: 0.5 }, 'cacheReadTokens 0.5'],
    ['leaves out the answer', { inputTokens: 3 }, 'outputTokens undefined'],
  ])('and %s is not counted, with a warning, and the answer stands', async (_name, usage, told) => {
    const { runtime } = world.start()
    const run = runtime.run(agent({ name: 'clerk', instructions: '', model: saying(usage) }), 'go')
    const events = await eventsOf(run)

    expect(await run.result).toMatchObject({ status: 'completed', text: 'hello', usage: NONE })
    expect(only(events, 'warning').map(({ message }) => message)).toEqual([
      `own/model says it used ${told}: this is not counted.`,
    ])
    await runtime.close()
    const next = world.start()
    expect((await next.runtime.usage(run.id)).usage).toEqual(NONE)
    expect(next.store.nodesOf(run.id).map((node) => node.usage)).toEqual([NONE, NONE])
  })

  test.each<[string, unknown]>([
    ['is left out', undefined],
    ['is below nothing', { ...NONE, inputTokens: -1_000_000 }],
    ['is half a token', { ...NONE, outputTokens: 0.5 }],
    ['is not a number', { ...NONE, outputTokens: Number.NaN }],
  ])('and %s counts as what was held back for the call where there is a budget', async (_name, usage) => {
    const { runtime } = world.start()
    const clerk = agent({ name: 'clerk', instructions: '', model: saying(usage), budget: { tokens: 10_000 } })
    const run = runtime.run(clerk, 'go')
    await run.result
    await runtime.close()

    expect(world.store.turn(run.id)?.spend?.spent.tokens).toBeGreaterThan(1_000)
  })

  test('may leave out what a cache had to do with it', async () => {
    const { runtime } = world.start()
    const model = saying({ inputTokens: 3, outputTokens: 2 })
    const run = runtime.run(agent({ name: 'clerk', instructions: '', model }), 'go')

    expect(only(await eventsOf(run), 'warning')).toEqual([])
    expect((await run.result).usage).toEqual({ ...NONE, inputTokens: 3, outputTokens: 2 })
  })
})

test('a server of the OpenAI kind says what was used only where it is asked to', async () => {
  const wire = await Wire.open()
  onTestFinished(() => wire.close())
  wire.mock.on({}, { content: 'hello', usage: { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 } })
  const modelOf = (more: object) => createOpenAICompatible({ name: 'own', baseURL: `${wire.url}/v1`, ...more })('big')

  const silent = await ask(modelOf({}), 'go', { budget: { tokens: 10_000 } })
  const told = await ask(modelOf({ includeUsage: true }), 'go', { budget: { tokens: 10_000 } })

  expect(silent.outcome).toMatchObject({ status: 'completed', usage: NONE })
  expect(told.outcome).toMatchObject({ status: 'completed', usage: { ...NONE, inputTokens: 7, outputTokens: 2 } })
  expect(wire.bodies.map((body) => body['stream_options'])).toEqual([undefined, { include_usage: true }])
})
