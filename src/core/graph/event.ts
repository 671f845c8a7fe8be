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
import type { Content, LiveState, ToolCall, Usage } from './content.ts'
import type { Told } from './kinds.ts'
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
  'call-settled',
  'late-result',
  'budget',
  'stalled',
  'compaction',
  'context-cut',
  'definition-changed',
  'graph-change',
  'extension-error',
  'warning',
  'run-change',
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
  'live',
] as const

export type DurableEventType = (typeof DURABLE_EVENTS)[number]

/** Where and when an event happened. */
export interface EventPlace {
  /** Its place in the order of the tree: a whole number for stored events, with a fraction for live ones. */
  readonly seq: number
  /** When it happened, in milliseconds since 1970. */
  readonly at: number
  /** The conversation it happened in. */
  readonly conversationId: string
  /** The run it happened in. */
  readonly runId: string
  /** The node it is about; null where it is about the run. */
  readonly nodeId: string | null
  /** Agent names from the root, root included. */
  readonly path: readonly string[]
  /** The run that delegated this one; null at the root. */
  readonly parentId: string | null
  /** Changes of its commit that no event reports; left out where there are none. */
  readonly told?: Told
}

export type EventBody =
  | {
      /** The run waits until an earlier one of its conversation has ended, or for a free place. */
      readonly type: 'run-queued'
    }
  | {
      /** The run begins. */
      readonly type: 'run-start'
      /** The name of the agent. */
      readonly agent: string
    }
  | {
      /** The run has ended. */
      readonly type: 'run-end'
      /** The status of its outcome. */
      readonly status: string
      /** How it ended, as `run.result` gives it. */
      readonly outcome: OutcomeRecord
    }
  | {
      /** A message is complete: an input, or an answer of the model. */
      readonly type: 'message'
      /** Who speaks. */
      readonly role: 'user' | 'developer' | 'agent'
      /** Why a model was called, where it was not to answer: a briefing, a summary, a wrap-up. */
      readonly purpose: Purpose | null
      /** The text, or blocks. */
      readonly content: Content
      /** How the node of the message ended. */
      readonly state: NodeState
      /** The tools that the answer calls. */
      readonly calls: readonly ToolCall[]
      /** The thoughts of the model, where they are not among the blocks of the content. */
      readonly reasoning?: string
      /** The streamed deltas that the message replaces: how many, how long, and their hash. */
      readonly streamed: { readonly chunks: number; readonly bytes: number; readonly sha256: string } | null
    }
  | {
      /** The model has called a tool; the call has not run yet. */
      readonly type: 'tool-call'
      /** The id, the name of the tool and the arguments. */
      readonly call: ToolCall
      /** Whether the call may run again after a crash. */
      readonly effect: Effect
      /** Whether the call starts a subagent. */
      readonly delegates: boolean
    }
  | {
      /** A call has ended, well or not: the model reads this next. */
      readonly type: 'tool-result'
      /** The id of the call. */
      readonly callId: string
      /** The name of the tool. */
      readonly tool: string
      /** How the node of the call ended. */
      readonly state: NodeState
      /** The words or blocks that the model reads. */
      readonly content: Content
      /** Whether the call failed or was refused. */
      readonly isError: boolean
      /** Set when the content is a value, written as JSON. */
      readonly json?: true
      /**
       * The part of the result that a program reads beside its text: of a delegation `unavailable` and `error` where the child gave no whole
       * answer, and `response_metadata`. Left out where there is nothing. `runtime.nodeInfo(nodeId)` also has what the child was told.
       */
      readonly metadata?: { readonly [key: string]: Json }
    }
  | {
      /** A subagent was started. */
      readonly type: 'delegation-start'
      /** The name of the subagent. */
      readonly agent: string
      /** The tool that started it. */
      readonly tool: string
      /** The conversation of the subagent. */
      readonly childConversationId: string
      /** The run of the subagent. */
      readonly childRunId: string
    }
  | {
      /** A subagent has ended. */
      readonly type: 'delegation-end'
      /** The name of the subagent. */
      readonly agent: string
      /** The tool that started it. */
      readonly tool: string
      /** The conversation of the subagent. */
      readonly childConversationId: string
      /** The run of the subagent. */
      readonly childRunId: string
      /** The status of its outcome. */
      readonly status: string
      /** The part of the result that a program will read beside its text: see `tool-result`. Left out if there is none. */
      readonly metadata?: { readonly [key: string]: Json }
    }
  | {
      /** A person must allow something before the node goes on: answer with `runtime.answer(nodeId, ...)`. */
      readonly type: 'approval-request'
      /** The call that waits; null when it is a model call, or the start of a server. */
      readonly call: ToolCall | null
      /** The request that a rule asks about, such as `tool:publish`. */
      readonly request: string
      /** The arguments it would be done with. */
      readonly input: Json
      /** The hash of request and input: `runtime.answer(nodeId, { seen })` answers this and nothing else. */
      readonly seen: string
      /** Why a person is asked. */
      readonly reason: string
      /** When it is denied if nobody answers, in milliseconds since 1970. */
      readonly expiresAt: number
    }
  | {
      /** A person has answered an approval, or its time has passed. */
      readonly type: 'approval-answer'
      /** Whether the request goes ahead. */
      readonly allowed: boolean
      /** Who answered. */
      readonly by: string
      /** The reason that was given. */
      readonly reason: string | null
      /** Whether it holds for the rest of the conversation. */
      readonly always: boolean
      /** Whether the arguments were changed. */
      readonly edited: boolean
      /** The edited arguments that a person allowed instead. */
      readonly input?: Json
    }
  | {
      /** The node waits for an answer of the host or of a person. */
      readonly type: 'question'
      /** Who is asked. `outside`: whoever executes the call of this node, which waits for the result. */
      readonly to: 'host' | 'person' | 'outside'
      /** The question. */
      readonly text: string
      /** The hash of the question: `runtime.answer(nodeId, { text, seen })` answers this and nothing else. */
      readonly seen: string
      /** When the node goes on without an answer, in milliseconds since 1970. */
      readonly expiresAt: number
    }
  | {
      /** A question was answered. */
      readonly type: 'answer'
      /** Who answered. */
      readonly by: string
      /** The answer. */
      readonly text: string
    }
  | {
      /** A child has been silent for too long; its host's readers see the event. */
      readonly type: 'stalled'
      /** The name of the child. */
      readonly agent: string
      /** The conversation of the child. */
      readonly childConversationId: string
      /** The run of the child. */
      readonly childRunId: string
      /** When it was last heard of, in milliseconds since 1970. */
      readonly lastActivityAt: number
    }
  | {
      /** A model call has ended and its tokens are counted. */
      readonly type: 'usage'
      /** The tokens of the call, and what they cost where the price is known. */
      readonly usage: Usage
      /** The model that was called. */
      readonly model: string
    }
  | {
      /** A node changed its state. */
      readonly type: 'node-state'
      /** The kind of the node. */
      readonly kind: string
      /** Its state before. */
      readonly from: NodeState
      /** Its state now. */
      readonly to: NodeState
      /** Why. */
      readonly reason: string
    }
  | {
      /** A model call or a delegation failed in a way that may pass, and will be tried again. */
      readonly type: 'retry'
      /** The number of the next try. */
      readonly attempt: number
      /** When it begins, in milliseconds since 1970. */
      readonly wakeAt: number
      /** How the last try failed. */
      readonly error: string
    }
  | {
      /** The process of an effect was lost: the effect may have happened, and is not repeated. */
      readonly type: 'uncertain'
      /** The tool. */
      readonly tool: string
      /** Why it cannot be known. */
      readonly reason: string
    }
  | {
      /** A person has said what became of a call that is uncertain. */
      readonly type: 'call-settled'
      /** The tool. */
      readonly tool: string
      /** The person's word. `left`: nobody will find out. */
      readonly how: 'happened' | 'not_happened' | 'left'
      /** Who said so. */
      readonly by: string
      /** The result that models read from now on; null where the person left it. */
      readonly content: Content | null
      /** The run that goes on from there; null where nothing was started. */
      readonly nextRunId: string | null
    }
  | {
      /** A node that had been given up ended after all. Its result is not used. */
      readonly type: 'late-result'
      /** Why it had been given up. */
      readonly reason: string
    }
  | {
      /**
       * A model call would go beyond a limit of tokens or dollars: it becomes the last call of its run, which sums up, or it is
       * not made. Or the limit of `children` or of `depth` refused a delegation. The outcome names other limits.
       */
      readonly type: 'budget'
      /** The limit, by its name in the budget. */
      readonly limit: string
      /** The limit in words. */
      readonly message: string
    }
  | {
      /**
       * The run continues with a definition of its agent that has changed since it began; or code that runs again uses a child
       * that has ended, although the definition of the child's agent has changed since.
       */
      readonly type: 'definition-changed'
      /** The name of the agent. */
      readonly agent: string
      /** The hash of the definition before. */
      readonly from: string
      /** The hash of the definition now. */
      readonly to: string
    }
  | {
      /**
       * Models now see a summary instead of turns, or the turns again. `failed`: the summary could not be made, and models see
       * the turns as before.
       */
      readonly type: 'compaction'
      /** Who asked for it, or what became of it. */
      readonly change: 'automatic' | 'by_hand' | 'undone' | 'failed'
      /** The node of the summary. */
      readonly summaryId: string
      /** The first turn it stands for. */
      readonly fromRunId: string
      /** The last turn it stands for. */
      readonly toRunId: string
      /** How many turns it stands for. */
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
  | {
      /** History was changed: a retry, an edit, a fork, a merge, or nodes put in by hand. */
      readonly type: 'graph-change'
      /** The kind of change. */
      readonly change: string
      /** The ids it is about. */
      readonly detail: Json
    }
  | {
      /** A hook threw. Its extension decides what follows, by `onError`. */
      readonly type: 'extension-error'
      /** The name of the extension. */
      readonly extension: string
      /** The name of the hook. */
      readonly hook: string
      /** The error in words. */
      readonly message: string
    }
  | {
      /** Something that you should know, and that stops nothing. */
      readonly type: 'warning'
      /** It in words. */
      readonly message: string
    }
  | {
      /** The state of the run changed, and no other event says how: see `told`. */
      readonly type: 'run-change'
    }

interface Delta {
  /** The piece that is new. */
  readonly text: string
  /** `text` is all text so far: only where a host forwards a child's events that way. */
  readonly cumulative?: true
}

export type LiveBody =
  | ({
      /** A piece of the model's answer. */
      readonly type: 'text-delta'
    } & Delta)
  | ({
      /** A piece of the model's thoughts. */
      readonly type: 'reasoning-delta'
    } & Delta)
  | ({
      /** A piece of the arguments of a call that the model is writing. */
      readonly type: 'tool-input-delta'
      /** The id of the call. */
      readonly callId: string
      /** The name of the tool. */
      readonly tool: string
    } & Delta)
  | {
      /** A field of an answer is complete; only readers who ask for fields see the event. */
      readonly type: 'field'
      /** The path of the field, such as `tasks[0].title`. */
      readonly field: string
      /** Its value. */
      readonly value: unknown
      /** The objections of the schema: empty when it fits. */
      readonly issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[]
      /** The try of the model call, from 1. */
      readonly attempt: number
    }
  | {
      /** A tool reports how far it is: `context.progress(message, data)`. */
      readonly type: 'progress'
      /** The words of the tool. */
      readonly message: string
      /** The data of the tool. */
      readonly data: Json
    }
  | {
      /** An extension emits something of its own. */
      readonly type: 'extension'
      /** The name of the extension. */
      readonly extension: string
      /** The name it gave to the event. */
      readonly name: string
      /** Its data. */
      readonly data: Json
    }
  | {
      /** The model is asked again: forget the deltas of this node. */
      readonly type: 'reset'
      /** The number of the new try. */
      readonly attempt: number
    }
  | ({
      /**
       * All that a node has streamed so far: it replaces the deltas of this node that you have. Only readers with `live: true` see
       * the event, once per streaming node, when they have caught up.
       */
      readonly type: 'live'
    } & LiveState)

/** A durable event as it is stored. */
export interface EventRow extends EventPlace {
  /** Its type, with the fields of the type. */
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
