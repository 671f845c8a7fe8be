import type { Clock } from '../base/clock.ts'
import { ConflictError } from '../base/error.ts'
import type { Later } from '../base/maybe.ts'
import { emptyCommit } from '../graph/commit.ts'
import type { EngineRow, Id } from '../graph/rows.ts'
import { isProvenDead, type ProcessProof, proveSelf } from '../store/process-proof.ts'
import type { Store } from '../store/store.ts'

export interface LeaseOptions {
  readonly store: Store
  readonly clock: Clock
  readonly engineId: Id
  readonly leaseMs: number
}

/** Proves that an engine is alive: one row for all of its claims, renewed while it lives. */
export class Lease {
  private readonly options: LeaseOptions
  private readonly proof: ProcessProof = proveSelf()
  private renewAt = 0
  /** Others take its claims from then on: nothing may be claimed before the lease is renewed. */
  until = 0

  constructor(options: LeaseOptions) {
    this.options = options
  }

  /** Renews when a third of the lease is over. */
  async renew(): Promise<void> {
    const { store, clock, leaseMs, engineId } = this.options
    const now = clock.now()
    if (now < this.renewAt && (await store.engine(engineId)) !== undefined) return
    await this.put((await leaseTime(this.options)) + leaseMs)
    this.renewAt = now + leaseMs / 3
    this.until = now + leaseMs
  }

  async end(): Promise<void> {
    this.until = 0
    const row = await this.options.store.engine(this.options.engineId)
    if (row !== undefined) await dropEngine(this.options.store, row, this.options.clock.now())
  }

  /** Another process may be dropping the row at the same moment; then it is written again. */
  private async put(leaseUntil: number): Promise<void> {
    const { store, clock, engineId } = this.options
    for (let tries = 1; ; tries++) {
      const version = ((await store.engine(engineId))?.version ?? 0) + 1
      const engine: EngineRow = { id: engineId, version, ...this.proof, leaseUntil }
      try {
        return await store.commit({ ...emptyCommit('lease', clock.now(), null), engines: [engine] })
      } catch (error) {
        if (!ConflictError.isInstance(error) || tries >= 10) throw error
      }
    }
  }
}

/** The time by which leases are granted and judged: the store's, where it has a clock of its own. */
export function leaseTime({ store, clock }: { readonly store: Store; readonly clock: Clock }): Later<number> {
  return store.now === undefined ? clock.now() : store.now()
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
