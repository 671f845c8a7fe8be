// A tool as users define it and as the runtime holds it: `tool()`, its definition, and the context that its code gets.
// Users call `tool()`; `agent/build` reads the tools of a definition; `tool/toolkit` offers them to a model, and only
// `tool/invoke` runs their code (I8). `tools` has the ready-made ones.
//
// Stays true:
// - A tool is frozen. Its name is the key under which an agent has it, never part of the tool.
// - `needs` lists every further action of a call, so that grants decide on it before the code runs (I11).
// - A tool without an `effect` is `effectful`: it never runs a second time after a crash (I4).

import { DefinitionError } from '../base/error.ts'
import type { Json } from '../base/json.ts'
import { anything, code, flag, type OptionRules, oneOf, orJust, positive, readOptions, text } from '../base/options.ts'
import { type CheckedSchema, type InferOutput, readShownSchema, type Schema } from '../base/schema/schema.ts'
import type { Files } from '../files/files.ts'
import type { Request } from '../grant/request.ts'
import type { RunOutcome } from '../graph/outcome.ts'
import type { TreeReader } from '../graph/reader.ts'
import type { Effect, Id, KeptOptions } from '../graph/rows.ts'
import type { Shape } from '../prompt/shape/shape-schema.ts'
import type { DelegateOptions } from './attempts.ts'

/** The second argument of a tool's code, beside its input. */
export interface ToolContext {
  /** Aborts when the run is cancelled or the tool takes too long. Stop promptly. */
  readonly signal: AbortSignal
  /** Equal on every try of this call: pass it to the services you call, so that the effect happens once. */
  readonly idempotencyKey: string
  readonly node: { readonly id: Id; readonly conversationId: Id; readonly runId: Id; readonly attempt: number }
  /**
   * Shown to everybody who watches the run, never to the model. Returns false where it was dropped: a call may report
   * 1,000 times at once and ten times a second from then on, and a message of more than 1,000 characters counts as
   * several.
   */
  progress(message: string, data?: Json): boolean
  /** Starts an agent as a child of this call and returns its outcome. */
  readonly delegate: Delegate
  /** The runtime's files, limited by the calling agent's grant. */
  readonly files: Files
  /** The user of the run, and the agents from the root to here: equal in every child. */
  readonly owner: string | null
  readonly path: readonly string[]
  /** The attributes of the request, `run(agent, input, { attributes })`: equal in every child. */
  readonly attributes: Attributes
  /** The place of the call in a trace, for requests to others: `headers: { traceparent }`. Null where nobody traces. */
  readonly traceparent: string | null
  /** The objects of `createRuntime({ tracer, longTermMemory })`, in every agent and child; null without. */
  readonly tracer: unknown
  readonly longTermMemory: unknown
  readonly logger: Logger
}

/** The second argument of code that is a node of its own. */
export interface KindContext extends ToolContext {
  /** The current rows, which the node may build on. */
  readonly graph: TreeReader
}

export type Attributes = { readonly [name: string]: Json }

/** Bound to the running call. Returns any outcome; `output` is null unless it completed. */
export type Delegate = <In, Out>(
  agent: { generate(input: In): Promise<{ readonly output: Out }> },
  input: In,
  options?: DelegateOptions,
) => Promise<RunOutcome<Out>>

export interface Logger {
  debug(message: string, details?: object): void
  info(message: string, details?: object): void
  warn(message: string, details?: object): void
  error(message: string, details?: object): void
}

export interface ToolDefinition<In, Out> {
  /** Tells the model when to call it. */
  readonly description: string
  /** Standard Schema (zod 4, valibot, arktype, ...) or JSON Schema. */
  readonly input: In
  /** Checks the result. Default: any JSON. */
  readonly output?: Schema<Out>
  /** Whether it may run again when its process dies in the middle. Default `effectful`: it may not. */
  readonly effect?: Effect
  /** How long one call may take. Default: 5 minutes. */
  readonly timeoutMs?: number
  /** True: calls with equal arguments are expected, so repeated calls are not refused. */
  readonly polls?: boolean
  /**
   * A person must allow each call, whatever grants allow. After a no to `ask` the agent continues; after a no to `required`
   * the run ends. A function chooses the calls: all for which it does not return false.
   */
  readonly approval?: ApprovalRule<InferOutput<In>>
  /**
   * Further actions of this call, such as `net:api.example.com`, or for a program `programRequest(['git', 'status'])`:
   * each is decided before it runs.
   */
  needs?(input: InferOutput<In>): readonly (string | Request)[]
  /**
   * The code of the tool. If it throws, the model reads the error as a result; the run continues. `'outside'`: somebody else
   * executes it, such as a page in a browser, and the call waits as a row until `runtime.answer(nodeId, { result })`.
   */
  execute: 'outside' | ToolCode<InferOutput<In>, Out>
  /** For `execute: 'outside'`: the id of the principal that executes it. Default: the owner of the conversation. */
  readonly by?: string
}

/** The code of a tool: a method, so that narrower inputs fit. */
type ToolCode<In, Out> = { code(input: In, context: ToolContext): Out | Promise<Out> }['code']

export type ApprovalRule<Input = unknown> =
  | 'ask'
  | 'required'
  | ((input: Input, call: { readonly nodeId: Id }) => ApprovalSetting | Promise<ApprovalSetting>)

/** `true` is `'ask'`: after a no the agent continues. After a no to `'required'` the run ends `denied`. */
type ApprovalSetting = boolean | 'ask' | 'required'

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
/** How long a call waits for who executes it elsewhere. */
export const OUTSIDE_MS: number = 24 * 3_600_000

/** A tool as a toolkit holds it. */
export interface Tool<In = unknown, Out = unknown> extends KeptOptions {
  readonly description: string
  readonly input: CheckedSchema
  readonly output: CheckedSchema | null
  readonly polls: boolean
  readonly approval: ApprovalRule<In> | null
  readonly needs: ((input: In) => readonly (string | Request)[]) | null
  /** True: it runs although a file among its needs is denied, and reports that; `context.files` refuses the file. */
  readonly skipsDenied: boolean
  readonly execute: (input: In, context: ToolContext) => Out | Promise<Out>
  /** Set where somebody else executes it: the principal, or null for the owner of the conversation. */
  readonly outside: { readonly by: string | null } | null
  readonly [toolMark]: true
}

const toolMark: unique symbol = Symbol.for('legate.tool') as never

function approvalRule(value: unknown): string | null {
  const isSaid = value === 'ask' || value === 'required' || typeof value === 'function'
  return isSaid ? null : '"ask", "required" or a function of the input'
}

const OPTIONS: OptionRules<ToolDefinition<unknown, unknown>> = {
  description: text,
  input: anything,
  output: anything,
  effect: oneOf('pure', 'idempotent', 'effectful'),
  timeoutMs: positive,
  polls: flag,
  approval: approvalRule,
  needs: code,
  execute: orJust('outside', code),
  by: text,
}

/** Defines a tool. Its name is its key in `tools: { search }`. */
export function tool<const In extends Schema, Out>(definition: ToolDefinition<In, Out>): Tool<InferOutput<In>, Out> {
  checkDefinition(definition)
  const { description, input, output } = definition
  const isOutside = definition.execute === 'outside'
  const which = `of the tool ${JSON.stringify(description.slice(0, 60))}`
  return Object.freeze({
    description,
    input: readShownSchema(input, `the input ${which}`),
    output: output ? readShownSchema(output as Schema, `the output ${which}`, 'output') : null,
    // Nothing of it happens here: to ask for it once more does no harm.
    effect: isOutside ? 'idempotent' : (definition.effect ?? 'effectful'),
    timeoutMs: definition.timeoutMs ?? (isOutside ? OUTSIDE_MS : TOOL_TIMEOUT_MS),
    polls: definition.polls ?? false,
    approval: (definition.approval ?? null) as Tool<InferOutput<In>, Out>['approval'],
    needs: (definition.needs ?? null) as Tool<InferOutput<In>, Out>['needs'],
    skipsDenied: false,
    execute: (isOutside ? executedElsewhere : definition.execute) as Tool<InferOutput<In>, Out>['execute'],
    outside: isOutside ? { by: definition.by ?? null } : null,
    [toolMark]: true as const,
  })
}

function executedElsewhere(): never {
  throw new Error('this tool is executed outside: a run waits for its result, runtime.answer(nodeId, { result })')
}

export function isTool(value: unknown): value is Tool {
  const isThing = (typeof value === 'object' && value !== null) || typeof value === 'function'
  return isThing && Object.hasOwn(value, toolMark)
}

function checkDefinition(definition: ToolDefinition<unknown, unknown>): void {
  const { description, execute, input, by, effect } = readOptions('tool()', definition, OPTIONS)
  if (execute !== 'outside' && by !== undefined)
    refuse('by is for tools that are executed outside: execute: "outside".')
  if (execute === 'outside' && effect !== undefined)
    refuse('a tool that is executed outside has no effect here: leave it out.')
  if (description === undefined) refuse('a tool needs a description: the model reads it to decide.')
  if (execute === undefined) refuse('a tool needs execute(input, context).')
  if (input === undefined) {
    refuse('a tool needs an input: zod 4, valibot, arktype or JSON Schema. For no input: { type: "object" }.')
  }
}

function refuse(message: string): never {
  throw new DefinitionError('definition', `tool(): ${message}`)
}

const subagentMark: unique symbol = Symbol.for('legate.subagent') as never

/** A tool without code: an agent that has it gets `subagent` under the tool's name. */
export function delegatingTool(description: string, input: CheckedSchema, subagent: object): Tool {
  const shown = tool({
    description,
    input: input.jsonSchema,
    effect: 'idempotent',
    execute: () => {
      throw new Error('this tool starts a subagent and does nothing by itself: give it to an agent, in its tools')
    },
  })
  return Object.freeze({ ...shown, input, [subagentMark]: subagent }) as Tool
}

/** The agent that a tool of `delegatingTool` starts; undefined for any other tool. */
export function subagentIn(given: Tool): object | undefined {
  return (given as { readonly [subagentMark]?: object })[subagentMark]
}

/** One attribute of a request, by its name, with the type of its value. */
export interface Attribute<Value extends Json> {
  readonly name: string
  /** For `run(agent, input, { attributes })`; spread several into one object. */
  of(value: Value): { readonly [name: string]: Value }
  /** The value that the run was started with; undefined without one. */
  in(context: Pick<ToolContext, 'attributes'>): Value | undefined
}

/**
 * Names an attribute once, so that its writer and its readers agree on the type: `attribute<{ id: string }>('tenant')`.
 */
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
  for (const tool of Object.values<Tool>(tools)) fileTools.add(markFacts(tool, { works: 'files' }))
  return tools
}

export function isFileTool(tool: Tool): boolean {
  return fileTools.has(tool)
}

/**
 * Marks the domain that every call of a tool uses: where all of it is forbidden, no call of the tool can do anything.
 */
export function markUse(tool: Tool, domain: Domain | undefined): Tool {
  if (domain !== undefined) used.set(tool, domain)
  return tool
}

export function useOf(tool: Tool): Domain | undefined {
  return used.get(tool)
}

/**
 * The means of a ready-made tool in the workspace: `files`, or `programs` that run there. A tool that starts agents works with
 * what those have: `same` tools as their host, or `any`.
 */
export type WorksWith = 'files' | 'programs' | 'same' | 'any'

/** Where a ready-made tool keeps things of owners, each in a folder of its own. */
export interface OwnerStore {
  /** Tools with equal keys keep the same things. */
  readonly key: string
  /** Deletes what is kept of an owner. Gives how many files there were. */
  forget(owner: string): Promise<number>
}

/** Facts about a ready-made tool that hold before it is called. */
export interface ReadyMadeFacts {
  readonly works?: WorksWith | undefined
  /** Files that the tool keeps in the folder are deleted with the owner. */
  readonly store?: OwnerStore
}

const facts: WeakMap<Tool, ReadyMadeFacts> = new WeakMap()

export function markFacts(tool: Tool, given: ReadyMadeFacts): Tool {
  facts.set(tool, given)
  return tool
}

export function factsOf(tool: Tool): ReadyMadeFacts {
  return facts.get(tool) ?? {}
}
