import { AsyncLocalStorage } from 'node:async_hooks'
import type { Json } from '../base/json.ts'
import type { Budget } from '../grant/budget.ts'
import type { Grant } from '../grant/grant.ts'
import type { Outcome } from '../graph/outcome.ts'
import type { Id } from '../graph/rows.ts'
import type { Attempts } from './attempts.ts'
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
   * Waits for a run of the child's: the call lends its worker meanwhile, and has the outcome then. Null as soon as the
   * signal aborts: the outcome is not the call's.
   */
  take(runId: Id, signal: AbortSignal | undefined): Promise<Outcome | null>
}

/** What a child is given beside its input. */
export interface ChildOptions {
  readonly grant?: Omit<Grant, 'delegate'> | undefined
  readonly budget?: Budget | undefined
  readonly attempts?: Attempts | undefined
}

/** The call that runs now: agents started inside it are its children. */
export interface CurrentCall {
  /** The runtime that runs it. */
  readonly runtime: object
  start(agent: object, input: unknown, options?: ChildOptions): StartedChild
  /** The same in the background: the call may end before its child. With a session, one more turn of that child. */
  spawn(agent: object, input: unknown, options: SpawnOptions): Promise<SpawnedChild>
  /** The input of the last call of a tool in this conversation that gave a result. */
  recall(toolName: string): Json | undefined
  /** Runs code as this call. */
  inside<T>(code: (context: ToolContext) => T): T
}

const storage = new AsyncLocalStorage<CurrentCall>()

export function currentCall(): CurrentCall | undefined {
  return storage.getStore()
}

export function asCurrentCall<T>(call: CurrentCall, run: () => T): T {
  return storage.run(call, run)
}
