import type { Json } from '../../core/base/json.ts'
import type { Budget } from '../../core/grant/budget.ts'
import type { Grant } from '../../core/grant/grant.ts'
import type { Id } from '../../core/graph/rows.ts'
import type { RequestParts } from './transport.ts'

/** How to start a run. */
export interface RunRequest {
  /** Goes on in this conversation instead of a new one. */
  readonly conversationId?: Id
  /** Goes on in the conversation that you know by this text, or begins it. */
  readonly conversationKey?: string
  /** The title of a new conversation. */
  readonly title?: string
  /** Facts for tools. Models do not see them. */
  readonly attributes?: { readonly [name: string]: Json }
  /** Narrows what the run may do. */
  readonly grant?: Grant
  /** Limits of the run, within those of the agent and of your token. */
  readonly budget?: Budget
  /** Whether to wait for a run that is going on in the conversation, or to replace it. Default `queue`. */
  readonly whileRunning?: 'queue' | 'restart'
  /** A key: equal keys with equal requests give one run, however often you send them. */
  readonly key?: string
  /** Seconds to wait for the outcome, at most 60. Default: the answer comes at once. */
  readonly wait?: number
  /** Gives the request up. A run that has begun goes on. */
  readonly signal?: AbortSignal
}

/** The request that starts a run. */
export function startParts(
  said: { readonly agent?: string; readonly input: unknown },
  request: RunRequest,
): RequestParts {
  const { key, wait, signal, ...options } = request
  const headers = key === undefined ? {} : { 'idempotency-key': key }
  return { method: 'POST', body: { ...said, ...options }, query: { wait }, headers, signal }
}
