import type { Finding } from '../graph/audit/finding.ts'
import type { Body, Edge, Id } from '../graph/rows.ts'
import type { ChainRecord, RowLetter } from './tree-chain.ts'

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
