// The data of A2A 1.0 in its JSON form, as far as it is ours: parts, messages, tasks, updates, and what is refused.

import type { Json } from '../../../index.ts'

/** The version of the protocol. A request that names none speaks 0.3: see `older`. */
export const A2A_VERSION = '1.0'

/** Names, on cards, servers for which a message that arrives again is the same task. */
export const IDEMPOTENT = 'urn:legate:a2a:idempotent-messages'

export type A2aState =
  | 'TASK_STATE_SUBMITTED'
  | 'TASK_STATE_WORKING'
  | 'TASK_STATE_COMPLETED'
  | 'TASK_STATE_FAILED'
  | 'TASK_STATE_CANCELED'
  | 'TASK_STATE_INPUT_REQUIRED'
  | 'TASK_STATE_REJECTED'
  | 'TASK_STATE_AUTH_REQUIRED'

/** One of `text`, `raw` (base64), `url` and `data`. */
export interface A2aPart {
  readonly text?: string
  readonly raw?: string
  readonly url?: string
  readonly data?: Json
  readonly mediaType?: string
  readonly filename?: string
}

/** Values beside the data of a message or task. */
export interface A2aMetadata {
  readonly [key: string]: Json
}

export interface A2aMessage {
  readonly messageId: string
  readonly role: 'ROLE_USER' | 'ROLE_AGENT'
  readonly parts: readonly A2aPart[]
  readonly contextId?: string
  readonly taskId?: string
  readonly metadata?: A2aMetadata
}

export interface A2aStatus {
  readonly state: A2aState
  readonly timestamp: string
  readonly message?: A2aMessage
}

export interface A2aArtifact {
  readonly artifactId: string
  readonly name: string
  readonly parts: readonly A2aPart[]
}

export interface A2aTask {
  readonly id: string
  readonly contextId: string
  readonly status: A2aStatus
  readonly artifacts: readonly A2aArtifact[]
  readonly history: readonly A2aMessage[]
  readonly metadata: A2aMetadata
}

/** Where an update belongs. */
export interface A2aPlace {
  readonly taskId: string
  readonly contextId: string
}

/** One item of a stream, and the body of a push notification. */
export type A2aUpdate =
  | { readonly task: A2aTask }
  | { readonly statusUpdate: A2aPlace & { readonly status: A2aStatus; readonly metadata?: A2aMetadata } }
  | { readonly artifactUpdate: A2aPlace & { readonly artifact: A2aArtifact; readonly lastChunk: boolean } }

const OVER: ReadonlySet<string> = new Set([
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_REJECTED',
])

/** Is a task in this state over? */
export function isTerminal(state: string): boolean {
  return OVER.has(state)
}

/** The errors of A2A that we answer with, by their names in the SDK. */
export type RefusalName =
  | 'TaskNotFoundError'
  | 'TaskNotCancelableError'
  | 'UnsupportedOperationError'
  | 'ContentTypeNotSupportedError'
  | 'VersionNotSupportedError'
  | 'RequestMalformedError'

/** A request that A2A has an error for. */
export class A2aRefusal extends Error {
  readonly kind: RefusalName

  constructor(kind: RefusalName, message: string) {
    super(message)
    this.kind = kind
  }
}

/** The words for a task that is unknown, and for one of somebody else. */
export function taskNotFound(): A2aRefusal {
  return new A2aRefusal('TaskNotFoundError', 'There is no such task.')
}
