import { DefinitionError } from '../../base/error.ts'
import { type Parameter, parseParameters } from '../../base/function-parameters.ts'
import { frozenCopy, type Json } from '../../base/json.ts'
import { anything, code, flag, mostAlike, type OptionRules, readOptions, record, text } from '../../base/options.ts'
import type { Schema } from '../../base/schema/schema.ts'
import { askLayer } from '../../grant/decide.ts'
import { checkGrant, type Grant } from '../../grant/grant.ts'
import { readRequest } from '../../grant/request.ts'
import { readShape } from '../../prompt/shape/read-shape.ts'
import { shapeSchema } from '../../prompt/shape/shape-schema.ts'
import { CODE, isToolSource, type SourceOrigin, type ToolSource } from '../../tool/source.ts'
import { isTool, type ShapedTool, type ToolDefinition, tool } from '../../tool/tool.ts'
import { isForeignTool } from '../../tools/from-ai-sdk-tool.ts'
import { serverOf } from '../../tools/mcp/mcp-server.ts'
import type { McpServerOptions } from '../../tools/mcp/options.ts'
import type { AgentCore, McpServers, Sources, ToolChoice, ToolFunctionOptions, Tools } from '../definition/agent.ts'
import { withToolsOfCode } from '../definition/file-layers.ts'
import { refuseForReply } from '../definition/input.ts'
import { withIdentity } from './identity.ts'
import { readKit } from './read-kit.ts'

/** Adds tools and sources to an agent. Refuses a name that is taken. */
function withTools(agent: AgentCore, added: { readonly tools?: Tools; readonly sources?: Sources }): AgentCore {
  refuseForReply(agent, 'tools')
  const where = whereOf(agent)
  const kit = readKit({ name: agent.name, ...added }, where)
  const taken = [...kit.tools.keys(), ...kit.subagents.keys()].find((name) => hasTool(agent, name))
  if (taken !== undefined) refuse(`${where} has a tool "${taken}" already. Give the new one another name.`)
  const source = [...kit.sources.keys()].find((name) => agent.sources.has(name))
  if (source !== undefined) refuse(`${where} has a source "${source}" already. Give the new one another name.`)
  return withIdentity({
    ...agent,
    tools: new Map([...agent.tools, ...kit.tools]),
    sources: new Map([...agent.sources, ...kit.sources]),
    subagents: new Map([...agent.subagents, ...kit.subagents]),
    groups: new Map([...agent.groups, ...kit.groups]),
    fileLayers: withToolsOfCode(agent.fileLayers, kit),
  })
}

/** Adds a tool under this name, or the definition of one, or both in one object. */
export function withTool(
  agent: AgentCore,
  named: string | (ShapedTool & { readonly name: string }),
  given?: Tools[string] | ToolDefinition<never, unknown> | ShapedTool,
): AgentCore {
  if (typeof named === 'object' && named !== null) {
    const { name, ...shaped } = named
    return withTool(agent, name, shaped)
  }
  const one = given ?? refuse(`${whereOf(agent)}, registerTool: give it a name and a tool.`)
  if (typeof one === 'string') {
    const call = `registerTool(agent, ${JSON.stringify(named)}, { desc, kwargs, func, returns })`
    return refuse(`${whereOf(agent)}, registerTool: description, arguments and function have names here: ${call}.`)
  }
  return withTools(agent, { tools: { [named]: isMade(one) ? one : tool(definitionOf(one)) } })
}

function isMade(given: object): given is Tools[string] {
  return isTool(given) || isForeignTool(given)
}

function definitionOf(given: ToolDefinition<never, unknown> | ShapedTool): ToolDefinition<Schema, unknown> {
  if (!Object.hasOwn(given, 'func')) return given as ToolDefinition<Schema, unknown>
  const {
    desc = '',
    kwargs = {},
    func,
    returns,
    ...others
  } = readOptions('registerTool()', given as ShapedTool, SHAPED)
  return {
    ...others,
    description: desc,
    input: shapeSchema(readShape(Object.fromEntries(Object.entries(kwargs).map(describedField)) as Json)),
    execute: func as ToolDefinition<Schema, unknown>['execute'],
    ...(returns === undefined ? {} : { output: shapeSchema(readShape(returns as Json)) }),
  }
}

const SHAPED: OptionRules<ShapedTool> = {
  desc: text,
  kwargs: record,
  func: code,
  returns: anything,
  effect: anything,
  timeoutMs: anything,
  approval: anything,
}

/** Reads `[type, description]` as a type with a description, because nobody lists types of one argument. */
function describedField([name, shape]: [string, unknown]): [string, unknown] {
  const isPair = Array.isArray(shape) && shape.length === 2 && typeof shape[1] === 'string'
  return [name, isPair ? { $type: shape[0] as unknown, $desc: shape[1] as unknown } : shape]
}

/**
 * Adds tools: by name, where the agent has them already; as an object of them; functions that carry their name; or a
 * list.
 */
export function withSelectedTools(agent: AgentCore, chosen: ToolChoice | readonly ToolChoice[]): AgentCore {
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
    return withFunction(agent, choice)
  }
  if (typeof choice !== 'object' || choice === null || isTool(choice)) {
    return refuse(`${whereOf(agent)}, useTools: give names, or tools under their names: { search }.`)
  }
  return withTools(agent, { tools: choice as Tools })
}

/** Adds a function as a tool under its own name. */
export function withFunction(
  agent: AgentCore,
  given: (...given: never[]) => unknown,
  options: Partial<ToolFunctionOptions> = {},
): AgentCore {
  const where = `${whereOf(agent)}, toolFunc`
  if (typeof given !== 'function') refuse(`${where}: give it a function.`)
  const { name = given.name, input, output, ...others } = readOptions(`${where}()`, options, FUNCTION)
  if (GENERATORS.has(given.constructor.name)) refuse(`${where}: a generator gives no result.`)
  if (name === '') refuse(`${where}: the function has no name. Say it: toolFunc(agent, fn, { name, ... }).`)
  const definition = {
    description: name,
    ...others,
    ...(input === undefined ? byParameters(given, where) : { input, execute: given }),
    ...(output === undefined ? {} : { output }),
  }
  return withTool(agent, name, definition as unknown as ToolDefinition<never, unknown>)
}

const FUNCTION: OptionRules<ToolFunctionOptions> = {
  name: text,
  description: text,
  input: anything,
  output: anything,
  effect: anything,
  timeoutMs: anything,
  approval: anything,
}

/** Reads the parameters of a plain function from its source: a value for each, or the fields of its one object. */
function byParameters(given: (...given: never[]) => unknown, where: string) {
  const known = parseParameters(given)
  if (known === undefined) return refuse(`${where}: say what it takes: toolFunc(agent, fn, { description, input }).`)
  const { list, areFields } = known
  const field = ({ preset }: Parameter) => (preset === undefined ? {} : { default: preset })
  const input = {
    type: 'object',
    properties: Object.fromEntries(list.map((one) => [one.name, field(one)])),
    required: list.filter((one) => !one.isOptional).map((one) => one.name),
    additionalProperties: false,
  }
  const execute = (fields: { readonly [name: string]: unknown }) =>
    given(...((areFields ? [fields] : list.map((one) => fields[one.name])) as never[]))
  return { input, execute }
}

const GENERATORS: ReadonlySet<string> = new Set(['GeneratorFunction', 'AsyncGeneratorFunction'])

/** How servers are added. */
export interface UseMcpOptions {
  /**
   * True: a person is asked before one of them starts, though no rule of the agent allows its program, its host or its secrets.
   * For servers that are not your code's own, such as those of an editor. Default false.
   */
  readonly asks?: boolean
}

const USE_MCP: OptionRules<UseMcpOptions> = { asks: flag }

/**
 * Adds MCP servers by their names, as a config file has them, with or without `mcpServers` around; or one without a
 * name.
 */
export function withMcp(
  agent: AgentCore,
  given: string | McpServers | McpServerOptions | { readonly mcpServers: McpServers },
  options: UseMcpOptions = {},
): AgentCore {
  const { asks = false } = readOptions('useMcp(agent, servers, options)', options, USE_MCP)
  const servers = serversIn(agent, given)
  const sources = Object.entries(servers as McpServers).map(([name, server]) => {
    return [name, isToolSource(server) ? server : serverOf(server, asks ? CLIENT : CODE)] as const
  })
  if (sources.length === 0)
    refuse(`${whereOf(agent)}, useMcp: name a server: useMcp(agent, { github: { command: '...' } }).`)
  const added = withTools(agent, { sources: Object.fromEntries(sources) })
  return asks ? withIdentity({ ...added, grant: askingFor(agent.grant, sources) }) : added
}

const CLIENT: SourceOrigin = { by: 'client', files: [], withheld: null }

/** The grant with a question for the start of each source, whatever it left free. Their tools join the list of those that the agent may use. */
function askingFor(grant: Grant | undefined, sources: readonly (readonly [string, ToolSource])[]): Grant {
  // The name of a request is written as rules are: with quotes around words that hold blanks, quotes or stars.
  const starts = sources.flatMap(([, { needs }]) => needs.map(({ domain, name }) => `${domain}:${name}`))
  const use = grant?.use === undefined ? {} : { use: [...grant.use, ...sources.map(([name]) => `tool:${name}__*`)] }
  const free = grant?.free?.filter((rule) => !starts.some((start) => isFree(rule, start)))
  return { ...grant, ...use, ask: [...(grant?.ask ?? []), ...starts], ...(free === undefined ? {} : { free }) }
}

/** The agent with more exceptions from what its own grant asks for. One that asks for nothing needs none. */
export function withFree(agent: AgentCore, rules: readonly string[]): AgentCore {
  const { grant } = agent
  checkGrant({ free: rules }, `${whereOf(agent)}, leaveFree`)
  if (grant?.ask === undefined || rules.length === 0) return agent
  return withIdentity({ ...agent, grant: frozenCopy({ ...grant, free: [...(grant.free ?? []), ...rules] }) })
}

function isFree(rule: string, start: string): boolean {
  return askLayer({ by: 'free', allow: [rule], ask: [], deny: [] }, readRequest(start)).verdict === 'allow'
}

function serversIn(agent: AgentCore, given: Parameters<typeof withMcp>[1]): McpServers {
  const one = typeof given === 'string' ? (serverAt(given) ?? refuseMcp(agent, JSON.stringify(given))) : given
  if (typeof one !== 'object' || one === null) return refuseMcp(agent, String(one))
  if ('mcpServers' in one && !isToolSource(one.mcpServers)) return one.mcpServers as McpServers
  const options = one as McpServerOptions
  if (typeof options.command !== 'string' && typeof options.url !== 'string') return one as McpServers
  const place = options.url ?? (typeof given === 'string' ? given : options.command)
  return { [serverName(place)]: options }
}

/** The options of a server that is given by its address, or by its script. */
function serverAt(given: string): McpServerOptions | undefined {
  if (/^https?:\/\//i.test(given)) return { url: given }
  if (/\.py$/i.test(given)) return { command: 'python3', args: [given] }
  return /\.[cm]?[jt]s$/i.test(given) ? { command: 'node', args: [given] } : undefined
}

/** For an address its host, for a file its own name. */
function serverName(place: string): string {
  const said =
    /^https?:\/\/([^/:?#]+)/i.exec(place)?.[1] ??
    place
      .split(/[\\/]/)
      .at(-1)
      ?.replace(/\.\w+$/, '')
  return (
    said
      ?.replaceAll(/[^\w-]+/g, '_')
      .replace(/^[^a-zA-Z]+/, '')
      .slice(0, 64) || 'server'
  )
}

function refuseMcp(agent: AgentCore, said: string): never {
  const forms = "{ github: { command, args } }, 'https://...', 'server.py' or 'server.js'"
  return refuse(`${whereOf(agent)}, useMcp: ${said} is no server. Give ${forms}.`)
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
