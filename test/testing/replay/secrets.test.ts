import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { agent, type Json, type Runtime, tool } from 'legate'
import { mcpServer } from 'legate/mcp'
import type { Model } from 'legate/models'
import { scriptedModel } from 'legate/testing'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { serverFile } from '../../tools/mcp/support.ts'
import { both, recorded, recordingFile, replayed, seen } from './support.ts'

const RANDOM = 'Zq81Lm55Tt09Xx37Aa12Bb34Cc56Dd78Ee90'
const KEY = 'plainkey0987654321'
const base64 = (text: string) => Buffer.from(text).toString('base64')

/** A provider that knows no key. */
const provider = createServer((_, response) => response.writeHead(401).end('{}'))
const urlOf = () => `http://127.0.0.1:${(provider.address() as AddressInfo).port}/v1`
beforeAll(() => new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve)))
afterAll(() => provider.close())
afterEach(() => {
  vi.unstubAllEnvs()
})

/** What a recording holds of a run whose prompt, input, call, result and answer hold this text. */
async function fileOf(text: string, more: object = {}): Promise<string> {
  const file = recordingFile()
  const runtime = recorded(file)
  await runtime.run(leaky(text, more), `Take ${text} and go`).result
  await runtime.close()
  return readFileSync(file, 'utf8')
}

function leaky(text: string, more: object = {}) {
  const show = tool({
    description: `Knows ${text}.`,
    input: { type: 'object' },
    execute: (_, { progress }) => {
      progress(`has ${text}`)
      return { said: text, [text]: [{ [`a ${text}`]: 1 }] } as Json
    },
  })
  return agent({
    name: 'leaky',
    instructions: `Never tell ${text}.`,
    tools: { show },
    model: leakyModel(text),
    ...more,
  })
}

function leakyModel(text: string): Model {
  return scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'tool'
      ? { reasoning: `I know ${text}.`, chunks: ['It is ', text.slice(0, 7), text.slice(7), '.'] }
      : { calls: [{ id: 's', name: 'show', input: { note: text, [text]: text } }] },
  )
}

describe('by its shape', () => {
  test.each<[string, string]>([
    ['GitHub', `ghp_${RANDOM}`],
    ['GitHub, fine-grained', `github_pat_11ABCDEFG0_${RANDOM}${RANDOM}`],
    ['GitLab', `glpat-${RANDOM.slice(0, 20)}`],
    ['AWS, a temporary one', 'ASIAZq81Lm55Tt09Xx37'.toUpperCase()],
    ['AWS, a secret beside its name', `aws_secret_access_key = ${RANDOM}/+ab`],
    ['Slack', `xoxb-123456789012-1234567890123-${RANDOM.slice(0, 24)}`],
    ['a JSON web token', `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.${RANDOM}`],
    ['Hugging Face', `hf_${RANDOM.slice(0, 34)}`],
    ['npm', `npm_${RANDOM}`],
    ['a private key', `-----BEGIN RSA PRIVATE KEY-----\nMII${RANDOM}\n${RANDOM}==\n-----END RSA PRIVATE KEY-----`],
    ['Google', `AIza${RANDOM.slice(0, 35)}`],
    ['Stripe', `sk_live_${RANDOM.slice(0, 24)}`],
    ['SendGrid', `SG.${RANDOM.slice(0, 22)}.${RANDOM}`],
    ['OpenAI', `sk-proj-${RANDOM}${RANDOM}`],
    ['Anthropic', `sk-ant-api03-${RANDOM}${RANDOM}AA`],
    ['Azure', `abc8Q~${RANDOM.slice(0, 34)}`],
    ['a database', `postgres://me:${RANDOM.slice(0, 12)}@host:5432/db`],
    ['a header', `Authorization: Bearer ${RANDOM}`],
    ['Telegram', `123456789:A${RANDOM.slice(0, 34)}`],
    ['a Slack webhook', `https://hooks.slack.com/services/T0/B0/${RANDOM.slice(0, 24)}`],
  ])('%s: in texts, in keys of objects and in pieces', async (_, text) => {
    const said = await fileOf(text)

    expect(said).not.toMatch(/Zq81Lm55|ZQ81LM55/i)
    expect(said).toContain('It is ')
  })
})

describe('by its value, which nothing else gives away', () => {
  test('of a variable, also as URLs and base64 have it, and as the key of an object', async () => {
    const letters = 'correcthorsebattery'
    vi.stubEnv('MY_PASSWORD', letters)
    vi.stubEnv('OTHER_TOKEN', 'a/b c+d=e&f')

    expect(await fileOf(letters)).not.toContain('correct')
    expect(await fileOf(`x ${base64(`me:${letters}`)} y`)).not.toContain(base64(`me:${letters}`).slice(4, 20))
    expect(await fileOf(`x ${encodeURIComponent('a/b c+d=e&f')} y`)).not.toContain('a%2Fb')
  })

  test('the password of an address that a variable holds', async () => {
    vi.stubEnv('DATABASE_URL', 'postgres://me:wonderwall42@host/db')

    expect(await fileOf('the word is wonderwall42')).not.toContain('wonderwall')
  })

  test.each<[string, () => unknown]>([
    ['OpenAI-compatible', () => createOpenAICompatible({ name: 'w', baseURL: urlOf(), apiKey: KEY })('m')],
    ['Anthropic', () => createAnthropic({ apiKey: KEY, baseURL: urlOf() })('claude-sonnet-5')],
    ['of your own', () => ({ ...leakyModel(KEY), secrets: async () => [KEY] })],
  ])('the key that a model was given in code: %s', async (_, model) => {
    const said = await fileOf(KEY, { model: model() as Model })

    expect(said).toContain('"at":"leaky.1"')
    expect(said).not.toContain(KEY)
    expect(said).not.toContain(KEY.slice(0, 12))
  })

  test('the variables and headers of an MCP server', async () => {
    const source = mcpServer({
      command: process.execPath,
      args: [serverFile('everything'), 'stdio'],
      env: { SERVER_TOKEN: KEY },
    })
    const said = await fileOf(KEY, { sources: { every: source }, grant: { use: ['tool:*', 'exec:*'] } })

    expect(said).toContain('"source":"every"')
    expect(said).not.toContain(KEY)
  })

  test('a replay matches without them: what was taken out stands for any text', async () => {
    vi.stubEnv('MY_PASSWORD', KEY)
    const file = recordingFile()
    const runtime = recorded(file)
    const first = await seen(runtime, (at) => at.run(leaky(KEY), `Take ${KEY} and go`))
    await runtime.close()
    vi.unstubAllEnvs()

    const played = replayed(file)
    const again = await seen(played, (at) => at.run(leaky('another word'), 'Take another word and go'))

    played.assertComplete()
    expect(first.outcome.text).toBe(`It is ${KEY}.`)
    expect(again.outcome).toMatchObject({ status: 'completed', text: 'It is ***.' })
  })
})

test('a call that is stopped before anything was said keeps no secret either', async () => {
  const stuck: Model = {
    id: 'a/b',
    secrets: () => new Promise((resolve) => setTimeout(() => resolve([KEY]), 50)),
    stream: async function* (_, { signal }) {
      await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      yield { type: 'text-delta', text: '' }
    },
  }
  const drive = (runtime: Runtime) => {
    const run = runtime.run(agent({ name: 'who', instructions: KEY, model: stuck }), 'go')
    setTimeout(() => run.cancel(), 10)
    return run
  }
  const { file, first, second, runtime } = await both(drive)

  expect([first.outcome.status, second.outcome.status]).toEqual(['cancelled', 'cancelled'])
  expect(readFileSync(file, 'utf8')).not.toContain(KEY)
  runtime.assertComplete()
})
