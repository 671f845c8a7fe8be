// Outcomes: the one named result with which every run ends.
//
// Owns:      the list of statuses, the record in a turn's row, the outcome with its text as callers get it, and what the rows of a
//            delegation say of one another.
// Called by: `conclude` makes the record when a turn ends; conversation, delegation and cli read outcomes.
// Must stay true:
//   - Every run ends in exactly one outcome, written once in the commit that ends its turn (I6).
//   - The record names the node of the answer and does not copy its text.
//   - A completed run has an answer: an empty success is impossible (I6).

import type { Json } from '../base/json.ts'
import { type Content, textOf, type Usage } from './content.ts'

export const STATUSES = [
  'completed',
  'max_turns',
  'over_budget',
  'timed_out',
  'cancelled',
  'failed',
  'uncertain',
  'invalid_output',
  'invalid_input',
  'unavailable',
  'denied',
] as const

export type Status = (typeof STATUSES)[number]

/** How a run ended, as its turn's row keeps it: written once (I6). The text stays in the node that wrote it. */
export interface OutcomeRecord {
  readonly status: Status
  readonly runId: string
  readonly conversationId: string
  /** The node whose text is the answer, or the partial work of a run that ended early. */
  readonly answerNodeId: string | null
  /** Why it did not complete; null when it did. */
  readonly error: { readonly code: string; readonly message: string } | null
  /** The usage of the run and all its children. */
  readonly usage: Usage
  readonly modelCalls: number
  readonly toolCalls: number
  readonly children: number
  readonly durationMs: number
  /** True where another try of the same call may end better. */
  readonly retryable: boolean
  /** Advice for the reader; null when there is nothing to do. */
  readonly advice: string | null
  /** Nodes whose effect may or may not have happened: those that no person had settled when the run ended. */
  readonly uncertain: readonly string[]
  /** Runs that it started in the background and that had not ended when it ended. */
  readonly open: readonly string[]
  /** Extensions and servers it had to do without; none of them was required. */
  readonly absent: readonly AbsentSource[]
  /** The tasks that items of its plan started (`eager`), in the order of the items. */
  readonly delegations: readonly EagerTask[]
}

/** Something that gives tools and could not be started, and why. */
export interface AbsentSource {
  readonly name: string
  readonly reason: string
}

/** A task that an item of a plan started, and the place of the item. */
export interface EagerTask {
  readonly taskId: string
  readonly field: string
}

/** How a run ended, with everything about it. */
export interface Outcome extends Omit<OutcomeRecord, 'delegations'> {
  /** The answer, or the part of it that existed when the run ended early. */
  readonly text: string
  readonly content: Content
  /** The value, checked against the agent's `output`; null where the agent has no `output` or the run did not complete. */
  readonly output: Json
  /** Values that extensions added beside the answer, by their own keys. */
  readonly extra: { readonly [key: string]: Json }
  /** How the children ended that items of the answer started (`eager`), in the order of the items. */
  readonly delegations: readonly EagerOutcome[]
}

export interface EagerOutcome extends Outcome {
  /** The place of its item in the answer: `tasks[0]`. */
  readonly field: string
}

const NO_DELEGATIONS: readonly EagerOutcome[] = []
const NOTHING: Outcome['extra'] = Object.freeze({})

/** Joins the record with the text of the node it names. */
export function withWords(
  record: OutcomeRecord,
  said: { readonly content?: Content; readonly value?: Json; readonly extra?: Outcome['extra'] },
): Outcome {
  const content = said.content ?? ''
  const output = record.status === 'completed' ? (said.value ?? null) : null
  return {
    status: record.status,
    runId: record.runId,
    conversationId: record.conversationId,
    answerNodeId: record.answerNodeId,
    text: textOf(content),
    content,
    output,
    extra: said.extra ?? NOTHING,
    error: record.error,
    usage: record.usage,
    modelCalls: record.modelCalls,
    toolCalls: record.toolCalls,
    children: record.children,
    durationMs: record.durationMs,
    retryable: record.retryable,
    advice: record.advice,
    uncertain: record.uncertain,
    open: record.open,
    absent: record.absent,
    delegations: NO_DELEGATIONS,
  }
}

export function absenceText({ name, reason }: AbsentSource): string {
  return `The tools of "${name}" are not available: ${reason}`
}

export function isStatus(text: string): text is Status {
  return (STATUSES as readonly string[]).includes(text)
}

/** How a run ended. After `status === 'completed'`, `output` has the type of the agent's output schema; else it is null. */
export type RunOutcome<Out = unknown> = CompletedOutcome<Out> | UnfinishedOutcome

/** The outcome of a run that completed. */
export interface CompletedOutcome<Out = unknown> extends Omit<Outcome, 'output' | 'status' | 'error'> {
  readonly status: 'completed'
  readonly output: Out
  readonly error: null
}

/** The outcome of a run that did not complete. */
export interface UnfinishedOutcome extends Omit<Outcome, 'output' | 'status' | 'error'> {
  readonly status: Exclude<Status, 'completed'>
  readonly output: null
  /** Why it did not complete. */
  readonly error: { readonly code: string; readonly message: string }
}

/** The origin of a child, as its conversation names it. Stores leave the origin out of their texts. */
export function originOf(name: string, hostId: string | null, taskId: string): { readonly [key: string]: Json } {
  return { name, parent_conversation_id: hostId, parent_graph_id: hostId, spawned_from_node_id: taskId }
}

/** How the metadata and the output of a delegating task name its child. Stores leave it out of their texts. */
export function subagentOf(childId: string): {
  readonly child_conversation_id: string
  readonly child_graph_id: string
} {
  return { child_conversation_id: childId, child_graph_id: childId }
}

/**
 * The end of a delegation in the metadata of its result, for code; the words are in the content. Stores leave out of their texts
 * what every success says.
 */
export function endSummary({
  status,
  runId,
  conversationId,
  error,
  usage,
  durationMs,
  modelCalls,
  retryable,
  advice,
  absent,
}: Pick<
  Outcome,
  | 'status'
  | 'runId'
  | 'conversationId'
  | 'error'
  | 'usage'
  | 'durationMs'
  | 'modelCalls'
  | 'retryable'
  | 'advice'
  | 'absent'
>): { readonly [key: string]: Json } {
  return {
    status,
    run_id: runId,
    conversation_id: conversationId,
    error: error === null ? null : { code: error.code, message: error.message },
    usage: {
      inputTokens: usage.inputTokens,
      outputTokens: usage.outputTokens,
      cacheReadTokens: usage.cacheReadTokens,
      cacheWriteTokens: usage.cacheWriteTokens,
    },
    duration_ms: durationMs,
    turns: modelCalls,
    retryable,
    advice,
    ...(absent.length === 0 ? {} : { absent: absent.map(({ name, reason }) => ({ name, reason })) }),
  }
}
