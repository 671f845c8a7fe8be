import { trimEnd } from '../../base/text.ts'
import type { AiSdkModel } from '../ai-sdk/ai-sdk-model.ts'
import { type Api, readModelConfig } from '../config.ts'
import { isDocument, notAStream } from '../stream-parts.ts'

/** A provider by its name, as the environment and the config file describe it now. */
export interface Provider {
  readonly name: string
  readonly api: Api
  readonly url: string | null
  readonly key: string | undefined
  /** Variables its key may be in; the first is the usual one. */
  readonly keyNames: readonly string[]
  /** Variables its address may be in. */
  readonly urlNames: readonly string[]
  readonly needsKey: boolean
  /** True where the config file names the variable of the key, or the address that the key is sent to. */
  readonly isKeyOfFile: boolean
  /** Advice for the user when nothing answers. */
  readonly hint: string | undefined
}

interface ProviderEntry {
  readonly api: Api
  readonly keyNames: readonly string[]
  readonly urlNames: readonly string[]
  readonly url: () => string | null
  readonly needsKey: boolean
  readonly hint?: string
}

const KNOWN: Readonly<Record<string, ProviderEntry>> = {
  openai: remote('openai', { keyNames: ['OPENAI_API_KEY'], urlNames: ['OPENAI_BASE_URL'] }),
  anthropic: remote('anthropic', { keyNames: ['ANTHROPIC_API_KEY'], urlNames: ['ANTHROPIC_BASE_URL'] }),
  google: remote('google', {
    keyNames: ['GOOGLE_GENERATIVE_AI_API_KEY', 'GEMINI_API_KEY', 'GOOGLE_API_KEY'],
    urlNames: ['GOOGLE_GENERATIVE_AI_BASE_URL', 'GEMINI_BASE_URL'],
  }),
  openrouter: remote('openai-compatible', {
    keyNames: ['OPENROUTER_API_KEY'],
    urlNames: ['OPENROUTER_BASE_URL'],
    url: 'https://openrouter.ai/api/v1',
  }),
  dashscope: remote('openai-compatible', {
    keyNames: ['DASHSCOPE_API_KEY'],
    urlNames: ['DASHSCOPE_BASE_URL'],
    url: 'https://dashscope.aliyuncs.com/compatible-mode/v1',
  }),
  ollama: {
    ...local('OLLAMA', 'Is Ollama running? Start it with: ollama serve'),
    urlNames: ['OLLAMA_BASE_URL'],
    url: () => `${ollamaUrl()}/v1`,
  },
  vllm: {
    ...local('VLLM', 'Is vLLM running there? Set VLLM_BASE_URL to where it is.'),
    url: () => 'http://localhost:8000/v1',
  },
  lmstudio: {
    ...local('LMSTUDIO', 'Is the server of LM Studio running? Start it with: lms server start'),
    url: () => 'http://localhost:1234/v1',
  },
}

const known: ReadonlyMap<string, ProviderEntry> = new Map(Object.entries(KNOWN))

export function findProvider(name: string): Provider | undefined {
  const base = known.get(name)
  const own = readModelConfig().providers.get(name)
  if (base === undefined && own === undefined) return undefined
  const keyNames = own?.keyEnv === undefined || own.keyEnv === null ? (base?.keyNames ?? []) : [own.keyEnv]
  const urlNames = base?.urlNames ?? []
  return {
    name,
    api: own?.api ?? base?.api ?? 'openai-compatible',
    url: own?.url ?? addressIn(urlNames) ?? base?.url() ?? null,
    key: variable(keyNames),
    keyNames,
    urlNames: name === 'ollama' ? [...urlNames, 'OLLAMA_HOST'] : urlNames,
    needsKey: own?.keyEnv === undefined || own.keyEnv === null ? (base?.needsKey ?? false) : true,
    isKeyOfFile: own?.keyEnv != null || own?.url != null,
    hint: base?.hint,
  }
}

/** The names that may stand before the slash. */
export function providerNames(): string[] {
  return [...new Set([...known.keys(), ...readModelConfig().providers.keys()])]
}

/**
 * The ways to ask for a model, the best first: a server that replaces OpenAI's may have chat completions only. Loads
 * the provider's package, which nothing loads before.
 */
export async function loadModels(provider: Provider, modelId: string): Promise<readonly AiSdkModel[]> {
  const { name, url, key } = provider
  const options = {
    fetch: streamFetch,
    ...(url === null ? {} : { baseURL: url }),
    ...(key === undefined ? {} : { apiKey: key }),
  }
  switch (provider.api) {
    case 'openai': {
      const openai = (await import('@ai-sdk/openai')).createOpenAI(options)
      return url === null ? [openai(modelId)] : [openai(modelId), openai.chat(modelId)]
    }
    case 'anthropic':
      return [(await import('@ai-sdk/anthropic')).createAnthropic(options)(modelId)]
    case 'google':
      return [(await import('@ai-sdk/google')).createGoogleGenerativeAI(options)(modelId)]
    case 'openai-compatible': {
      const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
      const settings = { name, includeUsage: true, supportsStructuredOutputs: true }
      return [createOpenAICompatible({ ...settings, ...options, baseURL: url ?? '' })(modelId)]
    }
  }
}

function remote(
  api: Api,
  { keyNames, urlNames, url = null }: { keyNames: readonly string[]; urlNames: readonly string[]; url?: string | null },
): ProviderEntry {
  return { api, keyNames, urlNames, url: () => url, needsKey: true }
}

/** A server on this machine, which gets a key if there is one. */
function local(prefix: string, hint: string): Omit<ProviderEntry, 'url'> {
  return {
    api: 'openai-compatible',
    keyNames: [`${prefix}_API_KEY`],
    urlNames: [`${prefix}_BASE_URL`],
    needsKey: false,
    hint,
  }
}

/** Other programs read ANTHROPIC_BASE_URL without the version, our client needs it. */
function addressIn(names: readonly string[]): string | undefined {
  const url = variable(names)?.replace(/\/+$/, '')
  return url === undefined || !names.includes('ANTHROPIC_BASE_URL') || /\/v\d+$/.test(url) ? url : `${url}/v1`
}

/** The first variable that is set. Trims it, because keys are often pasted with a line break. */
function variable(names: readonly string[]): string | undefined {
  for (const name of names) {
    const value = process.env[name]?.trim()
    if (value !== undefined && value !== '') return value
  }
  return undefined
}

/** How many characters of a wrong answer an error shows. */
const SHOWN = 80

/**
 * `fetch` for calls that stream. Throws for a good status without a stream, and quotes its beginning; clients would
 * report a cut stream.
 */
export async function streamFetch(...request: Parameters<typeof fetch>): Promise<Response> {
  const response = await fetch(...request)
  const type = response.headers.get('content-type') ?? ''
  if (!response.ok || !isDocument(type)) return response
  const beginning = await beginningOf(response.clone())
  if (isEvents(beginning)) return response
  await response.body?.cancel()
  throw notAStream(type, beginning)
}

/** True for text that reads like events: some servers stream them under a wrong content type. */
function isEvents(text: string): boolean {
  return /^(?:data|event|id|retry)?:/.test(text)
}

/** Reads the beginning of a body; of a stream of events only enough to recognise it. */
async function beginningOf({ body }: Response): Promise<string> {
  if (body === null) return ''
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  while (text.length < SHOWN && !isEvents(text)) {
    const { done, value } = await reader.read()
    if (done) break
    text = `${text}${value}`.replaceAll(/\s+/g, ' ').trimStart()
  }
  reader.cancel().catch(() => undefined)
  return text.trimEnd().slice(0, SHOWN)
}

const PORT = '11434'
const HERE = `http://127.0.0.1:${PORT}`

/** The address of Ollama: `OLLAMA_HOST`, in the form that Ollama itself takes, else this machine. */
export function ollamaUrl(): string {
  const given = (process.env['OLLAMA_HOST'] ?? '').trim().replaceAll(/^["']|["']$/g, '')
  const scheme = /^https?:\/\//i.exec(given)?.[0]
  const [, authority = '', path = ''] = /^([^/]*)(.*)$/s.exec(given.slice(scheme?.length ?? 0)) ?? []
  const url = `${scheme ?? 'http://'}${withHost(authority, scheme === undefined)}${path}`
  if (given === '' || !URL.canParse(url)) return HERE
  const parsed = new URL(url)
  if (parsed.hostname === '0.0.0.0' || parsed.hostname === '[::]') parsed.hostname = '127.0.0.1'
  return trimEnd(parsed.href, '/')
}

/**
 * `host`, `:8080`, `host:8080`, `::1`, `[::1]:8080`. With a scheme the default port is the scheme's, without one it is
 * Ollama's.
 */
function withHost(authority: string, hasOwnPort: boolean): string {
  const bare = /^[^[\]]*:[^[\]]*:/.test(authority) && !authority.includes('@') ? `[${authority}]` : authority
  const hasPort = /:\d+$/.test(bare)
  const host = bare.startsWith(':') || bare === '' ? `127.0.0.1${bare}` : bare
  return hasPort || !hasOwnPort ? host : `${host.replace(/:$/, '')}:${PORT}`
}
