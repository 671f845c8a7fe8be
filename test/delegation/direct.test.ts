import { agent, RunError, tool } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { simpleTool, useWorld } from '../support/agents.ts'
import { makeGate } from '../support/gate.ts'
import { openRuntime, resultIn, resultsIn, taskOf, toolNamesIn } from '../support/reading.ts'
import { lasting } from '../support/stores.ts'

const Topic = z.object({ topic: z.string().min(3) })

const expertWith = (model = scriptedModel(() => 'ok')) => ({
  model,
  expert: agent({ name: 'expert', instructions: 'You know.', model, input: Topic }),
})

describe('an agent used directly', () => {
  test('takes its input', async () => {
    const { expert, model } = expertWith()

    expect((await expert.generate({ topic: 'QUIC' })).text).toBe('ok')

    expect(model.requests[0]?.messages.at(-1)).toEqual({ role: 'user', content: '{"topic":"QUIC"}' })
  })

  test('takes a text, whatever its input is', async () => {
    const { expert, model } = expertWith()

    await expert.generate('What is QUIC?')

    expect(model.requests[0]?.messages).toEqual([
      { role: 'system', content: 'You know.' },
      { role: 'user', content: 'What is QUIC?' },
    ])
  })

  test('takes messages, of which the last is the question', async () => {
    const { expert, model } = expertWith()
    const messages = [
      { role: 'system', content: 'Be short.' },
      { role: 'user', content: 'What is QUIC?' },
      { role: 'assistant', content: 'A protocol.' },
      { role: 'user', content: [{ type: 'text', text: 'And HTTP/3?' }] },
    ] as const

    const run = expert.stream({ messages })

    expect((await run.result).status).toBe('completed')
    expect(model.requests[0]?.messages).toEqual([
      { role: 'system', content: 'You know.' },
      { role: 'system', content: 'Be short.' },
      { role: 'user', content: 'What is QUIC?' },
      { role: 'assistant', content: 'A protocol.', calls: [] },
      { role: 'user', content: [{ type: 'text', text: 'And HTTP/3?' }] },
    ])
  })

  test('an input that looks like messages, and fits, is the input', async () => {
    const model = scriptedModel(['ok'])
    const input = z.object({ messages: z.array(z.object({ role: z.string(), content: z.string() })) })
    const clerk = agent({ name: 'clerk', instructions: '', model, input })

    await clerk.generate({ messages: [{ role: 'user', content: 'hi' }] })

    expect(model.requests[0]?.messages).toEqual([
      { role: 'user', content: '{"messages":[{"role":"user","content":"hi"}]}' },
    ])
  })

  test.each<[unknown, RegExp]>([
    [{ topic: 'Q' }, /topic/],
    ['   ', /expected object/],
    [{ messages: [] }, /the last one must be a user’s/],
    [{ messages: [{ role: 'assistant', content: 'x' }] }, /the last one must be a user’s/],
    [
      {
        messages: [
          { role: 'tool', content: 'x' },
          { role: 'user', content: 'x' },
        ],
      },
      /number 0 is not valid/,
    ],
    [{ messages: [{ role: 'user', content: '' }] }, /number 0 is not valid/],
    [{ messages: [{ role: 'system', content: [{ type: 'text', text: 'x' }] }] }, /number 0 is not valid/],
    [{ messages: 'hi' }, /the last one must be/],
    [{ messages: [{ role: 'user', content: () => 1 }] }, /not JSON/],
    [{ messages: [{ role: 'user', content: 'x' }], more: 1 }, /topic/],
    [7, /expected object/],
    [null, /expected object/],
  ])('refuses %j, with what is wrong, and calls no model', async (input, message) => {
    const { expert, model } = expertWith()

    await expect(expert.generate(input as never)).rejects.toThrow(message)
    expect(model.requests).toEqual([])
  })

  test('an input that is itself a text is checked like any other', async () => {
    const model = scriptedModel(() => 'ok')
    const namer = agent({ name: 'namer', instructions: '', model, input: z.string().min(3) })

    await expect(namer.generate('x')).rejects.toThrow(/The input of "namer" is wrong/)
    await expect(namer.generate({ messages: [{ role: 'user', content: 'hello' }] })).rejects.toThrow(/is wrong/)
    expect((await namer.generate('long enough')).text).toBe('ok')
  })

  test('runtime.run stays strict: it takes the input and nothing else', async () => {
    const { expert } = expertWith()

    await expect(openRuntime().run(expert, 'QUIC' as never).result).rejects.toThrow(/The input of "expert" is wrong/)
  })

  test('messages are not taken for those of a next turn', async () => {
    const model = scriptedModel(() => 'ok')
    const plain = agent({ name: 'plain', instructions: '', model })
    const before = [
      { role: 'user', content: 'one' },
      { role: 'assistant', content: 'two' },
    ] as const

    await plain.generate({ messages: [...before, { role: 'user', content: 'three' }] })
    await plain.generate('four')

    expect(model.requests[1]?.messages).toEqual([{ role: 'user', content: 'four' }])
  })
})

describe('what a direct run is given', () => {
  const named = (text: string) =>
    tool({ description: text, input: { type: 'object' }, effect: 'pure', execute: () => text })
  const tries = (...names: readonly string[]) =>
    scriptedModel((request) => {
      const results = resultsIn(request)
      if (results.length === 0) return { calls: names.map((name) => ({ name, input: {} })) }
      return results.map(({ content }) => String(content)).join('\n')
    })

  test('tools: they are all it has, for this run only', async () => {
    const model = tries('two')
    const clerk = agent({ name: 'clerk', instructions: '', model, tools: { one: named('1') } })

    const first = await clerk.generate('go', { tools: { two: named('2') } })
    await clerk.generate('go')

    expect(first.text).toBe('2')
    expect(model.requests.map(toolNamesIn)).toEqual([['two'], ['two'], ['one'], ['one']])
    expect([...clerk.tools.keys()]).toEqual(['one'])
  })

  test('grant: it binds the run and all below it, and widens nothing', async () => {
    const leaf = agent({
      name: 'leaf',
      instructions: '',
      model: tries('one', 'two'),
      tools: { one: named('1'), two: named('2') },
    })
    const model = scriptedModel((request) =>
      resultsIn(request).length === 0 ? { calls: [{ name: 'leaf', input: { message: 'go' } }] } : resultIn(request),
    )
    const host = agent({ name: 'host', instructions: '', model, subagents: { leaf }, grant: { deny: ['tool:one'] } })

    const { text } = await host.generate('go', { grant: { use: ['agent:*', 'model:*', 'tool:one'] } })

    expect(text).toMatch(/one is not allowed here: host denies tool:one/)
    expect(text).toMatch(/two is not allowed here: no rule of the caller allows tool:two/)
  })

  test('grant: also for a run of a runtime, of which it is said who asked for it', async () => {
    const clerk = agent({ name: 'clerk', instructions: '', model: tries('one'), tools: { one: named('1') } })
    const runtime = openRuntime()
    const run = runtime.run(clerk, 'go', { grant: { deny: ['tool:*'] } })

    expect((await run.result).text).toMatch(/one is not allowed here/)
    expect(await runtime.explain(run.id, 'tool:one')).toMatchObject({ verdict: 'deny' })
  })

  test('inside a tool it is a delegation, with the same words and the same bounds', async () => {
    const model = tries('one', 'two')
    const clerk = agent({ name: 'clerk', instructions: '', model, input: Topic, tools: { one: named('1') } })
    const work = tool({
      description: 'Work',
      input: { type: 'object' },
      execute: async () => {
        const tools = { one: named('1'), two: named('2') }
        const told = {
          messages: [
            { role: 'user', content: 'before' },
            { role: 'user', content: 'go' },
          ],
        } as const
        return (await clerk.generate(told, { tools, grant: { deny: ['tool:two'] } })).text
      },
    })
    const hostModel = scriptedModel([{ calls: [{ name: 'work', input: {} }] }, 'done'])
    const runtime = openRuntime()
    const run = runtime.run(agent({ name: 'host', instructions: '', model: hostModel, tools: { work } }), 'go')

    expect(await run.result).toMatchObject({ status: 'completed', children: 1 })
    expect(taskOf(runtime, run).output.content).toMatch(/^1\ntwo is not allowed here/)
    expect(model.requests[0]?.messages.map(({ content }) => content)).toEqual(['before', 'go'])
  })

  test.each([
    [{ grant: { use: ['tols:x'] } }, /must start with one of/],
    [{ grant: { delegate: ['tool:*'] } }, /no "delegate"/],
    [{ tools: [1] }, /tools are an object/],
  ])('%j is refused', (options, message) => {
    expect(() => openRuntime().run(expertWith().expert, { topic: 'QUIC' }, options as never)).toThrow(message)
  })
})

test('a run that does not complete is an error with the outcome', async () => {
  const { expert } = expertWith(scriptedModel(() => ({ error: new Error('broken') })))

  const error = await expert.generate('hello').catch((thrown: unknown) => thrown)

  expect(error).toBeInstanceOf(RunError)
  expect(error).toMatchObject({ outcome: { status: 'failed' } })
})

describe.each(lasting)('tools that a run was given, on %s', (_, create) => {
  const { start } = useWorld(create)

  test('are those of this process: another one that goes on with the run has the agent’s own', async () => {
    const named = (text: string) => simpleTool(() => text)
    const asked = makeGate()
    const held = agent({
      name: 'clerk',
      instructions: '',
      tools: { one: named('1') },
      model: scriptedModel(() => {
        asked.open()
        return new Promise<never>(() => undefined)
      }),
    })
    const first = start({ engine: { graceMs: 0 } })
    const run = first.runtime.run(held, 'go', { tools: { two: named('2') } })
    run.result.catch(() => undefined)
    await asked.opened
    await first.runtime.close()

    const model = scriptedModel(() => 'done')
    const clerk = agent({ name: 'clerk', instructions: '', tools: { one: named('1') }, model })
    const second = start({ agents: [clerk] })
    await second.runtime.resume()

    expect((await (await second.runtime.attach(run.id)).result).text).toBe('done')
    expect(model.requests.map(toolNamesIn)).toEqual([['one']])
  })
})
