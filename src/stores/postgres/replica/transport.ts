// The way to rows that are somewhere else.
//
// Owns:      the port between the copies of trees in this process and the database that has the truth.
// Called by: `Trees` sends commits and loads trees through it; `store/postgres` implements it, and so does a simulation.
// Must stay true:
//   - A commit has an id of its own: sent twice, it is stored once.
//   - What `load` gives is of one moment.

import type { Commit } from '../../../core/graph/commit.ts'
import type { Body, Id } from '../../../core/graph/rows.ts'
import type { RowLetter } from '../../../core/store/commit-chain.ts'
import type { StoreChange } from '../../../core/store/store.ts'

/** How far a tree is. */
export interface Head {
  /** The number of the tree. One that was deleted and made again under the same id has another. */
  readonly tree: number
  /** How many commits it has. */
  readonly n: number
  /** The number of its last event. */
  readonly seq: number
}

/** A row in its stored form; `e` has edges of a turn. */
export interface StoredRow {
  readonly letter: RowLetter | 'e'
  /** The turn of a node, a link or edges. */
  readonly turnId: Id | null
  /** The conversation of edges. */
  readonly conversationId: Id | null
  readonly text: string
}

/** A tree, or what of it was written after a commit, or was asked for, at one moment. */
export interface TreePart {
  readonly head: Head
  /** Conversations first, then turns, nodes, links, edges. Undefined for a tree with more rows than were wanted. */
  readonly rows: readonly StoredRow[] | undefined
  readonly bodies: readonly Body[]
}

/** Which rows of a large tree are loaded. A turn comes with all its rows, its conversation, and the turns that called it. */
export interface WantedRows {
  /** Ids of conversations, turns, nodes or links: for all but conversations, their whole turns. */
  readonly ids: readonly Id[]
  /** The newest turns of lanes. */
  readonly lanes: readonly LaneRange[]
  /** All turns that have not ended. */
  readonly open: boolean
}

/** The newest `limit` turns of a lane with an ordinal of at most `last`. */
export interface LaneRange {
  readonly laneId: Id
  readonly last: number
  readonly limit: number
}

/** A commit of another process, as far as it says so. Without a root: something changed. */
export interface TreeNotice extends Omit<StoreChange, 'rootId'> {
  readonly rootId: Id | null
}

export interface Transport {
  /**
   * Stores a commit and gives the tree's head after it; undefined for a commit of no tree. Throws `Refused` when the rows
   * contradict it, and `AnswerLost` when nobody knows whether it was stored: then `again` sends it once more.
   */
  send(commit: Commit, sending: SendOptions): Promise<Head | undefined>
  /** The head of a tree; undefined where there is no such tree. */
  head(rootId: Id): Promise<Head | undefined>
  /** A whole tree, unless it has more than `most` rows. Undefined where there is no such tree. */
  load(rootId: Id, most: number): Promise<TreePart | undefined>
  /** The rows that were written to a tree after `since`; undefined where it is gone, or is another one. */
  newer(rootId: Id, since: Head): Promise<TreePart | undefined>
  /** Some rows of a tree, without bodies. */
  find(rootId: Id, wanted: WantedRows): Promise<TreePart | undefined>
  /** Texts of a tree by their hashes. They never change. */
  bodies(rootId: Id, hashes: readonly string[]): Promise<readonly Body[]>
  /** Calls `heard` with what other processes say. Ends with the function that it gives. */
  listen(heard: (notice: TreeNotice) => void): () => void
}

export interface SendOptions {
  /** True where an earlier answer was lost. */
  readonly again: boolean
  /** The number of the tree that it was planned on: one that was deleted and made again has another. Null where it is not known. */
  readonly tree: number | null
  /** True where the tree was taken for new without asking: the commit is refused where ids of it were deleted. */
  readonly isPresumed: boolean
  /** The commit counts only where the tree has exactly so many commits before it; null where its rows alone decide. */
  readonly seen: number | null
  /** The turn of a node that the commit does not bring. */
  readonly turnOf: (nodeId: Id) => Id
  /** Conversations, as the commit leaves them. */
  readonly conversationOf: (id: Id) => ConversationFacts | undefined
}

export interface ConversationFacts {
  readonly type: string
  readonly owner: string | null
}

/** The rows contradict the commit: another writer was faster, or it is wrong. */
export class Refused extends Error {}

/** The connection ended before the answer came. */
export class AnswerLost extends Error {}
