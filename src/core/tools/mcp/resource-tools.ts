import type { ServerCapabilities } from '@modelcontextprotocol/client'
import type { JsonSchema } from '../../base/schema/json-schema.ts'
import type { Secrets } from '../../base/secrets/secrets.ts'
import { isWithin, type SourceTool, type ToolLimit } from '../../tool/source.ts'
import { type Tool, type ToolContext, tool } from '../../tool/tool.ts'
import { type OpenServer, shownBlocks, shownLine, shownResult } from './server.ts'

/** Our tools for the resources and prompts of a server. A tool of the server with the same name wins. */
export function resourceTools(
  server: OpenServer,
  capabilities: ServerCapabilities | undefined,
  limit: ToolLimit,
): ReadonlyMap<string, SourceTool> {
  const tools = {
    ...(capabilities?.resources === undefined ? {} : { list_resources: listResources, read_resource: readResource }),
    ...(capabilities?.prompts === undefined ? {} : { list_prompts: listPrompts, get_prompt: getPrompt }),
  }
  const wanted = Object.entries(tools).filter(([name]) => isWithin(limit, { name, shownAs: name }))
  return new Map(wanted.map(([name, make]) => [name, { tool: make(server), version: 'built in' }]))
}

const MOST_LISTED = 200

function listResources(server: OpenServer): Tool {
  return asking(server, {
    description: 'Lists the resources of this server: texts and files that read_resource gives.',
    schema: { type: 'object', properties: { cursor: CURSOR }, additionalProperties: false },
    ask: async ({ cursor }, { signal }) => {
      const params = typeof cursor === 'string' ? { cursor } : {}
      const { resources, nextCursor } = await server.request(
        (client, options) => client.request({ method: 'resources/list', params }, options),
        { signal },
      )
      const entries = resources.map(({ uri, name, description }) => [uri, name, description ?? ''])
      return listing(entries, nextCursor, server)
    },
  })
}

function readResource(server: OpenServer): Tool {
  return asking(server, {
    description: 'Reads a resource of this server by its uri.',
    schema: { type: 'object', properties: { uri: { type: 'string' } }, required: ['uri'], additionalProperties: false },
    ask: async ({ uri }, { signal }) => {
      const params = { uri: String(uri) }
      const { contents } = await server.request(
        (client, options) => client.request({ method: 'resources/read', params }, options),
        { signal },
      )
      const blocks = contents.map((resource) => ({ type: 'resource' as const, resource }))
      return shownResult(blocks, undefined, server.secrets)
    },
  })
}

function listPrompts(server: OpenServer): Tool {
  return asking(server, {
    description: 'Lists the prompts of this server: instructions that get_prompt gives.',
    schema: { type: 'object', properties: { cursor: CURSOR }, additionalProperties: false },
    ask: async ({ cursor }, { signal }) => {
      const params = typeof cursor === 'string' ? { cursor } : {}
      const { prompts, nextCursor } = await server.request(
        (client, options) => client.request({ method: 'prompts/list', params }, options),
        { signal },
      )
      const entries = prompts.map(({ name, description, arguments: given = [] }) => {
        const names = given.map((one) => `${one.name}${one.required === true ? '' : '?'}`).join(', ')
        return [`${name}(${names})`, '', description ?? '']
      })
      return listing(entries, nextCursor, server)
    },
  })
}

function getPrompt(server: OpenServer): Tool {
  const properties = {
    name: { type: 'string' },
    arguments: { type: 'object', additionalProperties: { type: 'string' } },
  }
  return asking(server, {
    description: 'Gives a prompt of this server, filled in with arguments.',
    schema: { type: 'object', properties, required: ['name'], additionalProperties: false },
    ask: async ({ name, arguments: given }, { signal }) => {
      const params = { name: String(name), arguments: (given ?? {}) as Record<string, string> }
      const { messages } = await server.request(
        (client, options) => client.request({ method: 'prompts/get', params }, options),
        { signal },
      )
      const blocks = messages.map(({ role, content }) => ({ label: `${role}:\n`, block: content }))
      return shownBlocks(blocks, server.secrets)
    },
  })
}

const CURSOR: JsonSchema = { type: 'string', description: 'Where an earlier listing ended' }

interface Asking {
  readonly description: string
  readonly schema: JsonSchema
  readonly ask: (input: Record<string, unknown>, context: ToolContext) => Promise<unknown>
}

/** Reads only, as far as the protocol goes; the server may do anything. */
function asking({ timeoutMs }: OpenServer, { description, schema, ask }: Asking): Tool {
  return tool({
    description,
    input: schema,
    timeoutMs,
    execute: (input, context) => ask(input as Record<string, unknown>, context),
  }) as Tool
}

type Entry = readonly [name: string, title: string, description: string]

function listing(
  entries: readonly (readonly string[])[],
  nextCursor: string | undefined,
  { secrets }: OpenServer,
): string {
  const shown = entries.slice(0, MOST_LISTED)
  const fields = secrets.cleanAll(shown.flat())
  const lines = shown.map((_, at) => line(fields.slice(at * 3, at * 3 + 3) as unknown as Entry))
  return [...lines, ...more(nextCursor, secrets)].join('\n') || 'There are none.'
}

function line([name, title, description]: Entry): string {
  const about = [title, description].filter((text) => text !== '').join(': ')
  return shownLine(about === '' ? name : `${name} - ${about}`).slice(0, MOST_LINE)
}

const MOST_LINE = 500

/** Passes a cursor back to the server unchanged, or not at all. */
function more(cursor: string | undefined, secrets: Secrets): string[] {
  if (cursor === undefined) return []
  const isSecret = secrets.clean(cursor) !== cursor
  return [
    isSecret
      ? '[There are more, but their cursor holds a secret.]'
      : `[There are more: cursor ${JSON.stringify(cursor)}]`,
  ]
}
