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
  const open = { tables: emptyTables() }
  const registry = async () => (await import('./registry.ts')).memoryRegistry(() => open.tables.registry)
  return {
    name: 'memory',
    shared: false,
    commit: (commit) => {
      const { tables } = open
      const tree = applyCommit(tables, commit)
      if (tree === undefined) return
      putBeside(tables, tree, commit)
      updateEnded(tables, tree, keep)
    },
    archive: {
      read: async (rootId) => (await archives()).memoryArchive(open).read(rootId),
      verify: async (rootId) => (await archives()).memoryArchive(open).verify(rootId),
      tombstones: () => [...open.tables.tombstones],
      tombstone: (id) => tombstoneFor(open.tables.tombstones, (one) => one === id),
      forgetOwner: async (owner, keptDay) => (await beside()).forgetOwnerRows(open.tables, owner, keptDay),
      restore: async (whole) => {
        const { restoreUnrecorded } = await archives()
        const tree = restoreUnrecorded(open.tables, whole)
        if (tree !== undefined) updateEnded(open.tables, tree, keep)
      },
      remove: async (rootId, removal) => {
        const { tombstoneIn, bury } = await archives()
        const stone = tombstoneIn(open.tables, rootId, removal)
        if (stone !== undefined && removal.dryRun !== true) bury(open.tables, stone)
        return stone
      },
    },
    registry: {
      get: async (kind, id) => (await registry()).get(kind, id),
      list: async (kind, query) => (await registry()).list(kind, query),
      put: async (row) => (await registry()).put(row),
      drop: async (kind, id) => (await registry()).drop(kind, id),
    },
    changes: async (after, limit) => (await beside()).readChanges(open.tables.feed, after, limit),
    usage: async (query) => (await beside()).readSpent(open.tables, query),
    ...memoryReader(open, () => open.tables.writes),
    watch: () => {
      // A closed store says so.
      open.tables.writes
      return () => undefined
    },
    reopen: () => {
      open.tables = reloadTables(open.tables)
    },
    close: async () => {
      open.tables = CLOSED
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

/** The tables of a closed store: whoever reads them hears so. */
const CLOSED: Tables = new Proxy(emptyTables(), {
  get: () => {
    throw new StoreError('store_closed', 'The memory store was closed; its rows are gone. Open a new one.')
  },
})

function forgetOldest(tables: Tables, keep: number): void {
  while (tables.ended.size > keep && tables.ended.first !== null) forgetTree(tables, tables.ended.first)
}
