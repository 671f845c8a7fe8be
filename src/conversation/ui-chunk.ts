import type { Json } from '../base/json.ts'

/** One chunk of the AI SDK's UI message stream, as `useChat` reads it. */
export type UiMessageChunk =
  | { type: 'start'; messageId: string; messageMetadata: { runId: string } }
  | { type: 'start-step' | 'finish-step' }
  | { type: 'text-start' | 'text-end' | 'reasoning-start' | 'reasoning-end'; id: string }
  | { type: 'text-delta' | 'reasoning-delta'; id: string; delta: string }
  | { type: 'file'; url: string; mediaType: string }
  | { type: 'tool-input-start'; toolCallId: string; toolName: string }
  | { type: 'tool-input-delta'; toolCallId: string; inputTextDelta: string }
  | { type: 'tool-input-available'; toolCallId: string; toolName: string; input: Json }
  | { type: 'tool-approval-request'; approvalId: string; toolCallId: string }
  | { type: 'tool-output-available'; toolCallId: string; output: Json }
  | { type: 'tool-output-error'; toolCallId: string; errorText: string }
  | { type: 'tool-output-denied'; toolCallId: string }
  /** What a subagent is doing: the newest replaces the one before it, by `id`, the child's run. */
  | { type: 'data-subagent'; id: string; data: UiSubagent }
  /** Text and reasoning of these parts was taken back: the call was made again. */
  | { type: 'data-reset'; data: { parts: string[] } }
  | { type: 'finish'; finishReason: 'stop' | 'length' | 'other'; messageMetadata: UiEnd }
  | { type: 'abort'; reason: string }
  | { type: 'error'; errorText: string }

export type UiSubagent = {
  agent: string
  path: string[]
  /** `running`, then how it ended. */
  status: string
  /** The tool it calls now; null while its model answers. */
  tool: string | null
}

export type UiEnd = { runId: string; status: string; inputTokens: number; outputTokens: number }
