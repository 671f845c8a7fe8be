// The gate before every model call: limits per owner and per model, kept as rows that all processes of a store share.
//
// Owns:      the limits that users write, and who goes next when a place is free.
// Called by: `agent/step/call` enters before a model is called and leaves when the call is over; `agent/step/step` lets a node
//            that was held back stand in line.
// Must stay true:
//   - A limit counts in one place for all processes: a row that is compared and set (`limit-rows`).
//   - A node at a limit waits as a row, holds no worker and uses no attempt (I5). Nodes of different owners take turns.
//   - A place is held by a claim: when the process that held it is gone, whoever needs the place finds that out.
//   - Nobody stands in line whose place became free meanwhile: it is told at once.
//   - Without limits and without a provider that asks for a pause, the gate is open: nothing is read or written.

import type { Clock, Scheduler } from '../base/clock.ts'
import { isLegateError } from '../base/error.ts'
import type { Json } from '../base/json.ts'
import type { CallLimits, RateLimit } from '../grant/call-limits.ts'
import { matchName } from '../grant/match.ts'
import type { Id } from '../graph/rows.ts'
import { look } from '../store/look.ts'
import type { Store } from '../store/store.ts'
import {
  endOfMinute,
  isAhead,
  type LimitState,
  limitStateOf,
  type PauseState,
  pauseStateOf,
  recent,
  SharedRows,
  withOneLess,
  withOneMore,
} from './limit-rows.ts'

/** A model call that wants to begin. */
export interface CallPlace {
  readonly owner: string | null
  /** `provider/model`. */
  readonly model: string
  readonly rootId: Id
  readonly nodeId: Id
  /** The epoch of its claim. */
  readonly epoch: number
}

/** The call may not begin yet: it was not made. */
export class HeldBack extends Error {
  /** When to try again at the latest. */
  readonly until: number

  constructor(until: number, why: string) {
    super(why)
    this.until = until
  }
}

export interface GateParts {
  readonly store: Store
  readonly clock: Clock
  readonly scheduler: Scheduler
  readonly limits: CallLimits | undefined
  /** Lets a node that waits at a limit try again now; false where it waits no longer. */
  readonly wake: (place: CallPlace) => Promise<boolean>
}

/** One limit that a call must pass. */
interface Limit {
  /** Its row: `owner:ann`, `model:openai/*`. */
  readonly id: string
  readonly owner: string | null
  readonly rate: RateLimit
}

const LIMIT = 'limit'
const PAUSE = 'pause'
/** A place of another process may become free: how long a node waits before it looks again. */
const LOOK_AGAIN_MS = 1_000
/** Only so many waiting nodes look again per second; the others are told when a call of this process ends. */
const LOOKS_PER_SECOND = 8
const MOST_LOOK_AGAIN_MS = 30_000

/** Lets model calls begin as far as limits allow. */
export class CallGate {
  private readonly parts: GateParts
  private readonly rows: SharedRows
  /** Models whose provider asked for a pause. Rows of other processes are read when those wrote. */
  private readonly pauses: Map<string, PauseState & { readonly since: number }> = new Map()
  private arePausesStale = true
  private readonly lines: Map<string, Line> = new Map()

  constructor(parts: GateParts) {
    this.parts = parts
    this.rows = new SharedRows(parts)
  }

  /** True where every call may begin at once: nothing has a limit, and nobody asked for a pause. */
  get isOpen(): boolean {
    const { limits, store } = this.parts
    return limits === undefined && this.pauses.size === 0 && !(this.arePausesStale && store.shared)
  }

  /** Resolves when the call may begin; rejects with `HeldBack` where it must wait. */
  async enter(place: CallPlace): Promise<void> {
    await this.requireNoPause(place.model)
    const entered: { readonly limit: Limit; readonly at: number }[] = []
    for (const limit of this.limitsFor(place)) {
      const at = this.now
      const refused = await this.take(limit, place)
      if (refused === undefined) {
        entered.push({ limit, at })
        continue
      }
      for (const one of entered) await this.giveBack(one.limit, place, one.at)
      throw refused
    }
  }

  /** Gives the places of a call back, and lets those who wait for them try again. */
  async leave(place: CallPlace): Promise<void> {
    for (const limit of this.limitsFor(place))
      if (limit.rate.concurrency !== undefined) await this.giveBack(limit, place)
  }

  /** Resolves when all places of calls that are over were given back. */
  settled(): Promise<void> {
    return this.rows.settled()
  }

  /** Lets a node stand in line that was held back: its row says that it waits. */
  stand(held: HeldBack): void {
    if (!(held instanceof AllTaken)) return
    const { id, place, line, left } = held
    this.lineAt(id).add(place)
    // A place became free before the node waited: nobody else would tell it.
    if (this.lines.get(id) !== line || line.left !== left) this.wakeNext(id)
  }

  /** A provider asked for a pause: holds back all calls of this model, in every process. */
  async pause(model: string, until: number): Promise<void> {
    const { now } = this
    this.notePause(model, { until, since: now })
    await this.change({ kind: PAUSE, id: model, owner: null }, (row) => {
      const isKnown = row !== undefined && !isAhead(row.at, now) && pauseStateOf(row).until >= until
      return isKnown ? undefined : { until }
    })
  }

  /** Another process has written: it may have been asked for a pause. */
  changed(): void {
    this.arePausesStale = true
  }

  private async requireNoPause(model: string): Promise<void> {
    if (this.arePausesStale) await this.readPauses()
    const { now } = this
    for (const [name, { until, since }] of this.pauses) {
      if (until <= now || isAhead(since, now)) this.pauses.delete(name)
    }
    const { until = 0 } = this.pauses.get(model) ?? {}
    if (until > now) throw new HeldBack(until, `${model} asked for a pause`)
  }

  private async readPauses(): Promise<void> {
    this.arePausesStale = false
    try {
      for (const row of await this.parts.store.registry.list(PAUSE, { limit: 1_000 })) {
        this.notePause(row.id, { ...pauseStateOf(row), since: row.at })
      }
    } catch (error) {
      this.arePausesStale = true
      throw error
    }
  }

  private notePause(model: string, pause: PauseState & { readonly since: number }): void {
    if (pause.until > (this.pauses.get(model)?.until ?? 0)) this.pauses.set(model, pause)
  }

  /** Takes a place; the reason to wait where there is none. */
  private async take({ id, owner, rate }: Limit, place: CallPlace): Promise<HeldBack | undefined> {
    const line = rate.concurrency === undefined ? new Line() : this.lineAt(id)
    const { left } = line
    let refused: HeldBack | undefined
    const isTaken = await this.change({ kind: LIMIT, id, owner }, async (row) => {
      const { now } = this
      const state = limitStateOf(row)
      const begun = recent(state.begun, now)
      const live = isFull(state, rate) ? await this.stillLive(state.live, line) : state.live
      refused = undefined
      if (isFull({ live }, rate)) {
        const why = `${id} has all its ${rate.concurrency} calls`
        refused = new AllTaken(now + line.waitOf(place.owner), why, { id, place, line, left })
      } else refused = refusal(begun, rate, { id, now })
      if (refused !== undefined) return undefined
      const holds = rate.concurrency === undefined ? live : [...live, heldBy(place)]
      return toJson({ live: holds, begun: rate.perMinute === undefined ? [] : withOneMore(begun, now) })
    })
    if (isTaken) return refused
    // Other processes were faster each time: that is no reason to fail.
    return new HeldBack(this.now + LOOK_AGAIN_MS, `${id} is in great demand`)
  }

  /** Gives a place back. `begunAt` is when it was taken by a call that does not begin after all. */
  private async giveBack({ id, owner, rate }: Limit, place: CallPlace, begunAt?: number): Promise<void> {
    await this.change({ kind: LIMIT, id, owner }, (row) => {
      const state = limitStateOf(row)
      const live = state.live.filter((held) => !isOf(held, place))
      if (begunAt === undefined && live.length === state.live.length) return undefined
      const begun = begunAt === undefined ? state.begun : withOneLess(state.begun, begunAt)
      return toJson({ live, begun })
    })
    if (rate.concurrency !== undefined) this.wakeNext(id)
  }

  /** False where other processes were faster again and again. */
  private async change(...[place, change]: Parameters<SharedRows['change']>): Promise<boolean> {
    try {
      await this.rows.change(place, change)
      return true
    } catch (error) {
      if (!isLegateError(error, 'conflict')) throw error
      return false
    }
  }

  /** Those whose claim still holds: a process that is gone leaves its places behind. */
  private async stillLive(live: LimitState['live'], line: Line): Promise<LimitState['live']> {
    const { now } = this
    if (Math.abs(now - line.checkedAt) < LOOK_AGAIN_MS / 2) return live
    line.checkedAt = now
    const found: LimitState['live'][number][] = []
    for (const held of live) if (await this.isLive(held)) found.push(held)
    return found
  }

  private async isLive([rootId, nodeId, epoch]: LimitState['live'][number]): Promise<boolean> {
    try {
      const node = await look(this.parts.store, rootId, (tree) => tree.node(nodeId))
      return node?.state === 'running' && node.epoch === epoch
    } catch (error) {
      // A tree that was changed from outside runs nothing, and does not hold up the others.
      if (!isLegateError(error, 'tampered')) throw error
      return false
    }
  }

  private lineAt(id: string): Line {
    const known = this.lines.get(id) ?? new Line()
    this.lines.set(id, known)
    return known
  }

  /** A place is free: tells the next one who still waits for it. */
  private wakeNext(id: string): void {
    const line = this.lines.get(id)
    if (line === undefined) return
    line.left++
    const next = line.next()
    if (next === undefined) {
      this.lines.delete(id)
      return
    }
    const goOn = () => this.wakeNext(id)
    this.parts.wake(next).then((isWoken) => (isWoken ? undefined : goOn()), goOn)
  }

  private limitsFor({ owner, model }: CallPlace): Limit[] {
    const { limits } = this.parts
    if (limits === undefined) return NO_LIMITS
    const found: Limit[] = []
    const own = owner === null ? undefined : (ownValue(limits.owners, owner) ?? limits.owner)
    if (own !== undefined) found.push({ id: `owner:${owner}`, owner, rate: own })
    for (const [pattern, rate] of Object.entries(limits.models ?? {})) {
      if (matchName(pattern, model)) found.push({ id: `model:${pattern}`, owner: null, rate })
    }
    return found
  }

  private get now(): number {
    return this.parts.clock.now()
  }
}

const NO_LIMITS: Limit[] = []

/** Owners may have the names of methods. */
function ownValue<Value>(values: { readonly [name: string]: Value } | undefined, name: string): Value | undefined {
  return values !== undefined && Object.hasOwn(values, name) ? values[name] : undefined
}

/** Those who wait at one limit: owners take turns, each with its first. */
class Line {
  /** How many places became free. */
  left = 0
  /** When those who hold a place were last looked at. */
  checkedAt = 0
  private readonly byOwner: Map<string | null, CallPlace[]> = new Map()

  add(place: CallPlace): void {
    const own = this.byOwner.get(place.owner)
    if (own === undefined) this.byOwner.set(place.owner, [place])
    else if (!own.some(({ nodeId }) => nodeId === place.nodeId)) own.push(place)
  }

  next(): CallPlace | undefined {
    for (const [owner, places] of this.byOwner) {
      const first = places.shift()
      // An owner that had its turn goes to the end of the line.
      this.byOwner.delete(owner)
      if (places.length > 0) this.byOwner.set(owner, places)
      if (first !== undefined) return first
    }
    return undefined
  }

  /** How long the next node of an owner waits before it looks again. */
  waitOf(owner: string | null): number {
    const before = this.byOwner.get(owner)?.length ?? 0
    return Math.min(LOOK_AGAIN_MS * (1 + Math.floor(before / LOOKS_PER_SECOND)), MOST_LOOK_AGAIN_MS)
  }
}

interface TakenPlace {
  readonly id: string
  readonly place: CallPlace
  readonly line: Line
  /** How many places had become free when it looked. */
  readonly left: number
}

/** No place is free; one may be at any moment. */
class AllTaken extends HeldBack implements TakenPlace {
  readonly id: string
  readonly place: CallPlace
  readonly line: Line
  readonly left: number

  constructor(until: number, why: string, { id, place, line, left }: TakenPlace) {
    super(until, why)
    this.id = id
    this.place = place
    this.line = line
    this.left = left
  }
}

function isFull({ live }: Pick<LimitState, 'live'>, { concurrency }: RateLimit): boolean {
  return concurrency !== undefined && live.length >= concurrency
}

function refusal(
  begun: LimitState['begun'],
  { perMinute }: RateLimit,
  { id, now }: { id: string; now: number },
): HeldBack | undefined {
  const calls = begun.reduce((sum, [, count]) => sum + count, 0)
  if (perMinute === undefined || calls < perMinute) return undefined
  return new HeldBack(endOfMinute(begun, now), `${id} has had its ${perMinute} calls of this minute`)
}

function heldBy({ rootId, nodeId, epoch }: CallPlace): LimitState['live'][number] {
  return [rootId, nodeId, epoch]
}

function isOf([, nodeId, epoch]: LimitState['live'][number], place: CallPlace): boolean {
  return nodeId === place.nodeId && epoch === place.epoch
}

function toJson(state: LimitState): Json {
  return state as unknown as Json
}
