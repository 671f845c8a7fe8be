import type { Id, Store } from '../../index.ts'
import { wakesHere } from '../serve/folder-store.ts'

/** The number of rows read, to find enough wanted ones among the others. */
const LOOKED_AT = 10_000

export interface ScopedStore {
  readonly store: Store
  /** Names of the agents this process has code for, known once its engine has looked for work. */
  readonly knownAgents: () => ReadonlySet<string> | undefined
}

/** Limits the store of a worker to some trees, so that it claims only work in them; undefined means all. */
export function scopedStore(store: Store, trees: ReadonlySet<Id> | undefined): ScopedStore {
  let known: ReadonlySet<string> | undefined
  const inner: Store = {
    ...store,
    runnable: (query) => {
      known = new Set(query.agents)
      return store.runnable(query)
    },
  }
  return { knownAgents: () => known, store: trees === undefined ? inner : onlyTrees(inner, trees) }
}

function onlyTrees(store: Store, trees: ReadonlySet<Id>): Store {
  const ours = async <T extends { readonly rootId: Id }>(
    limit: number,
    find: (limit: number) => readonly T[] | Promise<readonly T[]>,
  ): Promise<readonly T[]> => {
    const rows = await find(Math.max(limit, LOOKED_AT))
    return rows.filter((row) => trees.has(row.rootId)).slice(0, limit)
  }
  return {
    ...store,
    ...wakesHere(store, async (rootId) => trees.has(rootId)),
    runnable: (query) => ours(query.limit, (limit) => store.runnable({ ...query, limit })),
    claimedBy: (engineId, most) => ours(most, (limit) => store.claimedBy(engineId, limit)),
    overdue: (now, most) => ours(most, (limit) => store.overdue(now, limit)),
    unstopped: (before, most) => ours(most, (limit) => store.unstopped(before, limit)),
  }
}
