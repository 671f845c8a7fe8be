import { StoreError } from '../base/error.ts'
import { applyCommit } from './memory-commit.ts'
import { reloadTables } from './memory-reload.ts'
import { memoryScanner } from './memory-scan.ts'
import { emptyTables, forgetTree, type Tables } from './memory-tables.ts'
import type { Store } from './store.ts'

export interface MemoryStoreOptions {
  /** How many trees without an open turn are kept; beyond it the one that ended first is forgotten. */
  readonly keep?: number
}

/** Rows live as long as the process, ended trees until `keep` others have ended after them. */
export function memoryStore({ keep = 1000 }: MemoryStoreOptions = {}): Store {
  let current: Tables | undefined = emptyTables()
  const tables = (): Tables => {
    if (current === undefined) throw closedError()
    return current
  }
  return {
    name: 'memory',
    shared: false,
    commit: (commit) => {
      const open = tables()
      const tree = applyCommit(open, commit)
      if (tree === undefined) return
      if (tree.openTurns > 0) {
        open.ended.delete(tree)
        return
      }
      open.ended.add(tree)
      if (open.ended.size > keep) forgetOldest(open, keep)
    },
    ...memoryScanner(tables),
    watch: () => {
      tables()
      return () => undefined
    },
    reopen: () => {
      current = reloadTables(tables())
    },
    close: async () => {
      current = undefined
    },
  }
}

function closedError(): StoreError {
  return new StoreError('store_closed', 'The memory store was closed; its rows are gone. Open a new one.')
}

function forgetOldest(tables: Tables, keep: number): void {
  while (tables.ended.size > keep && tables.ended.first !== null) forgetTree(tables, tables.ended.first)
}
