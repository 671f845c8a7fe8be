import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { StoreError } from '../../src/core/base/error.ts'
import { after } from '../../src/core/base/maybe.ts'
import { memoryStore } from '../../src/core/store/memory/index.ts'
import type { LocalStore } from '../../src/core/store/store.ts'
import { jsonStore } from '../../src/stores/json/index.ts'
import { sqliteStore } from '../../src/stores/sqlite/index.ts'
import { isFull } from '../crash/support/full.ts'

/** The same rows for any number of processes: each opens a store of its own on them. */
export interface Rows {
  /** Processes reach these rows later, and one tree at a time; tests read them at once. */
  readonly isRemote?: boolean
  open(): LocalStore
  /** Throws everything away. */
  drop(): Promise<void>
}

type NamedRows = readonly [name: string, create: () => Rows]

const sqlite: NamedRows = ['sqlite', sqliteRows]
const json: NamedRows = ['json', jsonRows]
const later: NamedRows = ['memory that answers later', laterRows]
/** `one`, `all`, or those that differ: rows in memory answer at once, as SQLite does, and any test that names no store has them. */
const wanted = process.env['LEGATE_STORES'] ?? (isFull ? 'all' : 'different')
const memory: readonly NamedRows[] = wanted === 'all' ? [['memory', memoryRows]] : []

export const stores: readonly NamedRows[] = wanted === 'one' ? [sqlite] : [...memory, later, sqlite]

/** Rows that one process closes and the next opens. */
export const lasting: readonly NamedRows[] = wanted === 'one' ? [sqlite] : [...memory, sqlite, json]

type Watcher = Parameters<LocalStore['watch']>[0]

/** Rows in memory behind handles that know nothing of each other but what is committed. */
export function memoryRows(): Rows {
  const store = memoryStore({ keep: 1_000_000 })
  const watchers = new Map<object, Set<Watcher>>()
  return {
    open: () => {
      const own = new Set<Watcher>()
      watchers.set(own, own)
      const tell = () => {
        for (const others of watchers.values()) {
          if (others !== own) for (const changed of others) setImmediate(changed, null)
        }
      }
      const { registry } = store
      return {
        ...store,
        shared: true,
        registry: {
          ...registry,
          put: (row) => after(registry.put(row), tell),
          drop: (kind, id) =>
            after(registry.drop(kind, id), (found) => {
              tell()
              return found
            }),
        },
        commit: (commit) => {
          if (!watchers.has(own)) throw new StoreError('store_closed', 'This handle was closed.')
          const stored = store.commit(commit)
          tell()
          return stored
        },
        watch: (changed) => {
          own.add(changed)
          return () => own.delete(changed)
        },
        close: async () => {
          own.clear()
          watchers.delete(own)
        },
      }
    },
    drop: () => store.close(),
  }
}

/** Rows are read and committed some time after they were asked for: what they were made of may have changed. */
function laterRows(): Rows {
  const rows = memoryRows()
  return {
    ...rows,
    isRemote: true,
    open: () => {
      const store = rows.open()
      return {
        ...store,
        commit: async (commit) => {
          await new Promise((resolve) => setImmediate(resolve))
          await store.commit(commit)
        },
      }
    },
  }
}

function sqliteRows(): Rows {
  return rowsIn((folder) => sqliteStore(path.join(folder, 'rows.db')))
}

/** For one process at a time. */
function jsonRows(): Rows {
  return rowsIn(jsonStore)
}

function rowsIn(open: (folder: string) => LocalStore): Rows {
  const folder = mkdtempSync(path.join(tmpdir(), 'legate-'))
  const opened: LocalStore[] = []
  return {
    open: () => {
      const store = open(folder)
      opened.push(store)
      return store
    },
    drop: async () => {
      for (const store of opened) await store.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
