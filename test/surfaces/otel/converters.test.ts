// Our spans in the hands of others: the converter of Phoenix, and the span processor of Langfuse. `node scripts/protocols.mjs`
// fetches both.

import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { agent, createRuntime, tool } from 'legate'
import { legateIds, otel } from 'legate/otel'
import { scriptedModel } from 'legate/testing'
import { beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { foreignFolder } from '../support/foreign-program.ts'
import { followContexts } from './support.ts'

beforeAll(followContexts)
beforeEach(({ skip }) => skip(foreignFolder === '', 'node scripts/protocols.mjs runs it'))

async function foreign<T>(name: string): Promise<T> {
  const file = createRequire(path.join(foreignFolder, 'package.json')).resolve(name)
  return (await import(pathToFileURL(file).href)) as T
}

interface Converter {
  convertGenAISpanAttributesToOpenInferenceSpanAttributes(of: object): Readonly<Record<string, unknown>>
}

interface Langfuse {
  readonly LangfuseSpanProcessor: new (options: object) => SpanProcessor
}

function lead() {
  const fact = agent({
    name: 'fact',
    description: 'Knows.',
    input: z.object({ of: z.string() }),
    reply: ({ of }) => `A fact of ${of}.`,
  })
  const lookup = tool({ description: 'Finds.', input: z.object({ q: z.string() }), execute: ({ q }) => `found ${q}` })
  return agent({
    name: 'lead',
    instructions: 'You lead.',
    subagents: { fact },
    tools: { lookup },
    settings: { temperature: 0.2 },
    model: scriptedModel(
      [
        { calls: [{ id: 'c1', name: 'lookup', input: { q: 'Wien' } }], usage: { inputTokens: 10, outputTokens: 2 } },
        { calls: [{ id: 'c2', name: 'fact', input: { of: 'Wien' } }], usage: { inputTokens: 20, outputTokens: 3 } },
        { text: 'Done.', usage: { inputTokens: 30, outputTokens: 4 } },
      ],
      'openai/gpt-5',
    ),
  })
}

async function spansOf(processors: readonly SpanProcessor[] = []) {
  const exporter = new InMemorySpanExporter()
  const spanProcessors = [...processors, new SimpleSpanProcessor(exporter)]
  const tracerProvider = new BasicTracerProvider({ idGenerator: legateIds, spanProcessors })
  const runtime = createRuntime({ telemetry: otel({ tracerProvider, content: true }) })
  onTestFinished(() => runtime.close())
  await runtime.run(lead(), 'Tell me of Wien.').result
  await tracerProvider.forceFlush()
  return exporter.getFinishedSpans()
}

test('the converter of Phoenix finds kinds, messages, tools, settings and tokens', async () => {
  const { convertGenAISpanAttributesToOpenInferenceSpanAttributes: convert } =
    await foreign<Converter>('@arizeai/openinference-genai')
  const spans = (await spansOf()).map(
    ({ name, attributes }) => ({ name, ...convert(attributes) }) as Record<string, unknown>,
  )
  const kinds = spans.map((span) => `${span['openinference.span.kind']} ${span['name']}`).sort()

  expect(kinds).toEqual([
    'AGENT invoke_agent fact',
    'AGENT invoke_agent lead',
    'LLM chat gpt-5',
    'LLM chat gpt-5',
    'LLM chat gpt-5',
    'TOOL execute_tool fact',
    'TOOL execute_tool lookup',
  ])
  const [first, , last] = spans.filter((span) => span['openinference.span.kind'] === 'LLM')
  expect(first).toMatchObject({
    'llm.model_name': 'gpt-5',
    'llm.provider': 'openai',
    'llm.finish_reason': 'tool_call',
    'llm.input_messages.0.message.role': 'system',
    'llm.input_messages.0.message.contents.0.message_content.text': 'You lead.',
    'llm.input_messages.1.message.role': 'user',
    'llm.input_messages.1.message.contents.0.message_content.text': 'Tell me of Wien.',
    'llm.output_messages.0.message.tool_calls.0.tool_call.function.name': 'lookup',
    'llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments': '{"q":"Wien"}',
    'llm.token_count.prompt': 10,
  })
  expect(String(first?.['llm.invocation_parameters'])).toContain('"temperature":0.2')
  expect(String(first?.['llm.tools.0.tool.json_schema'])).toContain('"name":')
  expect(last).toMatchObject({
    'llm.input_messages.3.message.role': 'tool',
    'llm.input_messages.3.message.tool_call_id': 'c1',
    'llm.input_messages.3.message.content': 'found Wien',
    'llm.output_messages.0.message.contents.0.message_content.text': 'Done.',
  })
  const counted = spans.filter((span) => span['llm.token_count.prompt'] !== undefined)
  expect(counted.map((span) => span['llm.token_count.total'])).toEqual([12, 23, 34])
})

test('the processor of Langfuse exports every span, with input and output', async () => {
  const { LangfuseSpanProcessor } = await foreign<Langfuse>('@langfuse/otel')
  const exporter = new InMemorySpanExporter()
  const keys = { publicKey: 'pk', secretKey: 'sk', baseUrl: 'http://127.0.0.1:9' }
  const all = await spansOf([new LangfuseSpanProcessor({ exporter, exportMode: 'immediate', ...keys })])
  const taken = exporter.getFinishedSpans()

  expect(taken.map(({ name }) => name).sort()).toEqual(all.map(({ name }) => name).sort())
  for (const { attributes } of taken.filter(({ name }) => name.startsWith('chat'))) {
    expect(String(attributes['gen_ai.input.messages'])).toContain('Tell me of Wien.')
    expect(String(attributes['gen_ai.output.messages'])).toMatch(/tool_call|Done/)
  }
})
