import type { Body, Edge, Id } from '../graph/rows.ts'
import type { ChainRecord, RowLetter } from './commit-chain.ts'

/** A row as it is stored. */
export interface WrittenRow {
  readonly letter: RowLetter
  readonly id: Id
  /** The turn of a node or link. */
  readonly turnId: Id | null
  readonly text: string
}

/** All there is of a tree: what one store gives away and another takes. */
export interface WholeTree {
  readonly rootId: Id
  /** Conversations, turns, nodes, links, in this order. */
  readonly rows: readonly WrittenRow[]
  readonly edges: readonly Edge[]
  readonly bodies: readonly Body[]
  readonly records: readonly ChainRecord[]
}

/** What is left of a tree that was deleted. */
export interface Tombstone {
  readonly rootId: Id
  /** Of its last commit: the record of the tree, wherever it is kept, ends in it. */
  readonly hash: string
  readonly seq: number
  readonly agent: string
  /** When it was deleted. */
  readonly at: number
  /** Why it was deleted: `maximum`, `ttl`, or what somebody said who did it by hand. */
  readonly reason: string
  /** Its conversations, each with the one it was a child of, and with its runs. */
  readonly conversations: readonly { readonly id: Id; readonly parentId: Id | null; readonly runs: readonly Id[] }[]
}

/** How a tree is deleted. */
export interface Removal {
  readonly at: number
  readonly reason: string
  /** Only while this is the last of its events: whoever chose it has looked at it then. */
  readonly seq?: number
  /** Gives the tombstone and leaves the tree. */
  readonly dryRun?: boolean
  /** A tree that is not what its commits wrote goes too, whatever is open in it. */
  readonly evenTampered?: boolean
}

export interface Verified {
  readonly findings: readonly Finding[]
  readonly rows: number
  readonly commits: number
}

/** Whole trees, and the proof that they are what was written. */
export interface Archive {
  /** Undefined when there is no such tree. */
  read(rootId: Id): WholeTree | undefined | Promise<WholeTree | undefined>
  /** Holds what is stored against the record of what was committed: of one tree, or of all. */
  verify(rootId?: Id): Verified | Promise<Verified>
  /**
   * Takes a tree that another store gave away. Throws ConflictError when a row of it is there already. Of what was deleted
   * here it takes the tree whose last commit has the hash of the tombstone, which goes; any other is refused.
   */
  restore(tree: WholeTree): void | Promise<void>
  /**
   * Deletes a tree whole, or nothing of it, and leaves its tombstone. Undefined when there is no such tree, or it has gone
   * on after `seq`. Throws ConflictError while a turn of it is open: see `evenTampered`.
   */
  remove(rootId: Id, removal: Removal): Tombstone | undefined | Promise<Tombstone | undefined>
  /** The one that was made first in front. */
  tombstones(): readonly Tombstone[]
  /** The newest that names this conversation or run. */
  tombstone(id: Id): Tombstone | undefined
  /** Gives the room of what was deleted back to the system, where that is cheap. What it leaves is used again. */
  compact?(): void | Promise<void>
}

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

/** As if it were new: stores take new rows at version 1 only. */
export function asNew<Row extends { readonly version: number }>(row: Row): Row {
  return row.version === 1 ? row : { ...row, version: 1 }
}
