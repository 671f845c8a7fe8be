import { DefinitionError } from '../../base/error.ts'
import type { Json } from '../../base/json.ts'
import type { CheckedSchema, InferInput, InferOutput, Schema } from '../../base/schema/schema.ts'
import type { CompletedOutcome, Run } from '../../conversation/run.ts'
import type { FieldPath, FieldValue } from '../../fields/field-path.ts'
import type { PathPattern } from '../../fields/path-pattern.ts'
import type { Budget } from '../../grant/budget.ts'
import type { Grant } from '../../grant/grant.ts'
import type { Content } from '../../graph/content.ts'
import type { AgentRef, Id } from '../../graph/rows.ts'
import type { Model, ModelSettings } from '../../model/model.ts'
import type { ModelLike } from '../../model/named/to-model.ts'
import type { Prompt } from '../../prompt/prompt.ts'
import type { SessionSettings, SessionStore } from '../../store/session-store.ts'
import type { Attempts } from '../../tool/attempts.ts'
import type { Group } from '../../tool/groups.ts'
import type { ToolSource } from '../../tool/source.ts'
import type { ShapedTool, Tool, ToolContext, ToolDefinition } from '../../tool/tool.ts'
import type { ForeignTool } from '../../tools/from-ai-sdk-tool.ts'
import type { McpServerOptions } from '../../tools/mcp/options.ts'
import type { AgentRequest } from './agent-request.ts'
import type { Briefing, BriefingPlan } from './briefing.ts'
import type { ExtensionCore } from './extension.ts'
import type { FileLayers } from './file-layers.ts'
import type { Hooks } from './hooks.ts'
import type { ReplyCore } from './input.ts'
import type { Repair } from './repair.ts'
import type { EventType, NameClash, StreamOptions } from './subagent-options.ts'

/** Made with `tool()`, ours or that of the AI SDK. */
export type Tools = { readonly [name: string]: Tool<never, unknown> | ForeignTool }

/** By the names that their tools and those who choose among them use. */
export type Sources = { readonly [name: string]: ToolSource }

export interface AgentDefinition<In extends Schema | undefined, Out extends Schema | undefined> {
  /** Its name in grants, paths and events. */
  readonly name: string
  /** What a host's model reads to decide when to delegate to it. */
  readonly description?: string
  /** How its model is told to work: the system message. */
  readonly instructions: string
  /** What it is asked when it is run without an input. */
  readonly prompt?: string
  /**
   * `"provider/model"` or an alias of your config file, a model of the AI SDK, or a Model of your own. Left out: a
   * subagent uses its host's.
   */
  readonly model?: ModelLike
  /** How its model is called: temperature, reasoning, and so on. */
  readonly settings?: ModelSettings
  /** The tools its model may call, by name. */
  readonly tools?: Tools
  /** Where more tools come from: `{ github: mcpServer({ ... }), developer: builtinToolkit('developer') }`. */
  readonly sources?: Sources
  /** Agents it may delegate to: the key is the name of the tool its model sees. */
  readonly subagents?: Subagents
  /** Tools and subagents in groups that are switched on and off: `toolkit({ groups })`. */
  readonly toolkit?: GroupedTools
  /** The contract of a delegation: checked before a child is made. Without it the agent takes a message. */
  readonly input?: In
  /** What it must answer with: checked, and asked for once more when it does not fit. */
  readonly output?: Out
  /** How often an answer that does not fit is asked for again, and how. Default: once. */
  readonly repair?: Repair
  /**
   * Children that items of the answer start, each as soon as its item is complete and fits, while the answer is still
   * being written: `{ 'tasks[*]': { agent: worker } }`. `output` is the plan, `delegations` what came of it.
   */
  readonly eager?: Eager<AgentWritten<Out>>
  /** What it may use and pass on. Default: its tools, subagents and models; no files, programs or hosts. */
  readonly grant?: Grant
  /** How much one run of it may use. */
  readonly budget?: Budget
  /** Code around what it does: an extension of its own, after those it uses. */
  readonly hooks?: Hooks
  /** How a delegation to it is tried, where the host does not say it. */
  readonly delegation?: Attempts
  /** What it is told of its host's context when it is a subagent, unless the host says otherwise. */
  readonly briefing?: Briefing
  /** Its results name the tools it used: `response_metadata.tool_trace`. */
  readonly toolTrace?: boolean
  /** An answer that its model's output limit or a content filter cut short is an answer too. Default: the run fails, with the words. */
  readonly acceptTruncated?: boolean
  /**
   * How many rounds of its conversation its model is shown, this one included: 1 to 1000. Left out: all of them, the
   * oldest summed up when they near the end of what the model can read.
   */
  readonly contextTurns?: number
  /** `inherit`: as a subagent it has its host's files and file tools, as far as both grants go. Default: its own tools only. */
  readonly files?: 'inherit'
  /** Code that answers is an agent of its own form: see ReplyDefinition. */
  readonly reply?: undefined
  readonly effect?: undefined
}

/** Gives an agent, at once or later. Called once per delegation. */
export type AgentProvider = () => AnyAgent | PromiseLike<AnyAgent>

/** An agent, a function that gives one (called once per delegation), or an agent with settings for this host. */
export type SubagentValue = AnyAgent | AgentProvider | SubagentConfig
export type Subagents = { readonly [toolName: string]: SubagentValue } | readonly SubagentValue[]

export interface SubagentConfig extends Attempts {
  /** The agent, or a function that gives one. */
  readonly agent: AnyAgent | AgentProvider
  /** Instead of the agent's own description. */
  readonly description?: string
  /** Instead of the key: what the host's model calls it by. */
  readonly toolName?: string
  /** What becomes of it when another tool of its host has the name of its tool. Default `raise`: both are refused. */
  readonly onNameClash?: NameClash
  /** The group of the host's `toolkit` that it belongs to. Left out: it is always on. */
  readonly group?: string
  /** Instead of the agent's own name: in grants, paths, events and results. */
  readonly name?: string
  /** Instead of the agent's own tools. */
  readonly tools?: Tools
  /** `inherit`: the host's files and file tools, as far as both grants go. Default: as the agent says. */
  readonly files?: 'inherit'
  /** Instead of the agent's own model, and of its host's. */
  readonly model?: ModelLike
  /** What the child is told of its host's context. Default: the agent's own, else snapshot if it has an `input`, else none. */
  readonly briefing?: Briefing
  /** Binds it and all below it, whatever else they are granted. */
  readonly grant?: Omit<Grant, 'delegate'>
  /** How much each of its runs may use, beside its own budget. */
  readonly budget?: Budget
  /** `inherit`: the host's hooks decide on its calls too, after its own. Default `private`: they only see them. */
  readonly hooks?: 'private' | 'inherit'
  /** `session`: its delegations go on in one conversation per host conversation. Default `fresh`: one each. */
  readonly memory?: 'fresh' | 'session'
  /** Fields of its input that the host's model does not see and cannot set. */
  readonly presets?: { readonly [field: string]: Json }
  /** A named layer over it: `minimal`, `memory_only`, `skills_only`, `full`, or one of createRuntime({ profiles }). */
  readonly profile?: string
  /** How many of its delegations may run at the same time in one conversation of the host; the others wait their turn. */
  readonly concurrency?: number
  /** Subagents with the same key share that number. Default: the name of the tool. */
  readonly concurrencyKey?: string
  /** A call that waits for its child longer than this goes on without it: the same child goes on in the background. */
  readonly promoteAfterMs?: number
  /** What happens to the child when the run that started it is cancelled. Default: cancel. */
  readonly onParentClose?: 'cancel' | 'abandon'
  /** Of a conversation with it: where copies are kept and read back from, how long it may lie idle, how many there may be. */
  readonly session?: SessionStore | SessionSettings
  /** What readers of its host see of it: all, nothing, or these types. Nothing else depends on it. Default: all. */
  readonly forwardEvents?: boolean | readonly EventType[]
  /** How its events are shown to readers of its host. */
  readonly streamOptions?: StreamOptions
}

/** By path of the answer: what an item there starts. */
export type Eager<Written> = { readonly [P in FieldPath<Written>]?: EagerValue<FieldValue<Written, P>> }

/** An agent, a function that gives one, or an agent with settings. */
export type EagerValue<Item = unknown> = AnyAgent | AgentProvider | EagerConfig<Item>

export interface EagerConfig<Item = unknown>
  extends Omit<
    SubagentConfig,
    'description' | 'toolName' | 'group' | 'presets' | 'memory' | 'session' | 'hooks' | 'promoteAfterMs'
  > {
  /** What the child is asked. Left out: the item itself, as JSON where the agent takes a text. */
  readonly input?: (item: Item, place: { readonly field: string }) => unknown
}

export interface EagerCore {
  readonly pattern: PathPattern
  readonly config: SubagentConfig
  readonly input: EagerConfig<never>['input'] | undefined
}

export interface ToolGroup {
  /** What the model reads to decide whether it wants the group. */
  readonly description: string
  /** Is it on from the start? */
  readonly active: boolean
  /** What the model reads when it switches the group on: how to use its tools. */
  readonly notes?: string
  /** The tools of the group, by name. */
  readonly tools?: Tools
  /** The subagents of the group. */
  readonly subagents?: Subagents
  /** What becomes of those in it whose name another tool has. Default `raise`: both are refused. */
  readonly onNameClash?: NameClash
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
}

/** A subagent as its host has it. */
export interface OwnSubagent {
  readonly config: SubagentConfig
  /** The groups it is in; one in none is always there. */
  readonly memberOf: readonly string[]
}

/** What the runtime needs of an agent. Immutable. */
export interface AgentCore {
  readonly name: string
  readonly description: string
  readonly instructions: string
  /** Null where it must be asked something. */
  readonly prompt: string | null
  readonly model: Model | null
  readonly settings: ModelSettings
  readonly tools: ReadonlyMap<string, Tool>
  /** The tools of those that need not be started are among its tools. */
  readonly sources: ReadonlyMap<string, ToolSource>
  /** By the name of their tool. */
  readonly subagents: ReadonlyMap<string, OwnSubagent>
  readonly groups: ReadonlyMap<string, GroupCore>
  /** How its model switches them. */
  readonly meta: GroupedTools['meta']
  readonly input: CheckedSchema | null
  readonly output: CheckedSchema | null
  /** Null: asked for once more. */
  readonly repair: Repair | null
  /** By path; null where items start nothing. */
  readonly eager: ReadonlyMap<string, EagerCore> | null
  readonly grant: Grant | undefined
  readonly budget: Budget | undefined
  /** Those it uses, in the order it was given them, and its own hooks. */
  readonly extensions: readonly ExtensionCore[]
  readonly delegation: Attempts | undefined
  readonly briefing: BriefingPlan | undefined
  readonly toolTrace: boolean
  readonly acceptTruncated: boolean
  /** Null: all rounds. */
  readonly contextTurns: number | null
  /** Has it its host's files and file tools? */
  readonly files: 'inherit' | null
  /** The code that answers; null: its model does. */
  readonly reply: ReplyCore | null
  /** What it is asked in slots: only of an agent as one request has it, else null. */
  readonly asked: Prompt | null
  /** How it is told what it is and when its answer is one; null: as any agent. */
  readonly manner: Manner | null
  /** Of an agent that was made of a file or by a call: what its conversation keeps of it. */
  readonly inline: InlineDefinition | null
  /** Of an agent that was made of a file: what the file takes from it. */
  readonly fileLayers: FileLayers | null
  readonly identity: AgentIdentity
}

export interface AgentIdentity {
  /** How a conversation names it. Its hash changes when what the agent is told or may use changes; code inside tools does not count. */
  readonly ref: AgentRef
}

export interface RunOptions {
  /** Cancels the run when it aborts. */
  readonly abortSignal?: AbortSignal
  /** Binds this run and all below it, whatever else they are granted. */
  readonly grant?: Omit<Grant, 'delegate'>
  /** What this run and all below it may use: no more than the agent's own budget and the runtime's say. */
  readonly budget?: Budget
  /** Instead of the agent's own tools, in this process: one that goes on with the run later has the agent's own. */
  readonly tools?: Tools
  /** What tools, here and in all below, may know of the request: user, tenant, ids. Recorded; no model is shown it. */
  readonly attributes?: { readonly [name: string]: Json }
  /** Instead of the agent's own, in this process too. */
  readonly repair?: Repair
}

/** What an agent may be asked directly, whatever its input is: a text, or messages of which the last is a user's. */
export type DirectInput = string | { readonly messages: readonly DirectMessage[] }

export interface DirectMessage {
  readonly role: 'system' | 'user' | 'assistant'
  readonly content: Content
}

/** `Written` is what its model writes, `Out` what the output schema makes of it. */
export interface Agent<In = unknown, Out = unknown, Written = Out> extends AgentCore {
  /** Runs it and gives the outcome; throws RunError, with the outcome, unless it completed. */
  generate(input: NoInfer<In> | DirectInput, options?: RunOptions): Promise<CompletedOutcome<Out>>
  stream(input: NoInfer<In> | DirectInput, options?: RunOptions): Run<Out, Written>
  /** What it is asked, built slot by slot: `agent.request().input(x).instruct(y).output(S).start()`. */
  request(): AgentRequest<Out>
  /** A request that says what a prompt file says; see `legate/prompt` for the language. */
  loadYamlPrompt(...given: Parameters<AgentRequest['loadYamlPrompt']>): Promise<AgentRequest<Out>>
  loadJsonPrompt(...given: Parameters<AgentRequest['loadJsonPrompt']>): Promise<AgentRequest<Out>>
  loadPromptFile(...given: Parameters<AgentRequest['loadPromptFile']>): Promise<AgentRequest<Out>>
  loadPromptText(...given: Parameters<AgentRequest['loadPromptText']>): Promise<AgentRequest<Out>>
  /** The same agent with one more tool. This one stays as it is; no other agent has it. */
  registerTool<In extends Schema, Result>(name: string, given: Tools[string] | ToolDefinition<In, Result>): this
  /** The same in fewer words: what it takes as a shape, `kwargs: { city: ['str', 'Where'] }`. */
  registerTool(name: string, given: ShapedTool): this
  registerTool(given: ShapedTool & { readonly name: string }): this
  /** The same agent with more tools: an object of them, a function of `auto`, a name it has already, or a list of these. */
  useTools(tools: ToolChoice | readonly ToolChoice[]): this
  /** The same agent with a function as a tool, under the function's name. */
  toolFunc<const In extends Schema, Result>(
    code: (input: InferOutput<In>, context: ToolContext) => Result | Promise<Result>,
    options: ToolFunctionOptions<In>,
  ): this
  /** The same with a bare function: its parameters are what the tool takes, each by its name. */
  toolFunc(code: (...given: never[]) => unknown, options?: Omit<ToolFunctionOptions, 'input'>): this
  /**
   * The same agent with the tools of MCP servers: `{ github: { command, args } }`, as in `mcpServers` of config files; one of
   * these without a name; an address, `https://...`; or a script, `server.py` or `server.js`.
   */
  useMcp(servers: string | McpServers | McpServerOptions | { readonly mcpServers: McpServers }): this
  /** A typed function that a model implements, with this agent's model, tools and instructions. */
  auto<const In extends Schema, const Result extends Schema>(
    definition: AutoDefinition<In, Result>,
  ): AutoFunction<InferInput<In>, InferOutput<Result>>
  /** Only for the compiler: what it is asked, told apart from what every agent may be asked in words. */
  '~asked'?(input: In): void
  /**
   * The same agent with an extension: its hooks are called in this agent's runs, its methods are this agent's. This one
   * stays as it is. A method or an extension that is there already is refused, by the compiler where it can see it.
   */
  use<Self extends object, Name extends string, Methods extends object>(
    this: Self,
    extension: Extension<Name, Methods> & NoClash<Self, Name, Methods>,
  ): Self & Methods & Uses<Known<Name>>
}

/** What `useTools` takes. */
export type ToolChoice = string | Tools | AutoFunction<never, unknown> | ((...given: never[]) => unknown)

export interface ToolFunctionOptions<In extends Schema = Schema>
  extends Pick<ToolDefinition<In, unknown>, 'effect' | 'timeoutMs' | 'approval'> {
  /** Left out: the name. */
  readonly description?: string
  /** Left out: the function's own. */
  readonly name?: string
  /** The schema of its input. */
  readonly input: In
  /** The schema of its result. Default: any JSON. */
  readonly output?: Schema
}

export type McpServers = { readonly [name: string]: McpServerOptions | ToolSource }

/** A function that a model implements: what it does, what it is given, what it gives back. */
export interface AutoDefinition<In extends Schema, Out extends Schema> {
  /** In grants, paths and events. Default `auto`. */
  readonly name?: string
  /** The task of the function, in words for the model. */
  readonly description: string
  /** The schema of its input. */
  readonly input: In
  /** The schema of its result. */
  readonly output: Out
  /** The model that implements it. Default: the runtime's. */
  readonly model?: ModelLike
}

/**
 * Call it, stream it (`.stream(input)`), or give it to others: in `tools` or in `subagents` it is a delegation. It throws
 * RunError, with the outcome, unless its run completed.
 */
export type AutoFunction<In = unknown, Out = unknown> = ((input: In, options?: RunOptions) => Promise<Out>) &
  Agent<In, Out> &
  Tool<In, Out>

/** Hooks and methods that are added to an agent with `.use()`: a value, made with `extension()`. */
export interface Extension<Name extends string = string, Methods extends object = object, State = unknown>
  extends ExtensionCore<State> {
  /** Its name in events and in `requires`, `before` and `after` of others. */
  readonly name: Name
  /** Made anew for every agent that uses it, also when that one uses more: `agent` is the agent as it will be. */
  methods?(agent: AnyAgent): Methods
}

declare const used: unique symbol

/** Only for the compiler: the extensions an agent uses. */
export interface Uses<Name extends string> {
  readonly [used]?: { readonly [Key in Name]: true }
}

/** A name that is only known as some text says nothing. */
type Known<Name extends string> = string extends Name ? never : Name

type UsedBy<Self> = Self extends { readonly [used]?: infer Names } ? keyof NonNullable<Names> : never

export type NoClash<Self, Name extends string, Methods> = [keyof Methods & keyof Self] extends [never]
  ? [Known<Name> & UsedBy<Self>] extends [never]
    ? unknown
    : { readonly 'this extension is used already': Name }
  : { readonly 'these methods are there already': keyof Methods & keyof Self }

export type AnyAgent = Agent<never, unknown>

export type AgentInput<In extends Schema | undefined> = In extends Schema ? InferInput<In> : Content
export type AgentWritten<Out extends Schema | undefined> = Out extends Schema ? InferInput<Out> : null
export type AgentOutput<Out extends Schema | undefined> = Out extends Schema ? InferOutput<Out> : null

const agentMark: unique symbol = Symbol.for('legate.agent') as never

/** Marks a finished agent object, so that it is known as one by any copy of the package. */
export function markAgent<T extends AgentCore>(agent: T): T {
  Object.defineProperty(agent, agentMark, { value: true })
  return Object.freeze(agent)
}

/** A function may be one: see `auto`. */
export function isAgent(value: unknown): value is AnyAgent {
  const isThing = (typeof value === 'object' && value !== null) || typeof value === 'function'
  return isThing && Object.hasOwn(value, agentMark)
}

const NAME = /^[\p{L}\p{N}_][\p{L}\p{N}_ .:@-]{0,127}$/u

export function checkAgentName(name: unknown, where: string): void {
  if (typeof name === 'string' && NAME.test(name)) return
  const shown = JSON.stringify(typeof name === 'string' ? name.slice(0, 80) : name)
  const message = `${shown} is no name for an agent: use letters, digits, _ - . : @ and spaces, at most 128.`
  throw new DefinitionError('definition', `${where}: ${message}`)
}

/** An agent whose whole definition is data: any process can make it again from the row of its conversation. */
export interface InlineDefinition {
  readonly definition: Json
  /** By the name that it is asked for by; null: its host's. */
  readonly model: string | null
  /** The agent whose tools or model it takes over: its code is needed too. Empty for none. */
  readonly code: string
}

/** How an agent works that was made of a file or by a call. */
export interface Manner {
  /** Its instructions as its model is told them in one run. */
  tell(told: Told): string
  /** The tool that takes its final output: no answer in words is one. Null: an answer ends the run. */
  readonly finalTool: string | null
  /** The tool that decides whether an answer is one. Null: it is. */
  readonly checkTool: string | null
}

/** What of a run its agent may be told. */
export interface Told {
  readonly instructions: string
  /** Its session. */
  readonly id: Id
  /** Model calls it has. */
  readonly turns: number
  /** Names of the tools it is offered. */
  readonly tools: readonly string[]
}
