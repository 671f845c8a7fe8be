// The metadata of a delegation that follow from its other columns. Stores leave them out of their texts, and make them again.

import type { Json } from '../../base/json.ts'
import type { Outcome } from '../../graph/outcome.ts'
import type { Id, NodeOutput } from '../../graph/rows.ts'

/** The end of a delegation in the metadata of its result, for code. The words are in the content. */
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

/** How the metadata and the output of a delegating task name its child. */
export function subagentOf(childId: Id): NonNullable<NodeOutput['subagent']> {
  return { child_conversation_id: childId, child_graph_id: childId }
}

/** The origin of a child in the metadata of its conversation. */
export function originOf(name: string, hostId: Id | null, taskId: Id): { readonly [key: string]: Json } {
  return { name, parent_conversation_id: hostId, parent_graph_id: hostId, spawned_from_node_id: taskId }
}
