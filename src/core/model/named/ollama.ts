import { parseJson } from '../../base/json.ts'
import { ollamaUrl } from './providers.ts'

const PROBE_MS = 1_000

/** How many models to ask about until one can chat. */
const MOST_ASKED = 8

/** The newest model of Ollama that can chat; null when it has none, undefined when no Ollama answers. */
export async function ollamaModel(): Promise<string | null | undefined> {
  const { models } = (await fetchJson('/api/tags')) as { models?: unknown }
  if (!Array.isArray(models)) return undefined
  const chatting = models.filter((model) => !isEmbedding(model)).map(nameOf)
  for (const name of chatting.filter((one) => one !== '').slice(0, MOST_ASKED)) {
    if (await canChat(name)) return name
  }
  return null
}

function nameOf(model: unknown): string {
  const { name } = Object(model) as { name?: unknown }
  return typeof name === 'string' ? name : ''
}

function isEmbedding(model: unknown): boolean {
  const { family } = Object((Object(model) as { details?: unknown }).details) as { family?: unknown }
  return /embed/i.test(nameOf(model)) || /bert$/i.test(String(family))
}

/** An Ollama that is too old to answer is assumed to chat. */
async function canChat(model: string): Promise<boolean> {
  const { capabilities } = (await fetchJson('/api/show', { model })) as { capabilities?: unknown }
  return !Array.isArray(capabilities) || capabilities.length === 0 || capabilities.includes('completion')
}

/** Returns an empty object for everything that is not an answer. */
async function fetchJson(path: string, body?: object): Promise<object> {
  const asked = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
  const text = await fetchText(`${ollamaUrl()}${path}`, asked)
  const parsed = text === undefined ? undefined : parseJson(text)
  return parsed?.ok === true ? Object(parsed.value) : {}
}

async function fetchText(url: string, asked: RequestInit): Promise<string | undefined> {
  const abort = new AbortController()
  const timer = setTimeout(() => abort.abort(), PROBE_MS)
  try {
    const response = await fetch(url, { ...asked, signal: abort.signal })
    return response.ok ? await response.text() : undefined
  } catch {
    return undefined
  } finally {
    clearTimeout(timer)
  }
}
