import { fromAiSdk } from 'legate/ai-sdk'
import type { Message, ModelRequest, Part } from 'legate/models'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Client, clients, KEY } from './support/clients.ts'
import { type Body, type Fault, Wire } from './support/wire.ts'
import { add, ask, at, shownText, typesOf } from './support/world.ts'

const TEXT = 'The quick brown fox jumps over the lazy dog.'
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
}

let wire: Wire

beforeAll(async () => {
  wire = await Wire.open()
})
beforeEach(() => wire.reset())
afterAll(() => wire.close())

/** What each provider calls the same thing in what is sent and what comes back. */
interface Format {
  readonly settings: (body: Body) => unknown
  readonly wanted: unknown
  readonly system: (body: Body) => unknown
  readonly tools: (body: Body) => unknown
  /** Of the second request of a run with two calls: ids of calls and of results. */
  readonly answered: (body: Body) => { calls: unknown[]; results: unknown[] }
  readonly image: (body: Body) => unknown
  readonly wantedImage: unknown
  readonly schema: (body: Body) => unknown
  /** Puts 80 tokens read from a cache, and 20 written where that is told, into a usage of 100. */
  readonly cached: (answer: string) => string
  readonly cacheWrite: number
  /** The proof of the reasoning as it is sent back; undefined where there is none. */
  readonly signature: ((body: Body) => unknown) | undefined
  /** What that is, where the stand-in can be told. */
  readonly signed?: string
}

const list = (value: unknown): Body[] => (Array.isArray(value) ? value : [])
const of = (items: readonly Body[], type: string) => items.filter((item) => item['type'] === type)

const formats: Readonly<Record<string, Format>> = {
  openai: {
    settings: (body) => ({ max: body['max_output_tokens'], effort: at(body, 'reasoning', 'effort') }),
    wanted: { max: 77, effort: 'low' },
    system: (body) => at(body, 'input', 0),
    tools: (body) => list(body['tools']).map(({ name }) => name),
    answered: (body) => ({
      calls: of(list(body['input']), 'function_call').map(({ call_id }) => call_id),
      results: of(list(body['input']), 'function_call_output').map(({ call_id }) => call_id),
    }),
    image: (body) => at(body, 'input', 1, 'content', 1, 'image_url'),
    wantedImage: `data:image/png;base64,${PIXEL}`,
    schema: (body) => at(body, 'text', 'format', 'schema'),
    cached: (answer) =>
      answer.replace(
        /"usage":\{[^}]*\}/,
        '"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":80},"output_tokens":7}',
      ),
    cacheWrite: 0,
    signature: (body) => at(of(list(body['input']), 'reasoning'), 0, 'encrypted_content'),
  },
  'openai chat': {
    settings: ({
      temperature,
      top_p,
      max_tokens,
      max_completion_tokens,
      stop,
      seed,
      presence_penalty,
      frequency_penalty,
    }) => ({
      temperature,
      top_p,
      max: max_tokens ?? max_completion_tokens,
      stop,
      seed,
      presence_penalty,
      frequency_penalty,
    }),
    wanted: {
      temperature: 0.3,
      top_p: 0.9,
      max: 77,
      stop: ['END'],
      seed: 5,
      presence_penalty: 0.1,
      frequency_penalty: 0.2,
    },
    system: (body) => at(body, 'messages', 0),
    tools: (body) => list(body['tools']).map((tool) => at(tool, 'function', 'name')),
    answered: (body) => ({
      calls: list(at(body, 'messages', 2, 'tool_calls')).map(({ id }) => id),
      results: list(body['messages']).flatMap(({ role, tool_call_id }) => (role === 'tool' ? [tool_call_id] : [])),
    }),
    image: (body) => at(body, 'messages', 1, 'content', 1, 'image_url', 'url'),
    wantedImage: `data:image/png;base64,${PIXEL}`,
    schema: (body) => at(body, 'response_format', 'json_schema', 'schema'),
    cached: (answer) =>
      answer.replace(
        /"usage":\{[^}]*\}/,
        '"usage":{"prompt_tokens":100,"prompt_tokens_details":{"cached_tokens":80},"completion_tokens":7,"total_tokens":107}',
      ),
    cacheWrite: 0,
    signature: undefined,
  },
  anthropic: {
    settings: ({ temperature, top_k, max_tokens, stop_sequences }) => ({
      temperature,
      top_k,
      max_tokens,
      stop_sequences,
    }),
    wanted: { temperature: 0.3, top_k: 9, max_tokens: 77, stop_sequences: ['END'] },
    system: (body) => at(body, 'system', 0),
    tools: (body) => list(body['tools']).map(({ name }) => name),
    answered: (body) => ({
      calls: of(list(at(body, 'messages', 1, 'content')), 'tool_use').map(({ id }) => id),
      results: of(list(at(body, 'messages', 2, 'content')), 'tool_result').map(({ tool_use_id }) => tool_use_id),
    }),
    image: (body) => at(body, 'messages', 0, 'content', 1, 'source', 'data'),
    wantedImage: PIXEL,
    schema: (body) => at(body, 'output_config', 'format', 'schema') ?? at(body, 'output_format', 'schema'),
    cached: (answer) =>
      answer
        .replace(
          /"usage":\{[^}]*\}/,
          '"usage":{"input_tokens":0,"cache_read_input_tokens":80,"cache_creation_input_tokens":20,"output_tokens":1}',
        )
        .replace(/"usage":\{"output_tokens":\d+\}/, '"usage":{"output_tokens":7}'),
    cacheWrite: 20,
    signature: (body) => at(of(list(at(body, 'messages', 1, 'content')), 'thinking'), 0, 'signature'),
    signed: 'SIGNED',
  },
  google: {
    settings: (body) => {
      const { temperature, topP, topK, maxOutputTokens, stopSequences, seed } = (body['generationConfig'] ?? {}) as Body
      return { temperature, topP, topK, maxOutputTokens, stopSequences, seed }
    },
    wanted: { temperature: 0.3, topP: 0.9, topK: 9, maxOutputTokens: 77, stopSequences: ['END'], seed: 5 },
    system: (body) => at(body, 'systemInstruction', 'parts', 0),
    tools: (body) => list(at(body, 'tools', 0, 'functionDeclarations')).map(({ name }) => name),
    answered: (body) => ({
      calls: list(at(body, 'contents', 1, 'parts')).flatMap(({ functionCall }) =>
        functionCall ? [at(functionCall, 'name')] : [],
      ),
      results: list(at(body, 'contents', 2, 'parts')).map(({ functionResponse }) => at(functionResponse, 'name')),
    }),
    image: (body) => at(body, 'contents', 0, 'parts', 1, 'inlineData', 'data'),
    wantedImage: PIXEL,
    schema: (body) =>
      at(body, 'generationConfig', 'responseSchema') ?? at(body, 'generationConfig', 'responseJsonSchema'),
    cached: (answer) =>
      answer.replace(
        /"usageMetadata":\{[^}]*\}/,
        '"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":80,"candidatesTokenCount":7,"totalTokenCount":107}',
      ),
    cacheWrite: 0,
    signature: (body) =>
      list(at(body, 'contents', 1, 'parts')).find(({ functionCall }) => functionCall !== undefined)?.[
        'thoughtSignature'
      ],
    signed: 'SIGNED',
  },
}

/** Reasoning has no signature here, but some want the words back. */
const compatible: Partial<Format> = {
  signature: (body) => at(body, 'messages', 2, 'reasoning_content'),
  signed: 'Let me think.',
}

function formatOf({ name }: Client): Format {
  const chat = formats['openai chat']
  const format = name === 'openai-compatible' && chat !== undefined ? { ...chat, ...compatible } : formats[name]
  if (format === undefined) throw new Error(`no format of ${name}`)
  return format
}

function request(messages: readonly Message[], more: Partial<ModelRequest> = {}): ModelRequest {
  return { messages, tools: [], settings: {}, outputSchema: null, path: [], ...more }
}

async function partsOf(client: Client, sent: ModelRequest): Promise<Part[]> {
  const parts: Part[] = []
  const { signal } = new AbortController()
  for await (const part of fromAiSdk(client.model(wire.url)).stream(sent, { signal })) parts.push(part)
  return parts
}

describe.each(clients)('$name', (client) => {
  const format = formatOf(client)
  const model = () => client.model(wire.url)
  const say = (content = TEXT) => wire.mock.on({}, { content }, { chunkSize: 6 })

  test('is of the line this suite was asked to test', () => {
    expect(model().specificationVersion).toBe(process.env['LEGATE_PROVIDERS'] ? 'v4' : 'v3')
  })

  test('text is streamed in pieces and whole in the outcome, with the model’s id', async () => {
    say()

    const { outcome, events } = await ask(model(), 'go')

    expect(outcome).toMatchObject({ status: 'completed', text: TEXT })
    expect(typesOf(events, 'text-delta').length).toBeGreaterThan(2)
    expect(shownText(events)).toBe(TEXT)
    expect(events.find(({ type }) => type === 'usage')).toMatchObject({ model: client.id })
  })

  test('settings arrive, and instructions come first', async () => {
    say()
    const sampling = { temperature: 0.3, topP: 0.9, topK: 9, seed: 5, presencePenalty: 0.1, frequencyPenalty: 0.2 }
    const settings =
      client.name === 'openai'
        ? { maxOutputTokens: 77, reasoning: 'low' as const }
        : { ...sampling, maxOutputTokens: 77, stopSequences: ['END'] }

    await ask(model(), 'go', { settings })

    const [body = {}] = wire.bodies
    expect(format.settings(body)).toEqual(format.wanted)
    expect(JSON.stringify(format.system(body))).toContain('You are a clerk.')
  })

  test('provider options arrive as they are', async () => {
    say()
    const own = {
      openai: { user: 'u-1' },
      anthropic: { metadata: { userId: 'u-1' } },
      google: { labels: { user: 'u-1' } },
      ollama: { user: 'u-1' },
    }

    await ask(model(), 'go', { settings: { providerOptions: own } })

    expect(JSON.stringify(wire.bodies[0])).toContain('u-1')
  })

  test('tools are offered in the order they were given, again and again the same', async () => {
    wire.mock.on({ hasToolResult: true }, { content: TEXT })
    wire.mock.on({}, { toolCalls: [{ id: 'c1', name: 'plus', arguments: '{"a":1,"b":2}' }] })

    await ask(model(), 'go', { tools: { zero: add, plus: add, minus: add } })

    expect(wire.bodies.map(format.tools)).toEqual([
      ['zero', 'plus', 'minus'],
      ['zero', 'plus', 'minus'],
    ])
  })

  test('the beginning of the next call is the call before it', async () => {
    wire.mock.on({ hasToolResult: true }, { content: TEXT })
    wire.mock.on({}, { toolCalls: [{ id: 'c1', name: 'plus', arguments: '{"a":1,"b":2}' }] })

    await ask(model(), 'go', { tools: { plus: add }, settings: { promptCache: false } })

    const [first = {}, second = {}] = wire.bodies
    const said = (body: Body) => list(body['messages'] ?? body['input'] ?? body['contents'])
    expect(said(second).slice(0, said(first).length)).toEqual(said(first))
    expect(format.system(second)).toEqual(format.system(first))
  })

  test('parallel calls run, and all results go back together with the ids of their calls', async () => {
    wire.mock.on({ hasToolResult: true }, { content: TEXT })
    const toolCalls = [
      { id: 'call_a', name: 'plus', arguments: '{"a":1,"b":2}' },
      { id: 'call_b', name: 'plus', arguments: '{"a":3,"b":4}' },
    ]
    wire.mock.on({}, { toolCalls })

    const { outcome, events } = await ask(model(), 'go', { tools: { plus: add } })

    expect(outcome).toMatchObject({ status: 'completed', text: TEXT, toolCalls: 2 })
    expect(typesOf(events, 'tool-input-delta').length).toBeGreaterThan(0)
    const { calls, results } = format.answered(wire.bodies[1] ?? {})
    expect(calls).toHaveLength(2)
    expect(results).toEqual(calls)
    expect(JSON.stringify(wire.bodies[1])).toMatch(/3.*7/)
  })

  test('reasoning is seen live, is no part of the text, and goes back with its signature', async (context) => {
    context.skip(format.signature === undefined, 'this wire format has no reasoning')
    wire.mock.on({ hasToolResult: true }, { content: TEXT })
    const toolCalls = [{ id: 'c1', name: 'plus', arguments: '{"a":1,"b":2}' }]
    wire.mock.on({}, { content: 'One moment.', toolCalls, reasoning: 'Let me think.', reasoningSignature: 'SIGNED' })
    wire.spoil({ rewrite: (answer) => answer.replace('"functionCall"', '"thoughtSignature":"SIGNED","functionCall"') })

    const { outcome, events, nodes } = await ask(model(), 'go', {
      tools: { plus: add },
      settings: { reasoning: 'low' },
    })

    const thought = events.flatMap((event) => (event.type === 'reasoning-delta' ? [event.text] : [])).join('')
    expect(thought).toBe('Let me think.')
    expect(outcome.text).toBe(TEXT)
    expect(format.signature?.(wire.bodies[1] ?? {})).toEqual(expect.stringMatching(/./))
    if (format.signed !== undefined) expect(format.signature?.(wire.bodies[1] ?? {})).toBe(format.signed)
    const first = nodes.find(({ kind }) => kind === 'agent_message')?.output.content
    expect(first).toMatchObject([
      { type: 'reasoning', text: 'Let me think.' },
      { type: 'text', text: 'One moment.' },
    ])
    expect(nodes.find(({ kind }) => kind === 'task')?.input.call).not.toHaveProperty('providerMetadata')
  })

  test('an image of the user arrives', async () => {
    say()
    const content = [
      { type: 'text', text: 'What is this?' },
      { type: 'image', mediaType: 'image/png', data: PIXEL },
    ] as const

    const { outcome } = await ask(model(), content)

    expect(outcome.text).toBe(TEXT)
    expect(format.image(wire.bodies[0] ?? {})).toBe(format.wantedImage)
  })

  test('an image of a tool arrives as an image, not as text', async () => {
    say()
    const call = { id: 'c1', name: 'draw', input: {} }
    const content = [
      { type: 'text', text: 'Drawn.' },
      { type: 'image', mediaType: 'image/png', data: PIXEL },
    ] as const

    await partsOf(
      client,
      request([
        { role: 'user', content: 'draw' },
        { role: 'assistant', content: '', calls: [call] },
        { role: 'tool', callId: 'c1', name: 'draw', content, isError: false },
      ]),
    )

    const body = JSON.stringify(wire.bodies[0])
    expect(body.split(PIXEL)).toHaveLength(2)
    expect(body).toMatch(/"image_url"|"input_image"|"inlineData"|"type":"image"/)
    expect(body).not.toContain('\\"data\\"')
  })

  test('a history of another provider is taken, without what only that one reads', async () => {
    say()
    const foreign = { elsewhere: { signature: 'FOREIGN' } }
    const history: Message[] = [
      { role: 'user', content: 'add' },
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'Hm.', providerMetadata: foreign },
          { type: 'text', text: 'Yes.', providerMetadata: foreign },
        ],
        calls: [{ id: 'toolu:1/ü', name: 'plus', input: {}, providerMetadata: foreign }],
      },
      { role: 'tool', callId: 'toolu:1/ü', name: 'plus', content: '3', isError: false },
      { role: 'system', content: 'The house rules have changed.' },
      { role: 'user', content: 'go on' },
    ]

    const parts = await partsOf(client, request(history))

    expect(parts.at(-1)).toMatchObject({ type: 'finish', reason: 'stop' })
    expect(JSON.stringify(wire.bodies[0])).not.toContain('FOREIGN')
    expect(JSON.stringify(wire.bodies[0])).toContain('The house rules have changed.')
    expect(JSON.stringify(wire.bodies[0])).not.toContain('toolu:1')
  })

  test('usage counts what was read from a cache and written to one', async () => {
    say()
    wire.spoil({ rewrite: format.cached })

    const { outcome } = await ask(model(), 'go')

    expect(outcome.usage).toEqual({
      inputTokens: 100,
      outputTokens: 7,
      cacheReadTokens: 80,
      cacheWriteTokens: format.cacheWrite,
    })
  })

  test('an output schema is also a setting of the call', async () => {
    say('{"city":"Paris"}')

    const parts = await partsOf(client, request([{ role: 'user', content: 'go' }], { outputSchema: SCHEMA }))

    expect(JSON.stringify(format.schema(wire.bodies[0] ?? {}))).toContain('"city"')
    expect(parts.flatMap((part) => (part.type === 'text-delta' ? [part.text] : [])).join('')).toBe('{"city":"Paris"}')
  })

  describe('what goes wrong and may pass is tried again, and shown once', () => {
    test.each<[string, Fault, number]>([
      ['429 with Retry-After', { status: 429, headers: { 'retry-after': '1' } }, 1_000],
      ['500', { status: 500, headers: { 'retry-after-ms': '10' } }, 10],
      ['529', { status: 529, headers: { 'retry-after-ms': '10' } }, 10],
    ])('%s', async (_name, fault, wantedMs) => {
      say()
      wire.spoil(fault)

      const { outcome, events, waitedMs } = await ask(model(), 'go')

      expect(outcome).toMatchObject({ status: 'completed', text: TEXT })
      expect(wire.requests).toHaveLength(2)
      expect(waitedMs).toBe(wantedMs)
      expect(typesOf(events, 'retry')).toEqual(['retry'])
      expect(shownText(events)).toBe(TEXT)
    })

    test.each<[string, (events: number) => Fault]>([
      ['a connection that breaks in the middle', (count) => ({ dropAfter: count })],
      ['a stream that ends in the middle, properly', (count) => ({ endAfter: count })],
      ['an event that is not JSON', (count) => ({ garbleAt: count })],
    ])('%s', async (_name, fault) => {
      say()
      wire.spoil(fault(client.name === 'openai' ? 7 : 5))

      const { outcome, events } = await ask(model(), 'go')

      expect(outcome).toMatchObject({ status: 'completed', text: TEXT })
      expect(wire.requests).toHaveLength(2)
      expect(typesOf(events, 'retry', 'reset')).toEqual(['retry', 'reset'])
      expect(shownText(events)).toBe(TEXT)
      const said = events.findIndex(({ type }) => type === 'text-delta')
      expect(said).toBeLessThan(events.findIndex(({ type }) => type === 'reset'))
    })
  })

  test('a cut answer with a whole call in it does not run the call', async () => {
    const toolCalls = [{ id: 'c1', name: 'plus', arguments: '{"a":1,"b":2}' }]
    wire.mock.on({ hasToolResult: true }, { content: TEXT })
    wire.mock.on({}, { toolCalls })
    wire.spoil({ rewrite: withoutEnd })

    const { outcome, events } = await ask(model(), 'go', { tools: { plus: add } })

    expect(outcome).toMatchObject({ status: 'completed', toolCalls: 1 })
    expect(typesOf(events, 'retry', 'tool-call', 'tool-result')).toEqual(['retry', 'tool-call', 'tool-result'])
  })

  test('four failures are a failed run, never a completion', async () => {
    say()
    const fault = { status: 503, headers: { 'retry-after-ms': '5' } }
    wire.spoil(fault, fault, fault, fault)

    const { outcome } = await ask(model(), 'go')

    expect(outcome).toMatchObject({ status: 'failed', text: '', error: { code: 'model' } })
    expect(outcome.error?.message).toContain('503')
    expect(wire.requests).toHaveLength(4)
  })

  test.each([
    ['text/html; charset=utf-8', '<!doctype html><title>Sign in</title>'],
    ['application/json', '{"message":"hello"}'],
  ])('a good answer of %s is told as what it is, and not tried again', async (type, body) => {
    wire.spoil({ status: 200, headers: { 'content-type': type }, body })

    const { outcome } = await ask(model(), 'go')

    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'model' } })
    expect(outcome.error?.message).toContain(`${client.id} failed: the server answered with ${type}`)
    expect(wire.requests).toHaveLength(1)
  })

  test('a pause longer than a run waits ends it at once, with what was asked', async () => {
    say()
    wire.spoil({ status: 429, headers: { 'retry-after': '3600' } })

    const { outcome, events } = await ask(model(), 'go')

    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'model' } })
    expect(outcome.error?.message).toMatch(/status 429.*asks to be left alone for 3600 s.*more than the 60 s/)
    expect(typesOf(events, 'retry')).toEqual([])
    expect(wire.requests).toHaveLength(1)
  })

  test('a quota that is used up is not tried again', async (context) => {
    context.skip(!client.name.startsWith('openai'), 'only OpenAI names it so')
    say()
    const error = { message: 'You exceeded your quota.', type: 'insufficient_quota', code: 'insufficient_quota' }
    wire.spoil({ status: 429, body: JSON.stringify({ error }) })

    const { outcome } = await ask(model(), 'go')

    expect(outcome).toMatchObject({ status: 'failed', error: { message: expect.stringContaining(error.message) } })
    expect(wire.requests).toHaveLength(1)
  })

  test.each([400, 403, 404])(
    'the outcome of a call that was refused with %i says that another try is of no use',
    async (status) => {
      say()
      wire.spoil({ status, body: JSON.stringify({ error: { message: 'Not like this.', type: 'x' } }) })

      const { outcome } = await ask(model(), 'go')

      expect(outcome).toMatchObject({ status: 'failed', retryable: false, error: { code: 'model_refused' } })
      expect(outcome.advice).toContain('refuses it again')
    },
  )

  test('a wrong key is not tried again, and is shown nowhere', async () => {
    say()
    wire.spoil({ status: 401, body: JSON.stringify({ error: { message: `Incorrect API key: ${KEY}`, type: 'x' } }) })

    const { outcome, events, nodes } = await ask(model(), 'go')

    expect(outcome).toMatchObject({ status: 'failed', retryable: false, error: { code: 'model_refused' } })
    expect(wire.requests).toHaveLength(1)
    expect(outcome.error?.message).toContain('status 401')
    expect(JSON.stringify([outcome, events, nodes])).not.toContain(KEY)
  })

  test('a slow drip is one answer, once', async () => {
    say()
    wire.spoil({ dripMs: 2 })

    const { outcome, events } = await ask(model(), 'go')

    expect(outcome).toMatchObject({ status: 'completed', text: TEXT })
    expect(wire.requests).toHaveLength(1)
    expect(typesOf(events, 'retry', 'reset')).toEqual([])
    expect(shownText(events)).toBe(TEXT)
  })

  test('a cancelled run hangs up at once and keeps what was said', async () => {
    say(TEXT.repeat(40))
    wire.spoil({ dripMs: 5 })
    const { agent, createRuntime } = await import('legate')
    const runtime = createRuntime()
    const run = runtime.run(agent({ name: 'clerk', instructions: 'Go.', model: model() }), 'go')

    for await (const event of run) if (event.type === 'text-delta') await run.cancel('enough')

    const outcome = await run.result
    await wire.requests[0]?.hungUp
    expect(outcome.status).toBe('cancelled')
    expect(TEXT.repeat(40).startsWith(outcome.text)).toBe(true)
    expect(outcome.text).not.toBe('')
    expect(wire.requests).toHaveLength(1)
    await runtime.close()
  })
})

/** The answer without the events that say how it finished. */
function withoutEnd(answer: string): string {
  const events = answer.split(/(?<=\n\n)/)
  const isEnd = (event: string) =>
    /response\.completed|"finish_reason":"|"usage":\{"prompt|\[DONE\]|message_delta|message_stop/.test(event)
  return events
    .filter((event) => !isEnd(event))
    .join('')
    .replace('"finishReason":"FUNCTION_CALL",', '')
}

describe('Claude', () => {
  const claude = clients.find(({ name }) => name === 'anthropic') as Client

  test('marks its instructions and the end of a run that goes on for the cache', async () => {
    wire.mock.on({}, { content: TEXT })

    await ask(claude.model(wire.url), 'go', { tools: { plus: add } })
    await ask(claude.model(wire.url), 'go')
    await ask(claude.model(wire.url), 'go', { tools: { plus: add }, settings: { promptCache: false } })

    expect(wire.bodies.map((body) => JSON.stringify(body).split('"cache_control"').length - 1)).toEqual([2, 1, 0])
    expect(at(wire.bodies[0], 'system', 0, 'cache_control')).toEqual({ type: 'ephemeral' })
    expect(at(wire.bodies[0], 'messages', 0, 'content', 0, 'cache_control')).toEqual({ type: 'ephemeral' })
  })

  test('says inside a stream that it is overloaded, and is asked again', async () => {
    wire.mock.on({}, { content: TEXT }, { chunkSize: 6 })
    const event = 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
    wire.spoil({ insertAt: 4, event })

    const { outcome, events } = await ask(claude.model(wire.url), 'go')

    expect(outcome).toMatchObject({ status: 'completed', text: TEXT })
    expect(events.find(({ type }) => type === 'retry')).toMatchObject({ error: expect.stringContaining('Overloaded') })
    expect(shownText(events)).toBe(TEXT)
  })
})
