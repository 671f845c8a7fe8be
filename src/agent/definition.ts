import { DefinitionError } from '../base/error.ts'
import { sha256 } from '../base/hash.ts'
import { canonicalJson, type Json, toJson } from '../base/json.ts'
import { type CheckedSchema, type InferInput, type InferOutput, readSchema, type Schema } from '../base/schema.ts'
import type { CompletedOutcome, Run } from '../conversation/run.ts'
import { type Budget, checkBudget } from '../grant/budget.ts'
import { checkGrant, type Grant } from '../grant/grant.ts'
import type { Content } from '../graph/content.ts'
import { CONTEXT_TURNS } from '../graph/context.ts'
import type { Model, ModelSettings } from '../model/model.ts'
import { type ModelLike, toModel } from '../model/to-model.ts'
import type { Group } from '../tool/groups.ts'
import type { Hooks } from '../tool/hooks.ts'
import { READ_RESULT } from '../tool/read-result.ts'
import { RESET_TOOLS } from '../tool/reset-tools.ts'
import { isTool, type Tool } from '../tool/tool.ts'

export type Tools = { readonly [name: string]: Tool<never, unknown> }

export interface AgentDefinition<In extends Schema | undefined, Out extends Schema | undefined> {
  readonly name: string
  /** What a host's model reads to decide when to delegate to it. */
  readonly description?: string
  readonly instructions: string
  /**
   * `"provider/model"` or an alias of your config file, a model of the AI SDK, or a Model of your own. Left out: a
   * subagent uses its host's.
   */
  readonly model?: ModelLike
  readonly settings?: ModelSettings
  readonly tools?: Tools
  /** Agents it may delegate to: the key is the name of the tool its model sees. */
  readonly subagents?: Subagents
  /** Tools and subagents in groups that are switched on and off: `toolkit({ groups })`. */
  readonly toolkit?: GroupedTools
  /** The contract of a delegation: checked before a child is made. Without it the agent takes a message. */
  readonly input?: In
  /** What it must answer with: checked, and asked for once more when it does not fit. */
  readonly output?: Out
  readonly grant?: Grant
  readonly budget?: Budget
  readonly hooks?: Hooks
  /** How many rounds of its conversation its model is shown, this one included: 1 to 1000. Default 50. */
  readonly contextTurns?: number
}

/** An agent, a function that gives one (called once per delegation), or an agent with settings for this host. */
export type SubagentValue = AnyAgent | (() => AnyAgent) | SubagentConfig
export type Subagents = { readonly [toolName: string]: SubagentValue } | readonly AnyAgent[]

export interface SubagentConfig {
  readonly agent: AnyAgent | (() => AnyAgent)
  /** Instead of the agent's own description. */
  readonly description?: string
  /** What the child is told of its host's context. Default: snapshot if the agent has an `input`, else none. */
  readonly briefing?: 'none' | 'snapshot'
  readonly budget?: Budget
  /** `session`: its delegations go on in one conversation per host conversation. Default `fresh`: one each. */
  readonly memory?: 'fresh' | 'session'
  /** Fields of its input that the host's model does not see and cannot set. */
  readonly presets?: { readonly [field: string]: Json }
  /** A named layer over it: `minimal`, `memory_only`, `skills_only`, `full`, or one of createRuntime({ profiles }). */
  readonly profile?: string
  /** What happens to the child when the run that started it is cancelled. Default: cancel. */
  readonly onParentClose?: 'cancel' | 'abandon'
}

export interface ToolGroup {
  /** What the model reads to decide whether it wants the group. */
  readonly description: string
  /** Is it on from the start? */
  readonly active: boolean
  /** What the model reads when it switches the group on: how to use its tools. */
  readonly notes?: string
  readonly tools?: Tools
  readonly subagents?: Subagents
}

/** Tools in groups, given to an agent as `toolkit`. Never changed: `create` and `remove` give another one. */
export interface GroupedTools {
  readonly groups: ReadonlyMap<string, ToolGroup>
  readonly meta: 'absolute' | 'additive' | 'none'
  readonly [toolkitMark]: true
  create(name: string, group: ToolGroup): GroupedTools
  remove(name: string): GroupedTools
}

export const toolkitMark: unique symbol = Symbol.for('legate.toolkit') as never

/** A group of its toolkit. The tools themselves are among the agent's. */
export interface GroupCore extends Group {
  readonly tools: readonly string[]
  readonly subagents: AgentCore['subagents']
}

/** What the runtime needs of an agent. Immutable. */
export interface AgentCore {
  readonly name: string
  readonly description: string
  readonly instructions: string
  readonly model: Model | null
  readonly settings: ModelSettings
  readonly tools: ReadonlyMap<string, Tool>
  readonly subagents: ReadonlyMap<string, SubagentValue> | readonly AnyAgent[]
  readonly groups: ReadonlyMap<string, GroupCore>
  /** How its model switches them. */
  readonly meta: GroupedTools['meta']
  readonly input: CheckedSchema | null
  readonly output: CheckedSchema | null
  readonly grant: Grant | undefined
  readonly budget: Budget | undefined
  readonly hooks: Hooks | undefined
  readonly contextTurns: number
  /** Changes when what the agent is told or may use changes; code inside tools does not count. */
  readonly hash: string
}

export interface RunOptions {
  readonly abortSignal?: AbortSignal
}

export interface Agent<In = unknown, Out = unknown> extends AgentCore {
  /** Runs it and gives the outcome; throws RunError, with the outcome, unless it completed. */
  generate(input: In, options?: RunOptions): Promise<CompletedOutcome<Out>>
  stream(input: In, options?: RunOptions): Run<Out>
}

export type AnyAgent = Agent<never, unknown>

export type AgentInput<In extends Schema | undefined> = In extends Schema ? InferInput<In> : Content
export type AgentOutput<Out extends Schema | undefined> = Out extends Schema ? InferOutput<Out> : null

const KEYS = [
  'name',
  'description',
  'instructions',
  'model',
  'settings',
  'tools',
  'subagents',
  'toolkit',
  'input',
  'output',
  'grant',
  'budget',
  'hooks',
  'contextTurns',
]
const SUBAGENT_KEYS = ['agent', 'description', 'briefing', 'budget', 'memory', 'presets', 'profile', 'onParentClose']
const NAME = /^[\p{L}\p{N}_][\p{L}\p{N}_ .:@-]{0,127}$/u

/** Checks a definition and makes it immutable. What cannot work is refused here, not when it runs. */
export function defineAgent(definition: AgentDefinition<Schema | undefined, Schema | undefined>): AgentCore {
  checkKeys(definition)
  const { name } = definition
  const where = `agent "${name}"`
  if (definition.grant !== undefined) checkGrant(definition.grant, where)
  if (definition.budget !== undefined) checkBudget(definition.budget, where)
  checkContextTurns(definition.contextTurns ?? CONTEXT_TURNS, where)
  if (definition.hooks !== undefined) checkHooks(definition.hooks, where)
  const own = readTools(definition.tools ?? {}, where)
  const { tools, groups } = readGroups(definition.toolkit, own, where)
  const subagents = readSubagents(definition.subagents ?? {}, tools, where)
  const core = {
    name,
    description: definition.description ?? '',
    instructions: definition.instructions,
    model: readModel(definition.model, name),
    settings: definition.settings ?? {},
    tools,
    subagents,
    groups,
    meta: definition.toolkit?.meta ?? 'none',
    input: definition.input ? readSchema(definition.input, `${where}, input`) : null,
    output: definition.output ? readSchema(definition.output, `${where}, output`) : null,
    grant: definition.grant,
    budget: definition.budget,
    hooks: definition.hooks,
    contextTurns: definition.contextTurns ?? CONTEXT_TURNS,
  }
  let hash: string | undefined
  return {
    ...core,
    get hash() {
      hash ??= hashOf(core)
      return hash
    },
  }
}

const agentMark: unique symbol = Symbol.for('legate.agent') as never

/** Marks a finished agent object, so that it is known as one by any copy of the package. */
export function markAgent<T extends AgentCore>(agent: T): T {
  Object.defineProperty(agent, agentMark, { value: true })
  return Object.freeze(agent)
}

export function isAgent(value: unknown): value is AnyAgent {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, agentMark)
}

function checkKeys(definition: AgentDefinition<Schema | undefined, Schema | undefined>): void {
  if (typeof definition !== 'object' || definition === null) refuse('give it an object: agent({ name, ... }).')
  const unknown = Object.keys(definition).find((key) => !KEYS.includes(key))
  const { name, instructions } = definition
  if (unknown !== undefined) refuse(`an agent has no "${unknown}". It has ${KEYS.join(', ')}.`)
  if (typeof name !== 'string' || !NAME.test(name)) {
    refuse(`${JSON.stringify(name)} is no name for an agent: use letters, digits, _ - . : @ and spaces, at most 128.`)
  }
  if (typeof instructions !== 'string') refuse(`"${name}" needs instructions: what the model is told it is and does.`)
}

function readModel(given: ModelLike | undefined, name: string): Model | null {
  if (given === undefined) return null
  const model = toModel(given)
  if (model !== undefined) return model
  return refuse(
    `the model of "${name}" is none: give "provider/model", a model of the AI SDK, or an object with stream(request, { signal }).`,
  )
}

/** A hook that is misspelt would never be called, and nobody would notice. */
function checkHooks(hooks: Hooks, where: string): void {
  if (typeof hooks !== 'object' || hooks === null) refuse(`${where}: hooks are an object: { beforeTool }.`)
  for (const [name, hook] of Object.entries(hooks)) {
    if (name !== 'beforeTool') refuse(`${where}: there is no hook "${name}". There is beforeTool.`)
    if (hook !== undefined && typeof hook !== 'function') refuse(`${where}: hooks.${name} must be a function.`)
  }
}

function checkContextTurns(turns: unknown, where: string): void {
  if (Number.isInteger(turns) && Number(turns) >= 1 && Number(turns) <= 1_000) return
  refuse(`${where}: contextTurns is a whole number from 1 to 1000, not ${JSON.stringify(turns)}.`)
}

function readTools(tools: Tools, where: string): ReadonlyMap<string, Tool> {
  if (Array.isArray(tools)) refuse(`${where}: tools are an object, { name: tool({ ... }) }: the key is the name.`)
  const read = new Map<string, Tool>()
  for (const [name, tool] of Object.entries(tools)) {
    checkToolName(name, where)
    if (!isTool(tool)) refuse(`${where}: tools.${name} is not a tool. Make it with tool({ ... }).`)
    read.set(name, tool as Tool)
  }
  return read
}

/** Tools of groups are tools of the agent; the same one may be in several groups, another of its name may not. */
function readGroups(
  toolkit: GroupedTools | undefined,
  own: ReadonlyMap<string, Tool>,
  where: string,
): Pick<AgentCore, 'tools' | 'groups'> {
  if (toolkit === undefined) return { tools: own, groups: NO_GROUPS_CORE }
  if (toolkit?.[toolkitMark] !== true) refuse(`${where}: make its toolkit with toolkit({ groups }).`)
  const tools = new Map(own)
  const groups = new Map<string, GroupCore>()
  for (const [name, group] of toolkit.groups) {
    const inside = `${where}, group "${name}"`
    const read = readTools(group.tools ?? {}, inside)
    for (const [toolName, tool] of read) {
      const isTaken = own.has(toolName) || (tools.get(toolName) ?? tool) !== tool
      if (isTaken) refuse(`${inside}: there is another tool "${toolName}". Rename one of them.`)
      tools.set(toolName, tool)
    }
    const { description, active, notes = '' } = group
    const subagents = readSubagents(group.subagents ?? {}, read, inside)
    groups.set(name, { description, active, notes, tools: [...read.keys()], subagents })
  }
  return { tools, groups }
}

const NO_GROUPS_CORE: ReadonlyMap<string, GroupCore> = new Map()

function readSubagents(subagents: Subagents, tools: ReadonlyMap<string, Tool>, where: string): AgentCore['subagents'] {
  if (isList(subagents)) {
    for (const agent of subagents) if (!isAgent(agent)) refuse(`${where}: a subagent in the list is not an agent.`)
    return [...subagents]
  }
  const read = new Map<string, SubagentValue>()
  for (const [name, value] of Object.entries(subagents)) {
    checkToolName(name, where)
    if (tools.has(name)) refuse(`${where}: "${name}" is a tool and a subagent. Rename one of them.`)
    checkSubagent(value, `${where}, subagents.${name}`)
    read.set(name, value)
  }
  return read
}

function checkSubagent(value: unknown, where: string): void {
  if (isSource(value)) return
  const config = typeof value === 'object' && value !== null ? (value as Partial<SubagentConfig>) : {}
  if (!isSource(config.agent)) refuse(`${where} is not an agent, a function that gives one, or { agent, ... }.`)
  const unknown = Object.keys(config).find((key) => !SUBAGENT_KEYS.includes(key))
  if (unknown !== undefined) refuse(`${where} has no "${unknown}". It has ${SUBAGENT_KEYS.join(', ')}.`)
  checkChoice(config.briefing, ['none', 'snapshot'], `${where}.briefing`)
  checkChoice(config.memory, ['fresh', 'session'], `${where}.memory`)
  checkChoice(config.onParentClose, ['cancel', 'abandon'], `${where}.onParentClose`)
  if (config.budget !== undefined) checkBudget(config.budget, where)
  if (config.presets !== undefined) checkPresets(config.presets, where)
}

function checkPresets(presets: unknown, where: string): void {
  const isObject = typeof presets === 'object' && presets !== null && !Array.isArray(presets)
  const json = isObject ? toJson(presets) : undefined
  if (json?.ok !== true) refuse(`${where}.presets is an object of JSON values: fields of the input and what they are.`)
}

function isSource(value: unknown): boolean {
  return isAgent(value) || typeof value === 'function'
}

function checkChoice(value: unknown, choices: readonly string[], where: string): void {
  if (value === undefined || choices.includes(String(value))) return
  refuse(`${where} is ${choices.map((choice) => `"${choice}"`).join(' or ')}, not ${JSON.stringify(value)}.`)
}

function isList(subagents: Subagents): subagents is readonly AnyAgent[] {
  return Array.isArray(subagents)
}

function checkToolName(name: string, where: string): void {
  if (name === READ_RESULT || name === RESET_TOOLS)
    refuse(`${where}: the tool "${name}" is built in. Give yours another name.`)
  if (/^[a-zA-Z0-9_-]{1,64}$/.test(name)) return
  refuse(`${where}: "${name}" is no name for a tool: models accept a-z, A-Z, 0-9, _ and -, at most 64.`)
}

function hashOf(core: Omit<AgentCore, 'hash'>): string {
  const tools = [...core.tools].map(([name, { description, input, output, effect, timeoutMs }]) => {
    return [name, description, input.jsonSchema, output?.jsonSchema ?? null, effect, timeoutMs]
  })
  const subagents = isList(core.subagents as Subagents)
    ? (core.subagents as readonly AnyAgent[]).map((agent) => agent.name)
    : [...(core.subagents as ReadonlyMap<string, SubagentValue>).keys()]
  const shown = toJson({
    name: core.name,
    description: core.description,
    instructions: core.instructions,
    model: core.model?.id ?? null,
    settings: core.settings,
    tools,
    subagents,
    ...(core.groups.size === 0 ? {} : { groups: groupsOf(core) }),
    input: core.input?.jsonSchema ?? null,
    output: core.output?.jsonSchema ?? null,
    grant: core.grant ?? null,
    budget: core.budget ?? null,
    contextTurns: core.contextTurns,
  })
  const value: Json = shown.ok ? shown.value : core.name
  return sha256(canonicalJson(value)).slice(0, 16)
}

function groupsOf({ groups, meta }: Omit<AgentCore, 'hash'>): unknown {
  const shown = [...groups].map(([name, { description, active, notes, tools, subagents }]) => {
    const names = Array.isArray(subagents)
      ? subagents.map((agent) => agent.name)
      : [...(subagents as Map<string, unknown>).keys()]
    return [name, description, active, notes, tools, names]
  })
  return { meta, shown }
}

function refuse(message: string): never {
  throw new DefinitionError('definition', `agent(): ${message}`)
}
