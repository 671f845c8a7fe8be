import { AsyncLocalStorage } from 'node:async_hooks'
import type { Json } from '../base/json.ts'
import type { Budget } from '../grant/budget.ts'
import type { Grant } from '../grant/grant.ts'
import type { Outcome } from '../graph/outcome.ts'
import type { Id } from '../graph/rows.ts'
import type { DelegateOptions } from './attempts.ts'
import type { ToolContext } from './tool.ts'

export interface StartedChild {
  readonly runId: Id
  readonly conversationId: Id
  /** Settles when the child is recorded, or could not be. */
  readonly started: Promise<unknown>
  readonly outcome: Promise<Outcome>
}

export interface SpawnOptions {
  readonly wake: 'auto' | 'passive'
  readonly sessionId: Id | null
}

export interface SpawnedChild {
  readonly runId: Id
  readonly conversationId: Id
  /**
   * Waits for a run of the child and returns its outcome; meanwhile the call lends out its worker. Null as soon as the
   * signal aborts: the call then does not take the outcome.
   */
  take(runId: Id, signal: AbortSignal | undefined): Promise<Outcome | null>
}

/** The options of a child beside its input. */
export interface ChildOptions {
  readonly grant?: Omit<Grant, 'delegate'> | undefined
  readonly budget?: Budget | undefined
  readonly call?: DelegateOptions | undefined
}

/** The running call: agents started inside it become its children. */
export interface CurrentCall {
  /** The runtime that runs the call. */
  readonly runtime: object
  start(agent: object, input: unknown, options?: ChildOptions): StartedChild
  /** Starts a child in the background: the call may end first. With a session it adds a turn to that child. */
  spawn(agent: object, input: unknown, options: SpawnOptions): Promise<SpawnedChild>
  /** The input of the last call of a tool in this conversation that gave a result. */
  recall(toolName: string): Json | undefined
  /** Runs code as part of this call. */
  inside<T>(code: (context: ToolContext) => T): T
}

const storage = new AsyncLocalStorage<CurrentCall>()

export function currentCall(): CurrentCall | undefined {
  return storage.getStore()
}

export function asCurrentCall<T>(call: CurrentCall, run: () => T): T {
  return storage.run(call, run)
}
