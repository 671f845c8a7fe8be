import type { Json } from '../../base/json.ts'
import type { Content, ToolCall, Usage } from '../../graph/content.ts'
import type { DurableEvent, LiveEvent, RunEvent } from '../../graph/event.ts'
import type { Outcome } from '../../graph/outcome.ts'
import type { Id, Purpose } from '../../graph/rows.ts'
import type { ModelRequest, Part } from '../../model/model.ts'
import type { Logger } from '../../tool/tool.ts'

/**
 * Code around what an agent does. Every hook is a function of any kind; what it may give is said with it, and may be a
 * value, a promise, an iterable or an async iterable.
 */
export interface Hooks<State = unknown> {
  /** Before each model call: what is given is put over the request. The next hook sees it. */
  onRequest?(request: ModelRequest, context: HookContext<State>): Given<RequestChange>
  /**
   * Around each model call: gives what the model says. `next(request)` asks the model, or the next hook; without it
   * nobody is asked. A text is a whole answer; parts end with a `finish`.
   */
  wrapModel?(request: ModelRequest, next: NextModel, context: HookContext<State>): ModelAnswer
  /** Before the first event of a model call: what is given is seen by readers of the run, as events `extension`. */
  onStreamStart?(context: HookContext<State>): Given<Emission>
  /** After the last event of a model call that was answered, before the answer is acted on. */
  onStreamEnd?(answer: StreamedAnswer, context: HookContext<State>): Given<Emission>
  /**
   * By the type of an event; `*` for all. What is given for a live event directly follows it. Events of the log are told
   * when they are written, in the process that writes them; nothing can follow those.
   */
  readonly onEvent?: EventHooks<State>
  /**
   * Before a call of a tool or a subagent is decided and runs: it may give it another input, answer it, or refuse it with
   * words for the model. What it gives is what is checked, decided and asked for. One that throws refuses.
   */
  beforeTool?(call: HookedCall, context: HookContext<State>): Given<NonNullable<BeforeTool>>
  /** After a tool ran: what is given is the result instead. Not for delegations: their end needs no code. */
  afterTool?(call: HookedCall, result: ToolResult, context: HookContext<State>): Given<AfterTool>
  /** A child was made for this run. To see it, not to change it. */
  onDelegationStart?(event: EventOf<'delegation-start'>, context: HookContext<State>): unknown
  /** A child of this run has ended. To see it, not to change it. */
  onDelegationEnd?(event: EventOf<'delegation-end'>, context: HookContext<State>): unknown
  /**
   * Before a call of a subagent, at any depth below this agent, goes ahead: to see it, not to change it. What it gives or
   * throws makes no difference to the call.
   */
  onChildTool?(call: ChildCall, context: HookContext<State>): unknown
  /** Once when a run has ended, whatever way. `run.result` does not wait for it; `runtime.idle` and `close` do. */
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

/** A method, so that an extension with a state fits where its state is not known. */
type EventHook<Event, State> = { on(event: Event, context: HookContext<State>): unknown }['on']

/** Where a hook is called, and what its extension keeps for this run. */
export interface HookContext<State = unknown> {
  /** What the extension's `state` gave for this run. In this process only: one that goes on with the run has its own. */
  readonly state: State
  /** What is put here is `extra` of the run's outcome, once it completes in this process. */
  readonly extra: { [key: string]: Json }
  readonly agent: string
  readonly runId: Id
  readonly conversationId: Id
  /** Null where it is about the run as a whole. */
  readonly nodeId: Id | null
  /** What the model call is for. */
  readonly purpose: Purpose | null
  /** The agents that led here from the root, this one last. */
  readonly path: readonly string[]
  readonly owner: string | null
  /** Aborts when the node is asked to stop. */
  readonly signal: AbortSignal
  readonly logger: Logger
}

/** What of a request may be changed. */
export type RequestChange = Partial<Pick<ModelRequest, 'messages' | 'tools' | 'settings' | 'outputSchema'>>

export type NextModel = (request: ModelRequest) => AsyncIterable<Part>

export type ModelAnswer = Said | Promise<Said>
type Said = string | Part | Iterable<Part> | AsyncIterable<Part>

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
  /** The agents that led to it from the root, its own last. */
  readonly path: readonly string[]
}

export type BeforeTool =
  | undefined
  | { readonly input: Json }
  /** The call does not run: this is its result. */
  | { readonly answer: Json }
  | { readonly refuse: string }

export interface ToolResult {
  /** What the model reads. */
  readonly content: Content
  /** The value itself, where it is not a text. */
  readonly value: Json | undefined
  readonly isError: boolean
}

export type AfterTool =
  /** A text, blocks, or any JSON. */
  | { readonly result: Json; readonly isError?: boolean }
  /** The result stays as it is. */
  | { readonly result?: never; readonly isError: boolean }

// A hook that gives nothing has no return.
// biome-ignore lint/suspicious/noConfusingVoidType: functions without a return are hooks too
type Maybe<T> = T | null | undefined | void

/** What a hook may give: nothing, a value, a promise, or any number of values one after the other. */
export type Given<T> = Maybe<T> | Iterable<Maybe<T>> | AsyncIterable<Maybe<T>> | Promise<Maybe<T> | Iterable<Maybe<T>>>

/** Uses each value that was given, in order; at once where nothing has to be waited for. */
export function each<T>(given: Given<T>, use: (value: T) => void): void | Promise<void> {
  if (given === null || given === undefined) return undefined
  if (typeof given !== 'object') return use(given as T)
  if ('then' in given && typeof given.then === 'function') return later(given as Promise<Given<T>>, use)
  if (Symbol.asyncIterator in given) return eachLater(given, use)
  if (!(Symbol.iterator in given)) return use(given as T)
  for (const value of given) if (value !== null && value !== undefined) use(value as T)
  return undefined
}

async function later<T>(given: Promise<Given<T>>, use: (value: T) => void): Promise<void> {
  await each(await given, use)
}

async function eachLater<T>(given: AsyncIterable<Maybe<T>>, use: (value: T) => void): Promise<void> {
  for await (const value of given) if (value !== null && value !== undefined) use(value as T)
}
