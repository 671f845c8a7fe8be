// The words of an agent: the definition that users write (`AgentDefinition`), the settings of a subagent for one host
// (`SubagentConfig`), the object that they get (`Agent`), and the part of it that the runtime uses (`AgentCore`). Types
// only, except for the mark that tells an agent from other objects. `agent/build/definition` reads a definition into a
// core; `runtime`, `delegation`, `recipe` and `extension` read the core.
//
// Stays true:
// - An agent is immutable. Every method that adds something returns another agent with another hash.
// - A core has every setting: null stands for "not set".
// - The grant and the budget that a host sets for a subagent only narrow it (I1).

import { DefinitionError } from '../../base/error.ts'
import type { Json } from '../../base/json.ts'
import type { NoOptions } from '../../base/options.ts'
import type { CheckedSchema, InferInput, InferOutput, Schema } from '../../base/schema/schema.ts'
import type { Run } from '../../conversation/run.ts'
import type { FieldPath, FieldValue } from '../../fields/field-path.ts'
import type { PathPattern } from '../../fields/path-pattern.ts'
import type { Budget } from '../../grant/budget.ts'
import type { Grant } from '../../grant/grant.ts'
import type { Content } from '../../graph/content.ts'
import type { CompletedOutcome } from '../../graph/outcome.ts'
import type { AgentRef, Id } from '../../graph/rows.ts'
import type { Model, ModelSettings } from '../../model/model.ts'
import type { ModelLike } from '../../model/named/to-model.ts'
import type { Prompt } from '../../prompt/prompt.ts'
import type { SessionSettings, SessionStore } from '../../store/session-store.ts'
import type { Attempts } from '../../tool/attempts.ts'
import type { Group } from '../../tool/groups.ts'
import type { ToolSource } from '../../tool/source.ts'
import type { Tool, ToolDefinition } from '../../tool/tool.ts'
import type { ForeignTool } from '../../tools/from-ai-sdk-tool.ts'
import type { McpServerOptions } from '../../tools/mcp/options.ts'
import type { AgentRequest } from './agent-request.ts'
import type { Briefing, BriefingPlan } from './briefing.ts'
import type { CallGuards } from './call-guards.ts'
import type { ExtensionCore } from './extension.ts'
import type { FileLayers } from './file-layers.ts'
import type { Hooks } from './hooks.ts'
import type { ReplyCore } from './input.ts'
import type { Repair } from './repair.ts'
import type { EventType, NameClash, StreamOptions } from './subagent-options.ts'

/** Made with `tool()`, ours or that of the AI SDK. */
export type Tools = { readonly [name: string]: Tool<never, unknown> | ForeignTool }

/** Keyed by the name that stands before the names of its tools. */
export type Sources = { readonly [name: string]: ToolSource }

export interface AgentDefinition<In extends Schema | undefined, Out extends Schema | undefined> {
  /** Its name in grants, paths and events. */
  readonly name: string
  /** Tells a host's model when to delegate to it. */
  readonly description?: string
  /** How its model is told to work: the system message. */
  readonly instructions: string
  /** The input of a run that was started without one. */
  readonly prompt?: string
  /**
   * `"provider/model"` or an alias of your config file, a model of the AI SDK, or a Model of your own. Default: a
   * subagent uses its host's.
   */
  readonly model?: ModelLike
  /** How its model is called: temperature, reasoning, and so on. */
  readonly settings?: ModelSettings
  /** The tools its model may call, by name. */
  readonly tools?: Tools
  /** Sources of more tools: `{ github: mcpServer({ ... }), developer: builtinToolkit('developer') }`. */
  readonly sources?: Sources
  /** Agents it may delegate to: the key is the name of the tool its model sees. */
  readonly subagents?: Subagents
  /** Tools and subagents in groups that can be switched: `toolkit({ groups })`. */
  readonly toolkit?: GroupedTools
  /** The contract of a delegation: checked before a child is made. Without it the agent takes a message. */
  readonly input?: In
  /** The schema of the answer: checked; an answer that does not fit is requested once more. */
  readonly output?: Out
  /** How often the model answers again when an answer does not fit, and how. Default: once. */
  readonly repair?: Repair
  /**
   * Children that items of the answer start, each as soon as its item is complete and fits, while the model still
   * writes: `{ 'tasks[*]': { agent: worker } }`. `output` is the plan, `delegations` the children's results.
   */
  readonly eager?: Eager<AgentRawOutput<Out>>
  /** The actions it may take and pass on. Default: its tools, subagents and models; no files, programs, hosts or secrets. */
  readonly grant?: Grant
  /** How much one run of it may use. */
  readonly budget?: Budget
  /** Code around its steps: an extension of its own, after those it uses. */
  readonly hooks?: Hooks
  /** Attempts of a delegation to it, where the host sets none. */
  readonly delegation?: Attempts
  /** The part of its host's context that it gets as a subagent, unless the host sets another. */
  readonly briefing?: Briefing
  /** True: its results name the tools it used, in `response_metadata.tool_trace`. */
  readonly toolTrace?: boolean
  /**
   * True: accepts an answer that its model's output limit or a content filter cut short. Default: the run fails, and
   * keeps the text.
   */
  readonly acceptTruncated?: boolean
  /**
   * How many rounds of its conversation its model sees, this one included: 1 to 1000. Default: all of them, the oldest
   * summarised when they near the end of the model's window.
   */
  readonly contextTurns?: number
  /**
   * `inherit`: as a subagent it has its host's files and file tools, as far as both grants allow. Default: its own
   * tools only.
   */
  readonly files?: 'inherit'
  /** An agent that is code has its own form: see ReplyDefinition. */
  readonly reply?: undefined
  readonly effect?: undefined
  readonly needs?: undefined
}

/** Returns an agent, at once or later. Called once per delegation. */
export type AgentProvider = () => AnyAgent | PromiseLike<AnyAgent>

/** An agent, a function that returns one (called once per delegation), or an agent with settings for this host. */
export type SubagentValue = AnyAgent | AgentProvider | SubagentConfig
export type Subagents = { readonly [toolName: string]: SubagentValue } | readonly SubagentValue[]

/** How subagents work in the background, and how their host hears of them. */
export interface BackgroundSettings {
  /**
   * Lets the children of this host start children of their own with these tools, as deep as budgets allow. Default
   * false.
   */
  readonly nested?: boolean
  /**
   * How a host learns that a child ended while it was not waiting: `auto` queues one turn in its conversation,
   * `passive` keeps the result as a row until the host asks for it. Default auto.
   */
  readonly wake?: 'auto' | 'passive'
  /** How much each child may use. */
  readonly budget?: Budget
  /** Whether children are cancelled or continue when the run that started them is cancelled. Default: cancel. */
  readonly onParentClose?: 'cancel' | 'abandon'
  /** The profiles a model may choose from. Default: the built-in ones. */
  readonly profiles?: readonly string[]
  /** The profile of children whose call names none. Default: the profile of the host's conversation, or full. */
  readonly profile?: string
  /** The number of rounds for children whose call gives none. Default: the host conversation's number, or 50. */
  readonly contextTurns?: number
}

export interface SubagentConfig extends Attempts {
  /** The agent, or a function that gives one. */
  readonly agent: AnyAgent | AgentProvider
  /** Replaces the agent's own description. */
  readonly description?: string
  /** Replaces the key: the name by which the host's model calls it. */
  readonly toolName?: string
  /** How to resolve a clash when another tool of its host has the same name. Default `raise`: both are refused. */
  readonly onNameClash?: NameClash
  /** Its group in the host's `toolkit`. Default: it is always on. */
  readonly group?: string
  /** Replaces the agent's own name: in grants, paths, events and results. */
  readonly name?: string
  /** Replaces the agent's own tools. */
  readonly tools?: Tools
  /** `inherit`: the host's files and file tools, as far as both grants allow. Default: the agent's own setting. */
  readonly files?: 'inherit'
  /** Replaces the agent's own model, and its host's. */
  readonly model?: ModelLike
  /**
   * The part of its host's context that the child gets. Default: the agent's own, else snapshot if it has an `input`,
   * else none.
   */
  readonly briefing?: Briefing
  /** Binds it and everything below it, whatever else they are granted. */
  readonly grant?: Omit<Grant, 'delegate'>
  /** How much each of its runs may use, beside its own budget. */
  readonly budget?: Budget
  /** `inherit`: the host's hooks decide on its calls too, after its own. Default `private`: they only see them. */
  readonly hooks?: 'private' | 'inherit'
  /** `session`: its delegations share one conversation per host conversation. Default `fresh`: one each. */
  readonly memory?: 'fresh' | 'session'
  /** Fields of its input that the host's model neither sees nor sets. */
  readonly presets?: { readonly [field: string]: Json }
  /** A named layer over it: `minimal`, `memory_only`, `skills_only`, `full`, or one of createRuntime({ profiles }). */
  readonly profile?: string
  /** How many of its delegations may run at the same time in one conversation of the host; the others wait. */
  readonly concurrency?: number
  /** Subagents with equal keys share that number. Default: the name of the tool. */
  readonly concurrencyKey?: string
  /**
   * The host does not wait for it: its model starts it with `subagent_spawn`, and hears of its end. True, or settings, which
   * are the same for all such subagents of a host. Beside it only `agent` is given.
   */
  readonly background?: true | BackgroundSettings
  /** A call that waits longer than this for its child stops waiting: the child continues in the background. */
  readonly promoteAfterMs?: number
  /** Whether the child ends when the run that started it is cancelled. Default: cancel. */
  readonly onParentClose?: 'cancel' | 'abandon'
  /** Settings of its session: where copies are stored and restored, how long it may be idle, how many there may be. */
  readonly session?: SessionStore | SessionSettings
  /**
   * The child's events that readers of its host see: true for all, false for none, or these types. Nothing else depends
   * on it. Default: all.
   */
  readonly forwardEvents?: boolean | readonly EventType[]
  /** How its events are shown to readers of its host. */
  readonly streamOptions?: StreamOptions
}

/** The child that an item starts, by its path in the answer. */
export type Eager<Raw> = { readonly [P in FieldPath<Raw>]?: EagerValue<FieldValue<Raw, P>> }

/** An agent, a function that returns one, or an agent with settings. */
export type EagerValue<Item = unknown> = AnyAgent | AgentProvider | EagerConfig<Item>

export interface EagerConfig<Item = unknown>
  extends Omit<
    SubagentConfig,
    'description' | 'toolName' | 'group' | 'presets' | 'memory' | 'session' | 'hooks' | 'promoteAfterMs' | 'background'
  > {
  /** The input of the child. Default: the item itself, as JSON where the agent takes a text. */
  readonly input?: (item: Item, place: { readonly field: string }) => unknown
}

export interface EagerCore {
  readonly pattern: PathPattern
  readonly config: SubagentConfig
  readonly input: EagerConfig<never>['input'] | undefined
}

export interface ToolGroup {
  /** Tells the model whether it wants the group. */
  readonly description: string
  /** True: it is on from the start. */
  readonly active: boolean
  /** Tells the model, when it switches the group on, how to use its tools. */
  readonly notes?: string
  /** The tools of the group, by name. */
  readonly tools?: Tools
  /** The subagents of the group. */
  readonly subagents?: Subagents
  /** How to resolve a clash when another tool has the name of one in the group. Default `raise`: both are refused. */
  readonly onNameClash?: NameClash
}

/** Tools in groups, for an agent's `toolkit`. Immutable: `create` and `remove` return another one. */
export interface GroupedTools {
  readonly groups: ReadonlyMap<string, ToolGroup>
  readonly meta: 'absolute' | 'additive' | 'none'
  readonly [toolkitMark]: true
  /** Returns the toolkit with one more group. */
  create(name: string, group: ToolGroup): GroupedTools
  remove(name: string): GroupedTools
}

export const toolkitMark: unique symbol = Symbol.for('legate.toolkit') as never

/** A group of its toolkit. The tools themselves are among the agent's. */
export interface GroupCore extends Group {
  readonly tools: readonly string[]
}

/** A subagent with its host's settings. */
export interface OwnSubagent {
  readonly config: SubagentConfig
  /** Its groups; a subagent in none is always available. */
  readonly memberOf: readonly string[]
}

/** The part of an agent that the runtime uses. Immutable. */
export interface AgentCore {
  readonly name: string
  readonly description: string
  readonly instructions: string
  /** Null where a run needs an input. */
  readonly prompt: string | null
  readonly model: Model | null
  /** True where a file, or a call that describes the agent, names its model: then the model's key is decided too. */
  readonly isModelOfFile: boolean
  readonly settings: ModelSettings
  readonly tools: ReadonlyMap<string, Tool>
  /** The tools of sources that need no start are among its tools. */
  readonly sources: ReadonlyMap<string, ToolSource>
  /** Keyed by the name of their tool. */
  readonly subagents: ReadonlyMap<string, OwnSubagent>
  readonly groups: ReadonlyMap<string, GroupCore>
  /** How its model switches the groups. */
  readonly meta: GroupedTools['meta']
  readonly input: CheckedSchema | null
  readonly output: CheckedSchema | null
  /** Null: one more try. */
  readonly repair: Repair | null
  /** Keyed by path; null where items start nothing. */
  readonly eager: ReadonlyMap<string, EagerCore> | null
  readonly grant: Grant | undefined
  readonly budget: Budget | undefined
  /** The extensions it uses, in their order, and its own hooks. */
  readonly extensions: readonly ExtensionCore[]
  readonly delegation: Attempts | undefined
  readonly briefing: BriefingPlan | undefined
  readonly toolTrace: boolean
  readonly acceptTruncated: boolean
  /** Null: all rounds. */
  readonly contextTurns: number | null
  /** `inherit`: it has its host's files and file tools. */
  readonly files: 'inherit' | null
  /** The code that answers; null: its model does. */
  readonly reply: ReplyCore | null
  /** The request in slots: set only on an agent for one request, else null. */
  readonly asked: Prompt | null
  /** Its way of working, for an agent from a file; null: like any agent. */
  readonly protocol: AnswerProtocol | null
  /** Programs of its file that look at its calls; null: none. */
  readonly guards: CallGuards | null
  /** The definition that its conversation stores, for an agent made from a file or by a call. */
  readonly inline: InlineDefinition | null
  /** The restrictions of the file, for an agent made from a file. */
  readonly fileLayers: FileLayers | null
  readonly identity: AgentIdentity
}

export interface AgentIdentity {
  /**
   * The agent's reference in a conversation. Its hash changes with its instructions and with everything it may use;
   * code inside tools does not count.
   */
  readonly ref: AgentRef
}

export interface RunOptions {
  /** Cancels the run when it aborts. */
  readonly abortSignal?: AbortSignal
  /** Binds this run and everything below it, whatever else they are granted. */
  readonly grant?: Omit<Grant, 'delegate'>
  /** The budget of this run and everything below it, within the agent's own and the runtime's. */
  readonly budget?: Budget
  /** Replaces the agent's own tools, in this process: another process that continues the run has the agent's own. */
  readonly tools?: Tools
  /**
   * Facts about the request for tools, here and in everything below: user, tenant, ids. Recorded; no model sees them.
   */
  readonly attributes?: { readonly [name: string]: Json }
  /** Replaces the agent's own repair, in this process too. */
  readonly repair?: Repair
}

/** The direct input of any agent, whatever its schema: a text, or messages of which the last is a user's. */
export type DirectInput = string | { readonly messages: readonly DirectMessage[] }

export interface DirectMessage {
  readonly role: 'system' | 'user' | 'assistant'
  readonly content: Content
}

/** `Raw` is the type that its model writes, `Out` the type after the output schema has read it. */
export interface Agent<In = unknown, Out = unknown, Raw = Out> extends AgentCore {
  /** Runs it and returns the outcome; throws RunError, with the outcome, unless it completed. */
  generate(input: NoInfer<In> | DirectInput, options?: RunOptions): Promise<CompletedOutcome<Out>>
  /** Starts a run and returns it at once: read its events, or await its `result`. */
  stream(input: NoInfer<In> | DirectInput, options?: RunOptions): Run<Out, Raw>
  /** Builds a request slot by slot: `agent.request().input(x).instruct(y).output(S).start()`. */
  request(options?: NoOptions): AgentRequest<Out>
  /** Starts a request from a prompt file, YAML or JSON by its ending. */
  loadPromptFile(...given: Parameters<AgentRequest['loadPromptFile']>): Promise<AgentRequest<Out>>
  /** Starts a request from the text of a prompt file. */
  loadPromptText(...given: Parameters<AgentRequest['loadPromptText']>): Promise<AgentRequest<Out>>
  /** A typed function that a model implements, with this agent's model, tools and instructions. */
  auto<const In extends Schema, const Result extends Schema>(
    definition: AutoDefinition<In, Result>,
  ): AutoFunction<InferInput<In>, InferOutput<Result>>
  /** Exists only for the compiler: the typed input, apart from the direct input that every agent takes. */
  '~asked'?(input: In): void
  /**
   * Returns the agent with an extension: the agent's runs call its hooks, and the agent gets its methods. This agent
   * stays unchanged. A duplicate method or extension is refused, by the compiler where it can see it.
   */
  use<Self extends object, Name extends string, Methods extends object>(
    this: Self,
    extension: Extension<Name, Methods> & NoClash<Self, Name, Methods>,
  ): Self & Methods & ExtensionMark<Known<Name>>
}

/** The argument of `useTools` of `legate/compat`. */
export type ToolChoice = string | Tools | AutoFunction<never, unknown> | ((...given: never[]) => unknown)

export interface ToolFunctionOptions<In extends Schema = Schema>
  extends Pick<ToolDefinition<In, unknown>, 'effect' | 'timeoutMs' | 'approval'> {
  /** The words the model reads to decide when to call it. Default: the name. */
  readonly description?: string
  /** The name of the tool. Default: the function's own name. */
  readonly name?: string
  /** The schema of its input. */
  readonly input: In
  /** The schema of its result. Default: any JSON. */
  readonly output?: Schema
}

export type McpServers = { readonly [name: string]: McpServerOptions | ToolSource }

/** A function that a model implements: its purpose, input and output. */
export interface AutoDefinition<In extends Schema, Out extends Schema> {
  /** The name in grants, paths and events. Default `auto`. */
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
 * Call it, stream it (`.stream(input)`), or put it into `tools` or `subagents`, where it is a delegation. It throws
 * RunError, with the outcome, unless its run completed.
 */
export type AutoFunction<In = unknown, Out = unknown> = ((input: In, options?: RunOptions) => Promise<Out>) &
  Agent<In, Out> &
  Tool<In, Out>

/** Hooks and methods for an agent's `.use()`: a value, made with `extension()`. */
export interface Extension<Name extends string = string, Methods extends object = object, State = unknown>
  extends ExtensionCore<State> {
  /** Its name in events and in `requires`, `before` and `after` of others. */
  readonly name: Name
  /** Called for every agent that uses it, and again when that agent gets more: `agent` is the final agent. */
  methods?(agent: AnyAgent): Methods
}

declare const used: unique symbol

/** Exists only for the compiler: the extensions an agent uses. */
export interface ExtensionMark<Name extends string> {
  readonly [used]?: { readonly [Key in Name]: true }
}

/** A name of the type `string` proves nothing. */
type Known<Name extends string> = string extends Name ? never : Name

type UsedBy<Self> = Self extends { readonly [used]?: infer Names } ? keyof NonNullable<Names> : never

export type NoClash<Self, Name extends string, Methods> = [keyof Methods & keyof Self] extends [never]
  ? [Known<Name> & UsedBy<Self>] extends [never]
    ? unknown
    : { readonly 'this extension is used already': Name }
  : { readonly 'these methods are there already': keyof Methods & keyof Self }

export type AnyAgent = Agent<never, unknown>

export type AgentInput<In extends Schema | undefined> = In extends Schema ? InferInput<In> : Content
export type AgentRawOutput<Out extends Schema | undefined> = Out extends Schema ? InferInput<Out> : null
export type AgentOutput<Out extends Schema | undefined> = Out extends Schema ? InferOutput<Out> : null

const agentMark: unique symbol = Symbol.for('legate.agent') as never

/** Marks a finished agent object, so that every copy of the package recognises it. */
export function markAgent<T extends AgentCore>(agent: T): T {
  Object.defineProperty(agent, agentMark, { value: true })
  return Object.freeze(agent)
}

/** Also true for a function of `auto`. */
export function isAgent(value: unknown): value is AnyAgent {
  const isThing = (typeof value === 'object' && value !== null) || typeof value === 'function'
  return isThing && Object.hasOwn(value, agentMark)
}

const NAME = /^[\p{L}\p{N}_][\p{L}\p{N}_ .:@-]{0,127}$/u

export function checkAgentName(name: unknown, where: string): void {
  if (typeof name === 'string' && NAME.test(name)) return
  const shown = JSON.stringify(typeof name === 'string' ? name.slice(0, 80) : name)
  const message = `${shown} is not a name for an agent: use letters, digits, _ - . : @ and spaces, at most 128.`
  throw new DefinitionError('definition', `${where}: ${message}`)
}

/** An agent whose whole definition is data: any process can make it again from the row of its conversation. */
export interface InlineDefinition {
  readonly definition: Json
  /** The model's name in the definition; null: its host's model. */
  readonly model: string | null
  /** The agent whose tools or model it inherits: its code is needed too. Empty for none. */
  readonly code: string
}

/** How an agent from a file or a call works. */
export interface AnswerProtocol {
  /** Writes its instructions for one run. */
  writeInstructions(told: RunFacts): string
  /** The tool that takes its final output: a plain answer does not end the run. Null: it does. */
  readonly finalTool: string | null
  /** The tool that decides whether an answer is final. Null: every answer is. */
  readonly checkTool: string | null
}

/** The facts about a run that its agent's instructions may contain. */
export interface RunFacts {
  readonly instructions: string
  /** Its session. */
  readonly id: Id
  /** How many model calls it has. */
  readonly turns: number
  /** Names of the tools that it is offered. */
  readonly tools: readonly string[]
}
