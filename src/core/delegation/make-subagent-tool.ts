import { SUBAGENTS_GROUP } from '../agent/build/read-kit.ts'
import { checkToolName, readConfig } from '../agent/build/read-subagents.ts'
import type { AgentCore, AgentProvider, AnyAgent, SubagentConfig, Subagents, Tools } from '../agent/definition/agent.ts'
import { freeName } from '../agent/definition/subagent-options.ts'
import { SubAgentUnavailable } from '../base/error.ts'
import { after } from '../base/maybe.ts'
import { anything, flag, type OptionRules, readOptions, text } from '../base/options.ts'
import type { CheckedSchema, JsonSchema } from '../base/schema/schema.ts'
import type { ModelLike } from '../model/named/to-model.ts'
import { delegatingTool, type Tool } from '../tool/tool.ts'
import { type Presets, type SubagentSource, subagentSource } from './subagent.ts'

/** A subagent under its own name, with any setting of `subagents`. */
export interface SubagentSpec extends Omit<SubagentConfig, 'agent' | 'toolName' | 'memory' | 'background'> {
  readonly name: string
}

/** The host, or the part of its definition that exists before it has this tool. */
export interface SubagentHost {
  /** The name of the host. */
  readonly name: string
  /** The model of the host, for a subagent that has none. */
  readonly model?: ModelLike | null
  /** The tools of the host: their names are taken. */
  readonly tools?: Tools | ReadonlyMap<string, unknown>
  /** The subagents of the host: their names are taken. */
  readonly subagents?: Subagents | ReadonlyMap<string, unknown>
}

export interface MakeSubagentOptions {
  /** The agent that will have the tool, or the parts of its definition that you have. */
  readonly host: SubagentHost
  /** The name of the tool. Default: `<spec.name>_tool`. */
  readonly toolName?: string
  /** False: all delegations of one host conversation continue in one conversation. */
  readonly ephemeralMemory?: boolean
}

export interface SubagentTool {
  /** Goes into `tools` of the host or of a group of its toolkit: `tools: { [register.name]: tool }`. */
  readonly tool: Tool
  readonly register: {
    readonly name: string
    readonly description: string
    /** The schema that the host's model sees: the fields of the agent's input without the preset ones. */
    readonly inputSchema: JsonSchema
    readonly presets: Presets
    /**
     * The group of the tool. It is created, active, with the first such tool of a host that belongs to no other group.
     */
    readonly group: string
  }
}

const WHERE = 'makeSubagentTool(agent, spec, { host })'
const OPTIONS: OptionRules<MakeSubagentOptions> = { host: anything, toolName: text, ephemeralMemory: flag }

/**
 * Makes a tool from a typed agent, for you to place in its host. It delegates exactly as `subagents` does. If it cannot
 * work, it throws a SubAgentUnavailable that says why; nothing of the agent runs.
 */
export function makeSubagentTool(
  agent: AnyAgent | (() => AnyAgent),
  spec: SubagentSpec,
  options: MakeSubagentOptions,
): SubagentTool
export function makeSubagentTool(
  agent: () => PromiseLike<AnyAgent>,
  spec: SubagentSpec,
  options: MakeSubagentOptions,
): Promise<SubagentTool>
export function makeSubagentTool(
  agent: AnyAgent | AgentProvider,
  spec: SubagentSpec,
  options: MakeSubagentOptions,
): SubagentTool | Promise<SubagentTool> {
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
  return after(source.prepare(), () => makeTool(source, host))
}

function makeTool(source: SubagentSource, host: SubagentHost): SubagentTool {
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

/** Returns the input schema of an agent, or refuses an agent that cannot be called this way. */
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

/** Finds the host's own tool of the same name if `onNameClash` is `skip`: that tool then stays. */
function skippedFor({ tools }: SubagentHost, name: string, { onNameClash }: SubagentConfig): Tool | undefined {
  if (onNameClash !== 'skip' || tools === undefined || !hasName(tools, name)) return undefined
  return (tools instanceof Map ? tools.get(name) : Reflect.get(tools, name)) as Tool
}

function refuse(message: string): never {
  throw new SubAgentUnavailable('subagent_unavailable', message)
}
