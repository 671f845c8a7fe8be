import type { StoreError } from '../base/error.ts'
import type { Commit } from '../graph/commit.ts'
import type { Scanner } from '../graph/reader.ts'
import type { Archive } from './archive.ts'

/**
 * Where graphs are kept. Reads see every commit that was acknowledged before them.
 */
export interface Store extends Scanner {
  readonly name: string
  /** May other processes open the same rows? Then running nodes also write what they stream. */
  readonly shared: boolean
  /** It refuses every commit: there is nothing to work on, only to look at. */
  readonly isReadOnly?: boolean
  /**
   * Applies all of it or nothing, and writes `seq` into the events. Throws ConflictError when a row is not at the version
   * the commit expects, StoreError (`store_busy`, `store_full`, `store_readonly`, `store_closed`, `store_gone`) when it cannot write.
   * Done when the rows would survive what the store's durability promises: when it returns, or when its promise resolves.
   */
  commit(commit: Commit): void | Promise<void>
  /** One error for each tree that was found to be changed from outside: see `tampered` of ERROR_CODES. */
  tampered?(): readonly StoreError[]
  /** Whole trees, to give away, to take and to hold against the record of what was committed. */
  readonly archive?: Archive
  /** Calls `changed` after another process has committed, and when the store is gone. Returns a function that ends it. */
  watch(changed: () => void): () => void
  /** Forgets everything that is not in the rows, as a new process would. For tests of I5. */
  reopen(): void
  close(): Promise<void>
}
