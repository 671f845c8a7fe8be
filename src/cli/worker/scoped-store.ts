import type { Id, Store } from '../../index.ts'

/** Enough to look past what is not wanted. */
const LOOKED_AT = 10_000

export interface ScopedStore {
  readonly store: Store
  /** Names of the agents this process has code for, as soon as its engine has looked for work. */
  readonly knownAgents: () => ReadonlySet<string> | undefined
}

/** The store as a worker sees it that works on one tree only, or on all. */
export function scopedStore(store: Store, rootId: Id | undefined): ScopedStore {
  let known: ReadonlySet<string> | undefined
  return {
    knownAgents: () => known,
    store: {
      ...store,
      runnable: (query) => {
        known = new Set(query.agents)
        if (rootId === undefined) return store.runnable(query)
        const found = store.runnable({ ...query, limit: LOOKED_AT }).filter((node) => node.rootId === rootId)
        return found.slice(0, query.limit)
      },
    },
  }
}
