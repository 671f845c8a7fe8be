import type { Clock } from '../base/clock.ts'
import { ConflictError } from '../base/error.ts'
import { emptyCommit } from '../graph/commit.ts'
import type { EngineRow, Id } from '../graph/rows.ts'
import type { Store } from '../store/store.ts'
import { isProvenDead, type ProcessProof, proveSelf } from './process-proof.ts'

export interface LeaseOptions {
  readonly store: Store
  readonly clock: Clock
  readonly engineId: Id
  readonly leaseMs: number
}

/** An engine's word that it lives: one row for all of its claims, renewed while it does. */
export class Lease {
  private readonly options: LeaseOptions
  private readonly proof: ProcessProof = proveSelf()
  private renewAt = 0
  private until = 0

  constructor(options: LeaseOptions) {
    this.options = options
  }

  /** Others take its claims when it is over: then nothing may be claimed before it is renewed. */
  get isValid(): boolean {
    return this.options.clock.now() < this.until
  }

  /** Renews when a third of the lease is gone. False when others had taken it for dead meanwhile. */
  async renew(): Promise<boolean> {
    const { store, clock, leaseMs } = this.options
    const now = clock.now()
    const row = store.engine(this.options.engineId)
    if (now < this.renewAt && row !== undefined) return true
    const kept = this.renewAt === 0 || (row !== undefined && row.leaseUntil > now)
    await this.put(row, now + leaseMs)
    this.renewAt = now + leaseMs / 3
    this.until = now + leaseMs
    return kept
  }

  async end(): Promise<void> {
    this.until = 0
    const row = this.options.store.engine(this.options.engineId)
    if (row !== undefined) await dropEngine(this.options.store, row, this.options.clock.now())
  }

  private async put(row: EngineRow | undefined, leaseUntil: number): Promise<void> {
    const version = (row?.version ?? 0) + 1
    const { store, clock, engineId } = this.options
    const engine: EngineRow = { id: engineId, version, ...this.proof, leaseUntil }
    try {
      await store.commit({ ...emptyCommit('lease', clock.now(), null), engines: [engine] })
    } catch (error) {
      if (!ConflictError.isInstance(error)) throw error
    }
  }
}

/** Is the engine gone for certain, or silent for longer than its lease? */
export function isDead(engine: EngineRow, now: number): boolean {
  return engine.leaseUntil <= now || isProvenDead(engine)
}

/** Refused when the engine has renewed its lease since `engine` was read. */
export async function dropEngine(store: Store, engine: EngineRow, now: number): Promise<void> {
  const last = { ...engine, version: engine.version + 1 }
  await store.commit({ ...emptyCommit('lease', now, null), engines: [last], dropEngines: [engine.id] })
}
