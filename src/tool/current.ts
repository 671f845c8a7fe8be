import { AsyncLocalStorage } from 'node:async_hooks'
import type { Outcome } from '../graph/outcome.ts'
import type { Id } from '../graph/rows.ts'
import type { ToolContext } from './tool.ts'

export interface StartedChild {
  readonly runId: Id
  readonly conversationId: Id
  /** Settles when the child is recorded, or could not be. */
  readonly started: Promise<unknown>
  readonly outcome: Promise<Outcome>
}

/** The call that runs now: agents started inside it are its children. */
export interface CurrentCall {
  /** The runtime that runs it. */
  readonly runtime: object
  start(agent: object, input: unknown): StartedChild
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
