import type { ServerCapabilities } from '@modelcontextprotocol/sdk/types.js'
import type { JsonSchema } from '../../base/json-schema.ts'
import type { SourceTool } from '../source/source.ts'
import { type Tool, type ToolContext, tool } from '../tool.ts'
import { shownText } from './read-tools.ts'
import type { Server } from './server.ts'
import { shownResult } from './shown-result.ts'

/** Tools of ours for the resources and prompts that a server has. One of its own with such a name comes first. */
export function resourceTools(
  server: Server,
  capabilities: ServerCapabilities | undefined,
  available: readonly string[],
): ReadonlyMap<string, SourceTool> {
  const tools = {
    ...(capabilities?.resources === undefined ? {} : { list_resources: listResources, read_resource: readResource }),
    ...(capabilities?.prompts === undefined ? {} : { list_prompts: listPrompts, get_prompt: getPrompt }),
  }
  const wanted = Object.entries(tools).filter(([name]) => available.length === 0 || available.includes(name))
  return new Map(wanted.map(([name, make]) => [name, { tool: make(server), version: 'built in' }]))
}

const MOST_LISTED = 200

function listResources(server: Server): Tool {
  return asking(server, {
    description: 'Lists the resources of this server: texts and files that read_resource gives.',
    schema: { type: 'object', properties: { cursor: CURSOR }, additionalProperties: false },
    ask: async ({ cursor }, { signal }) => {
      const { ListResourcesResultSchema } = await import('@modelcontextprotocol/sdk/types.js')
      const params = typeof cursor === 'string' ? { cursor } : {}
      const { resources, nextCursor } = await server.request(
        (client, options) => client.request({ method: 'resources/list', params }, ListResourcesResultSchema, options),
        { signal },
      )
      const lines = resources.map(({ uri, name, description }) => line(uri, name, description))
      return listing(lines, nextCursor)
    },
  })
}

function readResource(server: Server): Tool {
  return asking(server, {
    description: 'Reads a resource of this server by its uri.',
    schema: { type: 'object', properties: { uri: { type: 'string' } }, required: ['uri'], additionalProperties: false },
    ask: async ({ uri }, { signal }) => {
      const { ReadResourceResultSchema } = await import('@modelcontextprotocol/sdk/types.js')
      const params = { uri: String(uri) }
      const { contents } = await server.request(
        (client, options) => client.request({ method: 'resources/read', params }, ReadResourceResultSchema, options),
        { signal },
      )
      const blocks = contents.map((resource) => ({ type: 'resource' as const, resource }))
      return shownResult(blocks, undefined, server.redaction)
    },
  })
}

function listPrompts(server: Server): Tool {
  return asking(server, {
    description: 'Lists the prompts of this server: instructions that get_prompt gives.',
    schema: { type: 'object', properties: { cursor: CURSOR }, additionalProperties: false },
    ask: async ({ cursor }, { signal }) => {
      const { ListPromptsResultSchema } = await import('@modelcontextprotocol/sdk/types.js')
      const params = typeof cursor === 'string' ? { cursor } : {}
      const { prompts, nextCursor } = await server.request(
        (client, options) => client.request({ method: 'prompts/list', params }, ListPromptsResultSchema, options),
        { signal },
      )
      const lines = prompts.map(({ name, description, arguments: given = [] }) => {
        const names = given.map((one) => `${one.name}${one.required === true ? '' : '?'}`).join(', ')
        return line(`${name}(${names})`, '', description)
      })
      return listing(lines, nextCursor)
    },
  })
}

function getPrompt(server: Server): Tool {
  const properties = {
    name: { type: 'string' },
    arguments: { type: 'object', additionalProperties: { type: 'string' } },
  }
  return asking(server, {
    description: 'Gives a prompt of this server, filled in with arguments.',
    schema: { type: 'object', properties, required: ['name'], additionalProperties: false },
    ask: async ({ name, arguments: given }, { signal }) => {
      const { GetPromptResultSchema } = await import('@modelcontextprotocol/sdk/types.js')
      const params = { name: String(name), arguments: (given ?? {}) as Record<string, string> }
      const { messages } = await server.request(
        (client, options) => client.request({ method: 'prompts/get', params }, GetPromptResultSchema, options),
        { signal },
      )
      const blocks = messages.flatMap(({ role, content }) => [{ type: 'text' as const, text: `${role}:` }, content])
      return shownResult(blocks, undefined, server.redaction)
    },
  })
}

const CURSOR: JsonSchema = { type: 'string', description: 'Where an earlier listing ended' }

interface Asking {
  readonly description: string
  readonly schema: JsonSchema
  readonly ask: (input: Record<string, unknown>, context: ToolContext) => Promise<unknown>
}

/** It only reads, as far as the protocol goes; what a server does is its own. */
function asking({ timeoutMs, redaction }: Server, { description, schema, ask }: Asking): Tool {
  return tool({
    description: redaction.clean(description),
    inputSchema: schema,
    timeoutMs,
    execute: (input, context) => ask(input as Record<string, unknown>, context),
  }) as Tool
}

function line(name: string, title: string, description: string | undefined): string {
  const about = [title, description ?? ''].filter((text) => text !== '').join(': ')
  return shownText(about === '' ? name : `${name} - ${about}`).slice(0, 500)
}

function listing(lines: readonly string[], nextCursor: string | undefined): string {
  const shown = lines.slice(0, MOST_LISTED)
  const rest = nextCursor === undefined ? [] : [`[There are more: cursor ${JSON.stringify(nextCursor)}]`]
  return [...shown, ...rest].join('\n') || 'There are none.'
}
