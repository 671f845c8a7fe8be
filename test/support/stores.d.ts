import type { LocalStore } from '../../src/core/store/store.ts'
/** The same rows for any number of processes: each opens a store of its own on them. */
export interface Rows {
  /** Processes reach these rows later, and one tree at a time; tests read them at once. */
  readonly isRemote?: boolean
  open(): LocalStore
  /** Throws everything away. */
  drop(): Promise<void>
}
type NamedRows = readonly [name: string, create: () => Rows]
export declare const stores: readonly NamedRows[]
/** Rows that one process closes and the next opens. */
export declare const lasting: readonly NamedRows[]
/** Rows in memory behind handles that know nothing of each other but what is committed. */
export declare function memoryRows(): Rows
