// Events: what readers of a run see, while it happens or afterwards.
//
// Owns:      the list of event types with their fields, and which events of a child its host forwards.
// Called by: rules emit durable events through `draft.event`; running nodes emit live ones; conversation, cli and users read.
// Must stay true:
//   - A durable event is stored in the commit that it reports, with a whole sequence number and without gaps.
//   - A live event has the last whole number plus a fraction, and vanishes when its node ends; the durable `message` event
//     replaces the deltas of its answer. Shared stores keep live events in blocks until then.
//   - No rule decides by events. To add a type, extend the list and the union here, and emit it where it happens.

import type { Json } from '../base/json.ts'
import type { Content, ToolCall, Usage } from './content.ts'
import type { OutcomeRecord } from './outcome.ts'
import type { Conversation, Effect, NodeState, Purpose } from './rows.ts'

/** Events that are stored with the commit they report: whole sequence numbers, in order, without gaps. */
export const DURABLE_EVENTS = [
  'run-queued',
  'run-start',
  'run-end',
  'message',
  'tool-call',
  'tool-result',
  'delegation-start',
  'delegation-end',
  'approval-request',
  'approval-answer',
  'question',
  'answer',
  'usage',
  'node-state',
  'retry',
  'uncertain',
  'late-result',
  'budget',
  'stalled',
  'compaction',
  'context-cut',
  'definition-changed',
  'graph-change',
  'extension-error',
  'warning',
] as const

/**
 * Events that exist only while they happen: the last whole number plus a growing fraction. They vanish when their node ends.
 */
export const LIVE_EVENTS = [
  'text-delta',
  'reasoning-delta',
  'tool-input-delta',
  'field',
  'progress',
  'extension',
  'reset',
] as const

export type DurableEventType = (typeof DURABLE_EVENTS)[number]

/** The place and time that every event carries. */
export interface EventPlace {
  readonly seq: number
  readonly at: number
  readonly conversationId: string
  readonly turnId: string
  readonly nodeId: string | null
  /** Agent names from the root, root included. */
  readonly path: readonly string[]
  /** The run that delegated this one; null at the root. */
  readonly parentId: string | null
}

export type EventBody =
  | { readonly type: 'run-queued' }
  | { readonly type: 'run-start'; readonly agent: string }
  | { readonly type: 'run-end'; readonly outcome: OutcomeRecord }
  | {
      readonly type: 'message'
      readonly role: 'user' | 'developer' | 'agent'
      readonly purpose: Purpose | null
      readonly content: Content
      readonly state: NodeState
      readonly calls: readonly ToolCall[]
      /** The model's reasoning, where it is not among the blocks of the content. */
      readonly reasoning?: string
      /** The streamed deltas that the message replaces. */
      readonly streamed: { readonly chunks: number; readonly bytes: number; readonly sha256: string } | null
    }
  | { readonly type: 'tool-call'; readonly call: ToolCall; readonly effect: Effect; readonly delegates: boolean }
  | {
      readonly type: 'tool-result'
      readonly callId: string
      readonly tool: string
      readonly state: NodeState
      readonly content: Content
      readonly isError: boolean
      /** Set when the content is a value, written as JSON. */
      readonly json?: true
    }
  | {
      readonly type: 'delegation-start'
      readonly agent: string
      readonly tool: string
      readonly childConversationId: string
      readonly childRunId: string
    }
  | {
      readonly type: 'delegation-end'
      readonly agent: string
      readonly tool: string
      readonly childConversationId: string
      readonly childRunId: string
      readonly status: string
    }
  | {
      readonly type: 'approval-request'
      /** Null where approval is asked for a model call or the start of a server. */
      readonly call: ToolCall | null
      readonly request: string
      /** The arguments that the request would run with. */
      readonly input: Json
      /** A hash of request and input: `runtime.answer(nodeId, { digest })` answers exactly this question. */
      readonly digest: string
      readonly reason: string
      readonly expiresAt: number
    }
  | {
      readonly type: 'approval-answer'
      readonly allowed: boolean
      readonly by: string
      readonly reason: string | null
      readonly always: boolean
      readonly edited: boolean
      /** The edited arguments that a person allowed instead. */
      readonly input?: Json
    }
  | {
      /** The node waits for an answer of the host or of a person. */
      readonly type: 'question'
      readonly to: 'host' | 'person'
      readonly text: string
      readonly expiresAt: number
    }
  | { readonly type: 'answer'; readonly by: string; readonly text: string }
  | {
      /** A child has been silent for too long; its host's readers see the event. */
      readonly type: 'stalled'
      readonly agent: string
      readonly childConversationId: string
      readonly childRunId: string
      readonly lastActivityAt: number
    }
  | { readonly type: 'usage'; readonly usage: Usage; readonly model: string }
  | {
      readonly type: 'node-state'
      readonly kind: string
      readonly from: NodeState
      readonly to: NodeState
      readonly reason: string
    }
  | { readonly type: 'retry'; readonly attempt: number; readonly wakeAt: number; readonly error: string }
  | { readonly type: 'uncertain'; readonly tool: string; readonly reason: string }
  | { readonly type: 'late-result'; readonly reason: string }
  | { readonly type: 'budget'; readonly limit: string; readonly message: string }
  | { readonly type: 'definition-changed'; readonly agent: string; readonly from: string; readonly to: string }
  | {
      /**
       * Models now see a summary instead of turns, or the turns again. `failed`: the summary could not be made, and models see
       * the turns as before.
       */
      readonly type: 'compaction'
      readonly change: 'automatic' | 'by_hand' | 'undone' | 'failed'
      readonly summaryId: string
      readonly fromTurnId: string
      readonly toTurnId: string
      readonly turns: number
    }
  | {
      /**
       * The model of this run does not see the oldest rounds, because `contextTurns` or the `maxLength` of a chat cuts them.
       * Once per run.
       */
      readonly type: 'context-cut'
      /** Rounds that the model sees, this one included. */
      readonly shown: number
      /** Rounds that are left out and that no summary covers. */
      readonly leftOut: number
    }
  | { readonly type: 'graph-change'; readonly change: string; readonly detail: Json }
  /** A hook threw; the extension decides what follows. */
  | { readonly type: 'extension-error'; readonly extension: string; readonly hook: string; readonly message: string }
  | { readonly type: 'warning'; readonly message: string }

interface Delta {
  readonly text: string
  /** `text` is all text so far: only where a host forwards a child's events that way. */
  readonly cumulative?: true
}

export type LiveBody =
  | ({ readonly type: 'text-delta' } & Delta)
  | ({ readonly type: 'reasoning-delta' } & Delta)
  | ({ readonly type: 'tool-input-delta'; readonly callId: string; readonly tool: string } & Delta)
  | {
      /** A field of an answer is complete; only readers who ask for fields see the event. */
      readonly type: 'field'
      readonly field: string
      readonly value: unknown
      /** Where the value does not fit the schema; empty when it fits. */
      readonly issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[]
      readonly attempt: number
    }
  | { readonly type: 'progress'; readonly message: string; readonly data: Json }
  /** An event that an extension emits under a name of its own. */
  | { readonly type: 'extension'; readonly extension: string; readonly name: string; readonly data: Json }
  | { readonly type: 'reset'; readonly attempt: number }

/** A durable event as it is stored. */
export interface EventRow extends EventPlace {
  readonly body: EventBody
}

export type DurableEvent = EventPlace & EventBody
export type LiveEvent = EventPlace & LiveBody
export type RunEvent = DurableEvent | LiveEvent

/** Gives a stored event in the flat form that readers see. */
export function toEvent({ body, ...place }: EventRow): DurableEvent {
  return { ...place, ...body }
}

/** Which events of a child its host's readers see, and how. Only a view: the child behaves the same. */
export interface Forward {
  /** Null for all types. */
  readonly types: readonly RunEvent['type'][] | null
  /** True where each delta carries all text so far. */
  readonly cumulative: boolean
}

/** The key in a child's conversation that holds its `Forward`. Without it, all events are forwarded. */
const KEY = 'forward_events'

export function withForward(metadata: Conversation['metadata'], forward: Forward | null): Conversation['metadata'] {
  if (forward === null && !(KEY in metadata)) return metadata
  const { [KEY]: _, ...others } = metadata
  if (forward === null) return others
  return { ...metadata, [KEY]: { types: forward.types as Json, cumulative: forward.cumulative } }
}

export function forwardOf({ metadata }: Conversation): Forward | null {
  const value = metadata[KEY]
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  const { types, cumulative } = value
  return { types: Array.isArray(types) ? (types as Forward['types']) : null, cumulative: cumulative === true }
}

export function sameForward(a: Forward | null, b: Forward | null): boolean {
  if (a === b) return true
  if (a === null || b === null) return false
  return a.cumulative === b.cumulative && a.types?.join() === b.types?.join()
}
