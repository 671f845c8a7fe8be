import type { Clock } from '../base/clock.ts'
import { ConflictError } from '../base/error.ts'
import { after, type Later } from '../base/maybe.ts'
import { nodeOs } from '../base/node-system.ts'
import { type EngineRow, emptyCommit, type ProcessReport } from '../graph/commit.ts'
import type { Id } from '../graph/rows.ts'
import { isProvenDead, type ProcessProof, proveSelf } from '../store/process-proof.ts'
import type { Store } from '../store/store.ts'

export interface LeaseOptions {
  readonly store: Store
  readonly clock: Clock
  readonly engineId: Id
  readonly leaseMs: number
  /** Names of the agents whose nodes it runs; they grow. */
  readonly agents: ReadonlySet<string>
  /** More facts for the others. It stays one object while nothing changes. */
  readonly tell: () => ProcessReport
}

/** So many times a row is written anew where others write it, too. */
const MOST_TRIES = 10

/** Proves that an engine is alive: one row for all of its claims, renewed while it lives. */
export class Lease {
  private readonly options: LeaseOptions
  private readonly proof: ProcessProof = proveSelf()
  private renewAt = 0
  /** How many agents its row names. */
  private named = -1
  /** More facts of its row. */
  private told: ProcessReport | undefined
  private readonly since: Pick<EngineRow, 'host' | 'startedAt' | 'queue'>
  /** Others take its claims from then on: nothing may be claimed before the lease is renewed. */
  until = 0
  isOver = false
  private isDraining = false
  /** The last time that its row was written. */
  private writing: Promise<void> = Promise.resolve()

  constructor(options: LeaseOptions) {
    this.options = options
    const { store, clock } = options
    this.since = { host: nodeOs().hostname(), startedAt: clock.now(), queue: store.wakes?.name ?? null }
  }

  /**
   * Renews when a third of the lease is over, and when its row does not tell all: it knows more agents, or a source fails.
   * `isThere`: whether its row was there a moment ago, where the caller has seen it.
   */
  async renew(isThere?: boolean): Promise<void> {
    const { store, clock, leaseMs, engineId } = this.options
    const own = clock.now()
    if (this.isOver) return
    if (own < this.renewAt && this.isToldAll() && (isThere ?? (await store.engine(engineId)) !== undefined)) return
    const heardAt = await leaseTime(this.options)
    if (this.isOver) return
    // One after the other: the row is written by nobody once the lease has ended.
    const before = this.writing.catch(() => undefined)
    this.writing = before.then(() => (this.isOver ? undefined : this.put(heardAt)))
    await this.writing
    // A clock that follows the store may have jumped just now: what it said before counts no more.
    const now = store.now === undefined || clock.follow === undefined ? own : heardAt
    this.renewAt = now + leaseMs / 3
    this.until = now + leaseMs
  }

  /** Renews when it is time, and asks nobody before: for work that may take longer than the lease. */
  keep(): Later<void> {
    return this.options.clock.now() < this.renewAt ? undefined : this.renew()
  }

  /** Says with the next renewal that the process ends. */
  drain(): void {
    this.isDraining = true
    this.renewAt = 0
  }

  private isToldAll(): boolean {
    const { agents, tell } = this.options
    return this.named === agents.size && this.told === tell()
  }

  /** True once its row was written. Whoever has no lease has claimed nothing. */
  get wasHeld(): boolean {
    return this.named >= 0
  }

  /** Deletes its row. A wake that is still under way may be renewing it: that comes to its end first. */
  async end(): Promise<void> {
    const { store, clock, engineId } = this.options
    this.isOver = true
    await this.writing.catch(() => undefined)
    this.until = 0
    if (!this.wasHeld) return
    for (let tries = 1; ; tries++) {
      const row = await store.engine(engineId)
      if (row === undefined) return
      try {
        return await dropEngine(store, row, clock.now())
      } catch (error) {
        // Others drop it where it was over; and where the answer was lost, it is gone already.
        if (!ConflictError.isInstance(error) || tries >= MOST_TRIES) throw error
      }
    }
  }

  /** Another process may be dropping the row at the same moment; then it is written again. */
  private async put(heardAt: number): Promise<void> {
    const { store, clock, engineId, agents, leaseMs, tell } = this.options
    const told = tell()
    const news = {
      ...this.proof,
      ...this.since,
      ...told,
      heardAt,
      leaseUntil: heardAt + leaseMs,
      draining: this.isDraining,
    }
    for (let tries = 1; ; tries++) {
      const version = ((await store.engine(engineId))?.version ?? 0) + 1
      const engine: EngineRow = { ...news, id: engineId, version, agents: [...agents] }
      try {
        await store.commit({ ...emptyCommit('lease', clock.now(), null), engines: [engine] })
        this.named = engine.agents?.length ?? 0
        this.told = told
        return
      } catch (error) {
        if (!ConflictError.isInstance(error) || tries >= MOST_TRIES) throw error
      }
    }
  }
}

/** The time by which leases are granted and judged: the store's, where it has a clock of its own. This process then goes by it too. */
export function leaseTime({ store, clock }: { readonly store: Store; readonly clock: Clock }): Later<number> {
  if (store.now === undefined) return clock.now()
  return after(store.now(), (now) => {
    clock.follow?.(now)
    return now
  })
}

/** True where the engine is certainly gone, or silent for longer than its lease. */
export function isDead(engine: EngineRow, now: number): boolean {
  return engine.leaseUntil <= now || isProvenDead(engine)
}

/** Deletes the engine's row. Refused when the engine has renewed its lease since `engine` was read. */
export async function dropEngine(store: Store, engine: EngineRow, now: number): Promise<void> {
  const last = { ...engine, version: engine.version + 1 }
  await store.commit({ ...emptyCommit('lease', now, null), engines: [last], dropEngines: [engine.id] })
}

/**
 * The next moment at which an idle process has work, as far as rows tell. It does not foresee engines that die: sweeps find
 * those.
 */
export async function quietUntil(store: Store, now: number): Promise<number> {
  const [asked] = await store.awaiting({ limit: 1 })
  return Math.min((await store.nextDue(now)) ?? Number.POSITIVE_INFINITY, asked?.wakeAt ?? Number.POSITIVE_INFINITY)
}
