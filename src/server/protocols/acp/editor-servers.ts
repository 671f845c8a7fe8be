// MCP servers that an editor names for a session, as sources of its agent.

import type { McpServer } from '@agentclientprotocol/sdk'
import type { McpServerOptions } from '../../../doors/mcp.ts'
import { type AnyAgent, InputError } from '../../../index.ts'

/**
 * The agent with the servers of an editor. Before one of them starts, the person is asked; a run goes on without one that may not
 * start, or does not.
 */
export async function withEditorServers(
  agent: AnyAgent,
  servers: readonly McpServer[],
  folder: string,
): Promise<AnyAgent> {
  if (servers.length === 0) return agent
  const { useMcp } = await import('../../../doors/compat.ts')
  const named = servers.map((server): [string, McpServerOptions] => [server.name, optionsOf(server, folder)])
  return useMcp(agent, Object.fromEntries(withNames(agent, named)), { asks: true })
}

function optionsOf(server: McpServer, folder: string): McpServerOptions {
  const common = { required: false, scope: 'conversation' } as const
  if ('command' in server) {
    const { command, args, env } = server
    return { ...common, command, args, env: fieldsOf(env), cwd: folder }
  }
  if (server.type === 'http') return { ...common, url: server.url, headers: fieldsOf(server.headers) }
  throw new InputError('invalid_input', `The server "${server.name}" speaks SSE: give one over stdio or HTTP.`)
}

function fieldsOf(list: readonly { readonly name: string; readonly value: string }[]): Record<string, string> {
  return Object.fromEntries(list.map(({ name, value }) => [name, value]))
}

const LONGEST = 30

/** Names that sources may have, each once. */
function withNames<T>({ sources }: AnyAgent, list: readonly (readonly [string, T])[]): [string, T][] {
  const taken = new Set(sources.keys())
  return list.map(([given, value]) => {
    const words = given.replace(/[^a-zA-Z0-9-]+/g, '_').replace(/^[_-]+|_+$/g, '')
    const plain = words.slice(0, LONGEST).replace(/_+$/, '') || 'server'
    let name = plain
    for (let count = 2; taken.has(name); count++) name = `${plain}-${count}`
    taken.add(name)
    return [name, value]
  })
}
