import type { EventRow } from '../graph/event.ts'
import type { Id, Turn } from '../graph/rows.ts'
import type { Store } from '../store/store.ts'

/** The stored events of turns of one tree. Of the log only those parts are read where one of them went on. */
export function* turnEvents(store: Store, rootId: Id, turns: readonly Turn[]): Generator<EventRow, void> {
  const sweep = new Sweep(turns)
  const wanted = new Set(turns.map(({ id }) => id))
  while (sweep.goesOn()) {
    const events = store.events(rootId, sweep.at, sweep.limit)
    if (events.length === 0) return
    for (const event of events) if (wanted.has(event.turnId)) yield event
    sweep.take(events)
  }
}

/** A short turn has about ten events. */
const FIRST_PAGE = 32
const LARGEST_PAGE = 1_000

/** Where in the log to read on. */
class Sweep {
  at = 0
  limit = FIRST_PAGE / 2
  /** The next to begin last. */
  private readonly waiting: Turn[]
  private readonly open = new Set<Id>()
  private readonly ended = new Set<Id>()

  constructor(turns: readonly Turn[]) {
    this.waiting = turns.toSorted((a, b) => b.afterSeq - a.afterSeq)
  }

  /** Moves to the next part. False when there is none. */
  goesOn(): boolean {
    this.limit = Math.min(this.limit * 2, LARGEST_PAGE)
    for (let next = this.next(); next !== undefined; next = this.next()) this.begin(next)
    return this.open.size > 0
  }

  take(events: readonly EventRow[]): void {
    this.at = events.at(-1)?.seq ?? this.at
    for (const { turnId, body } of events) {
      if (body.type !== 'run-end') continue
      this.ended.add(turnId)
      this.open.delete(turnId)
    }
  }

  /** The next that had begun here; where nothing goes on, the next there is. */
  private next(): Turn | undefined {
    const isHere = this.open.size === 0 || (this.waiting.at(-1)?.afterSeq ?? 0) <= this.at
    return isHere ? this.waiting.pop() : undefined
  }

  private begin({ id, afterSeq }: Turn): void {
    if (this.ended.has(id)) return
    this.open.add(id)
    if (afterSeq <= this.at) return
    this.at = afterSeq
    this.limit = FIRST_PAGE
  }
}
