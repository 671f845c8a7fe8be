import { trimEnd } from '../../base/trim-end.ts'

const PORT = '11434'
const HERE = `http://127.0.0.1:${PORT}`

/** Where Ollama is: `OLLAMA_HOST`, written as Ollama itself takes it, else this machine. */
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

/** `host`, `:8080`, `host:8080`, `::1`, `[::1]:8080`. With a scheme its own port is meant, without one that of Ollama. */
function withHost(authority: string, hasOwnPort: boolean): string {
  const bare = /^[^[\]]*:[^[\]]*:/.test(authority) && !authority.includes('@') ? `[${authority}]` : authority
  const hasPort = /:\d+$/.test(bare)
  const host = bare.startsWith(':') || bare === '' ? `127.0.0.1${bare}` : bare
  return hasPort || !hasOwnPort ? host : `${host.replace(/:$/, '')}:${PORT}`
}
