import { parseJson } from '../../base/json.ts'
import { trimEnd } from '../../base/text.ts'

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

/** Returns an empty object for everything that is no answer. */
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
