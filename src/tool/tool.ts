import { DefinitionError } from '../base/error.ts'
import type { Json } from '../base/json.ts'
import { anything, code, flag, type OptionRules, oneOf, positive, readOptions, text } from '../base/options.ts'
import { type CheckedSchema, type InferOutput, readSchema, type Schema } from '../base/schema/schema.ts'
import type { Files } from '../files/files.ts'
import type { Request } from '../grant/request.ts'
import type { Outcome } from '../graph/outcome.ts'
import type { Reader } from '../graph/reader.ts'
import type { Effect, Id } from '../graph/rows.ts'
import type { Shape } from '../prompt/shape/shape-schema.ts'
import type { Attempts } from './attempts.ts'

/** What a tool's code gets beside its input. */
export interface ToolContext {
  /** Aborts when the run is cancelled or the tool takes too long. Honour it promptly. */
  readonly signal: AbortSignal
  /** The same on every try of this call: hand it to whatever you call, so that it happens once. */
  readonly idempotencyKey: string
  readonly node: { readonly id: Id; readonly conversationId: Id; readonly turnId: Id; readonly attempt: number }
  /**
   * Shown to whoever watches the run; never to the model. False where it was left out: a call may tell 1,000 times at once and
   * ten times a second from then on, and what is longer than 1,000 characters counts as often as it has them.
   */
  progress(message: string, data?: Json): boolean
  /** Starts an agent as a child of this call and gives its outcome. */
  readonly delegate: Delegate
  /** The runtime's files, as the calling agent's grant lets it use them. */
  readonly files: Files
  /** For whom the run is, and the agents that led here from the root: the same in every child. */
  readonly owner: string | null
  readonly path: readonly string[]
  /** What the caller of the run said of its request, `run(agent, input, { attributes })`: the same in every child. */
  readonly attributes: Attributes
  /** `createRuntime({ tracer, longTermMemory })`: the very objects, in every agent and child; null without. */
  readonly tracer: unknown
  readonly longTermMemory: unknown
  readonly logger: Logger
}

/** The same for code that is a node of its own. */
export interface KindContext extends ToolContext {
  /** Rows as they are now: what the node may build on. */
  readonly graph: Reader
}

export type Attributes = { readonly [name: string]: Json }

/** Bound to the running call. Gives any outcome; `output` is null unless it completed. */
export type Delegate = <In, Out>(
  agent: { generate(input: In): Promise<{ readonly output: Out }> },
  input: In,
  options?: Attempts,
) => Promise<Omit<Outcome, 'output'> & { readonly output: Out | null }>

export interface Logger {
  debug(message: string, details?: object): void
  info(message: string, details?: object): void
  warn(message: string, details?: object): void
  error(message: string, details?: object): void
}

export interface ToolDefinition<In, Out> {
  /** What the model reads to decide when to call it. */
  readonly description: string
  /** Standard Schema (zod 4, valibot, arktype, ...) or JSON Schema. */
  readonly inputSchema: In
  /** Checked on the result; without it any JSON will do. */
  readonly outputSchema?: Schema<Out>
  /** May it run again when its process dies in the middle? Unsaid: no, it is `effectful`. */
  readonly effect?: Effect
  /** Default: 5 minutes. */
  readonly timeoutMs?: number
  /** It is meant to be called again with the same arguments: repeated calls are not refused. */
  readonly polls?: boolean
  /**
   * A person must allow each call, whatever grants say. A denial of a `required` one also holds back what follows. A function
   * says which calls: those that it does not give false for.
   */
  readonly approval?: Approval<InferOutput<In>>
  /**
   * What else this call does, such as `net:api.example.com`, or for a program `programRequest(['git', 'status'])`: each is
   * decided before it runs.
   */
  needs?(input: InferOutput<In>): readonly (string | Request)[]
  /** A throw is a result the model reads; it never ends the run. */
  execute(input: InferOutput<In>, context: ToolContext): Out | Promise<Out>
}

export type Approval<Input = unknown> =
  | 'optional'
  | 'required'
  | ((input: Input, call: { readonly nodeId: Id }) => Wanted | Promise<Wanted>)

/** `true` is `'optional'`: after a no the agent goes on. After a no to `'required'` the run ends `denied`. */
type Wanted = boolean | 'optional' | 'required'

/** A tool whose input is a shape of the prompt language: a field is a type, or `[type, description]`. */
export interface ShapedTool extends Pick<ToolDefinition<unknown, unknown>, 'effect' | 'timeoutMs' | 'approval'> {
  /** The words the model reads to decide when to call it. */
  readonly desc?: string
  /** The fields of its input. */
  readonly kwargs?: { readonly [field: string]: unknown }
  /** Gets the fields as one object. */
  readonly func: (input: never, context: ToolContext) => unknown
  /** The shape of its result. */
  readonly returns?: Shape
}

export const TOOL_TIMEOUT_MS = 300_000

/** A tool as a toolkit holds it. */
export interface Tool<In = unknown, Out = unknown> {
  readonly description: string
  readonly input: CheckedSchema
  readonly output: CheckedSchema | null
  readonly effect: Effect
  readonly timeoutMs: number | null
  readonly polls: boolean
  readonly approval: Approval<In> | null
  readonly needs: ((input: In) => readonly (string | Request)[]) | null
  /** It runs although a file among its needs is denied, and tells of it: `context.files` refuses that one. */
  readonly skipsDenied: boolean
  readonly execute: (input: In, context: ToolContext) => Out | Promise<Out>
  readonly [toolMark]: true
}

const toolMark: unique symbol = Symbol.for('legate.tool') as never

function approvalRule(value: unknown): string | null {
  const isSaid = value === 'optional' || value === 'required' || typeof value === 'function'
  return isSaid ? null : '"optional", "required" or a function of the input'
}

const OPTIONS: OptionRules<ToolDefinition<unknown, unknown>> = {
  description: text,
  inputSchema: anything,
  outputSchema: anything,
  effect: oneOf('pure', 'idempotent', 'effectful'),
  timeoutMs: positive,
  polls: flag,
  approval: approvalRule,
  needs: code,
  execute: code,
}

/** Defines a tool. Its name is the key it is put under: `tools: { search }`. */
export function tool<const In extends Schema, Out>(definition: ToolDefinition<In, Out>): Tool<InferOutput<In>, Out> {
  checkDefinition(definition)
  return Object.freeze({
    description: definition.description,
    input: readSchema(definition.inputSchema, 'the inputSchema of a tool'),
    output: definition.outputSchema
      ? readSchema(definition.outputSchema as Schema, 'the outputSchema of a tool', 'output')
      : null,
    effect: definition.effect ?? 'effectful',
    timeoutMs: definition.timeoutMs ?? TOOL_TIMEOUT_MS,
    polls: definition.polls ?? false,
    approval: (definition.approval ?? null) as Tool<InferOutput<In>, Out>['approval'],
    needs: (definition.needs ?? null) as Tool<InferOutput<In>, Out>['needs'],
    skipsDenied: false,
    execute: definition.execute as Tool<InferOutput<In>, Out>['execute'],
    [toolMark]: true as const,
  })
}

export function isTool(value: unknown): value is Tool {
  const isThing = (typeof value === 'object' && value !== null) || typeof value === 'function'
  return isThing && Object.hasOwn(value, toolMark)
}

function checkDefinition(definition: ToolDefinition<unknown, unknown>): void {
  const { description, execute, inputSchema } = readOptions('tool()', definition, OPTIONS)
  if (description === undefined) refuse('a tool needs a description: the model reads it to decide.')
  if (execute === undefined) refuse('a tool needs execute(input, context).')
  if (inputSchema === undefined) {
    refuse('a tool needs an inputSchema: zod 4, valibot, arktype or JSON Schema. For no input: { type: "object" }.')
  }
}

function refuse(message: string): never {
  throw new DefinitionError('definition', `tool(): ${message}`)
}

const subagentMark: unique symbol = Symbol.for('legate.subagent') as never

/** A tool that is no code but data: the agent it is given to has `subagent` under the tool's name. */
export function delegatingTool(description: string, input: CheckedSchema, subagent: object): Tool {
  const shown = tool({
    description,
    inputSchema: input.jsonSchema,
    effect: 'idempotent',
    execute: () => {
      throw new Error('this tool starts a subagent and does nothing by itself: give it to an agent, in its tools')
    },
  })
  return Object.freeze({ ...shown, input, [subagentMark]: subagent }) as Tool
}

/** What a tool made by `delegatingTool` starts; undefined for any other. */
export function subagentIn(given: Tool): object | undefined {
  return (given as { readonly [subagentMark]?: object })[subagentMark]
}

/** One attribute of a request, by its name, with the type of its value. */
export interface Attribute<Value extends Json> {
  readonly name: string
  /** For `run(agent, input, { attributes })`; several are spread into one object. */
  of(value: Value): { readonly [name: string]: Value }
  /** As the run was started with it; undefined when it was not. */
  in(context: Pick<ToolContext, 'attributes'>): Value | undefined
}

/** Names an attribute once, so that who sets it and who reads it agree on its type: `attribute<{ id: string }>('tenant')`. */
export function attribute<Value extends Json>(name: string): Attribute<Value> {
  if (typeof name !== 'string' || name === '') {
    throw new DefinitionError('definition', "attribute(): it needs a name, such as attribute<string>('tenant').")
  }
  return Object.freeze({
    name,
    of: (value: Value) => ({ [name]: value }),
    in: ({ attributes }: Pick<ToolContext, 'attributes'>) =>
      Object.hasOwn(attributes, name) ? (attributes[name] as Value) : undefined,
  })
}

const fileTools: WeakSet<Tool> = new WeakSet()
const used: WeakMap<Tool, Domain> = new WeakMap()

type Domain = Request['domain']

/** Marks the file tools: a child may inherit them from its host. */
export function markFileTools<Name extends string>(tools: Record<Name, Tool>): Record<Name, Tool> {
  for (const tool of Object.values<Tool>(tools)) fileTools.add(tool)
  return tools
}

export function isFileTool(tool: Tool): boolean {
  return fileTools.has(tool)
}

/** Marks what every call of a tool asks for: where all of it is forbidden, no call of the tool can do anything. */
export function markUse(tool: Tool, domain: Domain | undefined): Tool {
  if (domain !== undefined) used.set(tool, domain)
  return tool
}

export function useOf(tool: Tool): Domain | undefined {
  return used.get(tool)
}
