// Whole trees: how stores export, import, verify and delete them, and the defects that an audit reports.
//
// Owns:      the `Archive` part of the store port, tombstones, and the list of finding types with their severity.
// Called by: `audit` (export, import, forget, prune, audit) uses an archive; the stores implement it.
// Must stay true:
//   - A tree moves and goes whole. Its hashes move with it, so a later change shows wherever it is kept.
//   - A deleted tree leaves a tombstone with its last hash; only that very tree may come back under its id.
//   - A finding is `repairable` only where a repair loses nothing.

import type { StoreError } from '../base/error.ts'
import type { Later } from '../base/maybe.ts'
import type { Body, Edge, Id } from '../graph/rows.ts'
import type { ChainRecord, RowLetter } from './commit-chain.ts'

/** A row in its stored form. */
export interface WrittenRow {
  readonly letter: RowLetter
  readonly id: Id
  /** The turn of a node or link. */
  readonly turnId: Id | null
  readonly text: string
}

/** A whole tree, as one store exports it and another imports it. */
export interface WholeTree {
  readonly rootId: Id
  /** Conversations, turns, nodes, links, in this order. */
  readonly rows: readonly WrittenRow[]
  readonly edges: readonly Edge[]
  readonly bodies: readonly Body[]
  readonly records: readonly ChainRecord[]
}

/** Some records, rows, edges and texts of a tree, in this order from part to part, and the hash of its last commit. */
export interface ArchivePart extends Omit<WholeTree, 'rootId'> {
  readonly hash: string
}

/** The trace of a deleted tree. */
export interface Tombstone {
  readonly rootId: Id
  /** The hash of its last commit, in which every copy of its record ends. */
  readonly hash: string
  readonly seq: number
  readonly agent: string
  /** The owner of its root conversation; null for none. */
  readonly owner: string | null
  /** The time of its deletion. */
  readonly at: number
  /** Why it was deleted: `maximum`, `ttl`, or the reason of a person. */
  readonly reason: string
  /** Its conversations, each with its parent and its runs. */
  readonly conversations: readonly { readonly id: Id; readonly parentId: Id | null; readonly runs: readonly Id[] }[]
}

/** The conditions and options of a deletion. */
export interface Removal {
  readonly at: number
  readonly reason: string
  /** Deletes only while this is the number of its last event: the caller has not seen later ones. */
  readonly seq?: number
  /** Gives the tombstone and keeps the tree. */
  readonly dryRun?: boolean
  /** Deletes also a tree that differs from its commits, whatever is open in it. */
  readonly evenTampered?: boolean
}

/** Which trees without an open turn may go: those beyond the `keep` most recent ones, and those inactive since `until` or before. */
export interface SurplusQuery {
  readonly owner?: string
  readonly notOwners?: readonly string[]
  /** Trees of other agents do not even count. */
  readonly maySee?: ((agent: string) => boolean) | undefined
  readonly keep?: number
  readonly until?: number
}

/** A tree that may go. */
export interface SurplusTree {
  readonly rootId: Id
  /** The number of its last event. */
  readonly seq: number
  readonly reason: 'maximum' | 'ttl'
}

export interface VerifyReport {
  readonly findings: readonly Finding[]
  readonly rows: number
  readonly commits: number
}

/** Reads, checks and moves whole trees. */
export interface Archive {
  /** Undefined when there is no such tree. */
  read(rootId: Id): Later<WholeTree | undefined>
  /**
   * Reads the tree of one moment in parts, for a store that is elsewhere: nobody has to hold all of it. No part where there is no
   * such tree.
   */
  parts?(rootId: Id): AsyncIterable<ArchivePart>
  /** Compares the stored rows with the record of their commits: of one tree, or of all. */
  verify(rootId?: Id): Later<VerifyReport>
  /** The hash of the last commit of a tree. Undefined when there is no such tree, and where no record of commits is kept. */
  head?(rootId: Id): Later<string | undefined>
  /**
   * Imports a tree that another store exported. Throws ConflictError when a row of it is there already. Where a tree of this id
   * was deleted here, it accepts only one whose last commit has the tombstone's hash, and removes the tombstone. `instead`: takes
   * the place of the tree of this id that ends in that hash; throws ConflictError, and changes nothing, where that one went on.
   */
  restore(tree: WholeTree, instead?: string): Later<void>
  /** Keeps the tombstone that another store has of a tree. The tree must not be here. */
  bury?(stone: Tombstone): Later<void>
  /**
   * Deletes a tree whole, or nothing of it, and leaves its tombstone. Undefined when there is no such tree, or when it has
   * events after `seq`. Throws ConflictError while a turn of it is open: see `evenTampered`.
   */
  remove(rootId: Id, removal: Removal): Later<Tombstone | undefined>
  /**
   * Finds trees that may go, those that were inactive for longest first, a page at a time, and reads nothing of the trees that stay.
   * Where a store has no such index, all trees are looked at.
   */
  surplus?(query: SurplusQuery): AsyncIterable<readonly SurplusTree[]>
  /**
   * Deletes the trees of a page, each as `remove` does. Answers in their order: undefined for a tree that stays because somebody works
   * on it, and the error for one that cannot be read.
   */
  removeAll?(
    trees: readonly SurplusTree[],
    removal: Pick<Removal, 'at' | 'dryRun'>,
  ): Later<readonly (Tombstone | StoreError | undefined)[]>
  /** All tombstones, the oldest first. */
  tombstones(): Later<readonly Tombstone[]>
  /** The newest tombstone that names this conversation or run. */
  tombstone(id: Id): Later<Tombstone | undefined>
  /**
   * Erases what the store keeps about an owner beside his trees: usage, changes, rows of the registry, and the details of
   * tombstones. His trees stay: delete them first. `keptDay`: the usage of this day stays, because limits are held against it.
   */
  forgetOwner(owner: string, keptDay?: string): Later<void>
  /** Returns free space to the system, where that is cheap. Space that it keeps is used again. */
  compact?(): Later<void>
}

export type Severity = 'error' | 'warning'

/** The defects that an audit looks for: their severity, and whether `repair` can fix them without loss. */
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
  // stored rows, compared with the record of their commits
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

/** One defect. */
export interface Finding {
  readonly type: FindingType
  readonly severity: Severity
  /** The defect in words. */
  readonly message: string
  readonly subject: Subject
  /** The id of the subject; for an edge `from -> to`. */
  readonly id: string
  readonly rootId: Id | null
  readonly conversationId: Id | null
  /** True where `repair` can fix it. */
  readonly repairable: boolean
}

export interface FindingPlace {
  readonly subject: Subject
  readonly id: string
  readonly rootId: Id | null
  readonly conversationId: Id | null
}

export function finding(
  type: FindingType,
  { subject, id, rootId, conversationId }: FindingPlace,
  message: string,
): Finding {
  const [severity, repairable] = FINDINGS[type]
  return { type, severity, message, subject, id, rootId, conversationId, repairable }
}

export const FINDING_TYPES: readonly FindingType[] = Object.keys(FINDINGS) as FindingType[]

/** As if it were new: stores take new rows at version 1 only. */
export function asNew<Row extends { readonly version: number }>(row: Row): Row {
  return row.version === 1 ? row : { ...row, version: 1 }
}
