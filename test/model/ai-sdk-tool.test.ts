import { generateText, stepCountIs, ToolLoopAgent } from 'ai'
import { MockLanguageModelV3 } from 'ai/test'
import { agent, createRuntime, tool } from 'legate'
import { asAiSdkTool } from 'legate/ai-sdk'
import { scriptedModel } from 'legate/testing'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { localStore } from '../support/rows.ts'
import { at } from './support/world.ts'

type Generated = Awaited<ReturnType<MockLanguageModelV3['doGenerate']>>

const usage: Generated['usage'] = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
}

/** A model of the AI SDK that calls `research` once and then says what came back. */
function caller(input: unknown): MockLanguageModelV3 {
  const call = (): Generated => ({
    content: [{ type: 'tool-call', toolCallId: 'c1', toolName: 'research', input: JSON.stringify(input) }],
    finishReason: { unified: 'tool-calls', raw: undefined },
    usage,
    warnings: [],
  })
  return new MockLanguageModelV3({
    doGenerate: async ({ prompt }) => {
      const last = prompt.at(-1)
      if (last?.role !== 'tool') return call()
      const [result] = last.content
      const output = result?.type === 'tool-result' ? result.output : undefined
      const text = output !== undefined && 'value' in output ? String(JSON.stringify(output.value)) : ''
      return { content: [{ type: 'text', text }], finishReason: { unified: 'stop', raw: 'x' }, usage, warnings: [] }
    },
  })
}

const researcher = agent({
  name: 'researcher',
  description: 'Researches one topic.',
  instructions: 'You research.',
  input: z.object({ topic: z.string().min(3), depth: z.number().default(1) }),
  output: z.object({ facts: z.array(z.string()) }),
  model: scriptedModel(() => '{"facts":["It is fast."]}'),
})

describe('an agent of the AI SDK delegates to ours', () => {
  test('with our schema as the tool’s, and gets the checked output', async () => {
    const model = caller({ topic: 'HTTP/3' })

    const { text } = await generateText({
      model,
      tools: { research: asAiSdkTool(researcher) },
      stopWhen: stepCountIs(3),
      prompt: 'go',
    })

    expect(JSON.parse(text)).toEqual({ facts: ['It is fast.'] })
    const offered = model.doGenerateCalls[0]?.tools?.[0]
    expect(offered).toMatchObject({ name: 'research', description: 'Researches one topic.' })
    expect(JSON.stringify(offered)).toContain('"minLength":3')
  })

  test('in a runtime, and is recorded there', async () => {
    const runtime = createRuntime()

    const host = new ToolLoopAgent({
      model: caller({ topic: 'HTTP/3' }),
      tools: { research: asAiSdkTool(researcher, { runtime }) },
    })
    await host.generate({ prompt: 'go' })

    expect(
      localStore(runtime)
        .roots({ limit: 9 })
        .map(({ agent: { name } }) => name),
    ).toEqual(['researcher'])
    await runtime.close()
  })

  test('with a message where it has no input schema', async () => {
    const clerk = agent({
      name: 'clerk',
      instructions: 'x',
      model: scriptedModel(({ messages }) => `got ${messages.at(-1)?.content}`),
    })

    const { text } = await generateText({
      model: caller({ message: 'Hello' }),
      tools: { research: asAiSdkTool(clerk) },
      stopWhen: stepCountIs(3),
      prompt: 'go',
    })

    expect(JSON.parse(text)).toBe('got Hello')
  })

  describe('with an object around an input that is none', () => {
    const tree: z.ZodType<{ name: string; children: unknown[] }> = z.object({
      name: z.string(),
      get children() {
        return z.array(tree)
      },
    })
    test.each<[string, z.ZodType, unknown]>([
      ['a text', z.string().min(3), 'HTTP/3'],
      ['a number', z.number(), 5],
      ['a list', z.array(z.string()), ['a']],
      ['one of two', z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]), { b: 'x' }],
      ['a list of what refers to itself', z.array(tree), [{ name: 'a', children: [{ name: 'b', children: [] }] }]],
    ])('%s', async (_name, input, value) => {
      const echo = agent({
        name: 'echo',
        instructions: 'x',
        input,
        model: scriptedModel(({ messages }) => `got ${messages.at(-1)?.content}`),
      })
      const model = caller({ input: value })

      const { text } = await generateText({
        model,
        tools: { research: asAiSdkTool(echo) },
        stopWhen: stepCountIs(3),
        prompt: 'go',
      })

      expect(JSON.parse(text)).toContain(typeof value === 'string' ? value : JSON.stringify(value))
      const [offered] = model.doGenerateCalls[0]?.tools ?? []
      const schema = offered?.type === 'function' ? offered.inputSchema : {}
      expect(schema).toMatchObject({ type: 'object', required: ['input'] })
      for (const [, reference = ''] of JSON.stringify(schema).matchAll(/"\$ref":"#\/([^"]*)"/g)) {
        expect(at(schema, ...reference.split('/'))).toBeDefined()
      }
    })

    test('which is checked like any other', async () => {
      const given = asAiSdkTool(
        agent({ name: 'a', instructions: 'x', input: z.string().min(3), model: scriptedModel([]) }),
      )

      const check = given.inputSchema['~standard'].validate

      expect(await check({ input: 'abc' })).toEqual({ value: { input: 'abc' } })
      expect(await check({ input: 'x' })).toHaveProperty('issues')
      expect(await check('abc')).toHaveProperty('issues')
      expect(await given.execute({ input: 'x' }, {})).toMatch(/The input of "a" is wrong/)
    })

    test('but not around an intersection of objects', () => {
      const both = z.object({ a: z.string() }).and(z.object({ b: z.string() }))
      const { inputSchema } = asAiSdkTool(agent({ name: 'a', instructions: 'x', input: both }))

      expect(inputSchema['~standard'].jsonSchema.input()).toMatchObject({ type: 'object' })
      expect(JSON.stringify(inputSchema['~standard'].jsonSchema.input())).not.toContain('"input"')
    })
  })

  test('an agent that describes itself by its name where it has no description', () => {
    expect(asAiSdkTool(agent({ name: 'clerk', instructions: 'x' })).description).toBe('Call clerk to complete tasks')
    expect(asAiSdkTool(researcher).description).toBe('Researches one topic.')
  })

  test('and a wrong input is told as the AI SDK tells it, without a model call', async () => {
    const model = scriptedModel([])
    const strict = agent({ name: 'strict', instructions: 'x', input: z.object({ topic: z.string().min(3) }), model })

    const { steps } = await generateText({
      model: caller({ topic: 'x' }),
      tools: { research: asAiSdkTool(strict) },
      stopWhen: stepCountIs(2),
      prompt: 'go',
    })

    expect(JSON.stringify(steps[0]?.content)).toContain('topic')
    expect(model.requests).toEqual([])
  })
})

describe('however it ends, the other model reads words', () => {
  const execute = (model: ReturnType<typeof scriptedModel>, abortSignal?: AbortSignal) =>
    asAiSdkTool(agent({ name: 'clerk', instructions: 'x', model })).execute({ message: 'go' }, { abortSignal })

  test('a failure, with what there was', async () => {
    const model = scriptedModel([{ text: 'I had begun', error: new Error('it burns') }])

    expect(await execute(model)).toMatch(/^"clerk" ended failed: it burns.*What it had so far:\nI had begun$/s)
  })

  test('an empty answer', async () => {
    expect(await execute(scriptedModel(['', '']))).toMatch(/"clerk" ended failed: The model gave no answer/)
  })

  test('an input that does not fit', async () => {
    const given = asAiSdkTool(researcher)

    expect(await given.execute({ topic: 'x', depth: 1 }, {})).toMatch(/The input of "researcher" is wrong/)
  })

  test('but an abort stops the run and throws', async () => {
    const abort = new AbortController()
    let stopped = false
    const wait = tool({
      description: 'Waits.',
      input: { type: 'object' },
      execute: (_input, { signal }) =>
        new Promise((resolve) => {
          signal.addEventListener('abort', () => {
            stopped = true
            resolve('stopped')
          })
          abort.abort(new Error('enough'))
        }),
    })
    const waiting = agent({
      name: 'waiting',
      instructions: 'x',
      tools: { wait },
      model: scriptedModel([{ calls: [{ name: 'wait', input: {} }] }, 'done']),
    })

    await expect(asAiSdkTool(waiting).execute({ message: 'go' }, { abortSignal: abort.signal })).rejects.toThrow(
      'enough',
    )
    expect(stopped).toBe(true)
  })
})

test('types: the input is the agent’s, or an object around it', () => {
  const typed = asAiSdkTool(researcher)
  const taking = <S extends z.ZodType>(input: S) => asAiSdkTool(agent({ name: 'a', instructions: 'x', input })).execute

  expectTypeOf(typed.execute).parameter(0).toEqualTypeOf<{ topic: string; depth?: number | undefined }>()
  expectTypeOf(asAiSdkTool(agent({ name: 'a', instructions: 'x' })).execute)
    .parameter(0)
    .toEqualTypeOf<{ message: string }>()
  expectTypeOf(taking(z.string())).parameter(0).toEqualTypeOf<{ input: string }>()
  expectTypeOf(taking(z.boolean())).parameter(0).toEqualTypeOf<{ input: boolean }>()
  expectTypeOf(taking(z.array(z.string())))
    .parameter(0)
    .toEqualTypeOf<{ input: string[] }>()
  const oneOf = z.union([z.object({ a: z.string() }), z.object({ b: z.string() })])
  expectTypeOf(taking(oneOf)).parameter(0).toEqualTypeOf<{ input: { a: string } | { b: string } }>()
  expectTypeOf(taking(z.record(z.string(), z.number())))
    .parameter(0)
    .toEqualTypeOf<Record<string, number>>()
})
