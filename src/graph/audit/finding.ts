import type { Id } from '../rows.ts'

export type Severity = 'error' | 'warning'

/** What an audit looks for: how bad it is, and whether `repair` can mend it without losing anything. */
export const FINDINGS = {
  // nodes
  unknown_kind: ['warning', false],
  open_but_not_executable: ['error', false],
  wrong_end_time: ['error', true],
  running_without_claim: ['error', true],
  leftover_claim: ['error', true],
  lost_claim: ['error', true],
  wrong_blockers: ['error', true],
  never_runs: ['error', true],
  open_in_ended_turn: ['error', true],
  missing_task: ['error', false],
  missing_body: ['error', false],
  two_active_versions: ['error', false],
  waits_for_nothing: ['error', false],
  // edges
  cycle: ['error', false],
  dangling_edge: ['error', false],
  edge_across_conversations: ['error', false],
  // turns
  wrong_outcome: ['error', false],
  wrong_answer: ['error', false],
  nothing_open: ['error', true],
  wrong_account: ['error', true],
  wrong_lane: ['error', true],
  two_running: ['error', false],
  turn_order: ['error', false],
  wrong_turn_count: ['error', true],
  node_order: ['error', false],
  wrong_node_count: ['error', true],
  wrong_pause: ['error', true],
  leftover_hold: ['error', true],
  // delegations and conversations
  dangling_child: ['error', false],
  dangling_task: ['error', false],
  orphan_child: ['error', false],
  two_children: ['error', false],
  wrong_link_outcome: ['error', false],
  waits_for_ended: ['error', true],
  undelivered: ['error', true],
  child_of_ended_parent: ['error', true],
  wrong_parentage: ['error', false],
  wrong_places: ['error', false],
  held_back: ['error', false],
  wrong_background: ['error', true],
  // streams and events
  leftover_block: ['warning', true],
  event_gap: ['error', false],
  unpaired_event: ['error', false],
  // what is stored, against the record of what was committed
  altered_row: ['error', false],
  missing_row: ['error', false],
  unknown_row: ['error', false],
  altered_body: ['error', false],
  altered_index: ['error', false],
  broken_chain: ['error', false],
  unreadable: ['error', false],
} as const satisfies { readonly [type: string]: readonly [Severity, boolean] }

export type FindingType = keyof typeof FINDINGS

export type Subject = 'conversation' | 'turn' | 'node' | 'link' | 'edge' | 'block' | 'body' | 'commit' | 'store'

/** One thing that is wrong. */
export interface Finding {
  readonly type: FindingType
  readonly severity: Severity
  /** What is wrong, in words. */
  readonly message: string
  readonly subject: Subject
  /** The id of the subject; of an edge `from -> to`. */
  readonly id: string
  readonly rootId: Id | null
  readonly conversationId: Id | null
  /** Can `repair` mend it? */
  readonly repairable: boolean
}

export interface Place {
  readonly subject: Subject
  readonly id: string
  readonly rootId: Id | null
  readonly conversationId: Id | null
}

export function finding(type: FindingType, { subject, id, rootId, conversationId }: Place, message: string): Finding {
  const [severity, repairable] = FINDINGS[type]
  return { type, severity, message, subject, id, rootId, conversationId, repairable }
}

export const FINDING_TYPES: readonly FindingType[] = Object.keys(FINDINGS) as FindingType[]
