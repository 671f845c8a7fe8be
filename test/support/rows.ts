import { type DurableEvent, type DurableEventType, toEvent } from '../../src/core/graph/event.ts'
import type { TreeReader } from '../../src/core/graph/reader.ts'
import type { Id, Node } from '../../src/core/graph/rows.ts'
import type { LocalStore, Store } from '../../src/core/store/store.ts'
import { storeBehind } from './remote.ts'

/** The store of a runtime, or the one behind it, which tests read at once: all of them are in this process. */
export function localStore({ store }: { readonly store: Store }): LocalStore {
  return storeBehind(store) ?? (store as LocalStore)
}

/** A store that reads some rows in another way, also where it gives a tree. */
export function withReads(store: LocalStore, reads: Partial<TreeReader>): LocalStore {
  const read: LocalStore = { ...store, ...reads, tree: () => read }
  return read
}

export function eventsOf(store: LocalStore, rootId: Id): DurableEvent[] {
  return store.events(rootId, 0, 1_000_000).map(toEvent)
}

export function eventsOfType<T extends DurableEventType>(
  store: LocalStore,
  rootId: Id,
  type: T,
): Extract<DurableEvent, { type: T }>[] {
  return eventsOf(store, rootId).filter((event): event is Extract<DurableEvent, { type: T }> => event.type === type)
}

/** The turns of a tree, hosts before their children. */
export function turnsOfTree(store: Pick<TreeReader, 'linksOf'>, runId: Id): Id[] {
  return [runId, ...store.linksOf(runId).flatMap((link) => turnsOfTree(store, link.id))]
}

export function nodesOfTree(store: Pick<TreeReader, 'linksOf' | 'nodesOf'>, runId: Id): Node[] {
  return turnsOfTree(store, runId).flatMap((turnId) => [...store.nodesOf(turnId)])
}

export function tasksOf(store: LocalStore, runId: Id): Node[] {
  return store.nodesOf(runId).filter(({ kind }) => kind === 'task')
}
