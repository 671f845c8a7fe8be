import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { dynamicTool, jsonSchema, tool as sdkTool, zodSchema } from 'ai'
import { agent, createRuntime, DefinitionError, type Tools, tool } from 'legate'
import { registerTool } from 'legate/compat'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { eventsOf, only, openRuntime, resultsIn, taskOf } from '../support/reading.ts'
import { lasting } from '../support/stores.ts'

/** An agent that calls `act` once with this input, and ends. */
function actor(act: Tools[string], input: unknown) {
  const model = scriptedModel([{ calls: [{ name: 'act', input: input as never }] }, 'Done.'])
  return { model, who: agent({ name: 'who', instructions: 'You act.', model, tools: { act } }) }
}

async function act(given: Tools[string], input: unknown) {
  const { who, model } = actor(given, input)
  const runtime = openRuntime()
  const run = runtime.run(who, 'go')
  const events = await eventsOf(run)
  return { model, events, outcome: await run.result, result: resultsIn(model.requests[1])[0], runtime, run }
}

const weather = sdkTool({
  description: 'The weather of a city.',
  inputSchema: z.object({ city: z.string().trim() }),
  execute: ({ city }) => ({ city, degrees: 7 }),
})

describe('tools of the AI SDK', () => {
  test('run as they are, with their schema, and read what it made of the arguments', async () => {
    const { model, result, outcome } = await act(weather, { city: ' Bern ' })

    expect(model.requests[0]?.tools[0]).toMatchObject({
      name: 'act',
      description: 'The weather of a city.',
      inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    })
    expect(result).toMatchObject({ content: '{"city":"Bern","degrees":7}', isError: false })
    expect(outcome.status).toBe('completed')
  })

  test.each([
    [
      'jsonSchema()',
      jsonSchema<{ n: number }>({ type: 'object', properties: { n: { type: 'number' } }, required: ['n'] }),
    ],
    ['zodSchema()', zodSchema(z.object({ n: z.number() }))],
    ['a schema that is made when it is needed', () => zodSchema(z.object({ n: z.number() }))],
  ])('with %s check what they are given', async (_name, inputSchema) => {
    const doubled = sdkTool({ inputSchema, execute: async ({ n }: { n: number }) => n * 2 } as never)

    expect((await act(doubled, { n: 4 })).result).toMatchObject({ content: '8', isError: false })
    expect((await act(doubled, { n: 'four' })).result).toMatchObject({
      content: expect.stringMatching(/^The arguments of act are wrong\./),
      isError: true,
    })
  })

  test('with a validate of their own, by jsonSchema() or dynamicTool()', async () => {
    const inputSchema = jsonSchema<{ n: number }>(
      { type: 'object' },
      { validate: () => ({ success: false, error: new Error('only on Sundays') }) },
    )
    const { result } = await act(dynamicTool({ inputSchema, execute: async () => 'never' }), {})

    expect(result?.content).toBe('The arguments of act are wrong. only on Sundays')
  })

  test('get a signal, an id and our context', async () => {
    const seen: Record<string, unknown>[] = []
    const looking = sdkTool({
      inputSchema: z.object({}),
      execute: (_input, options) => {
        const { toolCallId, messages, abortSignal } = options
        const { idempotencyKey } = options as unknown as { idempotencyKey: string }
        seen.push({ toolCallId, messages, isSignal: abortSignal instanceof AbortSignal, idempotencyKey })
        return 'seen'
      },
    })
    const { run, runtime } = await act(looking, {})

    const { id } = taskOf(runtime, run)
    expect(seen).toEqual([{ toolCallId: id, messages: [], isSignal: true, idempotencyKey: expect.any(String) }])
  })

  test('tools that stream give progress, and their last value', async () => {
    const counting = sdkTool({
      inputSchema: z.object({ to: z.number() }),
      async *execute({ to }) {
        for (let at = 1; at <= to; at++) yield { at }
      },
    })
    const { events, result } = await act(counting, { to: 3 })

    expect(only(events, 'progress').map(({ data }) => data)).toEqual([{ at: 1 }, { at: 2 }, { at: 3 }])
    expect(result?.content).toBe('{"at":3}')
  })

  test('tools that stream and throw are a failure with the reason', async () => {
    const breaking = sdkTool({
      inputSchema: z.object({}),
      async *execute() {
        yield 1
        throw new Error('no paper')
      },
    })

    expect((await act(breaking, {})).result).toMatchObject({ content: 'Error: no paper', isError: true })
  })

  test.each([
    ['text', { type: 'text', value: 'Seven.' }, 'Seven.', false],
    ['json', { type: 'json', value: { seven: true } }, '{"seven":true}', false],
    ['error-text', { type: 'error-text', value: 'Too cold.' }, 'Too cold.', true],
    ['error-json', { type: 'error-json', value: { cold: 1 } }, '{"cold":1}', true],
    ['execution-denied', { type: 'execution-denied', reason: 'No.' }, 'This call was denied. No.', true],
    [
      'content',
      {
        type: 'content',
        value: [
          { type: 'text', text: 'Seven' },
          { type: 'text', text: '!' },
        ],
      },
      'Seven\n!',
      false,
    ],
    [
      'a picture',
      { type: 'content', value: [{ type: 'image-data', data: 'AAAA', mediaType: 'image/png' }] },
      [{ type: 'image', mediaType: 'image/png', data: 'AAAA' }],
      false,
    ],
  ])(
    'with toModelOutput show the model %s; the record keeps the value too',
    async (_name, output, content, isError) => {
      const given: unknown[] = []
      const toModelOutput = (asked: unknown) => {
        given.push(asked)
        return output as never
      }
      const { result, run, runtime } = await act({ ...weather, toModelOutput }, { city: 'Bern' })

      const task = taskOf(runtime, run)
      expect(given).toEqual([{ toolCallId: task.id, input: { city: 'Bern' }, output: { city: 'Bern', degrees: 7 } }])
      expect(result).toMatchObject({ content, isError })
      if (!isError) expect(task.output.value).toEqual({ city: 'Bern', degrees: 7 })
    },
  )

  test('are given in groups, to subagents, to a run and with registerTool as well', async () => {
    const { who, model } = actor(tool({ description: '', input: {}, execute: () => 'ours' }), { city: 'Bern' })

    await openRuntime().run(who, 'go', { tools: { act: weather } }).result
    const { who: bare, model: second } = actor(weather, { city: 'Bern' })
    await openRuntime().run(registerTool(bare, 'again', { ...weather, title: 'Weather' }), 'go').result

    expect(resultsIn(model.requests[1])[0]?.content).toBe('{"city":"Bern","degrees":7}')
    expect(second.requests[0]?.tools.map(({ name }) => name)).toEqual(['act', 'again'])
  })
})

describe.each(lasting)('needsApproval, with a store in %s and a restart before the answer,', (_name, create) => {
  const pay = (needsApproval: boolean | ((input: { amount: number }) => boolean | Promise<boolean>)) =>
    sdkTool({
      inputSchema: z.object({ amount: z.number() }),
      needsApproval,
      execute: ({ amount }) => `paid ${amount}`,
    })

  async function paid(given: Tools[string], amount: number) {
    const { who, model } = actor(given, { amount })
    const rows = create()
    const first = createRuntime({ store: rows.open() })
    const run = first.run(who, 'go')
    let asked: string | null = null
    for await (const event of run) {
      if (event.type === 'approval-request') asked = event.nodeId
      if (asked !== null) break
    }
    await first.close()
    const second = openRuntime({ store: rows.open(), agents: [who] })
    await second.resume()
    if (asked !== null) await second.answer(asked, { allow: true })
    const { status } = await (await second.attach(run.id)).result
    return { asked: asked === null ? 0 : 1, status, result: resultsIn(model.requests.at(-1))[0]?.content }
  }

  test.each([
    ['true', pay(true), 5, 1],
    ['false', pay(false), 5, 0],
    ['a function that says no', pay(({ amount }) => amount > 100), 5, 0],
    ['a function that says yes', pay(({ amount }) => amount > 100), 500, 1],
    ['a function that says it later', pay(async ({ amount }) => amount > 100), 500, 1],
    [
      'a function that throws',
      pay(() => {
        throw new Error('cannot tell')
      }),
      5,
      1,
    ],
  ])('%s', async (_case, given, amount, asked) => {
    expect(await paid(given, amount)).toEqual({ asked, status: 'completed', result: `paid ${amount}` })
  })

  test('the same with tool() of ours: approval is a function', async () => {
    const ours = tool({
      description: 'Pays.',
      input: z.object({ amount: z.number() }),
      approval: ({ amount }) => amount > 100,
      execute: ({ amount }) => `paid ${amount}`,
    })

    expect(await paid(ours, 5)).toEqual({ asked: 0, status: 'completed', result: 'paid 5' })
    expect(await paid(ours, 500)).toEqual({ asked: 1, status: 'completed', result: 'paid 500' })
  })
})

describe('what cannot be run here is refused by its name, with what to do', () => {
  const openai = createOpenAI({ apiKey: 'x' })
  const anthropic = createAnthropic({ apiKey: 'x' })

  test.each<[string, unknown, RegExp]>([
    ['a search of OpenAI', openai.tools.webSearch({}), /tools\.act is "openai\.web_search".*tool of your own/],
    ['a shell of Anthropic', anthropic.tools.bash_20250124({}), /tools\.act is "anthropic\.bash_20250124"/],
    ['one without code', sdkTool({ inputSchema: z.object({}), outputSchema: z.string() } as never), /has no execute/],
    ['one without a schema', { execute: () => 1 }, /tools\.act is not a tool/],
    [
      'a schema that is none',
      { inputSchema: 'x', execute: () => 1 },
      /tools\.act: the input of the tool ".*": this is not a schema/,
    ],
    ['a schema that comes later', { ...weather, inputSchema: jsonSchema(async () => ({})) }, /comes later/],
    ['needsApproval of a text', { ...weather, needsApproval: 'yes' }, /needsApproval that is neither/],
    ['toModelOutput of a text', { ...weather, toModelOutput: 'yes' }, /toModelOutput that is not a function/],
  ])('%s', (_name, given, message) => {
    const define = () => actor(given as Tools[string], {})

    expect(define).toThrow(DefinitionError)
    expect(define).toThrow(message)
  })
})
