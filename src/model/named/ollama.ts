import { parseJson } from '../../base/json.ts'

const PROBE_MS = 1_000

/** Where Ollama is: `OLLAMA_HOST`, written as Ollama itself takes it, else this machine. */
export function ollamaUrl(): string {
  const host = process.env['OLLAMA_HOST']?.trim() ?? ''
  if (host === '') return 'http://127.0.0.1:11434'
  const hasScheme = /^https?:\/\//i.test(host)
  const url = hasScheme ? host : `http://${host}`
  if (!URL.canParse(url)) return 'http://127.0.0.1:11434'
  const parsed = new URL(url)
  if (!hasScheme && parsed.port === '') parsed.port = '11434'
  if (parsed.hostname === '0.0.0.0') parsed.hostname = '127.0.0.1'
  return parsed.href.replace(/\/+$/, '')
}

/** Its models, newest first as it lists them; undefined when no Ollama answers. */
export async function ollamaModels(): Promise<readonly string[] | undefined> {
  const text = await fetchText(`${ollamaUrl()}/api/tags`)
  const parsed = text === undefined ? undefined : parseJson(text)
  if (parsed?.ok !== true || typeof parsed.value !== 'object' || parsed.value === null) return undefined
  const models = (parsed.value as { models?: unknown }).models
  if (!Array.isArray(models)) return undefined
  return models.flatMap((model: unknown) => {
    const name = typeof model === 'object' && model !== null ? (model as { name?: unknown }).name : undefined
    return typeof name === 'string' && name !== '' ? [name] : []
  })
}

async function fetchText(url: string): Promise<string | undefined> {
  const abort = new AbortController()
  const timer = setTimeout(() => abort.abort(), PROBE_MS)
  try {
    const response = await fetch(url, { signal: abort.signal })
    return response.ok ? await response.text() : undefined
  } catch {
    return undefined
  } finally {
    clearTimeout(timer)
  }
}
