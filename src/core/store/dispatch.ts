// Dispatch: how the work that a commit leaves reaches another process, where a queue in the same database brings it.
//
// Owns:      the interface of such a queue, and the one statement that stores a commit with its wakes.
// Called by: `store/postgres`; `dbos()` of `legate/engine/dbos` makes a queue.
// Must stay true:
//   - Wakes are put into the queue in the transaction of their commit: a commit that is refused wakes nobody.
//   - The row of the tree is locked before its wakes are written, so that commits with equal wakes come one after the other.

import type { WakeQueue } from './store.ts'

/** Makes queues that bring wakes to the workers of a store. */
export interface Dispatch {
  /** The queue of one store. Nothing is loaded or connected yet. */
  at(place: DispatchPlace): SqlQueue
}

/** The database of a store. */
export interface DispatchPlace {
  readonly url: string | undefined
  /** The user's pool of the package `pg`, instead of an address. */
  readonly pool: object | undefined
  /** The schema of the store. */
  readonly schema: string
  /** Which of these trees, by the roots of their wakes, have no open turn. */
  ended(roots: readonly string[]): Promise<ReadonlySet<string>>
  /** How long it may wait while the database does not answer, before it fails with `store_busy`. */
  readonly busyMs: number
  /** Uses one connection of the store for short statements. It may be used before the store is prepared. */
  session<T>(use: (query: SessionQuery) => Promise<T>): Promise<T>
}

/** Runs one statement on a connection, and gives rows as lists of their values. */
export type SessionQuery = (text: string, values?: readonly unknown[]) => Promise<readonly (readonly unknown[])[]>

/** A queue of wakes in the database of a store. */
export interface SqlQueue extends WakeQueue {
  /** A call in SQL that puts a wake into the queue: of `w.id`, `w.root` and `w.at`, which is null for at once. */
  readonly enqueue: string
  /** Makes what the queue needs in the database, or refuses. Called before the first commit. */
  prepare(): Promise<void>
}

/** Stores a commit by `send` and puts its wakes, `$8`, into the queue. The row `c` is made first: its lock comes first. */
export function sendWithWakes(send: string, enqueue: string): string {
  return `SELECT c.head, (SELECT count(${enqueue}) FROM json_to_recordset($8) AS w(id text, root text, at bigint)
    WHERE c.head IS NOT NULL) FROM (${send} AS head OFFSET 0) AS c`
}
