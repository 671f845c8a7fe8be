import type { Node, NodeState } from './rows.ts'

const OPEN: ReadonlySet<NodeState> = new Set(['pending', 'awaiting_approval', 'running', 'waiting'])

/** The legal ways from one state to another. What is not here is refused. */
const TRANSITIONS: Readonly<Record<NodeState, readonly NodeState[]>> = {
  awaiting_approval: ['pending', 'rejected', 'stopped', 'skipped'],
  pending: ['running', 'skipped', 'stopped'],
  running: ['finished', 'errored', 'rejected', 'stopped', 'uncertain', 'waiting', 'pending', 'awaiting_approval'],
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

/** Could it be claimed at this moment? */
export function isRunnable(node: Node, now: number): boolean {
  return node.state === 'pending' && node.blockers === 0 && (node.wakeAt === null || node.wakeAt <= now)
}

export function mayBecome(from: NodeState, to: NodeState): boolean {
  return TRANSITIONS[from].includes(to)
}
