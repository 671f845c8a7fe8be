import { agent, createRuntime, type Json, type Runtime } from 'legate'
import { backgroundSubagents } from 'legate/background'
import { memoryStore } from 'legate/store/memory'
import { type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { childIds } from '../../../src/core/rules/delegation/spawn.ts'
import { makeGate } from '../../support/gate.ts'
import { localStore, withReads } from '../../support/rows.ts'
import {
  call,
  type Data,
  data,
  gaveIn,
  hostOf,
  idIn,
  lastSaid,
  resultsIn,
  spawnCall,
  tasksIn,
  workerOf,
} from './support.ts'

describe('subagent_poll', () => {
  test('an unknown id is missing, and that is not an error', async () => {
    const { gave } = await asked([{ child_conversation_id: 'nobody' }])

    expect(gave).toEqual([missing('nobody')])
  })

  test('a child that has not begun is pending, and its line is the prompt', async () => {
    const first = makeGate()
    const script: Script = (request) => {
      const results = resultsIn(request)
      if (results.length === 0) return { calls: [spawnCall('first', 'x'), spawnCall('second', 'hello')] }
      if (results.length === 2) return call('subagent_poll', { child_conversation_id: idIn(results[1]) })
      first.open()
      return 'done'
    }
    const worker = workerOf(async () => {
      await first.opened
      return 'late'
    })
    const tools = { ...backgroundSubagents({ agent: worker }) }
    const host = agent({
      name: 'host',
      instructions: 'x',
      model: scriptedModel(script),
      tools,
      budget: { concurrency: 1 },
    })
    const runtime = createRuntime()
    const run = runtime.run(host, 'go')
    await run.result
    const [, spawned, polled] = gaveIn(localStore(runtime), run.id)
    const [, link] = localStore(runtime).linksOf(run.id)
    const leaf = localStore(runtime)
      .nodesOf(link?.id ?? '')
      .at(-1)

    expect(polled).toMatchObject({
      ok: true,
      child_conversation_id: spawned?.['child_conversation_id'],
      child_graph_id: spawned?.['child_conversation_id'],
      status: 'pending',
      counts: { pending: 1, running: 0, awaiting_approval: 0 },
      leaf: { node_id: leaf?.id, state: 'pending' },
      transcript_lines: ['U:hello'],
    })
    await runtime.close()
  })

  test('running beats awaiting approval, which beats pending, which beats idle; one that waits counts as running', async () => {
    const { state } = await import('./states.ts')

    expect(state('pending', 'awaiting_approval', 'running')).toMatchObject({
      status: 'running',
      counts: { pending: 1, running: 1, awaiting_approval: 1 },
    })
    expect(state('pending', 'waiting')).toMatchObject({ status: 'running', counts: { running: 1 } })
    expect(state('pending', 'awaiting_approval')).toMatchObject({ status: 'awaiting_approval' })
    expect(state('pending', 'finished')).toMatchObject({ status: 'pending' })
    expect(state('finished', 'uncertain')).toMatchObject({ status: 'idle', leaf: { state: 'uncertain' } })
  })

  test('the last 10 or 50 rounds, oldest first, and only what was said', async () => {
    const { gave } = await asked([{}, { limit_turns: 50 }, { limit_turns: 3 }], { rounds: 60 })

    const [ten, fifty, three] = gave.map((one) => one['transcript_lines'] as string[])
    expect(ten).toHaveLength(20)
    expect(ten?.slice(0, 2)).toEqual(['U:round 51', 'A:heard round 51'])
    expect(ten?.at(-1)).toBe('A:heard round 60')
    expect(fifty).toHaveLength(100)
    expect(fifty?.[0]).toBe('U:round 11')
    expect(three).toHaveLength(6)
    expect(ten?.every((line) => /^[UA]:/.test(line))).toBe(true)
  }, 20_000)

  test.each<[Data, string, object]>([
    [{ limit_turns: 'abc' }, 'limit_turns_must_be_an_integer', { value_class: 'string' }],
    [{ limit_turns: '10' }, 'limit_turns_must_be_an_integer', { value_class: 'string' }],
    [{ limit_turns: 1.5 }, 'limit_turns_must_be_an_integer', { value_class: 'number' }],
    [{ limit_turns: [] }, 'limit_turns_must_be_an_integer', { value_class: 'array' }],
    [{ limit_turns: 0 }, 'limit_turns_out_of_range', { limit_turns: 0 }],
    [{ limit_turns: 51 }, 'limit_turns_out_of_range', { limit_turns: 51 }],
    [{ limit_turns: -1 }, 'limit_turns_out_of_range', { limit_turns: -1 }],
    [{ child_conversation_id: ' ' }, 'child_conversation_id_is_required', {}],
    [{ child_conversation_id: 7 }, 'child_conversation_id_is_required', {}],
  ])('%j is an error with its code, never made to fit', async (input, code, details) => {
    const { runtime, run } = await asked([input])
    const task = tasksIn(localStore(runtime), run.id).at(-1)

    expect(task?.output.metadata?.['validation_error']).toMatchObject({ code: `cybros.subagent_poll.${code}`, details })
  })

  test('a long line is cut to 1000 bytes between two characters, and all lines together are bounded', async () => {
    const { gave } = await asked([{}], { rounds: 12, answer: '語'.repeat(5_000) })
    const lines = gave[0]?.['transcript_lines'] as string[]

    expect(lines.every((line) => Buffer.byteLength(line) <= 1_000)).toBe(true)
    expect(lines.at(-1)).toMatch(/^A:語+$/)
    expect(Buffer.byteLength(JSON.stringify(lines))).toBeLessThanOrEqual(50_000)
  }, 20_000)

  test('what failed is told in a safe phrase', async () => {
    const { gave } = await asked([{}], { answer: new Error('the provider is away') })

    expect(gave[0]).toMatchObject({ status: 'idle', outcome: 'failed' })
    expect(gave[0]?.['transcript_lines']).toEqual(['U:round 1', 'A:Errored: the provider is away'])
  })

  test('what was deleted is absent, and what was only kept from models is there', async () => {
    const { host } = hostOf(
      (request) => {
        const results = resultsIn(request)
        const child = { child_conversation_id: idIn(results[0]) }
        const moves = [
          { calls: [spawnCall('x', 'one')] },
          call('subagent_send', { ...child, message: 'two' }),
          call('subagent_wait', { ids: [child.child_conversation_id] }),
          lastSaid(request) === 'poll' ? call('subagent_poll', child) : 'done',
        ]
        return moves[results.length] ?? 'done'
      },
      { agent: workerOf((request) => `heard ${lastSaid(request)}`) },
    )
    const runtime = createRuntime()
    const run = runtime.run(host, 'go')
    await run.result
    const [link] = localStore(runtime).linksOf(run.id)
    const child = await runtime.conversation(link?.childConversationId ?? '')
    const [one, heardOne, , heardTwo] = await child.transcript()

    await child.history.softDelete(one?.nodeId ?? '')
    await child.history.softDelete(heardTwo?.nodeId ?? '')
    await child.history.exclude(heardOne?.nodeId ?? '')

    const again = runtime.run(host, 'poll', { conversationId: run.conversationId })
    await again.result
    const [polled] = gaveIn(localStore(runtime), again.id)
    expect(polled).toMatchObject({ status: 'idle', transcript_lines: ['A:heard one', 'U:two'] })
    await runtime.close()
  })
})

describe("an id that is not the caller's own is like one that does not exist", () => {
  const tools: [string, Data][] = [
    ['subagent_poll', {}],
    ['subagent_result', {}],
    ['subagent_cancel', {}],
    ['subagent_send', { message: 'x' }],
    ['subagent_wait', {}],
  ]

  test.each(tools)('%s', async (tool, more) => {
    const worker = workerOf(() => ({ text: 'secret', delayMs: 5 }))
    const ids: string[] = []
    const script = (request: Parameters<typeof resultsIn>[0]) => {
      const results = resultsIn(request)
      if (lastSaid(request).startsWith('[background]')) return 'told'
      if (lastSaid(request) === 'spawn') return results.length === 0 ? { calls: [spawnCall()] } : 'done'
      if (results.length > 0) return 'done'
      const inputs = ids.map((id) =>
        tool === 'subagent_wait' ? { ids: [id] } : { child_conversation_id: id, ...more },
      )
      return { calls: inputs.map((input) => ({ name: tool, input: input as Json })) }
    }
    const { host } = hostOf(script as never, { agent: worker })
    const runtime = createRuntime()
    const owner = runtime.run(host, 'spawn')
    await owner.result
    await runtime.idle()
    const [link] = localStore(runtime).linksOf(owner.id)
    const foreign = link?.childConversationId ?? ''
    // Another host's child, the host itself, a conversation nobody has, one that would be a task's, and no ids at all.
    ids.push(
      foreign,
      owner.conversationId,
      '01900000-0000-7000-8000-000000000001',
      childIds(link?.taskId ?? '', 5).conversation,
      ...['__proto__', 'constructor', '../../..', 'x'.repeat(10_000)],
    )
    const before = localStore(runtime).turnsOf(foreign, { limit: 9 }).length
    const run = runtime.run(host, 'pry')
    await run.result
    const tasks = tasksIn(localStore(runtime), run.id)
    const words = tasks.map(({ output }, at) => String(output.content).replaceAll(ids[at] ?? '', 'ID'))

    expect(new Set(words).size).toBe(1)
    expect(words[0]).not.toContain('secret')
    expect(localStore(runtime).turnsOf(foreign, { limit: 9 })).toHaveLength(before)
    expect(localStore(runtime).link(link?.id ?? '')?.deliveredTo).not.toBe(tasks[0]?.id)
    await runtime.close()
  })
})

interface Asking {
  readonly rounds?: number
  readonly answer?: string | Error
}

/** A host that spawns a child, has it hear so many rounds, waits, and then polls it with these inputs. */
async function asked(inputs: readonly Data[], { rounds = 1, answer }: Asking = {}) {
  const { host } = hostOf(
    (request) => {
      const results = resultsIn(request)
      const id = idIn(results[0])
      if (results.length === 0) return { calls: [spawnCall('x', 'round 1')] }
      if (results.length < rounds)
        return call('subagent_send', { child_conversation_id: id, message: `round ${results.length + 1}` })
      if (results.length === rounds) return call('subagent_wait', { ids: [id] })
      if (results.length > rounds + 1) return 'done'
      return {
        calls: inputs.map((input) => ({ name: 'subagent_poll', input: { child_conversation_id: id, ...input } })),
      }
    },
    {
      agent: workerOf((request) => {
        if (answer instanceof Error) return { error: answer }
        return answer ?? `heard ${lastSaid(request)}`
      }),
      contextTurns: 1,
    },
  )
  const runtime: Runtime = createRuntime({ budget: { modelCalls: 200, children: 200 } })
  const run = runtime.run(host, 'go')
  const outcome = await run.result
  expect(outcome.status).toBe('completed')
  const polls = tasksIn(localStore(runtime), run.id).filter(({ input }) => input.call?.name === 'subagent_poll')
  const gave = polls.filter(({ output }) => output.isError !== true).map(({ output }) => data(String(output.content)))
  return { runtime, run, gave }
}

function missing(id: string): Data {
  return {
    ok: true,
    child_conversation_id: id,
    child_graph_id: null,
    status: 'missing',
    counts: { pending: 0, running: 0, awaiting_approval: 0 },
    leaf: null,
    transcript_lines: [],
  }
}

test('I10: a look at a child reads the latest of its turns, however many there were', async () => {
  const rounds = 60
  const script: Script = (request) => {
    const results = resultsIn(request)
    const id = idIn(results[0])
    if (results.length === 0) return { calls: [spawnCall('x', 'go')] }
    if (results.length <= rounds) return call('subagent_send', { child_conversation_id: id, message: 'more' })
    return results.length === rounds + 1 ? call('subagent_wait') : 'done'
  }
  const model = scriptedModel((request) => (lastSaid(request) === 'look' ? looking(request) : script(request, 0)))
  const looking = (request: Parameters<Script>[0]) => {
    const last = request.messages.at(-1)
    if (last?.role === 'tool') return String(last.content)
    return call('subagent_poll', { child_conversation_id: idIn(resultsIn(request)[0]) })
  }
  const tools = { ...backgroundSubagents({ agent: workerOf() }) }
  const host = agent({ name: 'host', instructions: 'x', model, tools, budget: { modelCalls: 100 } })
  const inner = memoryStore()
  const read: number[] = []
  const store = withReads(inner, {
    turnsOf: (lane, range) => {
      const turns = inner.turnsOf(lane, range)
      read.push(turns.length)
      return turns
    },
  })
  const runtime = createRuntime({ store })
  const run = runtime.run(host, 'go')
  await run.result
  await runtime.idle()
  read.length = 0
  const { text } = await runtime.run(host, 'look', { conversationId: run.conversationId }).result

  expect(data(text)).toMatchObject({ status: 'idle', outcome: 'completed' })
  expect(Math.max(...read)).toBeLessThanOrEqual(50)
  await runtime.close()
})
