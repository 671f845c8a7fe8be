import type { NodeState } from './rows.ts'

const OPEN: ReadonlySet<NodeState> = new Set(['pending', 'awaiting_approval', 'running', 'waiting'])

/** The legal ways from one state to another. What is not here is refused. */
const TRANSITIONS: Readonly<Record<NodeState, readonly NodeState[]>> = {
  awaiting_approval: ['pending', 'rejected', 'stopped', 'skipped'],
  pending: ['running', 'skipped', 'stopped'],
  running: ['finished', 'errored', 'rejected', 'stopped', 'uncertain', 'waiting', 'pending'],
  waiting: ['finished', 'errored', 'rejected', 'stopped', 'uncertain', 'pending'],
  finished: [],
  errored: [],
  rejected: [],
  skipped: [],
  stopped: [],
  uncertain: [],
}

export function isOpen(state: NodeState): boolean {
  return OPEN.has(state)
}

export function mayBecome(from: NodeState, to: NodeState): boolean {
  return TRANSITIONS[from].includes(to)
}
