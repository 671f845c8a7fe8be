import { readFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { AiSdkModel } from 'legate/ai-sdk'

/** The real client of a provider, and where its wire format keeps what a test asks for. */
export interface Client {
  readonly name: string
  readonly id: string
  model(url: string): AiSdkModel
}

const KEY = 'sk-test-key-that-nobody-may-see'
/** Where the clients are loaded from: `npm run test:full` names a folder with newer ones. */
const folder = process.env['LEGATE_PROVIDERS'] || undefined

const openai = (await load('@ai-sdk/openai')) as typeof import('@ai-sdk/openai')
const anthropic = (await load('@ai-sdk/anthropic')) as typeof import('@ai-sdk/anthropic')
const google = (await load('@ai-sdk/google')) as typeof import('@ai-sdk/google')

const all: readonly Client[] = [
  {
    name: 'openai',
    id: 'openai/gpt-5',
    model: (url) => openai.createOpenAI({ apiKey: KEY, baseURL: `${url}/v1` })('gpt-5'),
  },
  {
    name: 'openai chat',
    id: 'openai/gpt-4.1',
    model: (url) => openai.createOpenAI({ apiKey: KEY, baseURL: `${url}/v1` }).chat('gpt-4.1'),
  },
  {
    name: 'anthropic',
    id: 'anthropic/claude-sonnet-4-5',
    model: (url) => anthropic.createAnthropic({ apiKey: KEY, baseURL: `${url}/v1` })('claude-sonnet-4-5'),
  },
  {
    name: 'google',
    id: 'google/gemini-2.5-pro',
    model: (url) => google.createGoogleGenerativeAI({ apiKey: KEY, baseURL: `${url}/v1beta` })('gemini-2.5-pro'),
  },
  {
    name: 'openai-compatible',
    id: 'ollama/qwen3',
    model: (url) =>
      createOpenAICompatible({
        name: 'ollama',
        apiKey: KEY,
        baseURL: `${url}/v1`,
        includeUsage: true,
        supportsStructuredOutputs: true,
      })('qwen3'),
  },
]

export const clients: readonly Client[] = all.filter(({ name }) => folder === undefined || name !== 'openai-compatible')

export { KEY }

async function load(name: string): Promise<unknown> {
  if (folder === undefined) return import(name)
  const home = path.join(folder, 'node_modules', name)
  const { exports } = JSON.parse(readFileSync(path.join(home, 'package.json'), 'utf8'))
  const { import: entry, default: fallback } = exports['.']
  return import(pathToFileURL(path.join(home, entry ?? fallback)).href)
}
