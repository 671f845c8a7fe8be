import type { DurableEvent, Id, Store, Turn } from '../../index.ts'
import { RunTree } from './run-tree.ts'

const PAGE = 500

/** What was recorded of a run and all it delegated up to now, in order. */
export function* eventsSoFar(store: Store, run: Turn): Generator<DurableEvent, void> {
  const family = new Set<Id>([run.id])
  for (const event of treeEvents(store, run)) {
    if (event.parentId !== null && family.has(event.parentId)) family.add(event.turnId)
    if (!family.has(event.turnId)) continue
    yield event
    if (event.type === 'run-end' && event.turnId === run.id) return
  }
}

/** The tree of a run as it is now, with what its models are saying. */
export function treeSoFar(store: Store, run: Turn): RunTree {
  const tree = new RunTree(run.id)
  for (const event of eventsSoFar(store, run)) tree.take(event)
  for (const { events } of store.blocks(run.rootId, 0)) {
    for (const event of events) if (tree.run(event.turnId)?.state === 'running') tree.take(event)
  }
  return tree
}

function* treeEvents(store: Store, { rootId, afterSeq }: Turn): Generator<DurableEvent, void> {
  for (let after = afterSeq; ; ) {
    const page = store.events(rootId, after, PAGE)
    for (const { body, ...place } of page) yield { ...place, ...body }
    const last = page.at(-1)
    if (last === undefined) return
    after = last.seq
  }
}
