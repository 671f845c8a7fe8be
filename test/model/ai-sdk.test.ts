import { agent, DefinitionError } from 'legate'
import { type AiSdkModel, fromAiSdk } from 'legate/ai-sdk'
import type { Message, ModelRequest, Part } from 'legate/models'
import { describe, expect, test } from 'vitest'

type Version = AiSdkModel['specificationVersion']

/** A model as a provider would make it, which gives these stream parts and keeps what it was called with. */
function model(version: Version, parts: readonly unknown[], provider = 'acme.responses') {
  const calls: Record<string, unknown>[] = []
  const made: AiSdkModel = {
    specificationVersion: version,
    provider,
    modelId: 'm-1',
    doStream: async (options: Record<string, unknown>) => {
      calls.push(options)
      return { stream: ReadableStream.from(parts) }
    },
  }
  return { made, calls }
}

function request(messages: readonly Message[], more: Partial<ModelRequest> = {}): ModelRequest {
  return { messages, tools: [], settings: {}, outputSchema: null, path: [], ...more }
}

async function heard(made: AiSdkModel, sent = request([{ role: 'user', content: 'go' }])): Promise<Part[]> {
  const parts: Part[] = []
  for await (const part of fromAiSdk(made).stream(sent, { signal: new AbortController().signal })) parts.push(part)
  return parts
}

async function promptOf(version: Version, messages: readonly Message[], provider?: string): Promise<unknown> {
  const { made, calls } = model(version, [], provider)
  await heard(made, request(messages))
  return calls[0]?.['prompt']
}

const flat = { inputTokens: 10, outputTokens: 4, totalTokens: 14, cachedInputTokens: 6 }
const nested = {
  inputTokens: { total: 10, noCache: 1, cacheRead: 6, cacheWrite: 3 },
  outputTokens: { total: 4, text: 3, reasoning: 1 },
}

describe('finish', () => {
  test.each<[string, Version, unknown, string]>([
    ['v2 stop', 'v2', 'stop', 'stop'],
    ['v2 tool-calls', 'v2', 'tool-calls', 'tool-calls'],
    ['v2 length', 'v2', 'length', 'length'],
    ['v2 content-filter', 'v2', 'content-filter', 'content-filter'],
    ['v2 other', 'v2', 'other', 'other'],
    ['v2 unknown: nothing was told', 'v2', 'unknown', 'error'],
    ['v3 stop', 'v3', { unified: 'stop', raw: undefined }, 'stop'],
    ['v3 other with a reason', 'v3', { unified: 'other', raw: 'paused' }, 'other'],
    ['v3 other without one: the connection ended', 'v3', { unified: 'other', raw: undefined }, 'error'],
    ['v3 error', 'v3', { unified: 'error', raw: 'x' }, 'error'],
    ['v4 interrupted', 'v4', { unified: 'interrupted', raw: undefined }, 'error'],
    ['none at all', 'v4', undefined, 'error'],
  ])('%s', async (_name, version, finishReason, reason) => {
    const { made } = model(version, [{ type: 'finish', finishReason, usage: nested }])

    expect(await heard(made)).toMatchObject([{ type: 'finish', reason }])
  })
})

describe('usage', () => {
  const finish = (usage: unknown, more = {}) => [{ type: 'finish', finishReason: 'stop', usage, ...more }]

  test.each<[string, Version, unknown, object]>([
    ['v3, nested', 'v3', nested, { inputTokens: 10, outputTokens: 4, cacheReadTokens: 6, cacheWriteTokens: 3 }],
    ['v2, flat', 'v2', flat, { inputTokens: 10, outputTokens: 4, cacheReadTokens: 6, cacheWriteTokens: 0 }],
    [
      'sums where a total is missing',
      'v4',
      { inputTokens: { noCache: 1, cacheRead: 6, cacheWrite: 3 }, outputTokens: { text: 3, reasoning: 1 } },
      { inputTokens: 10, outputTokens: 4, cacheReadTokens: 6, cacheWriteTokens: 3 },
    ],
    [
      'nothing told',
      'v3',
      { inputTokens: {}, outputTokens: {} },
      { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 },
    ],
    [
      'what makes no sense is left as it is: it is refused where usage is read',
      'v3',
      { inputTokens: { total: -7 }, outputTokens: { total: 'many' } },
      { inputTokens: -7, outputTokens: Number.NaN, cacheReadTokens: 0, cacheWriteTokens: 0 },
    ],
    ['nonsense', 'v3', 'many', { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }],
  ])('%s', async (_name, version, usage, wanted) => {
    const { made } = model(version, finish(usage))

    expect(await heard(made)).toMatchObject([{ usage: wanted }])
  })

  test('of Claude in v2 adds what was cached beside the input', async () => {
    const providerMetadata = { anthropic: { cacheCreationInputTokens: 3 } }
    const { made } = model('v2', finish({ ...flat, inputTokens: 1 }, { providerMetadata }), 'anthropic.messages')

    expect(await heard(made)).toMatchObject([{ usage: { inputTokens: 10, cacheReadTokens: 6, cacheWriteTokens: 3 } }])
  })
})

describe('a stream', () => {
  test('gives reasoning with its signature, text with its metadata, calls with theirs, and files', async () => {
    const { made } = model('v3', [
      { type: 'stream-start', warnings: [] },
      { type: 'reasoning-start', id: 'r1' },
      { type: 'reasoning-delta', id: 'r1', delta: 'Hm' },
      { type: 'reasoning-delta', id: 'r1', delta: '', providerMetadata: { a: { signature: 's' } } },
      { type: 'reasoning-end', id: 'r1' },
      { type: 'text-start', id: 't1', providerMetadata: { a: { itemId: 'i' } } },
      { type: 'text-delta', id: 't1', delta: 'Hi' },
      { type: 'text-end', id: 't1' },
      { type: 'tool-input-start', id: 'c1', toolName: 'add' },
      { type: 'tool-input-delta', id: 'c1', delta: '{}' },
      { type: 'tool-input-end', id: 'c1' },
      { type: 'tool-call', toolCallId: 'c1', toolName: 'add', input: '{}', providerMetadata: { a: { t: 1 } } },
      { type: 'file', mediaType: 'image/png', data: new Uint8Array([1, 2, 3]) },
      { type: 'finish', finishReason: { unified: 'stop' }, usage: nested },
    ])

    expect((await heard(made)).slice(0, -1)).toEqual([
      { type: 'reasoning-delta', text: 'Hm' },
      { type: 'block', block: { type: 'reasoning', text: 'Hm', providerMetadata: { a: { signature: 's' } } } },
      { type: 'text-delta', text: 'Hi' },
      { type: 'text-end', providerMetadata: { a: { itemId: 'i' } } },
      { type: 'tool-input-delta', id: 'c1', name: 'add', text: '{}' },
      { type: 'tool-call', id: 'c1', name: 'add', input: '{}', providerMetadata: { a: { t: 1 } } },
      { type: 'block', block: { type: 'image', mediaType: 'image/png', data: 'AQID' } },
    ])
  })

  test('keeps pieces of reasoning that overlap apart', async () => {
    const { made } = model('v3', [
      { type: 'reasoning-start', id: 'a' },
      { type: 'reasoning-delta', id: 'a', delta: 'A' },
      { type: 'reasoning-start', id: 'b' },
      { type: 'reasoning-delta', id: 'b', delta: 'B' },
      { type: 'reasoning-end', id: 'a', providerMetadata: { o: { secret: 1 } } },
      { type: 'reasoning-end', id: 'b', providerMetadata: { o: { secret: 2 } } },
    ])

    expect((await heard(made)).filter(({ type }) => type === 'block')).toEqual([
      { type: 'block', block: { type: 'reasoning', text: 'A', providerMetadata: { o: { secret: 1 } } } },
      { type: 'block', block: { type: 'reasoning', text: 'B', providerMetadata: { o: { secret: 2 } } } },
    ])
  })

  test('keeps reasoning without words: it is encrypted or redacted', async () => {
    const { made } = model('v3', [
      { type: 'reasoning-start', id: 'a', providerMetadata: { anthropic: { redactedData: 'x' } } },
      { type: 'reasoning-end', id: 'a' },
      { type: 'reasoning-start', id: 'b' },
      { type: 'reasoning-end', id: 'b' },
    ])

    expect(await heard(made)).toEqual([
      { type: 'block', block: { type: 'reasoning', text: '', providerMetadata: { anthropic: { redactedData: 'x' } } } },
    ])
  })

  test('of v4 gives files and is not harmed by what nobody knows', async () => {
    const { made } = model('v4', [
      { type: 'ping' },
      { type: 'source', sourceType: 'url', id: 's', url: 'https://example.com' },
      { type: 'custom', kind: 'acme.thing' },
      { type: 'response-metadata', id: 'x' },
      { type: 'raw', rawValue: {} },
      { type: 'what-comes-next', value: 1 },
      null,
      'text',
      { type: 'tool-call', toolCallId: 'p', toolName: 'web_search', input: '{}', providerExecuted: true },
      { type: 'tool-result', toolCallId: 'p', toolName: 'web_search', result: {} },
      { type: 'file', mediaType: 'audio/mp3', data: { type: 'data', data: 'AAAA' } },
      { type: 'file', mediaType: 'application/pdf', data: { type: 'url', url: new URL('https://example.com/a.pdf') } },
    ])

    expect(await heard(made)).toEqual([
      { type: 'block', block: { type: 'audio', mediaType: 'audio/mp3', data: 'AAAA' } },
      { type: 'block', block: { type: 'file', mediaType: 'application/pdf', data: 'https://example.com/a.pdf' } },
    ])
  })

  test('is left at once, in the middle of a read, also by a model that does not hear its signal', async () => {
    let cancelled = false
    const deaf = new ReadableStream({
      cancel: () => {
        cancelled = true
      },
    })
    const made: AiSdkModel = { ...model('v3', []).made, doStream: async () => ({ stream: deaf }) }
    const sent = request([{ role: 'user', content: 'go' }])
    const iterator = fromAiSdk(made).stream(sent, { signal: new AbortController().signal })[Symbol.asyncIterator]()
    const waiting = iterator.next()
    await new Promise((resolve) => setTimeout(resolve, 5))

    await iterator.return?.()

    expect(cancelled).toBe(true)
    expect(await waiting).toMatchObject({ done: true })
  })

  test('throws what an error part carries, with whether it may pass', async () => {
    const overloaded = model('v3', [{ type: 'error', error: { type: 'overloaded_error', message: 'Busy' } }])
    const refused = model('v3', [{ type: 'error', error: { type: 'invalid_request_error', message: 'No' } }])

    await expect(heard(overloaded.made)).rejects.toMatchObject({ isRetryable: true, message: /Busy/ })
    await expect(heard(refused.made)).rejects.toMatchObject({ isRetryable: false, message: /No/ })
  })

  test('a stream that ends without a finish is not an answer: the run fails after its tries', async () => {
    const { made, calls } = model('v3', [{ type: 'text-delta', id: 't', delta: 'Half an ans' }])
    const { fakeClock } = await import('legate/testing')
    const { createRuntime } = await import('legate')
    const clock = fakeClock()
    const runtime = createRuntime({ clock })
    const run = runtime.run(agent({ name: 'a', instructions: 'x', model: made }), 'go')

    while (calls.length < 4) {
      await new Promise((resolve) => setTimeout(resolve, 1))
      clock.advance(1_000)
    }

    expect(await run.result).toMatchObject({ status: 'failed', error: { code: 'model' } })
    await runtime.close()
  })
})

describe('a prompt', () => {
  const image = { type: 'image', mediaType: 'image/png', data: 'AAAA' } as const
  const linked = { type: 'image', mediaType: 'image/png', data: 'https://example.com/a.png' } as const

  test.each<[Version, unknown, unknown]>([
    ['v2', 'AAAA', new URL(linked.data)],
    ['v3', 'AAAA', new URL(linked.data)],
    ['v4', { type: 'data', data: 'AAAA' }, { type: 'url', url: new URL(linked.data) }],
  ])('of %s has files as that version writes them', async (version, data, url) => {
    expect(await promptOf(version, [{ role: 'user', content: [image, linked] }])).toEqual([
      {
        role: 'user',
        content: [
          { type: 'file', mediaType: 'image/png', data },
          { type: 'file', mediaType: 'image/png', data: url },
        ],
      },
    ])
  })

  const called: Message[] = [
    { role: 'assistant', content: '', calls: [{ id: 'c', name: 'draw', input: {} }] },
    {
      role: 'tool',
      callId: 'c',
      name: 'draw',
      content: [{ type: 'text', text: 'Here' }, image, linked],
      isError: false,
    },
  ]

  test.each<[Version, readonly unknown[]]>([
    [
      'v2',
      [
        { type: 'media', mediaType: 'image/png', data: 'AAAA' },
        { type: 'text', text: linked.data },
      ],
    ],
    [
      'v3',
      [
        { type: 'image-data', mediaType: 'image/png', data: 'AAAA' },
        { type: 'image-url', url: linked.data },
      ],
    ],
    [
      'v4',
      [
        { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AAAA' } },
        { type: 'file', mediaType: 'image/png', data: { type: 'url', url: new URL(linked.data) } },
      ],
    ],
  ])('of %s has files of tool results as that version writes them', async (version, files) => {
    expect(await promptOf(version, called)).toMatchObject([
      { role: 'assistant' },
      { role: 'tool', content: [{ output: { type: 'content', value: [{ type: 'text', text: 'Here' }, ...files] } }] },
    ])
  })

  test('for a chat format has the files of results after them, as the user’s', async () => {
    expect(await promptOf('v3', called, 'acme.chat')).toMatchObject([
      { role: 'assistant' },
      { role: 'tool', content: [{ output: { type: 'text', value: 'Here\n[2 files below]' } }] },
      { role: 'user', content: [{ type: 'text', text: 'Given by draw:' }, { type: 'file' }, { type: 'file' }] },
    ])
  })

  test('takes the parts of a data URL apart', async () => {
    const block = { type: 'image', mediaType: 'image/*', data: 'data:image/jpeg;base64,BBBB' } as const

    expect(await promptOf('v3', [{ role: 'user', content: [block] }])).toMatchObject([
      { content: [{ mediaType: 'image/jpeg', data: 'BBBB' }] },
    ])
  })

  test('has system messages at its beginning only', async () => {
    const prompt = await promptOf('v3', [
      { role: 'system', content: 'One' },
      { role: 'system', content: 'Two' },
      { role: 'user', content: 'Hi' },
      { role: 'system', content: 'Three' },
    ])

    expect(prompt).toEqual([
      { role: 'system', content: 'One' },
      { role: 'system', content: 'Two' },
      { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
      { role: 'user', content: [{ type: 'text', text: 'Three' }] },
    ])
  })

  test('has each call under an id of its own, of letters every provider takes, and its result under the same', async () => {
    const result = (callId: string, content: string) =>
      ({ role: 'tool', callId, name: 't', content, isError: false }) as const
    const call = (id: string) => ({ id, name: 't', input: {} })

    const prompt = await promptOf('v3', [
      { role: 'assistant', content: '', calls: [call(''), call(''), call('a:1/ü')] },
      result('', 'one'),
      result('', 'two'),
      result('a:1/ü', 'three'),
      { role: 'assistant', content: '', calls: [call('')] },
      result('', 'four'),
    ])

    const ids = (prompt as { content: { toolCallId: string }[] }[]).map(({ content }) =>
      content.map(({ toolCallId }) => toolCallId),
    )
    expect(ids).toEqual([['call', 'call_2', 'a_1__'], ['call', 'call_2', 'a_1__'], ['call_3'], ['call_3']])
  })

  test('has arguments that are objects, whatever the model had said', async () => {
    const calls = [
      { id: 'a', name: 't', input: '{"broken', invalid: 'no JSON' },
      { id: 'b', name: 't', input: [1] },
      { id: 'c', name: 't', input: { x: 1 } },
    ]

    expect(await promptOf('v3', [{ role: 'assistant', content: '', calls }])).toMatchObject([
      { content: [{ input: { rawInvalidInput: '{"broken' } }, { input: { input: [1] } }, { input: { x: 1 } }] },
    ])
  })

  test('has errors of tools as errors', async () => {
    const messages: Message[] = [
      { role: 'assistant', content: '', calls: [{ id: 'a', name: 't', input: {} }] },
      { role: 'tool', callId: 'a', name: 't', content: 'It broke.', isError: true },
    ]

    expect(await promptOf('v2', messages)).toMatchObject([
      {},
      { content: [{ output: { type: 'error-text', value: 'It broke.' } }] },
    ])
  })
})

describe('how much to think is told', () => {
  const options = async (version: Version, provider: string, modelId: string) => {
    const { made, calls } = model(version, [], provider)
    const sent = request([{ role: 'user', content: 'go' }], { settings: { reasoning: 'high' } })
    await heard({ ...made, modelId }, sent)
    return calls[0]
  }

  test.each<[string, Version, string, string, object]>([
    ['in v4, by one word', 'v4', 'openai.responses', 'gpt-5', { reasoning: 'high' }],
    ['to OpenAI', 'v3', 'openai.chat', 'gpt-5', { providerOptions: { openai: { reasoningEffort: 'high' } } }],
    [
      'to Claude 4.5, in tokens',
      'v3',
      'anthropic.messages',
      'claude-sonnet-4-5-20250929',
      { providerOptions: { anthropic: { thinking: { type: 'enabled', budgetTokens: 16_384 } } } },
    ],
    [
      'to Claude 5',
      'v3',
      'anthropic.messages',
      'claude-sonnet-5',
      { providerOptions: { anthropic: { thinking: { type: 'adaptive' }, effort: 'high' } } },
    ],
    [
      'to Gemini 2.5, in tokens',
      'v3',
      'google.generative-ai',
      'gemini-2.5-pro',
      { providerOptions: { google: { thinkingConfig: { thinkingBudget: 16_384, includeThoughts: true } } } },
    ],
    [
      'to Gemini 3',
      'v3',
      'google.generative-ai',
      'gemini-3.1-pro-preview',
      { providerOptions: { google: { thinkingConfig: { thinkingLevel: 'high', includeThoughts: true } } } },
    ],
    ['to others', 'v2', 'acme.chat', 'x', { providerOptions: { acme: { reasoningEffort: 'high' } } }],
  ])('%s', async (_name, version, provider, modelId, wanted) => {
    expect(await options(version, provider, modelId)).toMatchObject(wanted)
  })
})

describe('an output schema', () => {
  const exact = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false }
  const loose = { type: 'object', properties: { a: { type: 'string', minLength: 2 } } }
  const tools = [{ name: 't', description: '', inputSchema: { type: 'object' } }]
  const told = async (provider: string, outputSchema: object, more: Partial<ModelRequest> = {}) => {
    const { made, calls } = model('v3', [], provider)
    await heard(made, request([], { outputSchema: outputSchema as never, ...more }))
    return calls[0] as { responseFormat?: object; providerOptions?: { openai?: object } }
  }

  test('is a setting where the provider takes it, with less strictness where the schema needs it', async () => {
    expect(await told('openai.responses', exact)).toMatchObject({ responseFormat: { type: 'json', schema: exact } })
    expect((await told('openai.responses', exact)).providerOptions?.openai).not.toHaveProperty('strictJsonSchema')
    expect((await told('openai.chat', loose)).providerOptions?.openai).toEqual({ strictJsonSchema: false })
  })

  test.each<[string, string, object, Partial<ModelRequest>]>([
    ['that is a text', 'openai.responses', { type: 'string' }, {}],
    ['that Claude cannot promise', 'anthropic.messages', loose, {}],
    ['beside tools, to those who may refuse it', 'acme.chat', exact, { tools }],
  ])('%s is told in words only', async (_name, provider, schema, more) => {
    expect(await told(provider, schema, more)).not.toHaveProperty('responseFormat')
  })
})

describe('what is not a model of the AI SDK', () => {
  test('is refused with what to give', () => {
    expect(() => fromAiSdk({} as AiSdkModel)).toThrow(DefinitionError)
    expect(() => fromAiSdk(null as never)).toThrow(/fromAiSdk\(openai/)
    expect(() => fromAiSdk({ ...model('v3', []).made, specificationVersion: 'v9' as 'v3' })).toThrow(/v2, v3, v4/)
  })
})
