import type { Json } from '../../base/json.ts'

/** One chunk of the AI SDK's UI message stream, as `useChat` of version 6 reads it. */
export type UiMessageChunk =
  | { type: 'start'; messageId: string; messageMetadata: UiMetadata }
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
  | UiDataPart
  | { type: 'message-metadata'; messageMetadata: UiMetadata }
  | { type: 'finish'; finishReason: 'stop' | 'length' | 'tool-calls'; messageMetadata: UiMetadata }
  | { type: 'abort'; reason: string }
  | { type: 'error'; errorText: string }

/** One chunk for version 7 of the AI SDK. Version 6 fails on those it does not know. */
export type UiMessageChunk7 =
  | UiMessageChunk
  /** Drops all parts of the step: the model was called again. */
  | { type: 'reset-step' }
  | { type: 'tool-approval-request'; approvalId: string; toolCallId: string; reason: string }
  | { type: 'tool-approval-response'; approvalId: string; approved: boolean; reason?: string }

/** Data parts: the newest replaces the one before it, by `id`. */
export type UiDataPart =
  /** The activity of a subagent; `id` is the child's run. */
  | { type: 'data-subagent'; id: string; data: UiSubagent }
  /** A call of a subagent; `id` is the node of the call. */
  | { type: 'data-subagent-call'; id: string; data: UiSubagentCall }
  | { type: 'data-approval'; id: string; data: UiApproval }
  | { type: 'data-question'; id: string; data: UiQuestion }
  /**
   * Withdraws text and reasoning of these parts, by how many places they stand before this part: the model was called again.
   */
  | { type: 'data-reset'; data: { back: number[] } }

/** The data parts by name, for `UIMessage<UiMetadata, UiDataParts>`. */
export type UiDataParts = {
  [Part in UiDataPart as Part['type'] extends `data-${infer Name}` ? Name : never]: Part['data']
}

export type UiSubagent = {
  agent: string
  path: string[]
  /** `running`, `waiting` for a person or its host, then the status of its end. */
  status: string
  /** The tool it calls now; null while its model answers. */
  tool: string | null
}

/** A call of a subagent, as its part shows it. */
export type UiSubagentCall = {
  /** The run that calls: the `id` of its `data-subagent` part. */
  runId: string
  path: string[]
  tool: string
  state: 'input-available' | 'approval-requested' | 'output-available' | 'output-error' | 'output-denied'
  input: Json
  /** The value that the tool returned; null before its end, and for a failure. */
  output: Json
  errorText: string | null
}

/** A request that waits for a person: `runtime.answer(nodeId, { allow, seen })` answers it. */
export type UiApproval = {
  nodeId: string
  /** A hash of the request: it goes with the answer. */
  seen: string
  /** Agent names from the root to the one that asks. */
  path: string[]
  /** `tool:deploy`, `agent:expert`, `file.write:/workspace/x`. */
  request: string
  /** Null for a model, and for a server to start. */
  tool: string | null
  input: Json
  reason: string
  expiresAt: number
  /** The part of this message that asks; null where a subagent does. */
  toolCallId: string | null
  /** `over`: the run ended before anybody answered. */
  status: 'open' | 'allowed' | 'denied' | 'over'
  /** Who answered, and why; null while nobody has, or without a reason. */
  by: string | null
  answer: string | null
}

/** A question: `runtime.answer(nodeId, { text, seen })` answers it. */
export type UiQuestion = {
  nodeId: string
  /** A hash of the question: it goes with the answer. */
  seen: string
  path: string[]
  text: string
  /** `host`: the host is asked first; a person may answer too. */
  to: 'host' | 'person' | 'outside'
  expiresAt: number
  /** The part of this message that asks; null where a subagent does. */
  toolCallId: string | null
  /** `over`: it ended before anybody answered. */
  status: 'open' | 'answered' | 'over'
  by: string | null
  answer: string | null
}

export type UiMetadata = {
  runId: string
  /** `queued`, `running`, or `waiting` for a person's word on a call of its own; then the status of the run's end. */
  status?: string
  /** Tokens of the run and everything below it so far. */
  inputTokens?: number
  outputTokens?: number
  /** The error of a run that did not complete. */
  error?: { code: string; message: string }
}

/** A call as a part of a message. */
export type UiToolPart = {
  type: `tool-${string}`
  toolCallId: string
  state:
    | 'input-streaming'
    | 'input-available'
    | 'approval-requested'
    | 'approval-responded'
    | 'output-available'
    | 'output-error'
    | 'output-denied'
  input?: Json
  output?: Json
  errorText?: string
  approval?: { id: string; approved?: boolean; reason?: string }
}

export type UiPart =
  | { type: 'step-start' }
  | { type: 'text'; text: string; state?: 'streaming' | 'done' }
  | { type: 'reasoning'; id: string; text: string; state: 'streaming' | 'done' }
  | { type: 'file'; url: string; mediaType: string }
  | UiToolPart
  | UiDataPart

/** A message as `useChat` keeps it: the shape of the AI SDK's `UIMessage`. */
export type UiMessage = {
  /** For an answer the id of its run; for an input the page's own id of it, or that of its node. */
  id: string
  role: 'user' | 'assistant'
  metadata?: UiMetadata
  parts: UiPart[]
}

/**
 * The attribute of a run that keeps the page's id of the message that started it: `run(agent, text, { attributes: {
 * [UI_MESSAGE_ID]: message.id } })`. `toUIMessages` then gives the message under that id.
 */
export const UI_MESSAGE_ID = 'uiMessageId'
