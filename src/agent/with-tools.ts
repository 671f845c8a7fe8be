import { DefinitionError } from '../base/error.ts'
import { mostAlike } from '../base/nearest.ts'
import type { Schema } from '../base/schema.ts'
import { isOnlyForeign } from '../tool/from-ai-sdk-tool.ts'
import { mcpServer } from '../tool/mcp/mcp-server.ts'
import { isToolSource } from '../tool/source/source.ts'
import { isTool, type ToolDefinition, tool } from '../tool/tool.ts'
import type { AgentCore, McpServers, Sources, ToolChoice, ToolFunctionOptions, Tools } from './agent.ts'
import { withToolsOfCode } from './file-layers.ts'
import { identified } from './identified.ts'
import { readKit } from './read-kit.ts'
import { refuseForReply } from './reply-core.ts'

/** The agent with more tools and sources. A name that is taken is refused. */
function withTools(agent: AgentCore, added: { readonly tools?: Tools; readonly sources?: Sources }): AgentCore {
  refuseForReply(agent, 'tools')
  const where = whereOf(agent)
  const kit = readKit({ name: agent.name, ...added }, where)
  const taken = [...kit.tools.keys(), ...kit.subagents.keys()].find((name) => hasTool(agent, name))
  if (taken !== undefined) refuse(`${where} has a tool "${taken}" already. Give the new one another name.`)
  const source = [...kit.sources.keys()].find((name) => agent.sources.has(name))
  if (source !== undefined) refuse(`${where} has a source "${source}" already. Give the new one another name.`)
  return identified({
    ...agent,
    tools: new Map([...agent.tools, ...kit.tools]),
    sources: new Map([...agent.sources, ...kit.sources]),
    subagents: new Map([...agent.subagents, ...kit.subagents]),
    groups: new Map([...agent.groups, ...kit.groups]),
    fileLayers: withToolsOfCode(agent.fileLayers, kit),
  })
}

/** A tool under this name, or what one is made of. */
export function withTool(
  agent: AgentCore,
  name: string,
  given: Tools[string] | ToolDefinition<never, unknown>,
): AgentCore {
  const isMade = isTool(given) || (typeof given === 'object' && given !== null && isOnlyForeign(given))
  const made = isMade ? (given as Tools[string]) : tool(given as ToolDefinition<Schema, unknown>)
  return withTools(agent, { tools: { [name]: made } })
}

/** Tools by name, where the agent has them already; as an object of them; functions that carry their name; or a list. */
export function withChosen(agent: AgentCore, chosen: ToolChoice | readonly ToolChoice[]): AgentCore {
  const list = Array.isArray(chosen) ? (chosen as readonly ToolChoice[]) : [chosen as ToolChoice]
  return list.reduce(withChoice, agent)
}

function withChoice(agent: AgentCore, choice: ToolChoice): AgentCore {
  if (typeof choice === 'string') {
    if (hasTool(agent, choice)) return agent
    const known = mostAlike(choice, [...agent.tools.keys(), ...agent.subagents.keys()], 10).join(', ') || 'none'
    return refuse(`${whereOf(agent)}, useTools: there is no tool "${choice.slice(0, 80)}". It has: ${known}.`)
  }
  if (typeof choice === 'function' && isTool(choice)) return withTools(agent, { tools: { [choice.name]: choice } })
  if (typeof choice === 'function') {
    return refuse(
      `${whereOf(agent)}, useTools: "${choice.name}" is a bare function: use toolFunc(fn, { description, input }).`,
    )
  }
  if (typeof choice !== 'object' || choice === null || isTool(choice)) {
    return refuse(`${whereOf(agent)}, useTools: give names, or tools under their names: { search }.`)
  }
  return withTools(agent, { tools: choice as Tools })
}

/** A function as a tool under its own name. */
export function withFunction(
  agent: AgentCore,
  code: (input: never, context: never) => unknown,
  { name = code.name, input, output, ...others }: ToolFunctionOptions,
): AgentCore {
  if (typeof code !== 'function') refuse(`${whereOf(agent)}, toolFunc: give it a function.`)
  if (GENERATORS.has(code.constructor.name)) refuse(`${whereOf(agent)}, toolFunc: a generator gives no result.`)
  if (name === '') refuse(`${whereOf(agent)}, toolFunc: the function has no name. Say it: toolFunc(fn, { name, ... }).`)
  const definition = {
    ...others,
    inputSchema: input,
    execute: code,
    ...(output === undefined ? {} : { outputSchema: output }),
  }
  return withTool(agent, name, definition as unknown as ToolDefinition<never, unknown>)
}

const GENERATORS: ReadonlySet<string> = new Set(['GeneratorFunction', 'AsyncGeneratorFunction'])

/** MCP servers by their names, as a config file has them, with or without `mcpServers` around. */
export function withMcp(agent: AgentCore, given: McpServers | { readonly mcpServers: McpServers }): AgentCore {
  const servers = 'mcpServers' in given && !isToolSource(given['mcpServers']) ? given.mcpServers : given
  const sources = Object.entries(servers as McpServers).map(([name, server]) => {
    return [name, isToolSource(server) ? server : mcpServer(server)] as const
  })
  if (sources.length === 0) refuse(`${whereOf(agent)}, useMcp: name a server: useMcp({ github: { command: '...' } }).`)
  return withTools(agent, { sources: Object.fromEntries(sources) })
}

function hasTool({ tools, subagents }: AgentCore, name: string): boolean {
  return tools.has(name) || subagents.has(name)
}

function whereOf({ name }: AgentCore): string {
  return `agent "${name}"`
}

function refuse(message: string): never {
  throw new DefinitionError('definition', message)
}
