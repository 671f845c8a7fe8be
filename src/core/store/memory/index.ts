import { StoreError } from '../../base/error.ts'
import { number, orJust, readOptions } from '../../base/options.ts'
import { tombstoneFor } from '../not-found.ts'
import type { LocalStore } from '../store.ts'
import { applyCommit } from './commit.ts'
import { putBeside } from './feed.ts'
import { memoryReader } from './scan.ts'
import { reloadTables } from './snapshot.ts'
import { emptyTables, forgetTree, type StoredTree, type Tables } from './tables.ts'

export interface MemoryStoreOptions {
  /** How many trees without an open turn are kept; beyond it the one that ended first is forgotten. Default 1000. */
  readonly keep?: number
}

/** Keeps rows as long as the process lives, and ended trees until `keep` others have ended after them. */
export function memoryStore(options: MemoryStoreOptions = {}): LocalStore {
  const { keep = 1000 } = readOptions('memoryStore()', options, { keep: orJust(Number.POSITIVE_INFINITY, number(0)) })
  let current: Tables | undefined = emptyTables()
  const tables = (): Tables => {
    if (current === undefined) throw closedError()
    return current
  }
  const registry = async () => (await import('./registry.ts')).memoryRegistry(() => tables().registry)
  return {
    name: 'memory',
    shared: false,
    commit: (commit) => {
      const open = tables()
      const tree = applyCommit(open, commit)
      if (tree === undefined) return
      putBeside(open, tree, commit)
      updateEnded(open, tree, keep)
    },
    archive: {
      read: async (rootId) => (await archives()).memoryArchive(tables).read(rootId),
      verify: async (rootId) => (await archives()).memoryArchive(tables).verify(rootId),
      tombstones: () => [...tables().tombstones],
      tombstone: (id) => tombstoneFor(tables().tombstones, (one) => one === id),
      forgetOwner: async (owner, keptDay) => (await beside()).forgetOwnerRows(tables(), owner, keptDay),
      restore: async (whole) => {
        const { restoreUnrecorded } = await archives()
        const tree = restoreUnrecorded(tables(), whole)
        if (tree !== undefined) updateEnded(tables(), tree, keep)
      },
      remove: async (rootId, removal) => {
        const { tombstoneIn, bury } = await archives()
        const stone = tombstoneIn(tables(), rootId, removal)
        if (stone !== undefined && removal.dryRun !== true) bury(tables(), stone)
        return stone
      },
    },
    registry: {
      get: async (kind, id) => (await registry()).get(kind, id),
      list: async (kind, query) => (await registry()).list(kind, query),
      put: async (row) => (await registry()).put(row),
      drop: async (kind, id) => (await registry()).drop(kind, id),
    },
    changes: async (after, limit) => (await beside()).readChanges(tables().feed, after, limit),
    usage: async (query) => (await beside()).readSpent(tables(), query),
    ...memoryReader(tables, () => tables().writes),
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

/** Loaded only for imports and exports of whole trees. */
const archives = () => import('./archive.ts')

/** Loaded only for what is beside the trees. */
const beside = () => import('./beside.ts')

function updateEnded(tables: Tables, tree: StoredTree, keep: number): void {
  if (tree.openTurns > 0) {
    tables.ended.delete(tree)
    return
  }
  tables.ended.add(tree)
  if (tables.ended.size > keep) forgetOldest(tables, keep)
}

function closedError(): StoreError {
  return new StoreError('store_closed', 'The memory store was closed; its rows are gone. Open a new one.')
}

function forgetOldest(tables: Tables, keep: number): void {
  while (tables.ended.size > keep && tables.ended.first !== null) forgetTree(tables, tables.ended.first)
}
