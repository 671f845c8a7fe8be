import { type AnyAgent, agent, type Run, type RunEvent, type Runtime, tool } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { eventsOf, isDurable, only, openRuntime } from '../../support/reading.ts'
import { localStore } from '../../support/rows.ts'

const anything = { type: 'object' } as const
const Input = z.object({ n: z.number() })
const ok = tool({ description: 'Ok', input: anything, execute: () => 'ok' })
const stuck = tool({
  description: 'Stuck',
  input: anything,
  timeoutMs: 30,
  execute: () => new Promise<never>(() => undefined),
})
const hold = tool({ description: 'Hold', input: anything, execute: () => new Promise<never>(() => undefined) })
const call = (...names: string[]) => ({ calls: names.map((name) => ({ name, input: { n: 1 } })) })

function expert(model = scriptedModel(() => 'ok'), extra: object = {}): AnyAgent {
  return agent({ name: 'expert', instructions: '', model, input: Input, tools: { ok, hold }, ...extra })
}

/** Every way out of a run. */
const ways: Record<
  string,
  { agent: () => AnyAgent; status: string; act?: (runtime: Runtime, run: Run) => Promise<void> }
> = {
  completed: {
    status: 'completed',
    agent: () => host(scriptedModel([call('ok', 'ask', 'ask'), 'done'])),
  },
  'completed with failures inside': {
    status: 'completed',
    agent: () => host(scriptedModel([call('ok', 'nope', 'stuck', 'ask', 'bad'), 'done'])),
  },
  failed: { status: 'failed', agent: () => host(scriptedModel([call('ok', 'ask'), { error: new Error('no') }])) },
  'failed after retries': {
    status: 'failed',
    agent: () => host(scriptedModel(() => ({ text: 'x', error: { statusCode: 429, retryAfterMs: 1 } }))),
  },
  empty: { status: 'failed', agent: () => host(scriptedModel(['', ''])) },
  invalid_output: {
    status: 'invalid_output',
    agent: () =>
      agent({ name: 'host', instructions: '', model: scriptedModel(['x', 'y']), output: Input }) as unknown as AnyAgent,
  },
  max_turns: {
    status: 'max_turns',
    agent: () => host(scriptedModel([call('ok', 'ask'), 'sum']), { budget: { modelCalls: 1 } }),
  },
  over_budget: {
    status: 'over_budget',
    agent: () => host(scriptedModel([call('ok', 'ask', 'ok'), 'sum']), { budget: { toolCalls: 1 } }),
  },
  denied: {
    status: 'denied',
    agent: () => host(scriptedModel([], 'no/model'), { grant: { deny: ['model:no/*'] } }),
  },
  'timed_out in a tool': {
    status: 'timed_out',
    agent: () => host(scriptedModel([call('ok', 'hold')]), { budget: { wallMs: 50 } }),
  },
  'timed_out in a child': {
    status: 'timed_out',
    agent: () =>
      host(scriptedModel([call('ask', 'ok')]), {
        budget: { wallMs: 50 },
        subagents: { ask: expert(scriptedModel([call('hold')])) },
      }),
  },
  'cancelled in the model': {
    status: 'cancelled',
    agent: () => host(scriptedModel([{ text: 'late', delayMs: 5_000 }])),
    act: async (_runtime, run) => run.cancel(),
  },
  'cancelled in a tool': {
    status: 'cancelled',
    agent: () => host(scriptedModel([call('hold', 'ok', 'ask')])),
    act: async (_runtime, run) => {
      for await (const event of run) if (event.type === 'tool-result') break
      await run.cancel()
    },
  },
  'cancelled in children that run and children that wait': {
    status: 'cancelled',
    agent: () =>
      host(scriptedModel([call('ask', 'ask', 'ask', 'ask')]), {
        budget: { concurrency: 2 },
        subagents: { ask: expert(scriptedModel(() => call('hold'))) },
      }),
    act: async (_runtime, run) => {
      for await (const event of run) if (event.type === 'tool-call' && event.path.length === 2) break
      await run.cancel()
    },
  },
  'cancelled while a person is asked': {
    status: 'cancelled',
    agent: () => host(scriptedModel([call('ok')]), { grant: { ask: ['tool:ok'] } }),
    act: async (_runtime, run) => {
      for await (const event of run) if (event.type === 'approval-request') break
      await run.cancel()
    },
  },
  'a call that a person denied': {
    status: 'completed',
    agent: () => host(scriptedModel([call('ok'), 'done']), { grant: { ask: ['tool:ok'] } }),
    act: async (runtime, run) => {
      for await (const event of run) {
        if (event.type !== 'approval-request') continue
        await runtime.answer(event.nodeId ?? '', { allow: false })
        break
      }
    },
  },
  'a child that was cancelled alone': {
    status: 'completed',
    agent: () =>
      host(scriptedModel([call('ask'), 'done']), { subagents: { ask: expert(scriptedModel([call('hold')])) } }),
    act: async (runtime, run) => {
      for await (const event of run) if (event.type === 'tool-call' && event.path.length === 2) break
      await runtime.cancel(localStore(runtime).linksOf(run.id)[0]?.id ?? '')
    },
  },
}

function host(model: ReturnType<typeof scriptedModel>, extra: object = {}): AnyAgent {
  const bad = agent({
    name: 'bad',
    instructions: '',
    model: scriptedModel(() => ({ error: new Error('no') })),
    input: Input,
  })
  const subagents = { ask: expert(), bad }
  return agent({ name: 'host', instructions: '', model, tools: { ok, stuck, hold }, subagents, ...extra })
}

describe.each(Object.entries(ways))('%s', (_name, { agent: make, act, status }) => {
  async function all(): Promise<{ events: RunEvent[]; runtime: Runtime; run: Run }> {
    const runtime = openRuntime({ engine: { graceMs: 50 } })
    const run = runtime.run(make(), 'go' as never)
    const reading = eventsOf(run)
    await act?.(runtime, run)
    expect((await run.result).status).toBe(status)
    return { events: await reading, runtime, run }
  }

  test('every start has exactly one end after it, and the end of a child comes before its host’s', async () => {
    const { events } = await all()

    expect(pairs(events, ['run-queued', 'run-start'], 'run-end', ({ runId }) => runId)).toEqual([])
    expect(pairs(events, ['tool-call'], 'tool-result', ({ nodeId }) => nodeId ?? '')).toEqual([])
    expect(pairs(events, ['delegation-start'], 'delegation-end', (event) => childOf(event))).toEqual([])
    const [first, last] = [events.at(0), events.at(-1)]
    expect([first?.type, last?.type]).toEqual(['run-start', 'run-end'])
    expect(only(events, 'run-end').at(-1)?.outcome.status).toBe(status)
  })

  test('durable events have whole numbers without a gap, live ones fractions that grow', async () => {
    const { events, runtime, run } = await all()

    const durable = events.filter(isDurable).map(({ seq }) => seq)
    expect(durable).toEqual(durable.map((_, at) => at + 1))
    expect(events.map(({ seq }) => seq)).toEqual(events.map(({ seq }) => seq).toSorted((a, b) => a - b))
    expect(new Set(events.map(({ seq }) => seq)).size).toBe(events.length)
    expect(localStore(runtime).lastSeq(run.conversationId)).toBeGreaterThanOrEqual(durable.length)
  })

  test('every event says where it happened', async () => {
    const { events, runtime, run } = await all()

    for (const event of events) {
      const conversation = localStore(runtime).conversation(event.conversationId)
      expect(event.path).toEqual(conversation?.path)
      expect(event.parentId).toBe(event.path.length === 1 ? null : run.id)
      expect(localStore(runtime).turn(event.runId)?.conversationId).toBe(event.conversationId)
      if (event.nodeId !== null) expect(localStore(runtime).node(event.nodeId)?.turnId).toBe(event.runId)
      expect(typeof event.at).toBe('number')
    }
  })
})

/** What is wrong with the pairing of starts and ends. */
function pairs(
  events: readonly RunEvent[],
  starts: readonly string[],
  end: string,
  key: (event: RunEvent) => string,
): string[] {
  const open = new Set<string>()
  const closed = new Set<string>()
  const wrong: string[] = []
  for (const event of events) {
    const id = key(event)
    if (starts.includes(event.type)) open.add(id)
    if (event.type !== end) continue
    if (!open.delete(id)) wrong.push(`${end} of ${id} without a start, or twice`)
    closed.add(id)
  }
  for (const id of open) wrong.push(`${id} has no ${end}`)
  return wrong
}

function childOf(event: RunEvent): string {
  return 'childRunId' in event ? event.childRunId : ''
}
