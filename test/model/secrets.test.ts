import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { agent, createRuntime } from 'legate'
import type { AiSdkModel } from 'legate/ai-sdk'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { Wire } from './support/wire.ts'
import { ask } from './support/world.ts'

const KEY = 'plainkey0987654321'
const base64 = (text: string) => Buffer.from(text).toString('base64')

let wire: Wire
beforeAll(async () => {
  wire = await Wire.open()
})
afterAll(() => wire.close())
beforeEach(() => wire.reset())
afterEach(() => {
  vi.unstubAllEnvs()
})

/** Everything that is recorded of a run whose provider refuses with these words. */
async function recorded(model: AiSdkModel, words: string): Promise<string> {
  wire.spoil({ status: 401, body: JSON.stringify({ type: 'error', error: { message: words, type: 'auth' } }) })
  const { outcome, events, nodes } = await ask(model, 'go')
  expect(outcome).toMatchObject({ status: 'failed', error: { message: expect.stringContaining('status 401') } })
  return JSON.stringify([outcome, events, nodes])
}

const compatible = (more: object = { apiKey: KEY }) =>
  createOpenAICompatible({ name: 'work', baseURL: `${wire.url}/v1`, ...more })('big')

describe('the key of a model object is recorded nowhere', () => {
  test.each<[string, () => AiSdkModel]>([
    ['Authorization', () => compatible()],
    ['Authorization of OpenAI', () => createOpenAI({ apiKey: KEY, baseURL: `${wire.url}/v1` })('gpt-5')],
    ['x-api-key', () => createAnthropic({ apiKey: KEY, baseURL: `${wire.url}/v1` })('claude-sonnet-5')],
    ['api-key', () => compatible({ headers: { 'api-key': KEY } })],
    ['Basic', () => compatible({ headers: { authorization: `Basic ${base64(`me:${KEY}`)}` } })],
  ])('sent as %s', async (_name, model) => {
    expect(await recorded(model(), `Wrong key ${KEY}.`)).not.toContain(KEY)
  })

  test.each<[string, string, string]>([
    ['its beginning', `Wrong key ${KEY.slice(0, 12)}...`, KEY.slice(0, 12)],
    ['its end', `Wrong key ...${KEY.slice(-12)}`, KEY.slice(-12)],
    ['base64', `Wrong key ${base64(KEY)}`, base64(KEY).slice(0, -2)],
    ['base64 in the middle', `Wrong key ${base64(`user:${KEY}:x`)}`, base64(`user:${KEY}:x`).slice(8, 28)],
    ['a URL', `Wrong: https://host/?x=1&api_key=${KEY}`, KEY],
  ])('repeated as %s', async (_name, words, hidden) => {
    const all = await recorded(compatible(), words)

    expect(all).not.toContain(hidden)
    expect(all).toContain('Wrong')
  })

  test('a key that holds what JSON and URLs write in another way', async () => {
    const odd = 'a"b/c+d\\e=12345'

    const all = await recorded(
      compatible({ apiKey: odd }),
      `Wrong ${odd} ${encodeURIComponent(odd)} ${JSON.stringify(odd)}`,
    )

    expect(all).not.toContain('12345')
  })

  test('although its headers fail or never come', async () => {
    const model = compatible()
    const config = Reflect.get(model, 'config') as { headers(): unknown }
    const { headers } = config
    let calls = 0
    config.headers = () => {
      if (calls++ === 0) return headers()
      return new Promise(() => undefined)
    }

    expect(await recorded(model, `Wrong Bearer ${KEY}`)).not.toContain(KEY)
  })
})

describe('what nobody told us is recorded nowhere when it looks like a secret', () => {
  const other = 'Zq81Lm55Tt09Xx37'

  test.each([
    `Authorization: Bearer ${other}`,
    `api_key=${other}`,
    `access-token="${other}"`,
    `{"apiKey":"${other}"}`,
    `X-Api-Key: ${other}`,
    `http://me:${other}@host/v1 refused`,
  ])('%s', async (words) => {
    expect(await recorded(compatible({}), words)).not.toContain(other)
  })

  test('and is a secret of the environment', async () => {
    vi.stubEnv('SOME_SERVICE_TOKEN', other)

    expect(await recorded(compatible({}), `I saw ${other} and ${base64(other)}`)).not.toMatch(/Zq81Lm55|WnE4MUxtNTV/)
  })

  test('but plain words stay', async () => {
    const words = 'Unknown key: temperature, max_tokens=4096, see https://host/docs#key and mail me@example.com'

    expect(await recorded(compatible({}), words)).toContain(words)
  })
})

describe('an address with a password', () => {
  test.each(['OPENAI_BASE_URL', 'OLLAMA_HOST'])('in %s is refused before anything runs', async (variable) => {
    vi.stubEnv('LEGATE_CONFIG', undefined)
    vi.stubEnv('OPENAI_API_KEY', 'k')
    vi.stubEnv(variable, 'http://me:pass0word@127.0.0.1:9/v1')
    const runtime = createRuntime()
    const model = variable === 'OLLAMA_HOST' ? 'ollama/qwen3' : 'openai/gpt-5'

    const failure = await Promise.resolve()
      .then(() => runtime.run(agent({ name: 'clerk', instructions: 'x', model }), 'go').result)
      .catch((error: unknown) => error)

    expect(failure).toMatchObject({ message: expect.stringMatching(`holds a user or password.*${variable}`) })
    expect(String(failure)).not.toContain('pass0word')
    await runtime.close()
  })

  test('of a model object is not repeated', async () => {
    const model = createOpenAICompatible({ name: 'work', baseURL: 'http://me:pass0word@127.0.0.1:9/v1' })('big')

    const { outcome, events } = await ask(model, 'go', { budget: { wallMs: 500 } })

    expect(outcome.status).not.toBe('completed')
    expect(JSON.stringify([outcome, events])).not.toContain('pass0word')
  })
})
