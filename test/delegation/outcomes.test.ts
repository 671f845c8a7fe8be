import { type AnyAgent, agent, type Grant, type Runtime, SubAgentUnavailable, tool } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { makeGate } from '../support/gate.ts'
import { eventsOf, only, openRuntime, resultIn, resultsIn, taskOf, tasksOf } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'

const it = tool({ description: 'It', input: { type: 'object' }, execute: () => 'ok' })
const again = { calls: [{ name: 'it', input: {} }] }
const Topic = z.object({ topic: z.string().min(3) })

interface Case {
  /** The child, with an input schema or without. */
  readonly child: (shape: { input?: typeof Topic }) => AnyAgent | (() => AnyAgent)
  readonly status: string
  readonly grant?: Grant
  /** How often the host asks; the last is looked at. Default 1. */
  readonly asks?: number
  /** What happens while the child runs. */
  readonly meanwhile?: (runtime: Runtime, childRunId: string) => Promise<void>
  readonly typed: string
  readonly message: string
  readonly unavailable: boolean
  /** Whether a child was made at all. */
  readonly spawned: boolean
}

/** The table of outcomes, row by row. `SESSION` stands for the child's id. */
const cases: Record<string, Case> = {
  completed: {
    child: (shape) => agent({ ...shape, name: 'expert', instructions: '', model: scriptedModel(['It is fast.']) }),
    status: 'completed',
    typed: 'It is fast.',
    message: 'session_id: SESSION\n\nIt is fast.',
    unavailable: false,
    spawned: true,
  },
  max_turns: {
    child: (shape) =>
      agent({
        ...shape,
        name: 'expert',
        instructions: '',
        model: scriptedModel([again, 'I got half way.']),
        tools: { it },
        budget: { modelCalls: 1 },
      }),
    status: 'max_turns',
    typed: '[max_turns] The limit of 1 model call was reached.\n\nI got half way.',
    message: 'session_id: SESSION\n\n[max_turns] The limit of 1 model call was reached.\n\nI got half way.',
    unavailable: true,
    spawned: true,
  },
  over_budget: {
    child: (shape) =>
      agent({
        ...shape,
        name: 'expert',
        instructions: '',
        model: scriptedModel([again, 'No tools left.']),
        tools: { it },
        budget: { toolCalls: 0 },
      }),
    status: 'over_budget',
    typed: '[over_budget] The limit of 0 tool calls was reached.\n\nNo tools left.',
    message: 'session_id: SESSION\n\n[over_budget] The limit of 0 tool calls was reached.\n\nNo tools left.',
    unavailable: true,
    spawned: true,
  },
  timed_out: {
    child: (shape) =>
      agent({ ...shape, name: 'expert', instructions: '', model: speakingThenStuck(), budget: { wallMs: 60 } }),
    status: 'timed_out',
    typed: '[timed_out] The deadline passed.\n\nI had begun.',
    message: 'session_id: SESSION\n\n[timed_out] The deadline passed.\n\nI had begun.',
    unavailable: true,
    spawned: true,
  },
  cancelled: {
    child: (shape) => agent({ ...shape, name: 'expert', instructions: '', model: speakingThenStuck() }),
    status: 'cancelled',
    meanwhile: (runtime, childRunId) => runtime.cancel(childRunId),
    typed: '<system-info>The tool call has been interrupted by the user.</system-info>\n\nI had begun.',
    message: 'Error: Execution error: cancelled\n\nI had begun.',
    unavailable: false,
    spawned: true,
  },
  failed: {
    child: (shape) =>
      agent({ ...shape, name: 'expert', instructions: '', model: scriptedModel([{ error: new Error('no quota') }]) }),
    status: 'failed',
    typed: 'Subagent execution unavailable. no quota',
    message: 'Error: Execution error: no quota',
    unavailable: true,
    spawned: true,
  },
  empty_answer: {
    child: (shape) => agent({ ...shape, name: 'expert', instructions: '', model: scriptedModel(['', '']) }),
    status: 'failed',
    typed: 'Subagent execution unavailable. The model gave no answer, also when asked again.',
    message: 'Error: Execution error: The model gave no answer, also when asked again.',
    unavailable: true,
    spawned: true,
  },
  invalid_output: {
    child: (shape) =>
      agent({
        ...shape,
        name: 'expert',
        instructions: '',
        model: scriptedModel(['{"n":"x"}', '{"n":"y"}']),
        output: z.object({ n: z.number({ error: 'must be a number' }) }),
      }),
    status: 'invalid_output',
    typed: 'Subagent produced invalid reply payload. n: must be a number',
    message: 'Error: Execution error: n: must be a number\n\n{"n":"y"}',
    unavailable: true,
    spawned: true,
  },
  unavailable: {
    child: (shape) => {
      let calls = 0
      return () => {
        if (++calls > 1) throw new Error('the pool is empty')
        return agent({ ...shape, name: 'expert', instructions: '', model: scriptedModel(['first']) })
      }
    },
    asks: 2,
    status: 'unavailable',
    typed: 'Delegation skipped: subagent unavailable. The provider of "ask" failed: the pool is empty',
    message: 'Error: Session setup failed: The provider of "ask" failed: the pool is empty',
    unavailable: true,
    spawned: false,
  },
  'unavailable, as it says itself': {
    child: (shape) => {
      let calls = 0
      return () => {
        if (++calls > 1) throw new SubAgentUnavailable('subagent_unavailable', 'closed on Sundays')
        return agent({ ...shape, name: 'expert', instructions: '', model: scriptedModel(['first']) })
      }
    },
    asks: 2,
    status: 'unavailable',
    typed: 'Delegation skipped: subagent unavailable. The provider of "ask" failed: closed on Sundays',
    message: 'Error: Session setup failed: The provider of "ask" failed: closed on Sundays',
    unavailable: true,
    spawned: false,
  },
  denied: {
    child: (shape) => agent({ ...shape, name: 'expert', instructions: '', model: scriptedModel([]) }),
    grant: { deny: ['agent:exp*'] },
    status: 'denied',
    typed: 'Delegation skipped: subagent unavailable. host denies agent:exp*',
    message: 'Error: Session setup failed: host denies agent:exp*',
    unavailable: true,
    spawned: false,
  },
  'denied by its model': {
    child: (shape) => agent({ ...shape, name: 'expert', instructions: '', model: scriptedModel([], 'costly/model') }),
    grant: { deny: ['model:costly/*'] },
    status: 'denied',
    typed:
      'Delegation skipped: subagent unavailable. The model costly/model is not allowed here: host denies model:costly/*.',
    message: 'Error: Session setup failed: The model costly/model is not allowed here: host denies model:costly/*.',
    unavailable: true,
    spawned: true,
  },
}

const rows = Object.entries(cases)

describe.each(['typed', 'message'] as const)('by the %s contract', (contract) => {
  test.each(rows)(
    'a child that ended %s is one result the host can act on, and its loop goes on',
    async (_name, row) => {
      const { said, task, outcome, runtime, run, asks } = await delegate(contract, row)

      expect(outcome).toMatchObject({ status: 'completed', text: 'The host went on.' })
      const session = task.output.subagent?.child_conversation_id ?? ''
      expect(said).toBe(row[contract].replace('SESSION', session))
      expect(task.output.metadata).toMatchObject({
        subagent: 'expert',
        supervisor: 'host',
        delegation_context: { input_payload: contract === 'typed' ? { topic: 'QUIC' } : { message: 'QUIC' } },
        outcome: {
          status: row.status,
          usage: expect.any(Object),
          duration_ms: expect.any(Number),
          turns: expect.any(Number),
        },
      })
      expect(task.output.metadata?.['unavailable']).toBe(row.unavailable ? true : undefined)
      expect(typeof task.output.metadata?.['error']).toBe(row.unavailable ? 'string' : 'undefined')
      expect(task.state).toBe('finished')
      expect(task.output.isError ?? false).toBe(row.status !== 'completed')
      expect(localStore(runtime).linksOf(run.id)).toHaveLength(row.spawned ? asks : asks - 1)
      expect(session !== '').toBe(row.spawned)
    },
  )

  test.each(rows)('a delegation that ended %s is started and ended exactly once in the events', async (_name, row) => {
    const { run, task, asks } = await delegate(contract, row)

    const events = await eventsOf(run)

    const own = events.filter(({ nodeId }) => nodeId === task.id)
    const pair = row.spawned ? ['delegation-start', 'delegation-end'] : []
    expect(own.map(({ type }) => type)).toEqual(['tool-call', ...pair, 'tool-result'])
    expect(only(own, 'delegation-end').map(({ status }) => status)).toEqual(row.spawned ? [row.status] : [])
    const remarks = row.unavailable ? { unavailable: true, error: expect.any(String) } : undefined
    expect(only(own, 'tool-result').map(({ metadata }) => metadata)).toEqual([remarks])
    expect(only(own, 'delegation-end').map(({ metadata }) => metadata)).toEqual(row.spawned ? [remarks] : [])
    expect(only(events, 'run-start')).toHaveLength(row.spawned ? asks + 1 : asks)
    expect(only(events, 'run-end')).toHaveLength(row.spawned ? asks + 1 : asks)
  })
})

describe('an input that is wrong', () => {
  test('by the typed contract names each field, makes no child, takes no agent and calls no model', async () => {
    const childModel = scriptedModel([])
    let taken = 0
    const input = z.object({
      topic: z.string({ error: 'must be a text' }),
      depth: z.number({ error: 'must be a number' }),
    })
    const expert = () => {
      taken++
      return agent({ name: 'expert', instructions: '', model: childModel, input })
    }
    const model = scriptedModel([{ calls: [{ name: 'ask', input: { topic: 7 } }] }, 'The host went on.'])
    const runtime = openRuntime()

    const run = runtime.run(agent({ name: 'host', instructions: '', model, subagents: { ask: expert } }), 'go')
    const outcome = await run.result

    expect(outcome).toMatchObject({ status: 'completed', text: 'The host went on.', children: 0 })
    expect(resultIn(model.requests[1])).toBe(
      'Subagent input validation failed. Details: topic: must be a text\ndepth: must be a number',
    )
    expect(taskOf(runtime, run).output.metadata).toMatchObject({
      subagent: 'expert',
      supervisor: 'host',
      unavailable: true,
      delegation_context: { input_payload: { topic: 7 } },
      outcome: { status: 'invalid_input', retryable: true },
      error: [
        { loc: ['topic'], msg: 'must be a text' },
        { loc: ['depth'], msg: 'must be a number' },
      ],
    })
    expect(localStore(runtime).linksOf(run.id)).toEqual([])
    expect(childModel.requests).toHaveLength(0)
    expect(taken).toBe(1)
  })

  test.each<[string, unknown]>([
    ['missing', {}],
    ['null', { message: null }],
    ['empty', { message: '' }],
    ['only spaces', { message: ' \n' }],
    ['inside something else', ['QUIC']],
  ])('by the message contract with a message that is %s is refused in fixed words', async (_name, input) => {
    const childModel = scriptedModel([])
    const expert = agent({ name: 'expert', instructions: '', model: childModel })
    const model = scriptedModel([{ calls: [{ name: 'ask', input: input as never }] }, 'The host went on.'])
    const runtime = openRuntime()

    const run = runtime.run(agent({ name: 'host', instructions: '', model, subagents: { ask: expert } }), 'go')

    expect(await run.result).toMatchObject({ status: 'completed', children: 0 })
    expect(resultIn(model.requests[1])).toBe('Error: Message is required')
    expect(taskOf(runtime, run).output.metadata).toMatchObject({
      unavailable: true,
      outcome: { status: 'invalid_input' },
    })
    expect(childModel.requests).toHaveLength(0)
  })

  test.each([
    ['typed', Topic, /^Subagent input validation failed\. Details: .*not JSON/],
    ['message', undefined, /^Error: .*not JSON/],
  ] as const)('an input that is not JSON has the same shape by the %s contract', async (_name, input, words) => {
    const expert = agent({ name: 'expert', instructions: '', model: scriptedModel([]), ...(input ? { input } : {}) })
    const model = scriptedModel([{ calls: [{ name: 'ask', input: '{"topic": "QU' }] }, 'The host went on.'])
    const runtime = openRuntime()

    const run = runtime.run(agent({ name: 'host', instructions: '', model, subagents: { ask: expert } }), 'go')

    expect((await run.result).status).toBe('completed')
    expect(resultIn(model.requests[1])).toMatch(words)
    expect(taskOf(runtime, run).output.metadata).toMatchObject({
      subagent: 'expert',
      supervisor: 'host',
      unavailable: true,
      outcome: { status: 'invalid_input' },
    })
  })

  test('with a schema that throws is invalid, not fatal', async () => {
    const input = z.object({
      topic: z.string().transform(() => {
        throw new Error('the schema broke')
      }),
    })
    const expert = agent({ name: 'expert', instructions: '', model: scriptedModel([]), input })
    const model = scriptedModel([{ calls: [{ name: 'ask', input: { topic: 'QUIC' } }] }, 'The host went on.'])

    const outcome = await openRuntime().run(
      agent({ name: 'host', instructions: '', model, subagents: { ask: expert } }),
      'go',
    ).result

    expect(outcome.status).toBe('completed')
    expect(resultIn(model.requests[1])).toMatch(/^Subagent input validation failed\. Details: .*the schema broke/)
  })
})

test('the result carries usage, duration, turns and the value as data', async () => {
  const expert = agent({
    name: 'expert',
    instructions: '',
    model: scriptedModel([{ text: '{"n":1}', usage: { inputTokens: 7, outputTokens: 3 } }]),
    input: Topic,
    output: z.object({ n: z.number() }),
  })
  const model = scriptedModel([{ calls: [{ name: 'ask', input: { topic: 'QUIC' } }] }, 'done'])
  const runtime = openRuntime()

  const run = runtime.run(agent({ name: 'host', instructions: '', model, subagents: { ask: expert } }), 'go')
  await run.result

  const task = taskOf(runtime, run)
  const [link] = localStore(runtime).linksOf(run.id)
  expect(task.output.value).toEqual({ n: 1 })
  expect(task.output.metadata?.['outcome']).toMatchObject({
    status: 'completed',
    run_id: link?.id,
    conversation_id: link?.childConversationId,
    error: null,
    usage: { inputTokens: 7, outputTokens: 3 },
    duration_ms: expect.any(Number),
    turns: 1,
    retryable: false,
    advice: null,
  })
  expect(task.output.subagent).toEqual({
    child_conversation_id: link?.childConversationId,
    child_graph_id: link?.childConversationId,
  })
})

test('several children of one message fold in call order, each with its own end', async () => {
  const expert = agent({
    name: 'expert',
    instructions: '',
    model: scriptedModel(({ messages }) => {
      const { topic } = JSON.parse(String(messages.at(-1)?.content)) as { topic: string }
      if (topic === 'fails') return { error: new Error('no quota') }
      return { text: `about ${topic}`, delayMs: topic === 'slow' ? 30 : 0 }
    }),
    input: Topic,
  })
  const topics = ['slow', 'fails', 'x', 'quick']
  const calls = topics.map((topic) => ({ name: 'ask', input: { topic } }))
  const model = scriptedModel([{ calls }, 'done'])

  const outcome = await openRuntime().run(
    agent({ name: 'host', instructions: '', model, subagents: { ask: expert } }),
    'go',
  ).result

  expect(outcome).toMatchObject({ status: 'completed', children: 3 })
  expect(resultsIn(model.requests[1]).map(({ content }) => String(content).split('.')[0])).toEqual([
    ...['about slow', 'Subagent execution unavailable', 'Subagent input validation failed', 'about quick'],
  ])
})

async function delegate(contract: 'typed' | 'message', row: Case) {
  const { asks = 1, grant = {} } = row
  const input = contract === 'typed' ? { topic: 'QUIC' } : { message: 'QUIC' }
  const model = scriptedModel([...Array(asks).fill({ calls: [{ name: 'ask', input }] }), 'The host went on.'])
  const subagents = { ask: row.child(contract === 'typed' ? { input: Topic } : {}) }
  const runtime = openRuntime()
  const run = runtime.run(agent({ name: 'host', instructions: '', model, subagents, grant }), 'go')
  if (row.meanwhile !== undefined) {
    for await (const event of run) if (event.type === 'text-delta') break
    await row.meanwhile(runtime, localStore(runtime).linksOf(run.id).at(-1)?.id ?? '')
  }
  const outcome = await run.result
  const said = resultsIn(model.requests.at(-1)).at(-1)?.content
  const task = tasksOf(runtime, run).at(-1)
  if (task === undefined) throw new Error('The host called nothing.')
  return { said, task, outcome, runtime, run, asks }
}

/** Says one thing and then nothing more, whatever it is told. */
function speakingThenStuck() {
  const said = makeGate()
  return {
    id: 'stuck/model',
    async *stream() {
      yield { type: 'text-delta', text: 'I had begun.' } as const
      said.open()
      await new Promise<never>(() => undefined)
    },
  }
}
