import { type DurableEvent, type DurableEventType } from '../../src/core/graph/event.ts'
import type { TreeReader } from '../../src/core/graph/reader.ts'
import type { Id, Node } from '../../src/core/graph/rows.ts'
import type { LocalStore, Store } from '../../src/core/store/store.ts'
/** The store of a runtime, or the one behind it, which tests read at once: all of them are in this process. */
export declare function localStore({ store }: { readonly store: Store }): LocalStore
/** A store that reads some rows in another way, also where it gives a tree. */
export declare function withReads(store: LocalStore, reads: Partial<TreeReader>): LocalStore
export declare function eventsOf(store: LocalStore, rootId: Id): DurableEvent[]
export declare function eventsOfType<T extends DurableEventType>(
  store: LocalStore,
  rootId: Id,
  type: T,
): Extract<
  DurableEvent,
  {
    type: T
  }
>[]
/** The turns of a tree, hosts before their children. */
export declare function turnsOfTree(store: Pick<TreeReader, 'linksOf'>, runId: Id): Id[]
export declare function nodesOfTree(store: Pick<TreeReader, 'linksOf' | 'nodesOf'>, runId: Id): Node[]
export declare function tasksOf(store: LocalStore, runId: Id): Node[]
