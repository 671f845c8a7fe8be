import { randomBytes } from 'node:crypto'
import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { agent, createRuntime, tool } from 'legate'
import { type OtelOptions, otel } from 'legate/otel'
import { memoryStore } from 'legate/store/memory'
import { scriptedModel } from 'legate/testing'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { stores } from '../../support/stores.ts'
import { below, followContexts, metricsInMemory, newsroom, SECRETS, spansInMemory, treeOf } from './support.ts'

beforeAll(followContexts)

const TREE = [
  'chat claude-5 < invoke_agent editor',
  'chat claude-5 < invoke_agent editor',
  'chat gpt-5 < invoke_agent researcher',
  'chat gpt-5 < invoke_agent researcher',
  'execute_tool lookup < invoke_agent researcher',
  'execute_tool researcher < invoke_agent editor',
  'invoke_agent editor < top',
  'invoke_agent researcher < execute_tool researcher',
]

function traced(options: OtelOptions = {}) {
  const memory = spansInMemory()
  const runtime = createRuntime({ telemetry: otel({ tracerProvider: memory.provider, ...options }) })
  onTestFinished(() => runtime.close())
  return { runtime, ...memory }
}

describe('live spans', () => {
  test('nest runs, model calls, tools and delegations', async () => {
    const { runtime, spans } = traced()
    const run = runtime.run(newsroom(), SECRETS.prompt)
    await run.result

    expect(treeOf(spans())).toEqual(TREE)
    expect(new Set(spans().map((span) => span.spanContext().traceId))).toEqual(new Set([run.id.replaceAll('-', '')]))
    const chat = spans().find(({ name }) => name === 'chat gpt-5')
    expect(chat?.kind).toBe(SpanKind.CLIENT)
    expect(chat?.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai',
      'gen_ai.request.model': 'gpt-5',
      'gen_ai.usage.input_tokens': 10,
      'gen_ai.usage.output_tokens': 3,
    })
    const top = spans().find(({ name }) => name === 'invoke_agent editor')
    expect(top?.attributes).toMatchObject({
      'legate.run.id': run.id,
      'legate.status': 'completed',
      'legate.tokens.input': 40,
      'gen_ai.conversation.id': run.conversationId,
    })
  })

  test('hold no text of people or models, searched byte by byte', async () => {
    const { runtime, spans } = traced()
    const run = runtime.run(newsroom(), SECRETS.prompt, { title: SECRETS.prompt, attributes: { who: SECRETS.prompt } })
    await run.result
    const written = JSON.stringify([spans().map(plain), await runtime.otlp(run.id)])

    for (const secret of Object.values(SECRETS)) expect(written).not.toContain(secret)
  })

  test('hold them where the program asks for it, each kind by itself', async () => {
    const { runtime, spans } = traced({ content: (what) => what === 'arguments' || what === 'output' })
    await runtime.run(newsroom(), SECRETS.prompt).result
    const written = JSON.stringify(spans().map(plain))

    expect(written).toContain(SECRETS.arguments)
    expect(written).toContain(SECRETS.answer)
    expect(written).not.toContain(SECRETS.prompt)
    expect(written).not.toContain(SECRETS.result)
  })

  test('a name that a model invents is no way to put text into a span', async () => {
    const { runtime, spans } = traced()
    const model = scriptedModel([{ calls: [{ id: SECRETS.prompt, name: SECRETS.prompt, input: {} }] }, 'Sorry.'])
    await runtime.run(agent({ name: 'clerk', instructions: 'x', model }), 'x').result

    expect(JSON.stringify(spans().map(plain))).not.toContain(SECRETS.prompt)
    expect(spans().find(({ name }) => name === 'execute_tool _other')?.status.code).toBe(SpanStatusCode.ERROR)
  })

  test('what a tool traces itself stands below its call, and its requests carry the place', async () => {
    let sent: string | null = null
    const { runtime, spans, tracer } = traced()
    const fetchPage = tool({
      description: 'x',
      input: z.object({}),
      execute: (_, { traceparent }) => {
        sent = traceparent
        tracer.startSpan('GET /page').end()
        return 'ok'
      },
    })
    const model = scriptedModel([{ calls: [{ name: 'fetchPage', input: {} }] }, 'Done.'])
    await runtime.run(agent({ name: 'clerk', instructions: 'x', model, tools: { fetchPage } }), 'x').result

    const tree = treeOf(spans())
    expect(tree).toContain('GET /page < execute_tool fetchPage')
    const call = spans()
      .find(({ name }) => name === 'execute_tool fetchPage')
      ?.spanContext()
    expect(sent).toBe(`00-${call?.traceId}-${call?.spanId}-01`)
  })

  test("what a model's request traces stands below the call", async () => {
    const { runtime, spans, tracer } = traced()
    const model = scriptedModel(() => {
      tracer.startSpan('POST /messages').end()
      return 'Hello.'
    })
    await runtime.run(agent({ name: 'clerk', instructions: 'x', model }), 'x').result

    expect(treeOf(spans())).toContain('POST /messages < chat model')
  })

  test('a run goes on in the trace of the code that starts it, or of the header that it is given', async () => {
    const { runtime, spans, tracer } = traced()
    const clerk = agent({ name: 'clerk', instructions: 'x', model: scriptedModel(() => 'Hello.') })
    const request = tracer.startSpan('POST /chat')
    await below(request, () => runtime.run(clerk, 'x')).result
    request.end()
    const traceId = randomBytes(16).toString('hex')
    const traceparent = `00-${traceId}-${randomBytes(8).toString('hex')}-01`
    const other = runtime.run(clerk, 'x', { traceparent })
    await other.result

    expect(treeOf(spans())).toContain('invoke_agent clerk < POST /chat')
    const given = spans().filter((span) => span.spanContext().traceId === traceId)
    expect(treeOf(given)).toEqual(['chat model < invoke_agent clerk', 'invoke_agent clerk < elsewhere'])
    const [resource] = (await runtime.otlp(other.id)).resourceSpans
    expect(resource?.scopeSpans[0]?.spans.map((span) => span.traceId)).toEqual([traceId, traceId])
    expect(() => runtime.run(clerk, 'x', { traceparent: 'yes' })).toThrow('traceparent')
  })

  test('the place of a caller is no part of its request: a repeated start from elsewhere is the same run', async () => {
    const { runtime } = traced()
    const clerk = agent({ name: 'clerk', instructions: 'x', model: scriptedModel(() => 'Hello.') })
    const place = () => `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-01`
    const first = runtime.run(clerk, 'x', { key: 'a', traceparent: place() })
    await first.result
    const second = runtime.run(clerk, 'x', { key: 'a', traceparent: place() })
    await second.result

    expect(second.id).toBe(first.id)
  })

  test('waiting for a person is an event of the call, and no span while it lasts', async () => {
    const { runtime, spans } = traced()
    const deploy = tool({ description: 'x', input: z.object({}), execute: () => 'out' })
    const model = scriptedModel([{ calls: [{ name: 'deploy', input: {} }] }, 'Done.'])
    const grant = { ask: ['tool:deploy'] }
    const run = runtime.run(agent({ name: 'clerk', instructions: 'x', model, tools: { deploy }, grant }), 'x')
    const [asked] = await untilSome(() => runtime.approvals())
    expect(treeOf(spans())).toEqual(['chat model < elsewhere'])
    await runtime.answer(asked?.nodeId ?? '', { allow: true })
    await run.result
    await runtime.close()

    const call = spans().find(({ name }) => name === 'execute_tool deploy')
    expect(call?.events.map(({ name, attributes }) => [name, attributes?.['legate.wait.reason']])).toEqual([
      ['legate.wait', 'approval'],
    ])
    expect(call?.attributes['legate.grant.decision']).toBe('approved')
  })

  test('failures have a kind and no words', async () => {
    const { runtime, spans } = traced()
    const model = scriptedModel(() => ({ error: new Error(SECRETS.prompt) }))
    const outcome = await runtime.run(agent({ name: 'clerk', instructions: 'x', model }), 'x').result

    expect(outcome.status).toBe('failed')
    expect(spans().map(({ name, status }) => [name, status.code])).toEqual([
      ['chat model', SpanStatusCode.ERROR],
      ['invoke_agent clerk', SpanStatusCode.ERROR],
    ])
    expect(JSON.stringify(spans().map(plain))).not.toContain(SECRETS.prompt)
  })

  test('the drafts have other names', async () => {
    const { runtime, spans } = traced({ vocabulary: 'latest' })
    await runtime.run(newsroom(), SECRETS.prompt).result

    const call = spans().find(({ name }) => name === 'execute_tool researcher researcher')
    expect(call?.attributes).toMatchObject({ 'gen_ai.transfer.target.name': 'researcher' })
    const run = spans().find(({ name }) => name === 'invoke_agent editor')
    expect(run?.attributes).not.toHaveProperty('gen_ai.agent.version')
  })

  test('without a provider nothing is made, and one that is registered later is used', async () => {
    const telemetry = otel()
    expect(telemetry.isOn()).toBe(false)
    const runtime = createRuntime({ telemetry })
    onTestFinished(() => runtime.close())
    expect((await runtime.run(newsroom(), SECRETS.prompt).result).status).toBe('completed')
    const { provider, spans } = spansInMemory()
    trace.setGlobalTracerProvider(provider)
    onTestFinished(() => trace.disable())
    await runtime.run(newsroom(), SECRETS.prompt).result
    expect(treeOf(spans())).toEqual(TREE)
  })

  test.each([
    [{ vocabulary: '2' }, 'vocabulary'],
    [{ contents: true }, 'contents'],
  ])('refuses %j', (options, word) => {
    expect(() => otel(options as never)).toThrow(word)
  })
})

describe.each(stores)('traces from rows, with a store in %s', (_, create) => {
  test('are the live spans: same ids, parents, names, times and attributes', async () => {
    const rows = create()
    const { provider, spans } = spansInMemory()
    const runtime = createRuntime({ store: rows.open(), telemetry: otel({ tracerProvider: provider }) })
    onTestFinished(async () => {
      await runtime.close()
      await rows.drop()
    })
    const run = runtime.run(newsroom(), SECRETS.prompt)
    await run.result
    const first = JSON.stringify(await runtime.otlp(run.id))
    const [resource] = (await runtime.otlp(run.conversationId)).resourceSpans
    const fromRows = resource?.scopeSpans[0]?.spans ?? []

    expect(JSON.stringify(await runtime.otlp(run.id))).toBe(first)
    expect(JSON.parse(first).resourceSpans[0].scopeSpans[0].spans).toEqual(fromRows)
    expect(fromRows.map(asLine).sort()).toEqual(spans().map(asLiveLine).sort())
  })
})

test('a run that was recorded before anybody traced has the trace that it would have had', async () => {
  const store = memoryStore()
  const before = createRuntime({ store })
  const run = before.run(newsroom(), SECRETS.prompt)
  await run.result
  const [resource] = (await before.otlp(run.id)).resourceSpans
  await before.close()

  expect(resource?.scopeSpans[0]?.spans).toHaveLength(TREE.length)
})

test('two processes make one trace: spans of the second have their parents in the first', async () => {
  const rows = stores.find(([name]) => name.includes('later'))?.[1]()
  if (rows === undefined) throw new Error('there is no store that two runtimes can open')
  const { provider, spans } = spansInMemory()
  const deploy = tool({ description: 'x', input: z.object({}), execute: () => 'out' })
  const answers = () =>
    scriptedModel(({ messages }) => {
      return messages.some(({ role }) => role === 'tool') ? 'Done.' : { calls: [{ name: 'deploy', input: {} }] }
    })
  const clerk = () =>
    agent({ name: 'clerk', instructions: 'x', model: answers(), tools: { deploy }, grant: { ask: ['tool:deploy'] } })
  const first = createRuntime({ store: rows.open(), agents: [clerk()], telemetry: otel({ tracerProvider: provider }) })
  const run = first.run(clerk(), 'x')
  const [asked] = await untilSome(() => first.approvals())
  await first.close()
  const second = createRuntime({ store: rows.open(), agents: [clerk()], telemetry: otel({ tracerProvider: provider }) })
  onTestFinished(async () => {
    await second.close()
    await rows.drop()
  })
  await second.answer(asked?.nodeId ?? '', { allow: true })
  const [open] = await second.resume()
  await open?.result
  await second.close()

  expect(open?.id).toBe(run.id)
  expect(treeOf(spans())).toEqual([
    'chat model < invoke_agent clerk',
    'chat model < invoke_agent clerk',
    'execute_tool deploy < invoke_agent clerk',
    'invoke_agent clerk < top',
  ])
})

test('a provider with ids of its own still gets one trace with the right parents', async () => {
  const { runtime, spans } = foreign()
  const run = runtime.run(newsroom(), SECRETS.prompt)
  await run.result

  expect(new Set(spans().map((span) => span.spanContext().traceId))).toEqual(new Set([run.id.replaceAll('-', '')]))
  expect(treeOf(spans())).toEqual(TREE.map((line) => line.replace('editor < top', 'editor < elsewhere')))
})

function foreign() {
  const own = {
    generateTraceId: () => randomBytes(16).toString('hex'),
    generateSpanId: () => randomBytes(8).toString('hex'),
  }
  const memory = spansInMemory(own)
  const runtime = createRuntime({ telemetry: otel({ tracerProvider: memory.provider }) })
  onTestFinished(() => runtime.close())
  return { runtime, ...memory }
}

test.each([
  [
    '1.41',
    ['gen_ai.client.operation.duration', 'gen_ai.client.operation.time_to_first_chunk', 'gen_ai.client.token.usage'],
  ],
  [
    'latest',
    [
      'gen_ai.client.inference.duration',
      'gen_ai.client.inference.operation.input_tokens',
      'gen_ai.client.inference.operation.output_tokens',
      'gen_ai.client.inference.time_to_first_chunk',
      'gen_ai.client.inference.usage.input_tokens',
      'gen_ai.client.inference.usage.output_tokens',
      'gen_ai.execute_tool.duration',
      'gen_ai.invoke_agent.duration',
      'gen_ai.invoke_agent.inference_calls',
      'gen_ai.invoke_agent.tool_calls',
    ],
  ],
] as const)('metrics have the names of %s and add up', async (vocabulary, names) => {
  const { provider, read } = metricsInMemory()
  const runtime = createRuntime({ telemetry: otel({ meterProvider: provider, vocabulary }) })
  await runtime.run(newsroom(), SECRETS.prompt).result
  await runtime.close()
  const metrics = await read()

  expect(metrics.map(({ descriptor }) => descriptor.name).sort()).toEqual(names)
  const tokens = metrics.find(
    ({ descriptor: { name } }) => name.endsWith('token.usage') || name.endsWith('operation.input_tokens'),
  )
  const input = tokens?.dataPoints.filter(({ attributes }) => attributes['gen_ai.token.type'] !== 'output') ?? []
  const sums = input.map(({ value }) => (value as { readonly sum: number }).sum)
  expect(sums.reduce((sum, one) => sum + one, 0)).toBe(40)
  expect(JSON.stringify(metrics)).not.toContain(SECRETS.prompt)
})

type Finished = ReturnType<ReturnType<typeof spansInMemory>['spans']>[number]

function plain({ name, attributes, events, status, kind }: Finished) {
  return { name, attributes, events, status, kind }
}

interface RowSpan {
  readonly spanId: string
  readonly traceId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly { readonly key: string; readonly value: object }[]
}

function asLine({ spanId, traceId, parentSpanId = '', name, ...span }: RowSpan): string {
  const attributes = span.attributes.map(({ key, value }) => `${key}=${plainValue(value)}`).sort()
  return [traceId, spanId, parentSpanId, name, span.startTimeUnixNano, span.endTimeUnixNano, ...attributes].join(' ')
}

function plainValue(value: object): string {
  const [plain] = Object.values(value)
  const { values } = Object(plain) as { readonly values?: readonly object[] }
  return values === undefined ? String(plain) : values.map(plainValue).join()
}

function asLiveLine(span: Finished): string {
  const { traceId, spanId } = span.spanContext()
  const attributes = Object.entries(span.attributes).map(([key, value]) => `${key}=${value}`)
  const [start, end] = [span.startTime, span.endTime].map(([s, ns]) => `${BigInt(s) * 1_000_000_000n + BigInt(ns)}`)
  return [traceId, spanId, span.parentSpanContext?.spanId ?? '', span.name, start, end, ...attributes.sort()].join(' ')
}

async function untilSome<T>(list: () => Promise<readonly T[]>): Promise<readonly T[]> {
  for (;;) {
    const found = await list()
    if (found.length > 0) return found
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
