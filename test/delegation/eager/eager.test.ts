import { type AgentDefinition, agent, type RunEvent, type RunOutcome, tool } from 'legate'
import { type ScriptedAnswer, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { heldModel } from '../../fields/support.ts'
import { eventsOf, only, openRuntime, tasksOf } from '../../support/reading.ts'
import { localStore } from '../../support/rows.ts'

const Task = z.object({ title: z.string(), hours: z.number().max(8) })
const Plan = z.object({ goal: z.string(), tasks: z.array(Task) })
type Turns = readonly ScriptedAnswer[]

const plan = (...titles: string[]) =>
  JSON.stringify({ goal: 'move', tasks: titles.map((title) => ({ title, hours: 1 })) })

/** Does the task it is given, and counts the calls by their titles. */
const counting = (calls: string[] = []) =>
  scriptedModel(({ messages }) => {
    const { title } = JSON.parse(String(messages.findLast(({ role }) => role === 'user')?.content)) as { title: string }
    calls.push(title)
    return `${title} is done.`
  })

const worker = (calls?: string[]) => agent({ name: 'worker', instructions: '', input: Task, model: counting(calls) })

type Extra = Partial<AgentDefinition<undefined, typeof Plan>>
const lead = (turns: Turns, extra: Extra = {}) =>
  agent({
    name: 'lead',
    instructions: 'Plan.',
    output: Plan,
    eager: { 'tasks[*]': { agent: worker() } },
    model: scriptedModel(turns),
    ...extra,
  })

const told = ({ delegations }: RunOutcome) =>
  delegations.map(({ field, status, text, error }) => `${field} ${status} ${error?.message ?? text}`)

describe('eager delegation', () => {
  test('a child starts when its item is complete, before the next one is written', async () => {
    const held = heldModel()
    const runtime = openRuntime()
    const run = runtime.run(lead([], { model: held.model }), 'go')

    held.say('{"goal":"move","tasks":[{"title":"pack","hours":3}')
    const events = run.events()[Symbol.asyncIterator]()
    const first = await until(events, 'delegation-end')
    expect(first).toMatchObject({ agent: 'worker', tool: 'tasks[*]', status: 'completed', path: ['lead'] })
    expect(
      localStore(runtime)
        .nodesOf(run.id)
        .find(({ kind }) => kind === 'agent_message')?.state,
    ).toBe('running')
    held.say(',{"title":"drive","hours":5}]}')
    held.end()
    const outcome = await run.result

    expect(outcome.output).toEqual({
      goal: 'move',
      tasks: [
        { title: 'pack', hours: 3 },
        { title: 'drive', hours: 5 },
      ],
    })
    expect(told(outcome)).toEqual(['tasks[0] completed pack is done.', 'tasks[1] completed drive is done.'])
    expect(outcome).toMatchObject({ status: 'completed', children: 2, modelCalls: 1, toolCalls: 0 })
  })

  test('the item, its child, the link and the waiting task are one commit', async () => {
    const held = heldModel()
    const runtime = openRuntime()
    const slow = agent({ name: 'worker', instructions: '', input: Task, model: heldModel().model })
    const run = runtime.run(lead([], { model: held.model, eager: { 'tasks[*]': slow } }), 'go')
    held.say('{"goal":"x","tasks":[{"title":"pack","hours":3}')

    const events = run.events()[Symbol.asyncIterator]()
    const start = await until(events, 'delegation-start')

    const [task] = tasksOf(runtime, run)
    expect(task).toMatchObject({
      state: 'waiting',
      input: { call: { name: 'tasks[*]', input: { title: 'pack', hours: 3 } }, delegates: true },
      metadata: { eager: { field: 'tasks[0]' }, subagent: { child_conversation_id: start.childConversationId } },
      wait: { on: 'children', refs: [start.childRunId] },
    })
    expect(localStore(runtime).link(start.childRunId)).toMatchObject({
      taskId: task?.id,
      mode: 'parked',
      contract: 'typed',
    })
    await run.cancel()
    expect((await run.result).status).toBe('cancelled')
  })

  test('cancelling ends the children, and their records say so', async () => {
    const held = heldModel()
    const slow = agent({ name: 'worker', instructions: '', input: Task, model: heldModel().model })
    const run = openRuntime().run(lead([], { model: held.model, eager: { 'tasks[*]': slow } }), 'go')
    held.say('{"goal":"x","tasks":[{"title":"pack","hours":3},{"title":"drive","hours":3}')
    const events = run.events()[Symbol.asyncIterator]()
    await until(events, 'delegation-start')
    await until(events, 'delegation-start')

    await run.cancel('enough')
    const outcome = await run.result

    expect(outcome.status).toBe('cancelled')
    expect(told(outcome)).toEqual(['tasks[0] cancelled enough', 'tasks[1] cancelled enough'])
  })

  test('usage of the children is in the total of the plan', async () => {
    const model = scriptedModel(() => ({ text: 'ok', usage: { inputTokens: 5, outputTokens: 1 } }))
    const cheap = agent({ name: 'worker', instructions: '', input: Task, model })
    const turns = [{ text: plan('a', 'b'), usage: { inputTokens: 100 } }]

    const outcome = await openRuntime().run(lead(turns, { eager: { 'tasks[*]': cheap } }), 'go').result

    expect(outcome.usage).toMatchObject({ inputTokens: 110, outputTokens: 2 })
    expect(outcome.delegations.map(({ usage }) => usage.inputTokens)).toEqual([5, 5])
  })

  test('an item that does not fit starts nothing; the plan that takes its place keeps equal ones', async () => {
    const calls: string[] = []
    const bad =
      '{"goal":"x","tasks":[{"title":"pack","hours":1},{"title":"drive","hours":99},{"title":"old","hours":1}]}'
    const runtime = openRuntime()
    const host = lead([{ chunks: [...bad] }, plan('pack', 'drive')], { eager: { 'tasks[*]': worker(calls) } })
    const run = runtime.run(host, 'go')

    const outcome = await run.result

    expect(calls.toSorted()).toEqual(['drive', 'old', 'pack'])
    expect(told(outcome)).toEqual(['tasks[0] completed pack is done.', 'tasks[1] completed drive is done.'])
    expect(outcome).toMatchObject({ modelCalls: 2, children: 3 })
  })

  test('children of items that are not in the plan any more are cancelled: superseded', async () => {
    const held = heldModel()
    const runtime = openRuntime()
    const never = agent({ name: 'worker', instructions: '', input: Task, model: heldModel().model })
    const bad = '{"goal":7,"tasks":[{"title":"old","hours":1}]}'
    const run = runtime.run(lead([], { model: held.model, eager: { 'tasks[*]': never } }), 'go')
    held.say(bad)
    await until(run.events()[Symbol.asyncIterator](), 'delegation-start')
    held.end()
    held.say('{"goal":"x","tasks":[]}')
    held.end()

    const outcome = await run.result

    expect(outcome).toMatchObject({ status: 'completed', delegations: [], children: 1 })
    const [task] = tasksOf(runtime, run)
    expect(task).toMatchObject({ state: 'stopped', failure: { code: 'superseded' } })
    const [link] = localStore(runtime).linksOf(run.id)
    expect(link?.outcome).toMatchObject({
      status: 'cancelled',
      error: { message: expect.stringContaining('Superseded') },
    })
  })

  test('a plan that never fits takes its children with it', async () => {
    const never = agent({ name: 'worker', instructions: '', input: Task, model: heldModel().model })
    const bad = '{"goal":7,"tasks":[{"title":"old","hours":1}]}'

    const outcome = await openRuntime().run(lead([bad, bad], { eager: { 'tasks[*]': never } }), 'go').result

    expect(outcome.status).toBe('invalid_output')
    expect(outcome.delegations).toEqual([])
  })

  test('a model that fails for good takes them too; one that fails for a while finds them again', async () => {
    const calls: string[] = []
    const half = '{"goal":"x","tasks":[{"title":"pack","hours":1},'
    const gone = Object.assign(new Error('busy'), { statusCode: 503 })
    const again = lead([{ text: half, error: gone }, plan('pack', 'drive')], { eager: { 'tasks[*]': worker(calls) } })
    const broken = lead([{ text: half, error: new Error('no key') }])

    const [found, failed] = await Promise.all([
      openRuntime().run(again, 'go').result,
      openRuntime().run(broken, 'go').result,
    ])

    expect(calls).toEqual(['pack', 'drive'])
    expect(found).toMatchObject({ status: 'completed', children: 2 })
    expect(failed).toMatchObject({ status: 'failed', children: 1 })
    expect(failed.delegations.map(({ field }) => field)).toEqual(['tasks[0]'])
  })

  test('equal items of one plan are as many children', async () => {
    const calls: string[] = []
    const host = lead([plan('same', 'same', 'other', 'same')], { eager: { 'tasks[*]': worker(calls) } })

    const outcome = await openRuntime().run(host, 'go').result

    expect(calls.toSorted()).toEqual(['other', 'same', 'same', 'same'])
    expect(outcome.delegations.map(({ field }) => field)).toEqual(['tasks[0]', 'tasks[1]', 'tasks[2]', 'tasks[3]'])
    expect(new Set(outcome.delegations.map(({ runId }) => runId)).size).toBe(4)
  })

  test('of a key that comes twice the last one counts', async () => {
    const text = '{"goal":"x","tasks":[{"title":"a","hours":1}],"tasks":[{"title":"b","hours":1}]}'

    const outcome = await openRuntime().run(lead([{ chunks: [...text] }]), 'go').result

    expect(outcome.output?.tasks).toEqual([{ title: 'b', hours: 1 }])
    expect(told(outcome)).toEqual(['tasks[0] completed b is done.'])
    expect(outcome.children).toBe(2)
  })

  test('what a child answers is its own; one that fails does not fail the plan', async () => {
    const Result = z.object({ ok: z.boolean() })
    const model = scriptedModel(({ messages }) => (JSON.stringify(messages).includes('poor') ? 'no' : '{"ok":true}'))
    const typed = agent({ name: 'worker', instructions: '', input: Task, output: Result, model })

    const outcome = await openRuntime().run(lead([plan('good', 'poor')], { eager: { 'tasks[*]': typed } }), 'go').result

    expect(outcome.status).toBe('completed')
    expect(outcome.delegations.map(({ status, output }) => [status, output])).toEqual([
      ['completed', { ok: true }],
      ['invalid_output', null],
    ])
  })

  test('an agent that takes a text is given the item as JSON, or what input makes of it', async () => {
    const heard: string[] = []
    const model = scriptedModel(({ messages }) => {
      heard.push(String(messages.findLast(({ role }) => role === 'user')?.content))
      return 'ok'
    })
    const plain = agent({ name: 'plain', instructions: '', model })
    const host = lead([plan('a')], {
      eager: {
        goal: plain,
        'tasks[*]': { agent: plain, input: ({ title }, { field }) => `${field}: do ${title}` },
        'tasks[*].title': () => plain,
        '/tasks/0': plain,
      },
    })

    const outcome = await openRuntime().run(host, 'go').result

    expect(heard.toSorted()).toEqual(['a', 'move', 'tasks[0]: do a', '{"title":"a","hours":1}'])
    expect(outcome.delegations.map(({ field }) => field)).toEqual(['goal', 'tasks[0]', 'tasks[0].title', 'tasks[0]'])
  })

  test('a child is told its item, and of its host only what its briefing says', async () => {
    const model = counting()
    const told = agent({ name: 'worker', instructions: '', input: Task, model, briefing: 'none' })

    await openRuntime().run(lead([plan('a')], { eager: { 'tasks[*]': told } }), 'secret').result

    expect(model.requests[0]?.messages.map(({ content }) => content)).toEqual(['{"title":"a","hours":1}'])
  })
})

describe('what cannot be started is told as its outcome', () => {
  test.each<[string, Extra, string]>([
    ['by the grant of the host', { grant: { use: ['model:*'] } }, 'denied'],
    ['by its depth', { budget: { depth: 0 } }, 'unavailable'],
    ['by the number of children', { budget: { children: 0 } }, 'unavailable'],
    [
      'because input failed',
      { eager: { 'tasks[*]': { agent: worker(), input: () => JSON.parse('{') } } },
      'invalid_input',
    ],
    [
      'because input gave the wrong thing',
      { eager: { 'tasks[*]': { agent: worker(), input: () => ({}) } } },
      'invalid_input',
    ],
  ])('%s', async (_name, extra, status) => {
    const outcome = await openRuntime().run(lead([plan('a', 'b')], extra), 'go').result

    expect(outcome).toMatchObject({ status: 'completed', children: 0 })
    expect(outcome.delegations.map((child) => child.status)).toEqual([status, status])
    expect(outcome.delegations[0]?.error?.message).not.toBe('')
  })

  test('and the limit of children counts over all of them', async () => {
    const outcome = await openRuntime().run(lead([plan('a', 'b', 'c')], { budget: { children: 2 } }), 'go').result

    expect(outcome.delegations.map(({ status }) => status)).toEqual(['completed', 'completed', 'unavailable'])
  })

  test('concurrency holds: the others wait their turn', async () => {
    let running = 0
    let most = 0
    const model = scriptedModel(async () => {
      most = Math.max(most, ++running)
      await new Promise((resolve) => setTimeout(resolve, 5))
      running--
      return 'ok'
    })
    const slow = agent({ name: 'worker', instructions: '', input: Task, model })
    const host = lead([plan('a', 'b', 'c', 'd')], { eager: { 'tasks[*]': { agent: slow, concurrency: 2 } } })

    const outcome = await openRuntime().run(host, 'go').result

    expect(outcome.delegations.every(({ status }) => status === 'completed')).toBe(true)
    expect(most).toBe(2)
  })
})

describe('around it', () => {
  test('every start has its end, and each item is a call with a result', async () => {
    const run = openRuntime().run(lead([plan('a', 'b')]), 'go')

    const events = await eventsOf(run)

    for (const type of ['tool-call', 'tool-result', 'delegation-start', 'delegation-end'] as const) {
      expect(only(events, type).length).toBe(2)
    }
  })

  test('a host reads what was done for the plan of its subagent', async () => {
    const model = scriptedModel([{ calls: [{ name: 'plan', input: { message: 'go' } }] }, 'fine'])
    const host = agent({ name: 'host', instructions: '', model, subagents: { plan: lead([plan('a')]) } })

    const outcome = await openRuntime().run(host, 'go').result

    expect(outcome.text).toBe('fine')
    const result = model.requests[1]?.messages.at(-1)
    expect(result?.content).toContain('"tasks":[{"title":"a","hours":1}]')
    expect(result?.content).toContain('{"field":"tasks[0]","status":"completed","result":"a is done."}')
  })

  test('the next turn of the conversation is told of it in words', async () => {
    const model = scriptedModel([plan('a'), plan()])
    const runtime = openRuntime()
    const host = lead([], { model })
    const first = runtime.run(host, 'go')
    await first.result

    await runtime.run(host, 'and now?', { conversationId: first.conversationId }).result

    const shown = model.requests[1]?.messages.map(({ role, content }) => `${role} ${String(content).slice(0, 30)}`)
    expect(shown?.slice(1)).toEqual([
      'user go',
      `assistant ${plan('a').slice(0, 30)}`,
      'user [tasks[0]] a is done.',
      'user and now?',
    ])
  })

  test('a repair is not shown what the plan has started', async () => {
    const model = scriptedModel(['{"goal":7,"tasks":[{"title":"old","hours":1}]}', plan()])

    await openRuntime().run(lead([], { model }), 'go').result

    expect(model.requests[1]?.messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user'])
  })

  test('tools go on beside it; text that came with calls is not the plan', async () => {
    const look = tool({ description: '', input: { type: 'object' }, execute: () => 'seen' })
    const calls: string[] = []
    const turns = [{ text: plan('early'), calls: [{ name: 'look', input: {} }] }, plan('late')]
    const host = lead(turns, { tools: { look }, eager: { 'tasks[*]': worker(calls) } })

    const outcome = await openRuntime().run(host, 'go').result

    expect(told(outcome)).toEqual(['tasks[0] completed late is done.'])
  })

  test('fields are read beside it', async () => {
    const run = openRuntime().run(lead([{ chunks: [...plan('a', 'b')] }]), 'go')

    const titles: unknown[] = []
    for await (const { value } of run.fields('tasks[*].title')) titles.push(value)

    expect(titles).toEqual(['a', 'b'])
  })

  test.each<[string, object, RegExp]>([
    ['without an output', { name: 'a', instructions: '', eager: { x: worker() } }, /give the agent an output/],
    [
      'at a path that is none',
      { name: 'a', instructions: '', output: Plan, eager: { 'tasks[': worker() } },
      /is no path/,
    ],
    [
      'at a field that is none',
      { name: 'a', instructions: '', output: Plan, eager: { steps: worker() } },
      /has no such field/,
    ],
    ['without an agent', { name: 'a', instructions: '', output: Plan, eager: { goal: {} } }, /not an agent/],
    ['as a list', { name: 'a', instructions: '', output: Plan, eager: 5 }, /eager is an object/],
    [
      'with a session',
      { name: 'a', instructions: '', output: Plan, eager: { goal: { agent: worker(), memory: 'session' } } },
      /has no "memory"/,
    ],
    [
      'with an input that is none',
      { name: 'a', instructions: '', output: Plan, eager: { goal: { agent: worker(), input: 1 } } },
      /function of the item/,
    ],
  ])('is refused %s', (_name, definition, why) => {
    expect(() => agent(definition as never)).toThrow(why)
  })
})

type Of<T> = Extract<RunEvent, { type: T }>

async function until<T extends 'delegation-start' | 'delegation-end'>(
  events: AsyncIterator<RunEvent>,
  type: T,
): Promise<Of<T>> {
  for (;;) {
    const { value, done } = await events.next()
    if (done) throw new Error(`The run ended without ${type}.`)
    if (value.type === type) return value as Of<T>
  }
}
