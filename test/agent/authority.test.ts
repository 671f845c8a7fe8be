import { expect, test } from 'vitest'
import { z } from 'zod'
import { agent, createRuntime, type Grant, tool } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { localStore } from '../support/rows.ts'

const Input = z.object({ n: z.number() })
const open = () => createRuntime()

test('a model rule covers ids with a slash (I2)', async () => {
  const runtime = open()
  const run = (grant: Grant) => {
    const model = scriptedModel(() => 'said', 'openai/gpt-5')
    return runtime.run(agent({ name: 'a', instructions: '', model, grant }), 'go').result
  }

  expect((await run({ deny: ['model:*'] })).status).toBe('denied')
  expect((await run({ deny: ['model:openai*'] })).status).toBe('denied')
  expect((await run({ use: ['tool:*', 'agent:*', 'model:*'] })).status).toBe('completed')
  expect((await run({ use: ['model:anthropic/*'] })).status).toBe('denied')
  await runtime.close()
})

test('an approval of one call allows nothing else that the call’s code asks for', async () => {
  const runtime = open()
  let kidRan = false
  const kid = agent({
    name: 'kid',
    instructions: '',
    input: Input,
    model: scriptedModel(() => {
      kidRan = true
      return 'hello'
    }),
  })
  const t = tool({
    description: 'calls kid',
    input: { type: 'object' },
    execute: async (_input, { delegate }) => (await delegate(kid, { n: 1 })).status,
  })
  const model = scriptedModel([{ calls: [{ name: 't', input: {} }] }, 'done'])
  const host = agent({ name: 'host', instructions: '', model, tools: { t }, grant: { ask: ['tool:t', 'agent:kid'] } })
  const run = runtime.run(host, 'go')

  for await (const event of run) {
    if (event.type === 'approval-request') await runtime.answer(event.nodeId ?? '', { allow: true, by: 'ann' })
  }

  const task = localStore(runtime)
    .nodesOf(run.id)
    .find(({ kind }) => kind === 'task')
  expect(task?.output.content).toBe('denied')
  expect(kidRan).toBe(false)
  await runtime.close()
})

test('I1: a budget given to one subagent binds what that subagent starts', async () => {
  const runtime = open()
  const again = tool({ description: 'x', input: { type: 'object' }, effect: 'pure', execute: () => 'more' })
  const leaf = agent({
    name: 'leaf',
    instructions: '',
    input: Input,
    tools: { again },
    model: scriptedModel((request) =>
      request.tools.length === 0 ? 'summed up' : { calls: [{ name: 'again', input: {} }] },
    ),
  })
  const child = agent({
    name: 'child',
    instructions: '',
    input: Input,
    subagents: { leaf },
    model: scriptedModel([{ calls: [{ name: 'leaf', input: { n: 1 } }] }, 'done']),
  })
  const host = agent({
    name: 'host',
    instructions: '',
    subagents: { child: { agent: child, budget: { modelCalls: 2 } } },
    model: scriptedModel([{ calls: [{ name: 'child', input: { n: 1 } }] }, 'done']),
  })
  const run = runtime.run(host, 'go')
  await run.result
  const [toChild] = localStore(runtime).linksOf(run.id)
  const [toLeaf] = localStore(runtime).linksOf(toChild?.id ?? '')

  expect(toLeaf?.outcome).toMatchObject({ status: 'max_turns', modelCalls: 2 })
  await runtime.close()
})

test('a tool that was cancelled before its code began had no effect, and is not called uncertain', async () => {
  const runtime = open()
  let began = 0
  const pay = tool({ description: 'x', input: { type: 'object' }, execute: () => ++began })
  const model = scriptedModel([{ calls: [{ name: 'pay', input: {} }] }, 'x'])
  const run = runtime.run(agent({ name: 'a', instructions: '', tools: { pay }, model }), 'go')

  for await (const event of run) if (event.type === 'tool-call') await run.cancel()

  const task = localStore(runtime)
    .nodesOf(run.id)
    .find(({ kind }) => kind === 'task')
  expect([began, task?.state, (await run.result).uncertain]).toEqual([0, 'stopped', []])
  await runtime.close()
})

test('what a failed call cost is counted', async () => {
  const runtime = open()
  const usage = { inputTokens: 100, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }
  const model = {
    id: 'own/model',
    async *stream() {
      yield { type: 'finish', reason: 'stop', usage } as const
      throw new Error('400 bad request')
    },
  }
  const outcome = await runtime.run(agent({ name: 'a', instructions: '', model }), 'go').result

  expect(outcome.status).toBe('failed')
  expect(outcome.usage.inputTokens).toBe(100)
  await runtime.close()
})

test('the answer that counted is in the transcript, also when it was a repair', async () => {
  const runtime = open()
  const model = scriptedModel(['not json', '{"n":1}'])
  const run = runtime.run(agent({ name: 'a', instructions: '', model, output: Input }), 'go')
  expect((await run.result).output).toEqual({ n: 1 })

  const lines = await (await runtime.conversation(run.conversationId)).transcript()

  expect(lines.at(-1)?.text).toBe('{"n":1}')
  await runtime.close()
})

test.each([
  [{ agent: [] }, /no option "agent"\. Did you mean "agents"/],
  [{ engine: { workers: -1 } }, /workers must be a number of at least 0/],
  [{ engine: { worker: 3 } }, /no option "worker"\. Did you mean "workers"/],
  [{ kinds: { mine: {} } }, /"mine" needs execute/],
  [{ agents: [{ name: 'x' }] }, /not an agent/],
])('createRuntime refuses %j', (options, message) => {
  expect(() => createRuntime(options as never)).toThrow(message)
})

test('run refuses what is not an agent', () => {
  expect(() => open().run({ name: 'x' } as never, 'go' as never)).toThrow(/not an agent/)
  expect(() => open().run(undefined as never, 'go' as never)).toThrow(/not an agent/)
})
