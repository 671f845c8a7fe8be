import { agent, tool } from 'legate'
import { scriptedModel } from 'legate/testing'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { makeGate } from '../support/gate.ts'
import { openRuntime, resultsIn } from '../support/reading.ts'

test('the calls of one message run at the same time, and all end before the model is asked again', async () => {
  const all = makeGate()
  let inside = 0
  const meet = tool({
    description: 'Meet',
    input: z.object({ at: z.number() }),
    execute: async ({ at }) => {
      if (++inside === 8) all.open()
      await all.opened
      return `met ${at}`
    },
  })
  const calls = Array.from({ length: 8 }, (_, at) => ({ name: 'meet', input: { at } }))
  const model = scriptedModel([{ calls }, 'done'])

  const outcome = await openRuntime().run(agent({ name: 'a', instructions: '', model, tools: { meet } }), 'go').result

  expect(outcome.status).toBe('completed')
  expect(resultsIn(model.requests[1]).map(({ content }) => content)).toEqual(calls.map((_, at) => `met ${at}`))
})

test('results are in call order, whatever order they came in', async () => {
  const wait = tool({
    description: 'Wait',
    input: z.object({ ms: z.number() }),
    execute: ({ ms }) => new Promise<number>((resolve) => setTimeout(resolve, ms, ms)),
  })
  const times = [40, 1, 25, 10, 0]
  const calls = times.map((ms, at) => ({ id: `id-${at}`, name: 'wait', input: { ms } }))
  const model = scriptedModel([{ calls }, 'done'])

  await openRuntime().run(agent({ name: 'a', instructions: '', model, tools: { wait } }), 'go').result

  expect(resultsIn(model.requests[1]).map(({ callId, content }) => [callId, content])).toEqual(
    times.map((ms, at) => [`id-${at}`, String(ms)]),
  )
})

test('with one worker they run one after another', async () => {
  let inside = 0
  let most = 0
  const step = tool({
    description: 'Step',
    input: { type: 'object' },
    execute: async () => {
      most = Math.max(most, ++inside)
      await new Promise((resolve) => setTimeout(resolve, 5))
      inside--
      return 'ok'
    },
  })
  const model = scriptedModel([{ calls: Array(5).fill({ name: 'step', input: {} }) }, 'done'])
  const runtime = openRuntime({ engine: { workers: 1 } })

  const outcome = await runtime.run(agent({ name: 'a', instructions: '', model, tools: { step } }), 'go').result

  expect(outcome).toMatchObject({ status: 'completed', toolCalls: 5 })
  expect(most).toBe(1)
})

/** Fewer where every row is read again before each node. */
const RUNS = process.env['LEGATE_FRESH'] === '1' ? 30 : 100

test(`${RUNS} runs of one agent at the same time do not mix`, async () => {
  const echo = tool({ description: 'Echo', input: z.object({ q: z.string() }), execute: ({ q }) => `echo ${q}` })
  const model = scriptedModel(({ messages }) => {
    const last = messages.at(-1)
    if (last?.role === 'tool') return String(last.content)
    return { calls: [{ name: 'echo', input: { q: String(last?.content) } }] }
  })
  const clerk = agent({ name: 'a', instructions: '', model, tools: { echo } })
  const runtime = openRuntime()

  const outcomes = await Promise.all(Array.from({ length: RUNS }, (_, at) => runtime.run(clerk, `q${at}`).result))

  expect(outcomes.map(({ text }) => text)).toEqual(Array.from({ length: RUNS }, (_, at) => `echo q${at}`))
})
