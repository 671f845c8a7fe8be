// Reading a tree of which only a part is in this process.
//
// Owns:      what a read of rows that are elsewhere throws, and the loop that loads them and reads again.
// Called by: the ledger, the engine, and everything that reads few rows of a tree that may be large.
// Must stay true:
//   - A store in this process is read as before: at once, and once.
//   - What reads may run several times, so it does nothing else.

import { after, type Later } from '../base/maybe.ts'
import type { StoreReader, TreeReader } from '../graph/reader.ts'
import type { Id, Node } from '../graph/rows.ts'
import type { Store } from './store.ts'

/** A read of rows that are not in this process: of a large tree in a store far away, only the newest turns are. */
export class MissingRows extends Error {
  /** Loads them. */
  readonly load: () => Promise<void>

  constructor(load: () => Promise<void>) {
    super('These rows have to be loaded first.')
    this.load = load
  }
}

type Near = Pick<StoreReader, 'tree'> & Pick<Store, 'near'>

type Places = Pick<StoreReader, 'rootOf'> & Pick<Store, 'writtenRoot'>

/** The rows of one tree, as far as they are here: reading others throws `MissingRows`. */
export function nearTree(store: Near, rootId: Id): Later<TreeReader> {
  return store.near === undefined ? store.tree(rootId) : store.near(rootId)
}

/** Reads rows of one tree, and loads no others. `read` may run several times: it does nothing but read. */
export function look<T>(store: Near, rootId: Id, read: (tree: TreeReader) => Later<T>): Later<T> {
  if (store.near === undefined) return after(store.tree(rootId), read)
  return store.near(rootId).then((tree) => untilLoaded(() => read(tree)))
}

/** Reads the tree that has this conversation, turn or node: see `look`. */
export function lookWith<T>(store: Near & Places, id: Id, read: (tree: TreeReader) => Later<T>): Later<T> {
  return after(rootFor(store, id), (rootId = id) => look(store, rootId, read))
}

/** The tree to read for an id, which is asked for only where this process does not know it; undefined where there is none. */
export function rootFor(store: Places, id: Id): Later<Id | undefined> {
  return store.writtenRoot?.(id) ?? store.rootOf(id)
}

/** False where there is no such tree. */
export function isThere(store: Near, rootId: Id): Later<boolean> {
  return look(store, rootId, (tree) => tree.conversation(rootId) !== undefined)
}

/** Nodes by their ids; undefined for one that does not exist. */
export function lookAtNodes(store: Near, rootId: Id, ids: readonly Id[]): Later<ReadonlyMap<Id, Node | undefined>> {
  return look(store, rootId, (tree) => new Map(ids.map((id) => [id, tree.node(id)])))
}

/** The rows of one tree, with those that `read` reads: for code that reads just these, at once. */
export function treeLoaded(store: Near, rootId: Id, read: (tree: TreeReader) => unknown): Later<TreeReader> {
  if (store.near === undefined) return store.tree(rootId)
  return look(store, rootId, (tree) => {
    read(tree)
    return tree
  })
}

/** Reads again as often as rows have to be loaded. */
export async function untilLoaded<T>(read: () => Later<T>): Promise<T> {
  for (;;) {
    try {
      return await read()
    } catch (error) {
      if (!(error instanceof MissingRows)) throw error
      await error.load()
    }
  }
}
