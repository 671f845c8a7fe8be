import { sha256 } from '../../core/base/hash.ts'
import type { DispatchPlace } from '../../core/store/dispatch.ts'

/** The place of one queue. */
export interface DbosPlace extends DispatchPlace {
  readonly queue: string
  /** The schema of DBOS's tables. */
  readonly tables: string
  readonly keepMs: number
}

/** The name of a store in its wakes: several may share the tables of DBOS, and a queue. */
export function storeName({ schema }: DispatchPlace): string {
  return sha256(schema).slice(0, 12)
}

/** The one workflow: it wakes a tree. */
export const WAKE = 'legate_wake'
/** The application that owns queue and wakes in the tables of DBOS. */
export const APPLICATION = 'legate'
/** Never changes with the code of agents: a process of any version of it may take any wake. */
export const VERSION = '1'
