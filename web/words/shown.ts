// Which of the nine states a run or a node is shown in, and how it ended, in words.

import type { TreeNode } from 'legate/client'
import type { InboxItem, OutcomeRecord, RunInfo, RunTree, Status, WaitingOn } from '../data/types.ts'

export const SHOWN = {
  needs: 'Needs you',
  working: 'Working',
  waiting: 'Waiting',
  done: 'Done',
  failed: 'Failed',
  uncertain: 'Uncertain',
  cancelled: 'Cancelled',
  queued: 'Queued',
  stalled: 'No worker',
} as const

export type Shown = keyof typeof SHOWN

export function shownStatus(status: Status): Shown {
  if (status === 'completed') return 'done'
  if (status === 'cancelled' || status === 'denied') return 'cancelled'
  return status === 'uncertain' ? 'uncertain' : 'failed'
}

export function shownRun(run: RunTree): Shown {
  if (run.state === 'ended') return run.outcome === null ? 'done' : shownStatus(run.outcome.status)
  if (run.state === 'queued') return 'queued'
  return run.waitingOn.length === 0 ? 'working' : shownWaits(run.waitingOn)
}

/** A run in a list. Its waits are those of everything below it. */
export function shownInfo({ state, status, waitingOn }: RunInfo): Shown {
  if (status !== null) return shownStatus(status)
  if (state === 'queued') return 'queued'
  return waitingOn.length === 0 ? 'working' : shownWaits(waitingOn)
}

function shownWaits(waits: readonly Pick<WaitingOn, 'on'>[]): Shown {
  if (waits.some(({ on }) => on === 'approval' || on === 'question')) return 'needs'
  return waits.every(({ on }) => on === 'claim') ? 'queued' : 'waiting'
}

/** A run with all that it delegated: what needs a person comes first, then what works. */
export function shownDeep(run: RunTree): Shown {
  const own = shownRun(run)
  if (run.state === 'ended' || own === 'needs') return own
  const below = run.children.map(shownDeep)
  if (below.includes('needs')) return 'needs'
  return own === 'working' || below.includes('working') ? 'working' : own
}

/** The turn that a page is about: the newest one that is not queued behind another. */
export function turnShown(runs: readonly RunTree[]): RunTree | undefined {
  return runs.findLast(({ state }) => state !== 'queued') ?? runs[0]
}

/** How many turns come after the one that is shown. */
export function queuedAfter(runs: readonly RunTree[]): number {
  const shown = turnShown(runs)
  return shown === undefined ? 0 : runs.length - 1 - runs.indexOf(shown)
}

export function shownNode({ state, waits, isError }: TreeNode): Shown {
  if (state === 'running') return 'working'
  if (state === 'waiting') return waits === null ? 'waiting' : shownWaits([waits])
  if (state === 'finished') return isError ? 'failed' : 'done'
  if (state === 'errored') return 'failed'
  return state === 'uncertain' ? 'uncertain' : 'cancelled'
}

/** Since when a node has run: the wait for a person's yes is not its own time. */
export function ranSince({ state, startedAt, asked }: TreeNode): number {
  const answer = asked.findLast((one) => one.answer?.allowed != null)?.answer
  return state === 'waiting' ? startedAt : (answer?.at ?? startedAt)
}

export function shownItem({ type }: InboxItem): Shown {
  if (type === 'approval' || type === 'question') return 'needs'
  if (type === 'uncertain' || type === 'failed') return type
  return 'stalled'
}

const ENDS: Readonly<Record<Status, string>> = {
  completed: 'Done',
  max_turns: 'Too many steps',
  over_budget: 'Over budget',
  timed_out: 'Out of time',
  cancelled: 'Cancelled',
  failed: 'Failed',
  uncertain: 'Uncertain',
  invalid_output: 'The answer did not fit',
  invalid_input: 'The input did not fit',
  unavailable: 'Not available',
  denied: 'Not allowed',
}

/** How a run ended, without its code. */
export function statusWords(status: Status): string {
  return ENDS[status]
}

/** `Over budget: the limit of 400 model calls is reached.` */
export function outcomeWords({ status, error }: Pick<OutcomeRecord, 'status' | 'error'>): string {
  const words = statusWords(status)
  return error === null ? words : `${words}: ${error.message}`
}
