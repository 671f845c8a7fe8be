import { type DurableEvent, type DurableEventType, toEvent } from '../../src/graph/event.ts'
import type { Id, Node } from '../../src/graph/rows.ts'
import type { Store } from '../../src/store/store.ts'

export function eventsOf(store: Store, rootId: Id): DurableEvent[] {
  return store.events(rootId, 0, 1_000_000).map(toEvent)
}

export function eventsOfType<T extends DurableEventType>(
  store: Store,
  rootId: Id,
  type: T,
): Extract<DurableEvent, { type: T }>[] {
  return eventsOf(store, rootId).filter((event): event is Extract<DurableEvent, { type: T }> => event.type === type)
}

/** The turns of a tree, hosts before their children. */
export function turnsOfTree(store: Store, runId: Id): Id[] {
  return [runId, ...store.linksOf(runId).flatMap((link) => turnsOfTree(store, link.id))]
}

export function nodesOfTree(store: Store, runId: Id): Node[] {
  return turnsOfTree(store, runId).flatMap((turnId) => [...store.nodesOf(turnId)])
}

export function tasksOf(store: Store, runId: Id): Node[] {
  return store.nodesOf(runId).filter(({ kind }) => kind === 'task')
}
