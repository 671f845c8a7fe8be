import { SUBAGENTS_GROUP } from '../agent/build/read-kit.ts'
import { checkToolName, readConfig } from '../agent/build/read-subagents.ts'
import type { AgentCore, AgentProvider, AnyAgent, SubagentConfig, Subagents, Tools } from '../agent/definition/agent.ts'
import { freeName } from '../agent/definition/subagent-options.ts'
import { SubAgentUnavailable } from '../base/error.ts'
import { after } from '../base/maybe.ts'
import { anything, flag, type Rules, readOptions, text } from '../base/options.ts'
import type { CheckedSchema, JsonSchema } from '../base/schema/schema.ts'
import type { ModelLike } from '../model/named/to-model.ts'
import { delegatingTool, type Tool } from '../tool/tool.ts'
import { type Presets, type SubagentSource, subagentSource } from './subagent.ts'

/** A subagent under a name of its own, with any setting of `subagents`. */
export interface SubagentSpec extends Omit<SubagentConfig, 'agent' | 'toolName' | 'memory'> {
  readonly name: string
}

/** The host, or as much of its definition as there is before it has this tool. */
export interface SubagentHost {
  readonly name: string
  readonly model?: ModelLike | null
  readonly tools?: Tools | ReadonlyMap<string, unknown>
  readonly subagents?: Subagents | ReadonlyMap<string, unknown>
}

export interface MakeSubagentOptions {
  readonly host: SubagentHost
  /** Default: `<spec.name>_tool`. */
  readonly toolName?: string
  /** False: its delegations go on in one conversation per host conversation. */
  readonly ephemeralMemory?: boolean
}

export interface MadeSubagentTool {
  /** For `tools` of the host, or of a group of its toolkit: `tools: { [register.name]: tool }`. */
  readonly tool: Tool
  readonly register: {
    readonly name: string
    readonly description: string
    /** What the host's model is shown: the fields of the agent's input, without those that are preset. */
    readonly inputSchema: JsonSchema
    readonly presets: Presets
    /** Made, active, with the first such tool of a host that is in no other group. */
    readonly group: string
  }
}

const WHERE = 'makeSubagentTool(agent, spec, { host })'
const OPTIONS: Rules<MakeSubagentOptions> = { host: anything, toolName: text, ephemeralMemory: flag }

/**
 * Makes a tool of a typed agent by hand, to be put where its host wants it. It delegates like `subagents` do. What cannot
 * work is refused with a SubAgentUnavailable that says why; nothing of the agent runs.
 */
export function makeSubagentTool(
  agent: AnyAgent | (() => AnyAgent),
  spec: SubagentSpec,
  options: MakeSubagentOptions,
): MadeSubagentTool
export function makeSubagentTool(
  agent: () => PromiseLike<AnyAgent>,
  spec: SubagentSpec,
  options: MakeSubagentOptions,
): Promise<MadeSubagentTool>
export function makeSubagentTool(
  agent: AnyAgent | AgentProvider,
  spec: SubagentSpec,
  options: MakeSubagentOptions,
): MadeSubagentTool | Promise<MadeSubagentTool> {
  const { host, toolName, ephemeralMemory = true } = readOptions(WHERE, options ?? {}, OPTIONS)
  if (typeof spec?.name !== 'string') refuse(`${WHERE}: the spec needs a name.`)
  if (typeof host?.name !== 'string') {
    refuse(`${WHERE}: the host is missing, or as much of it as { name, model, tools }.`)
  }
  const name = nameFor(host, toolName ?? `${spec.name}_tool`, spec)
  const where = `makeSubagentTool("${name}")`
  const kept = ephemeralMemory ? {} : { memory: 'session' }
  const config = readConfig({ group: SUBAGENTS_GROUP, ...spec, agent, ...kept }, where)
  checkToolName(name, where)
  if (isTaken(host, name) && (config.onNameClash ?? 'raise') === 'raise') {
    refuse(`A function with name '${name}' is already registered in the toolkit of "${host.name}".`)
  }
  const source = subagentSource(name, { config, memberOf: [] })
  return after(source.prepare(), () => madeOf(source, host))
}

function madeOf(source: SubagentSource, host: SubagentHost): MadeSubagentTool {
  const { name, config } = source
  const entry = source.entry()
  const input = inputOf(entry.agent, host)
  const { description, inputSchema } = entry.schema
  return {
    tool: skippedFor(host, name, config) ?? delegatingTool(description, input, config),
    register: {
      name,
      description,
      inputSchema,
      presets: config.presets ?? {},
      group: config.group ?? SUBAGENTS_GROUP,
    },
  }
}

function nameFor(host: SubagentHost, wanted: string, { onNameClash }: SubagentSpec): string {
  if (onNameClash !== 'rename' || !isTaken(host, wanted)) return wanted
  return freeName(wanted, (other) => isTaken(host, other))
}

/** The fields it is called with, where it can be called at all. */
function inputOf({ name, input, model, reply }: AgentCore, host: SubagentHost): CheckedSchema {
  if (input === null) return refuse(`"${name}" must set \`input\`: here a subagent is called with the fields of it.`)
  if (model === null && reply === null && !host.model) {
    refuse(`Neither "${name}" nor its host "${host.name}" has a model: name one in either, or in the spec.`)
  }
  return input
}

function isTaken({ tools, subagents }: SubagentHost, name: string): boolean {
  return hasName(tools, name) || hasName(subagents, name)
}

function hasName(names: object | undefined, name: string): boolean {
  if (names === undefined) return false
  return names instanceof Map ? names.has(name) : Object.hasOwn(names, name)
}

/** The host's own tool of that name, where it is to stay: putting it there again changes nothing. */
function skippedFor({ tools }: SubagentHost, name: string, { onNameClash }: SubagentConfig): Tool | undefined {
  if (onNameClash !== 'skip' || tools === undefined || !hasName(tools, name)) return undefined
  return (tools instanceof Map ? tools.get(name) : Reflect.get(tools, name)) as Tool
}

function refuse(message: string): never {
  throw new SubAgentUnavailable('subagent_unavailable', message)
}
