import type { Json } from '../../base/json.ts'
import type { Content, ToolCall, Usage } from '../../graph/content.ts'
import type { DurableEvent, LiveEvent, RunEvent } from '../../graph/event.ts'
import type { Outcome } from '../../graph/outcome.ts'
import type { Id, Purpose } from '../../graph/rows.ts'
import type { ModelRequest, Part } from '../../model/model.ts'
import type { Logger } from '../../tool/tool.ts'

/**
 * Code around the steps of an agent. Every hook is a function of any kind; its result may be a value, a promise, an
 * iterable or an async iterable.
 */
export interface Hooks<State = unknown> {
  /** Before each model call: the result is merged over the request. The next hook sees it. */
  onRequest?(request: ModelRequest, context: HookContext<State>): HookResult<RequestChange>
  /**
   * Around each model call: returns the model's answer. `next(request)` asks the model, or the next hook; without it
   * nobody is asked. A text is a whole answer; parts end with a `finish`.
   */
  wrapModel?(request: ModelRequest, next: NextModel, context: HookContext<State>): ModelAnswer
  /** Before the first event of a model call: readers of the run see its results as events `extension`. */
  onStreamStart?(context: HookContext<State>): HookResult<Emission>
  /** After the last event of an answered model call, before the runtime acts on the answer. */
  onStreamEnd?(answer: StreamedAnswer, context: HookContext<State>): HookResult<Emission>
  /**
   * Keyed by the type of an event; `*` for all. Results for a live event follow it directly. The process that writes an
   * event of the log also calls its hooks; their results cannot follow it.
   */
  readonly onEvent?: EventHooks<State>
  /**
   * Before a call of a tool or a subagent is decided and runs: it may change the input, answer the call, or refuse it
   * with a text for the model. Its result is then checked, decided and asked for. If it throws, the call is refused.
   */
  beforeTool?(call: HookedCall, context: HookContext<State>): HookResult<NonNullable<BeforeTool>>
  /** After a tool ran: its result replaces the tool's. Not for delegations, whose end needs no code. */
  afterTool?(call: HookedCall, result: ToolResult, context: HookContext<State>): HookResult<AfterTool>
  /** A child was made for this run. It can watch, not change. */
  onDelegationStart?(event: EventOf<'delegation-start'>, context: HookContext<State>): unknown
  /** A child of this run has ended. It can watch, not change. */
  onDelegationEnd?(event: EventOf<'delegation-end'>, context: HookContext<State>): unknown
  /**
   * Before a call of a subagent, at any depth below this agent, runs. It can watch, not change: its result or error
   * does not affect the call.
   */
  onChildTool?(call: ChildCall, context: HookContext<State>): unknown
  /** Once when a run has ended in any way. `run.result` does not wait for it; `runtime.idle` and `close` do. */
  onFinally?(outcome: Outcome, context: HookContext<State>): unknown
}

export const HOOK_NAMES = [
  'onRequest',
  'wrapModel',
  'onStreamStart',
  'onStreamEnd',
  'onEvent',
  'beforeTool',
  'afterTool',
  'onDelegationStart',
  'onDelegationEnd',
  'onChildTool',
  'onFinally',
] as const satisfies readonly (keyof Hooks)[]

export type HookName = (typeof HOOK_NAMES)[number]

export type EventOf<Type extends RunEvent['type']> = Extract<RunEvent, { type: Type }>

export type EventHooks<State = unknown> = {
  readonly [Type in RunEvent['type'] | '*']?: EventHook<
    Type extends RunEvent['type'] ? EventOf<Type> : DurableEvent | LiveEvent,
    State
  >
}

/** A method, so that an extension with a state fits where the type of its state is unknown. */
type EventHook<Event, State> = { on(event: Event, context: HookContext<State>): unknown }['on']

/** The place where a hook is called, and its extension's state for this run. */
export interface HookContext<State = unknown> {
  /**
   * The value of the extension's `state` for this run. It lives in this process only: another process that continues
   * the run makes its own.
   */
  readonly state: State
  /** Becomes `extra` of the run's outcome, if it completes in this process. */
  readonly extra: { [key: string]: Json }
  readonly agent: string
  readonly runId: Id
  readonly conversationId: Id
  /** Null for a hook about the run as a whole. */
  readonly nodeId: Id | null
  /** The purpose of the model call. */
  readonly purpose: Purpose | null
  /** The agents from the root to here, this one last. */
  readonly path: readonly string[]
  readonly owner: string | null
  /** Aborts when the node is asked to stop. */
  readonly signal: AbortSignal
  readonly logger: Logger
}

/** The parts of a request that a hook may change. */
export type RequestChange = Partial<Pick<ModelRequest, 'messages' | 'tools' | 'settings' | 'outputSchema'>>

export type NextModel = (request: ModelRequest) => AsyncIterable<Part>

export type ModelAnswer = AnswerValue | Promise<AnswerValue>
type AnswerValue = string | Part | Iterable<Part> | AsyncIterable<Part>

/** An event of an extension's own: readers see `{ type: 'extension', extension, name, data }`. */
export interface Emission {
  readonly name: string
  readonly data?: Json
}

export interface StreamedAnswer {
  readonly content: Content
  readonly reasoning: string
  readonly calls: readonly ToolCall[]
  readonly usage: Usage
}

export interface HookedCall {
  readonly tool: string
  readonly input: Json
  readonly nodeId: Id
  readonly runId: Id
}

export interface ChildCall extends HookedCall {
  /** The agents from the root to it, its own last. */
  readonly path: readonly string[]
}

export type BeforeTool =
  | undefined
  | { readonly input: Json }
  /** The call does not run: this is its result. */
  | { readonly answer: Json }
  | { readonly refuse: string }

export interface ToolResult {
  /** The content for the model. */
  readonly content: Content
  /** The value itself, where it is not a text. */
  readonly value: Json | undefined
  readonly isError: boolean
}

export type AfterTool =
  /** A text, blocks, or any JSON. */
  | { readonly result: Json; readonly isError?: boolean }
  /** The result itself stays. */
  | { readonly result?: never; readonly isError: boolean }

// A hook that gives nothing has no return.
// biome-ignore lint/suspicious/noConfusingVoidType: functions without a return are hooks too
type Maybe<T> = T | null | undefined | void

/** The result of a hook: nothing, a value, a promise, or any number of values one after the other. */
export type HookResult<T> =
  | Maybe<T>
  | Iterable<Maybe<T>>
  | AsyncIterable<Maybe<T>>
  | Promise<Maybe<T> | Iterable<Maybe<T>>>

/** Uses each value in order; synchronously where nothing is async. */
export function useEach<T>(given: HookResult<T>, use: (value: T) => void): void | Promise<void> {
  if (given === null || given === undefined) return undefined
  if (typeof given !== 'object') return use(given as T)
  if ('then' in given && typeof given.then === 'function') return later(given as Promise<HookResult<T>>, use)
  if (Symbol.asyncIterator in given) return eachLater(given, use)
  if (!(Symbol.iterator in given)) return use(given as T)
  for (const value of given) if (value !== null && value !== undefined) use(value as T)
  return undefined
}

async function later<T>(given: Promise<HookResult<T>>, use: (value: T) => void): Promise<void> {
  await useEach(await given, use)
}

async function eachLater<T>(given: AsyncIterable<Maybe<T>>, use: (value: T) => void): Promise<void> {
  for await (const value of given) if (value !== null && value !== undefined) use(value as T)
}
