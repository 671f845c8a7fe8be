import { agent, isLegateError, tool } from 'legate'
import { type ScriptedModel, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { makeGate } from '../support/gate.ts'
import { PROMPTLY_MS } from '../support/pace.ts'
import { openRuntime, resultIn, resultsIn, taskOf } from '../support/reading.ts'

const anything = { type: 'object' } as const
const stuck = () => new Promise<never>(() => undefined)

function clerk(model: ScriptedModel, tools: Parameters<typeof agent>[0]['tools']) {
  return agent({ name: 'clerk', instructions: '', model, tools: tools ?? {} })
}

describe('a tool that takes too long', () => {
  test.each(['pure', 'idempotent'] as const)(
    'is not waited for although it ignores its signal, and may be called again when it is %s',
    async (effect) => {
      const model = scriptedModel([{ calls: [{ name: 'it', input: {} }] }, 'done'])
      const it = tool({ description: 'It', input: anything, effect, timeoutMs: 150, execute: stuck })
      const start = Date.now()

      const outcome = await openRuntime().run(clerk(model, { it }), 'go').result

      expect(outcome).toMatchObject({ status: 'completed', text: 'done' })
      expect(resultIn(model.requests[1])).toBe('Error: the call took longer than 150 ms and was stopped.')
      expect(resultsIn(model.requests[1])[0]?.isError).toBe(true)
      expect(Date.now() - start).toBeLessThan(PROMPTLY_MS)
    },
  )

  test('must be checked before it is called again when it is effectful, as it is unless it says otherwise (I4)', async () => {
    const model = scriptedModel([{ calls: [{ name: 'it', input: {} }] }, 'done'])
    const it = tool({ description: 'It', input: anything, timeoutMs: 40, execute: stuck })
    const runtime = openRuntime()

    const run = runtime.run(clerk(model, { it }), 'go')
    const outcome = await run.result

    expect(outcome).toMatchObject({ status: 'completed', uncertain: [taskOf(runtime, run).id] })

    expect(resultIn(model.requests[1])).toBe(
      'Error: the call took longer than 40 ms and was stopped. It may or may not have taken effect: check before you call it again.',
    )
  })

  test('has its signal aborted with the reason, and what it gives afterwards changes nothing', async () => {
    const model = scriptedModel([{ calls: [{ name: 'it', input: {} }] }, 'done'])
    const aborted = makeGate<unknown>()
    const it = tool({
      description: 'It',
      input: anything,
      timeoutMs: 40,
      execute: (_input, { signal }) =>
        new Promise<string>((resolve) => {
          signal.addEventListener('abort', () => {
            aborted.open(signal.reason)
            setTimeout(resolve, 20, 'too late')
          })
        }),
    })
    const runtime = openRuntime()

    const run = runtime.run(clerk(model, { it }), 'go')
    const outcome = await run.result
    await new Promise((resolve) => setTimeout(resolve, 60))

    expect(isLegateError(await aborted.opened, 'aborted')).toBe(true)
    expect(outcome.status).toBe('completed')
    expect(taskOf(runtime, run).output.content).toMatch(/^Error: the call took longer/)
  })

  test.each([
    ['that stops in time is waited for', 150, 350],
    ['that does not stop is given up after 0.4 s', 30_000, 700],
  ])('and its code, %s', async (_name, stopsAfterMs, most) => {
    // A busy machine may be late once.
    const times: number[] = []
    do {
      const { ms, hasStopped } = await endOf(stopsAfterMs)
      expect(hasStopped).toBe(stopsAfterMs < 400)
      times.push(ms)
    } while (times.length < 6 && (times.at(-1) ?? 0) > most)

    expect(Math.min(...times)).toBeGreaterThanOrEqual(Math.min(stopsAfterMs, 400) - 5)
    expect(Math.min(...times)).toBeLessThan(most)
  })

  /** How long after its signal a call ends whose code stops so much later, and whether the code has stopped by then. */
  async function endOf(stopsAfterMs: number) {
    const model = scriptedModel([{ calls: [{ name: 'it', input: {} }] }, 'done'])
    let [abortedAt, hasStopped] = [0, false]
    const it = tool({
      description: 'It',
      input: anything,
      timeoutMs: 40,
      execute: (_input, { signal }) =>
        new Promise<string>((resolve) => {
          signal.addEventListener('abort', () => {
            abortedAt = performance.now()
            const stop = () => {
              hasStopped = true
              resolve('late')
            }
            setTimeout(stop, stopsAfterMs).unref()
          })
        }),
    })
    await openRuntime().run(clerk(model, { it }), 'go').result
    expect(resultIn(model.requests[1])).toMatch(/^Error: the call took longer/)
    return { ms: performance.now() - abortedAt, hasStopped }
  }

  test('does not hold up the others of its message', async () => {
    const calls = ['it', 'quick'].map((name) => ({ name, input: {} }))
    const model = scriptedModel([{ calls }, 'done'])
    const it = tool({ description: 'It', input: anything, timeoutMs: 40, execute: stuck })
    const quick = tool({ description: 'Quick', input: anything, execute: () => 'quick' })

    await openRuntime().run(clerk(model, { it, quick }), 'go').result

    expect(resultsIn(model.requests[1]).map(({ content }) => String(content).slice(0, 9))).toEqual([
      'Error: th',
      'quick',
    ])
  })

  test('is told apart from a tool that throws because of its own timeout', async () => {
    const model = scriptedModel([{ calls: [{ name: 'it', input: {} }] }, 'done'])
    const it = tool({
      description: 'It',
      input: anything,
      execute: () => Promise.reject(new DOMException('The fetch timed out', 'TimeoutError')),
    })

    await openRuntime().run(clerk(model, { it }), 'go').result

    expect(resultIn(model.requests[1])).toBe('Error: The fetch timed out')
  })
})

describe('a run that is cancelled while a tool runs', () => {
  test.each([
    ['pure', 'stopped'],
    ['effectful', 'uncertain'],
  ] as const)(
    'aborts a %s tool, which is then %s, calls no model again and keeps what was said',
    async (effect, state) => {
      const entered = makeGate()
      const heard = makeGate<boolean>()
      const it = tool({
        description: 'It',
        input: anything,
        effect,
        execute: (_input, { signal }) => {
          signal.addEventListener('abort', () => heard.open(true))
          entered.open()
          return stuck()
        },
      })
      const model = scriptedModel([{ text: 'Let me look.', calls: [{ name: 'it', input: {} }] }])
      const runtime = openRuntime()
      const run = runtime.run(clerk(model, { it }), 'go')
      await entered.opened
      const start = Date.now()

      await run.cancel('enough')
      const outcome = await run.result

      expect(outcome).toMatchObject({
        status: 'cancelled',
        error: { code: 'cancelled', message: 'enough' },
        text: 'Let me look.',
      })
      expect(await heard.opened).toBe(true)
      const task = taskOf(runtime, run)
      expect(task.state).toBe(state)
      expect(outcome.uncertain).toEqual(state === 'uncertain' ? [task.id] : [])
      expect(model.requests).toHaveLength(1)
      expect(Date.now() - start).toBeLessThan(PROMPTLY_MS)
    },
  )

  test('by its abortSignal ends the same way', async () => {
    const entered = makeGate()
    const it = tool({
      description: 'It',
      input: anything,
      execute: () => {
        entered.open()
        return stuck()
      },
    })
    const model = scriptedModel([{ calls: [{ name: 'it', input: {} }] }])
    const controller = new AbortController()
    const run = openRuntime().run(clerk(model, { it }), 'go', { abortSignal: controller.signal })
    await entered.opened

    controller.abort(new Error('the user left'))

    expect(await run.result).toMatchObject({ status: 'cancelled', error: { message: 'the user left' } })
  })
})

test('a tool knows its call: key, node, attempt; its progress is seen by readers and never by the model', async () => {
  const model = scriptedModel([{ calls: [{ name: 'it', input: {} }] }, 'done'])
  const contexts: object[] = []
  const it = tool({
    description: 'It',
    input: anything,
    execute: (_input, { idempotencyKey, node, progress, signal, logger }) => {
      progress('half way', { percent: 50 })
      progress('nearly')
      logger.debug('not printed')
      contexts.push({ idempotencyKey, node, aborted: signal.aborted })
      return 'ok'
    },
  })
  const runtime = openRuntime()
  const run = runtime.run(clerk(model, { it }), 'go')
  const seen: unknown[] = []

  for await (const event of run) if (event.type === 'progress') seen.push([event.message, event.data, event.nodeId])

  const task = taskOf(runtime, run)
  expect(contexts).toEqual([
    {
      idempotencyKey: task.id,
      node: { id: task.id, conversationId: run.conversationId, runId: run.id, attempt: 1 },
      aborted: false,
    },
  ])
  expect(seen).toEqual([
    ['half way', { percent: 50 }, task.id],
    ['nearly', null, task.id],
  ])
  expect(JSON.stringify(model.requests)).not.toContain('half way')
})

test('the time of a tool stands still while it waits for a child', async () => {
  const held = makeGate()
  const child = agent({ name: 'child', instructions: '', model: scriptedModel(() => held.opened.then(() => 'late')) })
  const model = scriptedModel([{ calls: [{ name: 'it', input: {} }] }, 'done'])
  const it = tool({
    description: 'It',
    input: anything,
    timeoutMs: 60,
    execute: async (_, { delegate }) => (await delegate(child, 'go')).text,
  })
  const run = openRuntime().run(clerk(model, { it }), 'go')
  setTimeout(() => held.open(), 250)

  expect(await run.result).toMatchObject({ status: 'completed', text: 'done' })
  expect(resultIn(model.requests[1])).toBe('late')
})

test('the time it has used before it waits for a child is used', async () => {
  const child = agent({ name: 'child', instructions: '', model: scriptedModel(() => 'there') })
  const model = scriptedModel([{ calls: [{ name: 'it', input: {} }] }, 'done'])
  const it = tool({
    description: 'It',
    input: anything,
    effect: 'pure',
    timeoutMs: 60,
    execute: async (_, { delegate }) => {
      await delegate(child, 'go')
      return stuck()
    },
  })

  expect(await openRuntime().run(clerk(model, { it }), 'go').result).toMatchObject({ text: 'done' })
  expect(resultIn(model.requests[1])).toMatch(/took longer than 60 ms/)
})
