import { agent, tool } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { makeGate } from '../support/gate.ts'
import { PROMPTLY_MS } from '../support/pace.ts'
import { eventsOf, only, openRuntime, resultsIn, rolesIn, tasksOf, toolNamesIn } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'

const it = tool({ description: 'It', input: { type: 'object' }, execute: () => 'ok' })
const call = { name: 'it', input: {} }

describe('the turn limit', () => {
  test('is followed by one call without tools to wrap up, which is no turn, and names the outcome', async () => {
    const model = scriptedModel([{ calls: [call] }, { calls: [call] }, 'So far: two results.'])
    const clerk = agent({ name: 'a', instructions: '', model, tools: { it }, budget: { modelCalls: 2 } })
    const runtime = openRuntime()

    const run = runtime.run(clerk, 'go')
    const outcome = await run.result

    model.assertComplete()
    expect(outcome).toMatchObject({
      status: 'max_turns',
      text: 'So far: two results.',
      error: { code: 'max_turns', message: 'The limit of 2 model calls was reached.' },
      output: null,
      modelCalls: 2,
      toolCalls: 2,
      advice: expect.stringContaining('budget.modelCalls'),
    })
    expect(model.requests.map(toolNamesIn)).toEqual([['it'], ['it'], []])
    expect(model.requests[2]?.messages.at(-1)).toEqual({
      role: 'user',
      content: 'You have used all 2 model calls of this run. Sum up what you have and what is missing.',
    })
    expect(resultsIn(model.requests[2])).toHaveLength(2)
    expect(localStore(runtime).nodesOf(run.id).at(-1)?.purpose).toBe('wrap_up')
  })

  test('of one turn lets that turn answer', async () => {
    const model = scriptedModel(['at once'])

    const outcome = await openRuntime().run(
      agent({ name: 'a', instructions: '', model, budget: { modelCalls: 1 } }),
      'go',
    ).result

    expect(outcome).toMatchObject({ status: 'completed', text: 'at once' })
  })

  test('is not passed by a wrap-up that calls tools all the same', async () => {
    const model = scriptedModel([{ calls: [call] }, { text: 'One more!', calls: [call, call] }])
    const clerk = agent({ name: 'a', instructions: '', model, tools: { it }, budget: { modelCalls: 1 } })
    const runtime = openRuntime()

    const run = runtime.run(clerk, 'go')
    const outcome = await run.result

    expect(outcome).toMatchObject({ status: 'max_turns', text: 'One more!', toolCalls: 1 })
    expect(tasksOf(runtime, run)).toHaveLength(1)
  })

  test('ends in max_turns with the last words also when the wrap-up says nothing', async () => {
    const model = scriptedModel([{ text: 'Looking.', calls: [call] }, ''])
    const clerk = agent({ name: 'a', instructions: '', model, tools: { it }, budget: { modelCalls: 1 } })

    const outcome = await openRuntime().run(clerk, 'go').result

    model.assertComplete()
    expect(outcome).toMatchObject({ status: 'max_turns', text: 'Looking.' })
  })

  test('leaves an output schema out of the wrap-up', async () => {
    const model = scriptedModel([{ calls: [call] }, 'I did not get there.'])
    const output = z.object({ n: z.number() })
    const clerk = agent({ name: 'a', instructions: '', model, tools: { it }, output, budget: { modelCalls: 1 } })

    const outcome = await openRuntime().run(clerk, 'go').result

    expect(outcome).toMatchObject({ status: 'max_turns', text: 'I did not get there.', output: null })
  })

  test('counts a repair as a turn', async () => {
    const model = scriptedModel([{ calls: [call] }, ''])
    const clerk = agent({ name: 'a', instructions: '', model, tools: { it }, budget: { modelCalls: 2 } })

    const outcome = await openRuntime().run(clerk, 'go').result

    model.assertComplete()
    expect(outcome).toMatchObject({ status: 'max_turns', modelCalls: 2 })
  })

  test('is 25 unless a budget says less; the smallest of runtime and agent holds', async () => {
    const forever = () => scriptedModel(({ tools }) => (tools.length === 0 ? 'enough' : { calls: [call] }))
    const clerk = (turns?: number) =>
      agent({
        name: 'a',
        instructions: '',
        model: forever(),
        tools: { it },
        ...(turns === undefined ? {} : { budget: { modelCalls: turns } }),
      })

    expect(await openRuntime().run(clerk(), 'go').result).toMatchObject({ status: 'max_turns', modelCalls: 25 })
    const small = openRuntime({ budget: { modelCalls: 3 } })
    expect(await small.run(clerk(), 'go').result).toMatchObject({ status: 'max_turns', modelCalls: 3 })
    expect(await small.run(clerk(30), 'go').result).toMatchObject({ status: 'max_turns', modelCalls: 3 })
    expect(await small.run(clerk(2), 'go').result).toMatchObject({ status: 'max_turns', modelCalls: 2 })
  })
})

describe('the limit of tool calls', () => {
  test('keeps the first, drops the rest, counts them, and wraps up as over_budget', async () => {
    const five = Array.from({ length: 5 }, (_, at) => ({ name: 'it', input: { at } }))
    const model = scriptedModel([{ text: 'Five at once.', calls: five }, 'I have three.'])
    const clerk = agent({ name: 'a', instructions: '', model, tools: { it }, budget: { toolCalls: 3 } })
    const runtime = openRuntime()

    const run = runtime.run(clerk, 'go')
    const outcome = await run.result

    expect(outcome).toMatchObject({
      status: 'over_budget',
      text: 'I have three.',
      toolCalls: 3,
      error: { code: 'over_budget', message: 'The limit of 3 tool calls was reached.' },
    })
    expect(toolNamesIn(model.requests[1])).toEqual([])
    expect(rolesIn(model.requests[1])).toEqual(['user', 'assistant', 'tool', 'tool', 'tool', 'user'])
    const [, message] = localStore(runtime).nodesOf(run.id)
    expect(message?.output).toMatchObject({ droppedCalls: 2, calls: five.slice(0, 3) })
    expect(only(await eventsOf(run), 'tool-call')).toHaveLength(3)
  })

  test('of zero drops them all and leaves no call without a result', async () => {
    const model = scriptedModel([{ calls: [call, call] }, 'Nothing then.'])
    const clerk = agent({ name: 'a', instructions: '', model, tools: { it }, budget: { toolCalls: 0 } })

    const outcome = await openRuntime().run(clerk, 'go').result

    expect(outcome).toMatchObject({ status: 'over_budget', text: 'Nothing then.', toolCalls: 0 })
    expect(rolesIn(model.requests[1])).toEqual(['user', 'user'])
  })

  test('may be reached exactly', async () => {
    const model = scriptedModel([{ calls: [call, call] }, 'done'])
    const clerk = agent({ name: 'a', instructions: '', model, tools: { it }, budget: { toolCalls: 2 } })

    expect(await openRuntime().run(clerk, 'go').result).toMatchObject({ status: 'completed', toolCalls: 2 })
  })

  test('stays over_budget when the wrap-up says nothing or calls again', async () => {
    const clerk = (wrapUp: string | { calls: (typeof call)[] }) => {
      const model = scriptedModel([{ text: 'Looking.', calls: [call] }, wrapUp])
      return agent({ name: 'a', instructions: '', model, tools: { it }, budget: { toolCalls: 0 } })
    }

    for (const wrapUp of ['', { calls: [call] }]) {
      const outcome = await openRuntime().run(clerk(wrapUp), 'go').result
      expect(outcome).toMatchObject({ status: 'over_budget', text: 'Looking.', modelCalls: 1 })
    }
  })
})

describe('the time limit', () => {
  test('ends the run as timed_out with what was said, though model and tool ignore their signals', async () => {
    const stuck = tool({
      description: 'Stuck',
      input: { type: 'object' },
      execute: () => new Promise<never>(() => undefined),
    })
    const model = scriptedModel([{ text: 'Looking.', calls: [{ name: 'stuck', input: {} }] }])
    const clerk = agent({ name: 'a', instructions: '', model, tools: { stuck }, budget: { wallMs: 60 } })
    const start = Date.now()

    const outcome = await openRuntime().run(clerk, 'go').result

    expect(outcome).toMatchObject({
      status: 'timed_out',
      text: 'Looking.',
      error: { code: 'timed_out', message: 'The deadline passed.' },
      retryable: true,
    })
    expect(Date.now() - start).toBeLessThan(PROMPTLY_MS)
  })
})

describe('a message that no answer asked for', () => {
  test('counts as a turn, and is refused beyond the limit', async () => {
    const model = scriptedModel(() => 'said')
    const clerk = agent({ name: 'a', instructions: '', model })
    const runtime = openRuntime({ budget: { modelCalls: 2 } })
    const { conversationId } = await runtime.run(clerk, 'begin').result
    const talk = await runtime.conversation(conversationId)

    const turnId = await talk.mutate((mutation) => {
      const [first, second, third] = ['one', 'two', 'three'].map((key) =>
        mutation.createNode({ kind: 'agent_message', idempotencyKey: key }),
      )
      if (first && second) mutation.createEdge(first.id, second.id, 'sequence')
      if (second && third) mutation.createEdge(second.id, third.id, 'sequence')
      return mutation.runId
    })

    expect(await (await runtime.attach(turnId)).result).toMatchObject({
      status: 'max_turns',
      modelCalls: 2,
      error: { code: 'max_turns', message: 'The limit of 2 model calls was reached.' },
    })
    expect(model.requests).toHaveLength(3)
  })

  test('spends from the same account as those beside it', async () => {
    const both = makeGate()
    let begun = 0
    const model = scriptedModel(async ({ messages }) => {
      if (messages.at(-1)?.content === 'begin') return 'begun'
      if (++begun === 2) both.open()
      await both.opened
      return { calls: [call, call] }
    })
    const clerk = agent({ name: 'a', instructions: '', model, tools: { it } })
    const runtime = openRuntime({ budget: { toolCalls: 3, modelCalls: 2 } })
    const { conversationId } = await runtime.run(clerk, 'begin').result
    const talk = await runtime.conversation(conversationId)

    const turnId = await talk.mutate((mutation) => {
      mutation.createNode({ kind: 'agent_message', idempotencyKey: 'left' })
      mutation.createNode({ kind: 'agent_message', idempotencyKey: 'right' })
      return mutation.runId
    })
    await (await runtime.attach(turnId)).result

    expect(tasksOf(runtime, { id: turnId })).toHaveLength(3)
  })
})

test('a character_message that was put in by hand is said by the model', async () => {
  const model = scriptedModel(['begun', 'I am Falstaff.'])
  const runtime = openRuntime()
  const { conversationId } = await runtime.run(agent({ name: 'a', instructions: '', model }), 'begin').result
  const talk = await runtime.conversation(conversationId)

  const turnId = await talk.mutate((mutation) => {
    mutation.createNode({ kind: 'character_message' })
    return mutation.runId
  })

  expect(await (await runtime.attach(turnId)).result).toMatchObject({ status: 'completed', text: 'I am Falstaff.' })
})
