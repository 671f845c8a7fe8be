import type { Json } from '../../index.ts'

/**
 * What a person is asked to allow when a server is to be started or reached, in words: the whole command line or address,
 * where it runs, and the names of all that it is given. Undefined for anything else.
 */
export function serverWords(request: string, about: Json): string | undefined {
  if (typeof about !== 'object' || about === null || Array.isArray(about)) return undefined
  const { mcp, cwd, env, headers, secrets } = about as Readonly<Record<string, Json>>
  if (typeof mcp !== 'string') return undefined
  return [
    request === `exec:${mcp}` ? `${request}, an MCP server` : `${request}, the MCP server ${mcp}`,
    typeof cwd === 'string' ? ` in ${cwd}` : '',
    given('variables', env),
    given('headers', headers),
    given('secrets', secrets),
  ].join('')
}

function given(what: string, names: Json | undefined): string {
  return Array.isArray(names) && names.length > 0 ? `, with the ${what} ${names.join(', ')}` : ''
}
