import { after, type Later } from '../base/maybe.ts'
import { PageRoom } from '../base/page/room.ts'
import type { EventRow } from '../graph/event.ts'
import type { Id } from '../graph/rows.ts'
import type { Store } from '../store/store.ts'

const PAGE = 1_000

/** Reads the stored events of a tree after one, up to another or to the end, page by page. */
export async function* pages(store: Store, rootId: Id, range: PageRange): AsyncGenerator<readonly EventRow[], void> {
  const { until = Number.POSITIVE_INFINITY } = range
  for (let after = range.after; after < until; ) {
    const most = Math.min(PAGE, until - after)
    const room = new PageRoom()
    const events = await store.events(rootId, after, most, room)
    const last = events[events.length - 1]
    if (last === undefined) return
    after = last.seq
    yield events
    if (events.length < most && !room.isFull) return
    if (room.isFull) await othersRan()
  }
}

/** Hands the stored events of a tree to `take`, page by page: at once where the store answers at once. */
export function takePages(store: Store, rootId: Id, range: PageRange & PageTaker): Later<void> {
  const { until = Number.POSITIVE_INFINITY, take } = range
  if (range.after >= until) return undefined
  const most = Math.min(PAGE, until - range.after)
  // A part whose end is known is held whole by who reads it.
  const room = range.until === undefined ? new PageRoom() : undefined
  return after(store.events(rootId, range.after, most, room), (events) => {
    const last = events[events.length - 1]
    if (last === undefined) return undefined
    const goOn = () => takePages(store, rootId, { after: last.seq, until, take })
    const next = () => {
      if (room?.isFull === true) return othersRan().then(goOn)
      return events.length < most ? undefined : goOn()
    }
    return after(take(events), next)
  })
}

/** Lets others run between pages that are full: to read each of them takes a while. */
export function othersRan(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

interface PageTaker {
  readonly take: (events: readonly EventRow[]) => Later<void>
}

export interface PageRange {
  readonly after: number
  readonly until?: number
}
