// The rows of call limits and pauses: counts that all processes of a store share.
//
// Owns:      what such a row holds, how it is compared and set, and which calls of the last minute count.
// Called by: `engine/call-gate`.
// Must stay true:
//   - A change is made on the row as it is stored, whatever other processes do at the same time.
//   - A clock that was set back holds no call back for longer than two minutes.

import type { Clock, Scheduler } from '../base/clock.ts'
import { isLegateError } from '../base/error.ts'
import type { Json } from '../base/json.ts'
import type { Id } from '../graph/rows.ts'
import type { RegistryRow } from '../store/registry.ts'
import type { Store } from '../store/store.ts'

/** The data of a limit's row. */
export interface LimitState {
  /** The calls that hold a place. */
  readonly live: readonly (readonly [rootId: Id, nodeId: Id, epoch: number])[]
  /** Calls by the second in which they began, the oldest first. */
  readonly begun: readonly (readonly [second: number, count: number])[]
}

/** The data of a pause's row: nobody calls the model before that time. */
export interface PauseState {
  readonly until: number
}

/** Where a row is, and whose it is. */
export type SharedRowPlace = Pick<RegistryRow, 'kind' | 'id' | 'owner'>

/** Gives what the row is to hold; undefined leaves it as it is. */
type Change = (row: RegistryRow | undefined) => Json | undefined | Promise<Json | undefined>

const MINUTE_S = 60
const MOST_TRIES = 50

/** Compares and sets rows of the registry. */
export class SharedRows {
  private readonly parts: { readonly store: Store; readonly clock: Clock; readonly scheduler: Scheduler }
  /** The last change of each row that is under way: changes of this process wait for each other, and never conflict. */
  private readonly changes: Map<string, Promise<void>> = new Map()

  constructor(parts: SharedRows['parts']) {
    this.parts = parts
  }

  /** Rejects with a conflict only where other processes were faster again and again. */
  change(place: SharedRowPlace, change: Change): Promise<void> {
    const key = `${place.kind} ${place.id}`
    const before = this.changes.get(key)
    const make = () => this.make(place, change)
    const made = before === undefined ? make() : before.then(make, make)
    this.changes.set(key, made)
    const forget = () => {
      if (this.changes.get(key) === made) this.changes.delete(key)
    }
    made.then(forget, forget)
    return made
  }

  /** Resolves when no change is under way. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.changes.values())
  }

  private async make({ kind, id, owner }: SharedRowPlace, change: Change): Promise<void> {
    const { store, clock, scheduler } = this.parts
    for (let tries = 1; ; tries++) {
      const row = await store.registry.get(kind, id)
      const data = await change(row)
      if (data === undefined) return
      try {
        await store.registry.put({ kind, id, owner, version: (row?.version ?? 0) + 1, at: clock.now(), data })
        return
      } catch (error) {
        if (!isLegateError(error, 'conflict') || tries >= MOST_TRIES) throw error
        await scheduler.pause((scheduler.random() / 2 ** 32) * tries * 2)
      }
    }
  }
}

export function limitStateOf(row: RegistryRow | undefined): LimitState {
  return { live: [], begun: [], ...(row?.data as Partial<LimitState> | undefined) }
}

export function pauseStateOf({ data }: RegistryRow): PauseState {
  return { until: 0, ...(data as Partial<PauseState>) }
}

/** A time of another clock may be a little ahead; one that is further ahead was written before the clock was set back. */
export function isAhead(at: number, now: number): boolean {
  return at > now + MINUTE_S * 1_000
}

/** The seconds that the last minute touches: at most the limit begins in any minute. */
export function recent(begun: LimitState['begun'], now: number): LimitState['begun'] {
  const first = Math.floor(now / 1_000) - MINUTE_S
  return begun.filter(([second]) => second >= first && !isAhead(second * 1_000, now))
}

/** When the oldest of these calls no longer counts. */
export function endOfMinute(begun: LimitState['begun'], now: number): number {
  const [oldest = Math.floor(now / 1_000)] = begun[0] ?? []
  return (oldest + MINUTE_S + 1) * 1_000
}

export function withOneMore(begun: LimitState['begun'], now: number): LimitState['begun'] {
  return counted(begun, Math.floor(now / 1_000), 1)
}

/** Takes a call back that was counted at that time and not made. */
export function withOneLess(begun: LimitState['begun'], at: number): LimitState['begun'] {
  return counted(begun, Math.floor(at / 1_000), -1)
}

function counted(begun: LimitState['begun'], second: number, more: 1 | -1): LimitState['begun'] {
  const known = begun.find(([one]) => one === second)?.[1] ?? 0
  const others = begun.filter(([one]) => one !== second)
  if (known + more <= 0) return others
  return [...others, [second, known + more] as const].sort(([a], [b]) => a - b)
}
