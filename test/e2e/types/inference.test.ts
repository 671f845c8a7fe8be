import { anthropic } from '@ai-sdk/anthropic'
import { google } from '@ai-sdk/google'
import { openai } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { createUIMessageStreamResponse, ToolLoopAgent } from 'ai'
import { MockLanguageModelV3 } from 'ai/test'
import { type } from 'arktype'
import {
  type Agent,
  type AnyAgent,
  agent,
  type Content,
  createRuntime,
  type Outcome,
  type Run,
  type RunEvent,
  type Runtime,
  type StandardSchema,
  type Tool,
  tool,
} from 'legate'
import { asAiSdkTool, fromAiSdk, toUIMessageStream } from 'legate/ai-sdk'
import { waitKeys, whenKey } from 'legate/compat'
import type { InferInput, InferOutput } from 'legate/fields'
import { costOf, type Model, type ModelLike } from 'legate/models'
import type { CompletedOutcome, DirectInput } from 'legate/rows'
import { scriptedModel } from 'legate/testing'
import * as v from 'valibot'
import { describe, expectTypeOf, test } from 'vitest'
import { z } from 'zod'

declare const runtime: Runtime
declare const ofVersion: <V extends string>(
  version: V,
) => {
  specificationVersion: V
  provider: string
  modelId: string
  supportedUrls: Record<string, RegExp[]>
  doGenerate(options: { prompt: { role: 'user' }[] }): PromiseLike<{ content: object[] }>
  doStream(options: { prompt: { role: 'user' }[] }): PromiseLike<{ stream: ReadableStream<{ type: 'finish' }> }>
}
declare const handWritten: StandardSchema<{ q: string }, { q: number }>

/** Checked by the compiler only: what is in `check` is never run. */
function never(_check: () => void): void {}

describe('peers 6/7: a tool infers', () => {
  test('the input of execute from the schema, after its transforms and defaults', () => {
    tool({
      description: '',
      input: z.object({ q: z.string(), n: z.number().default(1), at: z.string().transform(Number) }),
      execute: (input) => {
        expectTypeOf(input).toEqualTypeOf<{ q: string; n: number; at: number }>()
        return 1
      },
    })
    tool({
      description: '',
      input: toStandardJsonSchema(v.object({ q: v.string(), n: v.optional(v.number()) })),
      execute: (input) => expectTypeOf(input).toEqualTypeOf<{ q: string; n?: number | undefined }>(),
    })
    tool({
      description: '',
      input: type({ q: 'string', 'n?': 'number' }),
      execute: (input) => expectTypeOf(input).toEqualTypeOf<{ q: string; n?: number }>(),
    })
    never(() => {
      tool({
        description: '',
        input: handWritten,
        execute: (input) => expectTypeOf(input).toEqualTypeOf<{ q: number }>(),
      })
    })
    tool({
      description: '',
      input: { type: 'object' },
      execute: (input) => expectTypeOf(input).toEqualTypeOf<unknown>(),
    })
  })

  test('its own type from both', () => {
    const search = tool({
      description: '',
      input: z.object({ q: z.string() }),
      execute: async ({ q }) => ({ hits: [q] }),
    })

    expectTypeOf(search).toEqualTypeOf<Tool<{ q: string }, { hits: string[] }>>()
  })

  test('that execute must give what the output promises', () => {
    never(() => {
      tool({
        description: '',
        input: { type: 'object' },
        output: z.object({ rows: z.number() }),
        // @ts-expect-error rows must be a number
        execute: () => ({ rows: 'three' }),
      })
    })
  })

  test('what its context has', () => {
    tool({
      description: '',
      input: { type: 'object' },
      execute: (_input, context) => {
        expectTypeOf(context.signal).toEqualTypeOf<AbortSignal>()
        expectTypeOf(context.idempotencyKey).toEqualTypeOf<string>()
        expectTypeOf(context.node.attempt).toEqualTypeOf<number>()
        return null
      },
    })
  })

  test('that a definition has what it needs', () => {
    never(() => {
      // @ts-expect-error no description
      tool({ input: { type: 'object' }, execute: () => 1 })
      // @ts-expect-error no such effect
      tool({ description: '', input: { type: 'object' }, effect: 'readonly', execute: () => 1 })
      // @ts-expect-error no such key
      tool({ description: '', input: { type: 'object' }, parameters: {}, execute: () => 1 })
    })
  })
})

describe('an agent infers', () => {
  const typed = agent({
    name: 'typed',
    instructions: '',
    input: z.object({ topic: z.string(), n: z.number().default(1) }),
    output: z.object({ at: z.string().transform(Number) }),
  })
  const plain = agent({ name: 'plain', instructions: '' })

  test('what it takes and gives', () => {
    expectTypeOf(typed).toEqualTypeOf<
      Agent<{ topic: string; n?: number | undefined }, { at: number }, { at: string }>
    >()
    expectTypeOf(plain).toEqualTypeOf<Agent<Content, null>>()
    expectTypeOf<InferInput<typeof handWritten>>().toEqualTypeOf<{ q: string }>()
    expectTypeOf<InferOutput<typeof handWritten>>().toEqualTypeOf<{ q: number }>()
  })

  test('the input and the output of a run, in every way to start one', () => {
    never(() => {
      expectTypeOf(typed.generate).parameter(0).toEqualTypeOf<{ topic: string; n?: number | undefined } | DirectInput>()
      expectTypeOf(typed.generate({ topic: '' })).resolves.toEqualTypeOf<CompletedOutcome<{ at: number }>>()
      expectTypeOf(typed.stream({ topic: '' })).toEqualTypeOf<Run<{ at: number }, { at: string }>>()
      expectTypeOf(runtime.run(typed, { topic: '' })).toEqualTypeOf<Run<{ at: number }, { at: string }>>()
      expectTypeOf(runtime.run(plain, 'hi').result).resolves.toHaveProperty('output').toEqualTypeOf<null>()
      expectTypeOf(runtime.attach<{ at: number }>('')).resolves.toEqualTypeOf<Run<{ at: number }>>()
    })
  })

  test('the paths of its fields and what is there, as the model writes it', () => {
    const planner = agent({
      name: 'planner',
      instructions: '',
      output: z.object({ at: z.string().transform(Number), tasks: z.array(z.object({ title: z.string() })) }),
    })
    const check = async () => {
      const run = runtime.run(planner, '')
      expectTypeOf(await run.field('at')).toEqualTypeOf<string>()
      expectTypeOf(await run.field('tasks[*].title', { default: null })).toEqualTypeOf<string | null>()
      for await (const { value } of run.fields('tasks[*]')) expectTypeOf(value).toEqualTypeOf<{ title: string }>()
      for await (const { value } of run.fields('/tasks/0', { partial: true })) expectTypeOf(value).toBeUnknown()
      for await (const { value } of run.fields()) expectTypeOf(value).toBeUnknown()
      run.onField('tasks[*]', (task) => expectTypeOf(task).toEqualTypeOf<{ title: string }>()).onField('at', Number)
      whenKey(run, 'at', (at) => expectTypeOf(at).toEqualTypeOf<string>())
      waitKeys(run, ['at', 'tasks'])
      // @ts-expect-error no such field
      await run.field('task')
      // @ts-expect-error no such field
      run.fields('tasks[*].name')
      // @ts-expect-error no such field
      waitKeys(run, ['at', 'task'])
      const any: Run = run
      expectTypeOf(await any.field('whatever')).toBeUnknown()
      expectTypeOf(await (await runtime.attach('')).field('whatever')).toBeUnknown()
    }
    expectTypeOf(check).toBeFunction()
  })

  test('the paths of an eager plan, and its items', () => {
    const output = z.object({ at: z.string().transform(Number), tasks: z.array(z.object({ title: z.string() })) })
    const about = { name: 'planner', instructions: '', output }
    agent({
      ...about,
      eager: {
        'tasks[*]': { agent: typed, input: (item) => expectTypeOf(item).toEqualTypeOf<{ title: string }>() },
        'tasks[*].title': { agent: plain, input: (title, { field }) => `${field}: ${title.trim()}` },
        at: () => plain,
      },
    })
    never(() => {
      // @ts-expect-error no such field
      agent({ ...about, eager: { 'task[*]': plain } })
      // @ts-expect-error an item's child has no session
      agent({ ...about, eager: { at: { agent: plain, memory: 'session' } } })
    })
  })

  test('that a run which completed has an output, and any other an error', async () => {
    const look = (result: Awaited<Run<{ at: number }>['result']>) => {
      if (result.status === 'completed') {
        expectTypeOf(result.output).toEqualTypeOf<{ at: number }>()
        expectTypeOf(result.error).toEqualTypeOf<null>()
      } else {
        expectTypeOf(result.output).toEqualTypeOf<null>()
        expectTypeOf(result.error.message).toEqualTypeOf<string>()
      }
    }
    expectTypeOf(look).returns.toEqualTypeOf<void>()
  })

  test('that a delegation of code which completed has an output, in a reply and in a tool', () => {
    const planner = agent({ name: 'planner', instructions: '', output: z.object({ at: z.number() }) })
    agent({
      name: 'code',
      subagents: { plan: planner },
      reply: async (_input, { delegate }) => {
        const [byAgent, byKey] = [await delegate(planner, 'Plan.'), await delegate('plan', 'Plan.')]
        if (byAgent.status === 'completed') expectTypeOf(byAgent.output).toEqualTypeOf<{ at: number }>()
        if (byKey.status === 'completed') expectTypeOf(byKey.output).toEqualTypeOf<{ at: number }>()
        return ''
      },
    })
    tool({
      description: '',
      input: z.object({}),
      execute: async (_input, { delegate }) => {
        const planned = await delegate(planner, 'Plan.')
        return planned.status === 'completed' ? planned.output.at : planned.error.message
      },
    })
  })

  test('that output may be null: a run need not complete', async () => {
    type Result = Awaited<Run<{ at: number }>['result']>
    expectTypeOf<Result['output']>().toEqualTypeOf<{ at: number } | null>()
    expectTypeOf<Result['status']>().toEqualTypeOf<Outcome['status']>()
    expectTypeOf<Result['text']>().toEqualTypeOf<string>()
  })

  test('that calls of one script may have different fields', () => {
    scriptedModel(() => ({
      calls: [
        { name: 'x', input: { k: 1 } },
        { name: 'y', input: { m: 'z' } },
      ],
    }))
    never(() => {
      // @ts-expect-error a function is not JSON
      scriptedModel([{ calls: [{ name: 'x', input: { k: () => 1 } }] }])
    })
  })

  test('from any library', () => {
    const valibot = agent({ name: 'v', instructions: '', input: toStandardJsonSchema(v.object({ q: v.string() })) })
    const ark = agent({ name: 'a', instructions: '', input: type({ q: 'string' }), output: type({ n: 'number' }) })
    const raw = agent({ name: 'r', instructions: '', input: { type: 'object' }, output: { type: 'object' } })

    expectTypeOf(valibot).toEqualTypeOf<Agent<{ q: string }, null>>()
    expectTypeOf(ark).toEqualTypeOf<Agent<{ q: string }, { n: number }>>()
    expectTypeOf(raw).toEqualTypeOf<Agent<unknown, unknown>>()
  })

  test('that an input must fit', () => {
    never(() => {
      // @ts-expect-error topic is missing
      typed.stream({})
      // @ts-expect-error a text is no topic
      runtime.run(typed, 'QUIC')
      // @ts-expect-error a plain agent takes a text
      plain.stream({ message: 'hi' })
    })
  })

  test('that agents of any types may be subagents, in any form', () => {
    const host = agent({
      name: 'host',
      instructions: '',
      subagents: { typed, plain, made: () => typed, told: { agent: plain, briefing: 'snapshot' } },
    })
    agent({ name: 'host', instructions: '', subagents: [typed, plain] })

    expectTypeOf(host).toExtend<AnyAgent>()
    never(() => {
      // @ts-expect-error a tool is not an agent
      agent({ name: 'host', instructions: '', subagents: { x: tool({}) } })
      // @ts-expect-error no such briefing
      agent({ name: 'host', instructions: '', subagents: { x: { agent: plain, briefing: 'all' } } })
    })
  })

  test('that tools of any types may be its tools', () => {
    const search = tool({ description: '', input: z.object({ q: z.string() }), execute: ({ q }) => q })
    const count = tool({ description: '', input: { type: 'object' }, execute: () => 1 })

    agent({ name: 'a', instructions: '', tools: { search, count } })
  })
})

test('events are told apart by their type', () => {
  const read = (event: RunEvent): string => {
    switch (event.type) {
      case 'text-delta':
        expectTypeOf(event.text).toEqualTypeOf<string>()
        return event.text
      case 'run-end':
        return event.outcome.status
      case 'tool-result':
        expectTypeOf(event.isError).toEqualTypeOf<boolean>()
        return event.tool
      default:
        return event.path.join('/')
    }
  }
  expectTypeOf(read).returns.toEqualTypeOf<string>()
})

describe('peers 6/2: a model', () => {
  const named = (model: ModelLike) => agent({ name: 'a', instructions: '', model })

  test('is what a provider of the AI SDK makes, as it is', () => {
    never(() => {
      named(openai('gpt-5'))
      named(openai.chat('gpt-4.1'))
      named(anthropic('claude-sonnet-5'))
      named(google('gemini-2.5-pro'))
      named(createOpenAICompatible({ name: 'x', baseURL: 'http://localhost/v1' })('m'))
      named(new MockLanguageModelV3())
      named(ofVersion('v2'))
      named(ofVersion('v4'))
      // @ts-expect-error nothing is known of this version
      named(ofVersion('v9'))
      named('openai/gpt-5')
      createRuntime({ model: openai('gpt-5') })
      createRuntime({ model: 'fast' })
      // @ts-expect-error a number is not a model
      named(5)
      // @ts-expect-error an object without a stream is not a model
      named({ id: 'x' })
    })
    expectTypeOf(fromAiSdk).returns.toEqualTypeOf<Model>()
  })

  test('has a cost that may be unknown', () => {
    expectTypeOf(costOf).returns.toEqualTypeOf<number | null>()
  })

  test('of the AI SDK may call our agents as tools', () => {
    const typed = agent({ name: 'a', instructions: '', input: z.object({ topic: z.string() }) })
    never(() => {
      new ToolLoopAgent({ model: openai('gpt-5'), tools: { ask: asAiSdkTool(typed) } })
      createUIMessageStreamResponse({ stream: toUIMessageStream(typed.stream({ topic: 'x' })) })
    })
    expectTypeOf(asAiSdkTool(typed).execute).parameter(0).toEqualTypeOf<{ topic: string }>()
  })
})
