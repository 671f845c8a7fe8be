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
  readonly at: number
  /** Why it was deleted. */
  readonly reason: string
  /** Its conversations, each with the one it was a child of. */
  readonly conversations: readonly { readonly id: Id; readonly parentId: Id | null }[]
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
  /** Takes a tree that another store gave away. Throws ConflictError when a row of it is there already. */
  restore(tree: WholeTree): void | Promise<void>
  tombstones(): readonly Tombstone[]
}
