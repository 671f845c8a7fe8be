import type { McpServer } from '@agentclientprotocol/sdk'
import type { McpServerOptions } from '../../../doors/mcp.ts'
import type { Block } from '../../../doors/rows.ts'
import { type AnyAgent, type Content, InputError } from '../../../index.ts'

/** A piece of a prompt, as ACP writes it. */
type PromptBlock = { readonly type: string; readonly [key: string]: unknown }

/** The parts of a prompt from an editor: texts, images, sounds, documents, and names of files. */
export function contentOf(prompt: readonly PromptBlock[]): Content {
  const blocks = prompt.flatMap(blockOf)
  const [first] = blocks
  if (first === undefined) throw new InputError('invalid_input', 'The prompt says nothing.')
  return blocks.every(({ type }) => type === 'text')
    ? blocks.map((one) => ('text' in one ? one.text : '')).join('\n')
    : blocks
}

function blockOf(block: PromptBlock): Block[] {
  const { type, text, data, mimeType, uri, resource } = block
  if (type === 'text') return textBlock(text)
  if ((type === 'image' || type === 'audio') && isText(data) && isText(mimeType))
    return [{ type, mediaType: mimeType, data }]
  // A link is a name: an agent that may read the file opens it itself.
  if (type === 'resource_link') return textBlock(`[${String(block['name'] ?? uri)}](${String(uri)})`)
  return type === 'resource' ? documentOf(resource) : []
}

function documentOf(resource: unknown): Block[] {
  const { uri, text, blob, mimeType } = Object(resource) as Readonly<Record<string, unknown>>
  if (isText(text)) return textBlock(`<document uri=${JSON.stringify(uri)}>\n${text}\n</document>`)
  if (isText(blob))
    return [{ type: 'file', mediaType: isText(mimeType) ? mimeType : 'application/octet-stream', data: blob }]
  return []
}

function textBlock(text: unknown): Block[] {
  return isText(text) && text.trim() !== '' ? [{ type: 'text', text }] : []
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

// MCP servers that an editor names for a session, as sources of its agent.

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
