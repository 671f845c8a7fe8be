// The words of requests and answers in spans, where a program asks for them, live and from rows.

import { agent, createRuntime, tool } from 'legate'
import { type OtelOptions, otel } from 'legate/otel'
import { memoryStore } from 'legate/store/memory'
import { scriptedModel } from 'legate/testing'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import type { Model } from '../../../src/core/model/model.ts'
import { followContexts, newsroom, SECRETS, spansInMemory } from './support.ts'

beforeAll(followContexts)

function traced(options: OtelOptions = {}) {
  const memory = spansInMemory()
  const store = memoryStore()
  const runtime = createRuntime({ store, telemetry: otel({ tracerProvider: memory.provider, ...options }) })
  onTestFinished(() => runtime.close())
  return { runtime, store, ...memory }
}

type Attributes = Readonly<Record<string, unknown>>
type Traced = ReturnType<typeof traced>

function chats({ spans }: Pick<Traced, 'spans'>): Attributes[] {
  return spans()
    .filter(({ name }) => name.startsWith('chat'))
    .map(({ attributes }) => attributes)
}

/** The attributes of the spans of a trace from rows, by the ids of their spans. */
async function fromRows(
  runtime: Pick<Traced['runtime'], 'otlp'>,
  id: string,
  options?: Parameters<Traced['runtime']['otlp']>[1],
) {
  const [resource] = (await runtime.otlp(id, options)).resourceSpans
  const plain = (value: object): unknown => {
    const [inner] = Object.values(value)
    const { values } = Object(inner) as { values?: object[] }
    return values === undefined ? ('intValue' in value ? Number(inner) : inner) : values.map(plain)
  }
  return new Map(
    resource?.scopeSpans[0]?.spans.map(({ spanId, name, attributes }) => [
      spanId,
      { name, ...Object.fromEntries(attributes.map(({ key, value }) => [key, plain(value)])) } as Attributes,
    ]),
  )
}

const lookup = tool({
  description: 'Finds a fact.',
  input: z.object({ q: z.string() }),
  execute: ({ q }) => `fact of ${q}`,
})

/** A model whose provider names its answers, as those of the AI SDK do. */
function namedModel(): Model {
  const script = scriptedModel(
    ({ messages }) =>
      messages.at(-1)?.role === 'tool'
        ? 'Two million.'
        : { text: 'I look.', calls: [{ id: 'c1', name: 'lookup', input: { q: 'Wien' } }] },
    'openai/gpt-5',
  )
  return {
    id: script.id,
    stream: async function* (request, options) {
      for await (const part of script.stream(request, options)) {
        yield part.type === 'finish' ? { ...part, response: { id: 'chatcmpl-1', model: 'gpt-5-2026-08-07' } } : part
      }
    },
  }
}

function finder() {
  return agent({
    name: 'finder',
    instructions: 'You find facts.',
    tools: { lookup },
    settings: { temperature: 0.5, maxOutputTokens: 300, topP: 0.9, seed: 7 },
    model: namedModel(),
  })
}

async function ran(setting: Traced, options: Parameters<Traced['runtime']['run']>[2] = {}) {
  const run = setting.runtime.run(finder(), 'How many people live there?', options)
  await run.result
  return run
}

const text = (content: string) => ({ type: 'text', content })

test('a call of a model says what was asked and answered, in the forms of the conventions', async () => {
  const setting = traced({ content: true })
  await ran(setting)
  const [first, second] = chats(setting)
  const json = (of: Attributes | undefined, name: string) => JSON.parse(String(of?.[name]))

  expect(json(first, 'gen_ai.system_instructions')).toEqual([text('You find facts.')])
  expect(json(first, 'gen_ai.tool.definitions')).toEqual([
    {
      type: 'function',
      name: 'lookup',
      description: 'Finds a fact.',
      parameters: expect.objectContaining({ type: 'object' }),
    },
  ])
  const asked = { role: 'user', parts: [text('How many people live there?')] }
  expect(json(first, 'gen_ai.input.messages')).toEqual([asked])
  const call = { type: 'tool_call', id: 'c1', name: 'lookup', arguments: { q: 'Wien' } }
  expect(json(first, 'gen_ai.output.messages')).toEqual([
    { role: 'assistant', parts: [text('I look.'), call], finish_reason: 'tool_call' },
  ])
  expect(json(second, 'gen_ai.input.messages')).toEqual([
    asked,
    { role: 'assistant', parts: [text('I look.'), call] },
    { role: 'tool', parts: [{ type: 'tool_call_response', id: 'c1', response: 'fact of Wien' }] },
  ])
  expect(json(second, 'gen_ai.output.messages')).toEqual([
    { role: 'assistant', parts: [text('Two million.')], finish_reason: 'stop' },
  ])
})

test('bytes of files and thoughts of a model are in no span', async () => {
  const setting = traced({ content: true })
  const picture = { type: 'image', mediaType: 'image/png', data: 'BYTESOFAPICTURE' } as const
  const thinker = agent({
    name: 'thinker',
    instructions: 'Think.',
    model: scriptedModel(() => ({
      blocks: [{ type: 'reasoning', text: 'a secret thought' }, { type: 'text', text: 'Seen.' }, picture],
    })),
  })
  const run = setting.runtime.run(thinker, [{ type: 'text', text: 'Look.' }, picture])
  await run.result
  const written = JSON.stringify([
    chats(setting),
    [...(await fromRows(setting.runtime, run.id, { content: true })).values()],
  ])

  expect(written).toContain('Seen.')
  expect(written).toContain('image/png')
  expect(
    chats(setting)
      .map((one) => String(one['gen_ai.input.messages']) + String(one['gen_ai.output.messages']))
      .join(),
  ).not.toMatch(/BYTES|thought/)
})

test('settings, response and finish reason need no content', async () => {
  const setting = traced()
  await ran(setting)
  const [first, second] = chats(setting)

  expect(first).toMatchObject({
    'gen_ai.request.temperature': 0.5,
    'gen_ai.request.max_tokens': 300,
    'gen_ai.request.top_p': 0.9,
    'gen_ai.request.seed': 7,
    'gen_ai.response.id': 'chatcmpl-1',
    'gen_ai.response.model': 'gpt-5-2026-08-07',
    'gen_ai.response.finish_reasons': ['tool_call'],
  })
  expect(second?.['gen_ai.response.finish_reasons']).toEqual(['stop'])
  expect(JSON.stringify(chats(setting))).not.toMatch(/Wien|million|find facts/)
})

test('each token is counted by one span', async () => {
  const setting = traced()
  await setting.runtime.run(newsroom(), SECRETS.prompt).result
  const counted = setting.spans().filter(({ attributes }) => attributes['gen_ai.usage.input_tokens'] !== undefined)

  expect(counted.map(({ name }) => name.split(' ')[0])).toEqual(['chat', 'chat', 'chat', 'chat'])
  const run = setting.spans().find(({ name }) => name === 'invoke_agent editor')
  expect(run?.attributes).toMatchObject({ 'legate.tokens.input': 40, 'legate.tokens.output': 12 })
})

test('kinds of text are let through one by one, in messages too', async () => {
  const setting = traced({ content: (what) => what === 'input' || what === 'output' })
  await ran(setting)
  const written = JSON.stringify(chats(setting))

  expect(written).toContain('How many people')
  expect(written).toContain('Two million.')
  expect(written).not.toMatch(/Wien|find facts|Finds a fact/)
})

test('from rows the words are those of the live spans, in a process that has the agents', async () => {
  const setting = traced({ content: true })
  const run = await ran(setting)
  const rows = await fromRows(setting.runtime, run.id, { content: true })

  for (const span of setting.spans()) {
    const { 'gen_ai.response.id': _, 'gen_ai.response.model': __, ...live } = span.attributes
    expect(rows.get(span.spanContext().spanId)).toEqual({ name: span.name, ...live })
  }
})

test('from rows a process without the agents tells the messages, and no instructions of another definition', async () => {
  const setting = traced()
  const run = await ran(setting)
  const changed = agent({ name: 'finder', instructions: 'You lie.', model: namedModel() })

  for (const agents of [[], [changed]]) {
    const other = createRuntime({ store: setting.store, agents })
    const chat = [...(await fromRows(other, run.id, { content: true })).values()].find(
      (one) => one['gen_ai.operation.name'] === 'chat',
    )
    expect(String(chat?.['gen_ai.input.messages'])).toContain('How many people live there?')
    expect(chat).not.toHaveProperty('gen_ai.system_instructions')
    expect(chat).not.toHaveProperty('gen_ai.tool.definitions')
  }
})

test('spans from rows have the names of the live ones', async () => {
  const setting = traced({ vocabulary: 'latest' })
  const run = setting.runtime.run(newsroom(), SECRETS.prompt)
  await run.result
  const names = async (options?: object) =>
    [...(await fromRows(setting.runtime, run.id, options)).values()].map(({ name }) => name).sort()

  expect(await names()).toEqual(
    setting
      .spans()
      .map(({ name }) => name)
      .sort(),
  )
  expect(await names()).toContain('execute_tool researcher researcher')
  expect(await names({ vocabulary: '1.41' })).toContain('execute_tool researcher')
})

test('a caller who may export but not read gets no instructions', async () => {
  const setting = traced()
  const run = await ran(setting, { owner: 'ann' })
  const trace = async (scopes: readonly ('export' | 'read')[]) => {
    const spans = await fromRows(setting.runtime.as({ id: 'ann', scopes }) as never, run.id, { content: true })
    return JSON.stringify([...spans.values()])
  }

  expect(await trace(['export', 'read'])).toContain('You find facts.')
  expect(await trace(['export'])).not.toContain('You find facts.')
})
