import { chmodSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { agent, createRuntime, DefinitionError, type RuntimeOptions } from 'legate'
import { costOf, findModel, type Model, modelInfo } from 'legate/models'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { localStore } from '../support/rows.ts'
import { tempFolder } from '../support/temp-folder.ts'
import { Wire } from './support/wire.ts'
import { at } from './support/world.ts'

const TEXT = 'Hello from afar.'
const VARIABLES = [
  ['LEGATE_MODEL', 'LEGATE_CONFIG', 'OPENAI_API_KEY', 'OPENAI_BASE_URL', 'ANTHROPIC_API_KEY', 'ANTHROPIC_BASE_URL'],
  ['GOOGLE_GENERATIVE_AI_API_KEY', 'GEMINI_API_KEY', 'GOOGLE_API_KEY', 'GOOGLE_GENERATIVE_AI_BASE_URL'],
  ['OPENROUTER_API_KEY', 'OPENROUTER_BASE_URL', 'DASHSCOPE_API_KEY', 'DASHSCOPE_BASE_URL', 'OLLAMA_HOST'],
  ['OLLAMA_BASE_URL', 'OLLAMA_API_KEY', 'VLLM_BASE_URL', 'LMSTUDIO_BASE_URL', 'WORK_KEY'],
].flat()

let wire: Wire
let folder: string
let configFile: string

beforeAll(async () => {
  wire = await Wire.open()
})
afterAll(() => wire.close())
beforeEach(() => {
  wire.reset()
  wire.mock.on({}, { content: TEXT })
  folder = tempFolder()
  configFile = path.join(folder, 'legate', 'config.json')
  for (const name of VARIABLES) vi.stubEnv(name, undefined)
  vi.stubEnv('XDG_CONFIG_HOME', folder)
  // Nobody listens there.
  vi.stubEnv('OLLAMA_HOST', '127.0.0.1:9')
})
afterEach(() => {
  vi.unstubAllEnvs()
})

function configure(config: unknown): void {
  configFile = path.join(folder, 'own.json')
  writeFileSync(configFile, typeof config === 'string' ? config : JSON.stringify(config))
  vi.stubEnv('LEGATE_CONFIG', configFile)
}

async function run(model: string | undefined, options: RuntimeOptions = {}) {
  const runtime = createRuntime(options)
  const clerk = agent({ name: 'clerk', instructions: 'You are a clerk.', ...(model === undefined ? {} : { model }) })
  try {
    const handle = runtime.run(clerk, 'go')
    const outcome = await handle.result
    const usage = localStore(runtime)
      .events(handle.conversationId, 0, 100)
      .find(({ body }) => body.type === 'usage')
    return { outcome, used: usage?.body.type === 'usage' ? usage.body.model : undefined }
  } finally {
    await runtime.close()
  }
}

describe('a model by name', () => {
  test.each<[string, Record<string, string>, string]>([
    ['openai/gpt-5', { OPENAI_API_KEY: 'k-1', OPENAI_BASE_URL: '/v1' }, '/v1/responses'],
    ['anthropic/claude-sonnet-5', { ANTHROPIC_API_KEY: 'k-1', ANTHROPIC_BASE_URL: '/v1' }, '/v1/messages'],
    [
      'google/gemini-2.5-pro',
      { GEMINI_API_KEY: 'k-1', GOOGLE_GENERATIVE_AI_BASE_URL: '/v1beta' },
      '/v1beta/models/gemini-2.5-pro:streamGenerateContent',
    ],
    ['openrouter/qwen/qwen3', { OPENROUTER_API_KEY: 'k-1', OPENROUTER_BASE_URL: '/v1' }, '/v1/chat/completions'],
    ['dashscope/qwen-plus', { DASHSCOPE_API_KEY: 'k-1', DASHSCOPE_BASE_URL: '/v1' }, '/v1/chat/completions'],
    ['ollama/llama3.2', { OLLAMA_HOST: '' }, '/v1/chat/completions'],
    ['vllm/qwen', { VLLM_BASE_URL: '/v1' }, '/v1/chat/completions'],
    ['lmstudio/qwen', { LMSTUDIO_BASE_URL: '/v1' }, '/v1/chat/completions'],
  ])('%s reaches its provider, with the key of the environment', async (name, variables, wanted) => {
    for (const [key, value] of Object.entries(variables)) {
      vi.stubEnv(key, key.endsWith('_KEY') ? value : `${wire.url}${value}`)
    }

    const { outcome, used } = await run(name)

    expect(outcome).toMatchObject({ status: 'completed', text: TEXT })
    expect(used).toBe(name)
    expect(wire.requests[0]?.path).toContain(wanted)
    if ('OLLAMA_HOST' in variables || 'VLLM_BASE_URL' in variables || 'LMSTUDIO_BASE_URL' in variables) return
    expect(JSON.stringify(wire.requests[0]?.headers)).toContain('k-1')
  })

  test('may be an alias, of an alias too, and any OpenAI-compatible server', async () => {
    vi.stubEnv('WORK_KEY', 'w-1')
    configure({
      aliases: { fast: 'small', small: 'work/tiny' },
      providers: { work: { url: `${wire.url}/v1/`, keyEnv: 'WORK_KEY' } },
    })

    const { outcome, used } = await run('fast')

    expect(outcome.text).toBe(TEXT)
    expect(used).toBe('work/tiny')
    expect(at(wire.bodies[0], 'model')).toBe('tiny')
    expect(wire.requests[0]?.headers.authorization).toBe('Bearer w-1')
  })

  test('is what a grant decides on, not its alias', async () => {
    configure({ aliases: { fast: 'ollama/tiny' } })

    const { outcome } = await run('fast', { grant: { use: ['model:openai/*'] } })

    expect(outcome).toMatchObject({ status: 'denied', error: { message: expect.stringContaining('ollama/tiny') } })
    expect(wire.requests).toEqual([])
  })

  test('without its key fails with exactly what to set', async () => {
    const { outcome } = await run('google/gemini-2.5-pro')

    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'model' } })
    expect(outcome.error?.message).toContain('google/gemini-2.5-pro needs a key.')
    expect(outcome.error?.message).toContain('GOOGLE_GENERATIVE_AI_API_KEY or GEMINI_API_KEY')
    expect(outcome.error?.message).toContain(path.join(folder, 'legate', 'config.json'))
    expect(outcome.error?.message).toContain('ollama/')
    // Before a run, for who asks.
    await expect(findModel('google/gemini-2.5-pro')).rejects.toThrow('google/gemini-2.5-pro needs a key.')
    await expect(findModel('ollama/qwen3')).resolves.toMatchObject({ id: 'ollama/qwen3' })
  })

  test('of a server that is not there says how to start it', async () => {
    const { model } = agent({ name: 'a', instructions: '', model: 'ollama/qwen3' })
    const request = { messages: [], tools: [], settings: {}, outputSchema: null, path: [] }
    const stream = model?.stream(request, { signal: new AbortController().signal })

    const failure = await stream?.[Symbol.asyncIterator]()
      .next()
      .catch((error: unknown) => error)

    expect(failure).toMatchObject({
      isRetryable: true,
      message: /^ollama\/qwen3 failed: Cannot connect.*ollama serve$/,
    })
  })

  test.each([
    [
      'text/html',
      `<!doctype html>\n<title>Sign in</title> my-very-own-key ${'x'.repeat(200)}`,
      '<title>Sign in</title>',
    ],
    ['application/json', '{"message":"hello"}', ': {"message":"hello"} --'],
    ['application/json', '', ': nothing --'],
  ])('a server that is answered with %s is told how the answer begins, without keys', async (type, body, shown) => {
    vi.stubEnv('OPENAI_API_KEY', 'my-very-own-key')
    vi.stubEnv('OPENAI_BASE_URL', wire.url)
    wire.spoil({ status: 200, headers: { 'content-type': type }, body })

    const { outcome } = await run('openai/gpt-5')

    expect(outcome.error?.message).toContain(`openai/gpt-5 failed: the server answered with ${type}`)
    expect(outcome.error?.message).toContain(shown)
    expect(JSON.stringify(outcome)).not.toMatch(/my-very-own-key|x{50}/)
    expect(wire.requests).toHaveLength(1)
  })

  test('a server that streams in another format is told with how that begins, not with every schema it does not fit', async () => {
    vi.stubEnv('OPENAI_API_KEY', 'my-very-own-key')
    vi.stubEnv('OPENAI_BASE_URL', `${wire.url}/v1`)
    const chunk = { id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content: TEXT } }] }
    const body = `data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`
    wire.spoil({ status: 200, headers: { 'content-type': 'text/event-stream' }, body })

    const { outcome } = await run('openai/gpt-5')

    expect(outcome.error?.message).toMatch(/Responses API.*what came could not be read: .*chat\.completion\.chunk/)
    expect(outcome.error?.message.length).toBeLessThan(1_000)
  })

  test('a server that streams events under a wrong type is heard', async () => {
    vi.stubEnv('VLLM_BASE_URL', `${wire.url}/v1`)
    const chunk = { id: 'c', choices: [{ index: 0, delta: { content: TEXT }, finish_reason: 'stop' }] }
    const body = `\ndata: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`
    wire.spoil({ status: 200, headers: { 'content-type': 'application/json' }, body })

    expect((await run('vllm/qwen')).outcome).toMatchObject({ status: 'completed', text: TEXT })
  })

  test('whose key is refused says which variable to look at, never the key', async () => {
    vi.stubEnv('OPENAI_API_KEY', 'my-very-own-key')
    vi.stubEnv('OPENAI_BASE_URL', `${wire.url}/v1`)
    wire.spoil({ status: 401, body: JSON.stringify({ error: { message: 'Bad key my-very-own-key', type: 'auth' } }) })

    const { outcome } = await run('openai/gpt-5')

    expect(outcome.error?.message).toContain('Check OPENAI_API_KEY.')
    expect(JSON.stringify(outcome)).not.toContain('my-very-own-key')
  })

  test.each([
    ['composer-1', /There is no model "composer-1"\. Write "provider\/model".*openai.*ollama/],
    ['opanai/gpt-5', /There is no model "opanai\/gpt-5"\. Did you mean "openai\/gpt-5"\? Write/],
    ['nobody/gpt-5', /There is no model "nobody\/gpt-5"/],
    ['openai/', /There is no model/],
    ['__proto__/x', /There is no model/],
  ])('a server that does not exist, %j, is refused before anything runs', async (name, message) => {
    await expect(run(name)).rejects.toThrow(DefinitionError)
    await expect(run(name)).rejects.toThrow(message)
  })
})

describe('where nobody names a model', () => {
  test('LEGATE_MODEL does, then the config file', async () => {
    configure({ model: 'second', aliases: { first: 'vllm/one', second: 'vllm/two' } })
    vi.stubEnv('VLLM_BASE_URL', `${wire.url}/v1`)

    const byFile = await run(undefined)
    vi.stubEnv('LEGATE_MODEL', 'first')
    const byVariable = await run(undefined)

    expect([byFile.used, byVariable.used]).toEqual(['vllm/two', 'vllm/one'])
  })

  test('and the runtime does, that one is used', async () => {
    vi.stubEnv('LEGATE_MODEL', 'vllm/wrong')
    vi.stubEnv('VLLM_BASE_URL', `${wire.url}/v1`)

    expect((await run(undefined, { model: 'vllm/right' })).used).toBe('vllm/right')
  })

  test('a child uses what was found for its host', async () => {
    vi.stubEnv('LEGATE_MODEL', 'vllm/one')
    vi.stubEnv('VLLM_BASE_URL', `${wire.url}/v1`)
    wire.mock.clearFixtures()
    wire.mock.on({ hasToolResult: true }, { content: 'Told.' })
    wire.mock.on({ toolName: 'ask' }, { toolCalls: [{ id: 'c', name: 'ask', arguments: '{"message":"x"}' }] })
    wire.mock.on({}, { content: TEXT })
    const runtime = createRuntime()
    const child = agent({ name: 'child', instructions: '' })

    const { result } = runtime.run(agent({ name: 'host', instructions: '', subagents: { ask: child } }), 'go')

    expect(await result).toMatchObject({ status: 'completed', text: 'Told.', children: 1 })
    await runtime.close()
  })

  test('a local Ollama is found, its first model used and told', async () => {
    const ollama = await openOllama([{ name: 'qwen3:8b' }, { name: 'llama3.2' }])
    vi.stubEnv('OLLAMA_HOST', ollama.host)
    const told: string[] = []
    const quiet = () => undefined
    const logger = { debug: quiet, warn: quiet, error: quiet, info: (message: string) => told.push(message) }

    const { used } = await run(undefined, { logger })

    expect(used).toBe('ollama/qwen3:8b')
    expect(told).toEqual(['Neither agent nor runtime names a model: ollama/qwen3:8b is used.'])
    await ollama.close()
  })

  test('a local Ollama is not asked for a chat with a model for embeddings', async () => {
    const ollama = await openOllama([
      { name: 'nomic-embed-text:latest' },
      { name: 'all-minilm', details: { family: 'bert' } },
      { name: 'bge-m3', capabilities: ['embedding'] },
      { name: 'qwen3:8b', capabilities: ['completion', 'tools'] },
    ])
    vi.stubEnv('OLLAMA_HOST', ollama.host)

    expect((await run(undefined)).used).toBe('ollama/qwen3:8b')
    await ollama.close()
  })

  test.each([
    '127.0.0.1:PORT',
    ':PORT',
    'localhost:PORT',
    'http://127.0.0.1:PORT/',
    '0.0.0.0:PORT',
    '"127.0.0.1:PORT"',
  ])('a local Ollama is found where OLLAMA_HOST=%s says', async (form) => {
    const ollama = await openOllama([{ name: 'qwen3:8b' }])
    vi.stubEnv('OLLAMA_HOST', form.replace('PORT', ollama.host.replace('127.0.0.1:', '')))

    expect((await run(undefined)).used).toBe('ollama/qwen3:8b')
    await ollama.close()
  })

  test.each([
    ['LEGATE_MODEL', 'nope', /^"clerk" has no model.*LEGATE_MODEL says "nope"\. There is no model "nope"/],
    [
      'the config file',
      undefined,
      /^"clerk" has no model.*model in .*own\.json says "nada"\. There is no model "nada"/,
    ],
  ])('a wrong name is told with where it was written: %s', async (_name, variable, message) => {
    configure({ model: 'nada' })
    vi.stubEnv('LEGATE_MODEL', variable)

    await expect(run(undefined)).rejects.toThrow(message)
  })

  test('an Ollama without models, a key without a name, and nothing at all are told what to do', async () => {
    await expect(run(undefined)).rejects.toThrow(
      /"clerk" has no model.*no Ollama answers.*OPENAI_API_KEY.*LEGATE_MODEL/,
    )

    const ollama = await openOllama([])
    vi.stubEnv('OLLAMA_HOST', ollama.host)
    await expect(run(undefined)).rejects.toThrow(/has no model that can chat: ollama pull/)
    await ollama.close()

    vi.stubEnv('ANTHROPIC_API_KEY', 'k')
    await expect(run(undefined)).rejects.toThrow(/There is a key for anthropic, but no model was named/)
  })
})

describe('a wrong config file is told with its path', () => {
  test.each<[string, unknown, RegExp]>([
    ['no JSON', '{ "aliases": ', /Not valid JSON/],
    ['no object', [], /it must be an object/],
    ['an unknown key', { alias: {} }, /it has no "alias"\. It has model, aliases, providers, prices/],
    ['an alias that is not a text', { aliases: { fast: 5 } }, /aliases\.fast must be a text/],
    ['a key in it', { providers: { openai: { key: 'sk-secret' } } }, /providers\.openai holds a key.*keyEnv/],
    ['a url that is none', { providers: { work: { url: 'here' } } }, /providers\.work\.url is no URL/],
    [
      'a password',
      { providers: { work: { url: 'http://me:sk-secret@host/v1' } } },
      /work\.url holds a user or password/,
    ],
    ['an api that is none', { providers: { work: { api: 'soap' } } }, /providers\.work\.api is one of openai/],
    [
      'a price that is not a number',
      { prices: { 'a/b': { input: 'free', output: 1 } } },
      /prices\.a\/b\.input must be/,
    ],
    ['half a price', { prices: { 'a/b': { input: 1 } } }, /needs both input and output/],
  ])('%s', async (_name, config, message) => {
    configure(config)

    const failure = await run('openai/gpt-5').catch((error: unknown) => error)

    expect(failure).toMatchObject({ message: expect.stringContaining(configFile) })
    expect(failure).toMatchObject({ message: expect.stringMatching(message) })
    expect(String(failure)).not.toContain('sk-secret')
  })

  test('a link that leads to itself', async () => {
    configFile = path.join(folder, 'loop.json')
    symlinkSync(configFile, configFile)
    vi.stubEnv('LEGATE_CONFIG', configFile)

    const failure = await run('openai/gpt-5').catch((error: unknown) => error)

    expect(failure).toBeInstanceOf(DefinitionError)
    expect(String(failure)).toContain(`${configFile} is wrong: it cannot be read: its symbolic links lead in a circle`)
  })

  test('a folder', async () => {
    vi.stubEnv('LEGATE_CONFIG', folder)

    await expect(run('openai/gpt-5')).rejects.toThrow(/is wrong: it cannot be read: it is a folder/)
  })

  test('a folder that may not be entered', async (context) => {
    context.skip(process.getuid?.() === 0, 'root may do everything')
    configure({})
    chmodSync(folder, 0)

    await expect(run('openai/gpt-5')).rejects.toThrow(/own\.json is wrong: it cannot be read: permission is denied/)
    chmodSync(folder, 0o700)
  })

  test('not there, although it was named', async () => {
    vi.stubEnv('LEGATE_CONFIG', path.join(folder, 'gone.json'))

    await expect(run('openai/gpt-5')).rejects.toThrow(/gone\.json is wrong: it is not there/)
  })

  test('an alias that leads to itself', async () => {
    configure({ aliases: { a: 'b', b: 'a' } })

    await expect(run('a')).rejects.toThrow(/The alias "a" .* leads back to itself/)
  })
})

describe('prices', () => {
  const usage = (inputTokens: number, outputTokens: number, cacheReadTokens = 0, cacheWriteTokens = 0) => ({
    inputTokens,
    outputTokens,
    cacheReadTokens,
    cacheWriteTokens,
  })

  test('count what was cached at its own price, for versions with a date too', () => {
    const cost = costOf(usage(1_000_000, 100_000, 500_000, 100_000), 'anthropic/claude-sonnet-4-5-20250929')

    expect(cost).toBeCloseTo(0.4 * 3 + 0.5 * 0.3 + 0.1 * 3.75 + 0.1 * 15, 10)
    expect(modelInfo('openai/gpt-5-2025-08-07').contextWindow).toBe(400_000)
  })

  test('grow with the length of a call where the provider’s do', () => {
    expect(costOf(usage(200_000, 0), 'google/gemini-2.5-pro')).toBeCloseTo(0.25, 10)
    expect(costOf(usage(400_000, 0), 'google/gemini-2.5-pro')).toBeCloseTo(1, 10)
  })

  test.each(['ollama/llama3.2', 'openai/gpt-99', 'nonsense', '__proto__', 'anthropic/claude-haiku-5-5'])(
    'of %s are unknown, which is not nothing',
    (id) => {
      expect(costOf(usage(1, 1), id)).toBeNull()
      expect(modelInfo(id).price).toBeNull()
    },
  )

  test('of the config file win', () => {
    configure({ prices: { 'openai/gpt-5': { input: 1, output: 2 }, 'work/big': { contextWindow: 9 } } })

    expect(costOf(usage(1_000_000, 1_000_000), 'openai/gpt-5')).toBe(3)
    expect(modelInfo('work/big')).toEqual({ contextWindow: 9, price: null, asOf: null })
    expect(modelInfo('openai/gpt-5.5').asOf).toMatch(/^2026-/)
  })

  test('of the config file leave what they do not say as it is in our table', () => {
    configure({
      prices: {
        'openai/gpt-5': { contextWindow: 9 },
        'google/gemini-2.5-pro': { cacheRead: 0 },
        'openai/gpt-4o': { input: 1, output: 1 },
      },
    })

    expect(modelInfo('openai/gpt-5')).toMatchObject({ contextWindow: 9, price: { input: 1.25, cacheRead: 0.125 } })
    expect(modelInfo('openai/gpt-5').asOf).toMatch(/^2026-/)
    expect(costOf(usage(1_000_000, 0), 'openai/gpt-5-2025-08-07')).toBe(1.25)
    expect(modelInfo('google/gemini-2.5-pro').price).toMatchObject({ input: 1.25, cacheRead: 0 })
    expect(modelInfo('openai/gpt-4o')).toMatchObject({
      contextWindow: 128_000,
      price: { input: 1, cacheRead: 1, cacheWrite: 1 },
      asOf: null,
    })
  })
})

describe('a config file that becomes wrong during a run', () => {
  const usage = { inputTokens: 1_000_000, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }
  const warnings: string[] = []
  const onWarning = ({ message }: Error) => warnings.push(message)
  beforeEach(() => {
    warnings.length = 0
    process.on('warning', onWarning)
  })
  afterEach(() => void process.off('warning', onWarning))

  /** Breaks the file while it streams, and again fails when it is asked to. */
  function breaking(fault?: Error): Model {
    return {
      id: 'work/big',
      async *stream() {
        yield { type: 'text-delta', text: TEXT }
        writeFileSync(configFile, '{ "prices": ')
        if (fault !== undefined) throw fault
        yield { type: 'finish', reason: 'stop', usage }
      },
    }
  }

  const clerk = (model: Model) => agent({ name: 'clerk', instructions: 'x', model, budget: { usd: 100 } })

  test('leaves the run as it was, with the prices of before and one warning', async () => {
    configure({ prices: { 'work/big': { input: 2, output: 2 } } })
    const runtime = createRuntime()

    const first = await runtime.run(clerk(breaking()), 'go').result
    const second = await runtime.run(clerk(breaking()), 'go').result
    await new Promise((resolve) => setImmediate(resolve))

    expect([first, second]).toMatchObject([{ status: 'completed' }, { status: 'completed' }])
    expect(costOf(usage, 'work/big')).toBe(2)
    expect(warnings).toEqual([expect.stringMatching(/own\.json is wrong: .*Prices are as it said before/)])
    await runtime.close()
  })

  test('lets a call that fails end the run', async () => {
    configure({ prices: { 'work/big': { input: 2, output: 2 } } })

    const failure = await clerk(breaking(new Error('it burns')))
      .generate('go')
      .catch((error: unknown) => error)

    expect(failure).toMatchObject({ details: { outcome: { status: 'failed', text: TEXT } } })
  })

  test('and was never right makes prices unknown, also those of our table', () => {
    configure('{ "prices": ')

    expect(costOf(usage, 'openai/gpt-5')).toBeNull()
    expect(modelInfo('openai/gpt-5').price).toBeNull()
  })

  test('does not matter to a model that cannot say its name any more', async () => {
    let isGone = false
    const nameless: Model = {
      get id() {
        if (isGone) throw new Error('gone')
        return 'work/big'
      },
      async *stream() {
        isGone = true
        yield { type: 'text-delta', text: TEXT }
        yield { type: 'finish', reason: 'stop', usage }
      },
    }
    configure({ prices: { 'work/big': { input: 2, output: 2 } } })

    expect(await clerk(nameless).generate('go')).toMatchObject({ status: 'completed', text: TEXT })
  })
})

interface OllamaModel {
  readonly name: string
  readonly details?: { readonly family: string }
  readonly capabilities?: readonly string[]
}

/** Lists models as Ollama does, and answers as Ollama does. */
async function openOllama(models: readonly OllamaModel[]): Promise<{ host: string; close(): Promise<void> }> {
  const server: Server = createServer((request, response) => {
    if (request.url === '/api/tags') {
      return response.end(JSON.stringify({ models: models.map(({ capabilities: _, ...shown }) => shown) }))
    }
    if (request.url === '/api/show') return show(request, response)
    response.writeHead(307, { location: `${wire.url}${request.url}` }).end()
    return undefined
  })
  const show = async (request: IncomingMessage, response: ServerResponse) => {
    const { model } = JSON.parse(Buffer.concat(await request.toArray()).toString())
    const { capabilities } = models.find(({ name }) => name === model) ?? {}
    response.end(JSON.stringify({ ...(capabilities === undefined ? {} : { capabilities }) }))
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    host: `127.0.0.1:${port}`,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
