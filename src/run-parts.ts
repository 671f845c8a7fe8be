import type { AgentCore } from './agent/agent.ts'
import type { Grant } from './grant/grant.ts'
import type { Outcome } from './graph/outcome.ts'
import type { Id, Turn } from './graph/rows.ts'

/** A failure at once is the same as one later. */
export function attempt<T>(run: () => T | Promise<T>): T | Promise<T> {
  try {
    return run()
  } catch (error) {
    return Promise.reject(error)
  }
}

export interface SayOptions {
  readonly owner: string | null
  readonly title: string | null
  readonly grant: Grant | undefined
  readonly attributes: Turn['attributes']
  readonly runId: Id
  readonly conversationId: Id
  readonly nodeIds: readonly Id[]
  /** The caller named the conversation: it must be there. */
  readonly isKnown: boolean
}

export interface HandleOptions {
  readonly runId: Id
  readonly conversationId: Id
  readonly started: undefined | Promise<unknown>
  /** Where somebody else waits for it already. */
  readonly outcome?: Promise<Outcome>
  readonly abortSignal?: AbortSignal | undefined
  readonly isOwn: boolean
  /** Where it is known before the run is recorded. */
  readonly agent?: AgentCore
}
