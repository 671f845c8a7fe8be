// Writes outcomes of runs as results of MCP, and runs as tasks of the extension `io.modelcontextprotocol/tasks`. Pure functions.
//
// Must stay true: a task is a run, and nothing is kept beside the rows. A run that did not complete is an error that says what to do, never a result that looks like an answer.

import type { Block, RunTree } from '../../../doors/rows.ts'
import type { Content, Id, Json, RunOutcome, Usage } from '../../../index.ts'

/** A piece of a result, as MCP writes it. */
export type McpContent =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image' | 'audio'; readonly data: string; readonly mimeType: string }
  | { readonly type: 'resource'; readonly resource: { readonly uri: string; readonly mimeType: string } & Payload }

type Payload = { readonly text: string } | { readonly blob: string }

/** A result of `tools/call`. */
export interface McpResult {
  readonly content: readonly McpContent[]
  readonly structuredContent?: Json
  readonly isError?: boolean
  readonly _meta?: { readonly [key: string]: Json }
}

/** How the answers of an agent are shown. */
export interface AnswerShape {
  /** `object`: its output is the structured content. `value`: under `output`. `none`: it answers with words. */
  readonly output: 'object' | 'value' | 'none'
  /** True: the structured content of an answer in words names the session, so that the model of a client can go on in it. */
  readonly namesSession: boolean
}

/** The result of a run that has ended. */
export function outcomeResult(outcome: RunOutcome, shape: AnswerShape): McpResult {
  const { runId, conversationId, status, usage } = outcome
  const _meta = metaOf({ runId, conversationId, status, usage })
  if (status !== 'completed') return { content: [textContent(failureText(outcome))], isError: true, _meta }
  const content = contentOf(outcome.content, outcome.answerNodeId ?? runId)
  if (shape.output === 'none') {
    const answer = shape.namesSession ? textIn(content) : undefined
    return answer === undefined
      ? { content, _meta }
      : { content, structuredContent: { answer, session_id: conversationId }, _meta }
  }
  const output = outcome.output as Json
  return { content, structuredContent: shape.output === 'object' ? output : { output }, _meta }
}

/** The result of a call whose run goes on without it. */
export function runningResult(run: RunPlace, why: string, shape: AnswerShape): McpResult {
  const text = [
    `The run goes on; its answer is not there yet. ${why}`.trim(),
    `run_id: ${run.runId}`,
    'Wait for it with run_wait, look at it with run_get, or stop it with run_cancel.',
  ].join('\n')
  // A client that knows an output schema takes a result without a value only as an error.
  const isError = shape.output === 'none' ? {} : { isError: true }
  return { content: [textContent(text)], ...isError, _meta: metaOf({ ...run, status: 'running', usage: null }) }
}

interface RunPlace {
  readonly runId: Id
  readonly conversationId: Id
}

function metaOf(run: RunPlace & { readonly status: string; readonly usage: Usage | null }): { [key: string]: Json } {
  const { usage, ...place } = run
  return { 'legate/run': { ...place, ...(usage === null ? {} : { usage: { ...usage } }) } }
}

/** Says how a run ended that did not complete, what can be done, and what there is of its answer. */
function failureText({ status, error, advice, text }: RunOutcome): string {
  const why = error === null ? '' : `: ${error.message}`
  const parts = [`The run ended ${status}${why}`, advice ?? '', text === '' ? '' : `What it had said so far:\n${text}`]
  return parts.filter((part) => part !== '').join('\n\n')
}

/** The words of an answer; undefined where it has more than words, which a client that reads a value would not show. */
function textIn(content: readonly McpContent[]): string | undefined {
  const texts = content.flatMap((piece) => (piece.type === 'text' ? [piece.text] : []))
  return texts.length === content.length ? texts.join('\n') : undefined
}

export function textContent(text: string): McpContent {
  return { type: 'text', text }
}

/** The pieces of an answer. Thoughts of the model stay here. */
function contentOf(content: Content, nodeId: Id): McpContent[] {
  if (typeof content === 'string') return [textContent(content)]
  return content.flatMap((block) => blockContent(block, nodeId))
}

function blockContent(block: Block, nodeId: Id): McpContent[] {
  if (block.type === 'reasoning') return []
  if (block.type === 'text') return [textContent(block.text)]
  if (block.type === 'json') return [textContent(JSON.stringify(block.value))]
  const { type, mediaType: mimeType, data } = block
  if (/^https?:/i.test(data)) return [textContent(data)]
  if (type === 'image' || type === 'audio') return [{ type, data, mimeType }]
  return [{ type: 'resource', resource: { uri: `legate://results/${nodeId}`, mimeType, blob: data } }]
}

const POLL_MS = 1_000
const INTERNAL = -32_603

/** The parts of a task that every state has. */
function taskFields(runId: Id, startedAt: number, changedAt: number): object {
  return {
    taskId: runId,
    createdAt: new Date(startedAt).toISOString(),
    lastUpdatedAt: new Date(changedAt).toISOString(),
    // It stays until the store's retention deletes it.
    ttlMs: null,
    pollIntervalMs: POLL_MS,
  }
}

/** The answer to a call whose run goes on as a task. The run is recorded already. */
export function newTask(runId: Id): object {
  const now = timeOf(runId)
  return { resultType: 'task', status: 'working', ...taskFields(runId, now, now) }
}

/** A run that goes on: at work, or waiting for the caller's word. */
export function openTask(run: TaskRun, requests: Readonly<Record<string, object>>, message: string): object {
  const isAsking = Object.keys(requests).length > 0
  const said = message === '' ? {} : { statusMessage: message }
  const begun = run.startedAt ?? timeOf(run.runId)
  const fields = { ...taskFields(run.runId, begun, begun), ...said }
  return isAsking ? { status: 'input_required', ...fields, inputRequests: requests } : { status: 'working', ...fields }
}

/**
 * A run that has ended. Where the server or its model could not do the work, the task failed; whatever the agent itself came to
 * is a result.
 */
export function endedMcpTask(run: TaskRun, outcome: RunOutcome, shape: AnswerShape): object {
  const fields = taskFields(run.runId, run.startedAt ?? timeOf(run.runId), run.endedAt ?? timeOf(run.runId))
  const { status, error } = outcome
  if (status === 'cancelled') return { status: 'cancelled', ...fields, statusMessage: error?.message ?? 'Cancelled.' }
  const fault = error === null ? undefined : faultText(error)
  if (fault !== undefined) return { status: 'failed', ...fields, error: { code: INTERNAL, message: fault } }
  return { status: 'completed', ...fields, result: outcomeResult(outcome, shape) }
}

type TaskRun = Pick<RunTree, 'runId' | 'startedAt' | 'endedAt'>

/** Undefined where it was no fault of the server. Of faults inside of it nothing is told. */
function faultText({ code, message }: NonNullable<RunOutcome['error']>): string | undefined {
  if (code === 'model' || code === 'model_refused') return message
  return INSIDE.has(code) ? 'The run failed inside the server.' : undefined
}

/** Codes of errors that callers are not told of. */
export const INSIDE: ReadonlySet<string> = new Set(['internal', 'tampered', 'store', 'store_full', 'store_busy'])

/** When an id was made: ids begin with the time. */
function timeOf(id: Id): number {
  return Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)
}
