import type { EventRow } from '../graph/event.ts'
import type { Id } from '../graph/rows.ts'
import type { Store } from '../store/store.ts'

const PAGE = 1_000

/** The stored events of a tree after one, up to another or to the end, page by page. */
export function* pages(store: Store, rootId: Id, range: PageRange): Generator<readonly EventRow[], void> {
  const { until = Number.POSITIVE_INFINITY } = range
  for (let after = range.after; after < until; ) {
    const events = store.events(rootId, after, Math.min(PAGE, until - after))
    const last = events[events.length - 1]
    if (last === undefined) return
    after = last.seq
    yield events
  }
}

export interface PageRange {
  readonly after: number
  readonly until?: number
}
