// Runs as tasks of the extension `io.modelcontextprotocol/tasks`. A task is a run: nothing is kept beside the rows.

import type { RunTree } from '../../../../doors/rows.ts'
import type { Id, RunOutcome } from '../../../../index.ts'
import { type AnswerShape, resultOf } from './content.ts'

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
export function endedTask(run: TaskRun, outcome: RunOutcome, shape: AnswerShape): object {
  const fields = taskFields(run.runId, run.startedAt ?? timeOf(run.runId), run.endedAt ?? timeOf(run.runId))
  const { status, error } = outcome
  if (status === 'cancelled') return { status: 'cancelled', ...fields, statusMessage: error?.message ?? 'Cancelled.' }
  const fault = error === null ? undefined : faultText(error)
  if (fault !== undefined) return { status: 'failed', ...fields, error: { code: INTERNAL, message: fault } }
  return { status: 'completed', ...fields, result: resultOf(outcome, shape) }
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
