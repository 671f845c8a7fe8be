import type { Clock } from '../base/clock.ts'
import { ConflictError } from '../base/error.ts'
import type { Commit } from '../graph/commit.ts'
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

  constructor(options: LeaseOptions) {
    this.options = options
  }

  /** Renews when a third of the lease is gone. False when others had taken it for dead meanwhile. */
  async renew(): Promise<boolean> {
    const { store, clock, leaseMs } = this.options
    const now = clock.now()
    if (now < this.renewAt) return true
    const row = store.engine(this.options.engineId)
    const kept = this.renewAt === 0 || (row !== undefined && row.leaseUntil > now)
    await this.put(row, now + leaseMs)
    this.renewAt = now + leaseMs / 3
    return kept
  }

  async end(): Promise<void> {
    if (this.options.store.engine(this.options.engineId) === undefined) return
    await dropEngine(this.options.store, this.options.engineId, this.options.clock.now())
  }

  private async put(row: EngineRow | undefined, leaseUntil: number): Promise<void> {
    const version = (row?.version ?? 0) + 1
    const { store, clock, engineId } = this.options
    const engine: EngineRow = { id: engineId, version, ...this.proof, leaseUntil }
    try {
      await store.commit({ ...emptyCommit(clock.now()), engines: [engine] })
    } catch (error) {
      if (!ConflictError.isInstance(error)) throw error
    }
  }
}

/** Is the engine gone for certain, or silent for longer than its lease? */
export function isDead(engine: EngineRow, now: number): boolean {
  return engine.leaseUntil <= now || isProvenDead(engine)
}

export async function dropEngine(store: Store, engineId: Id, now: number): Promise<void> {
  await store.commit({ ...emptyCommit(now), dropEngines: [engineId] })
}

function emptyCommit(at: number): Commit {
  return {
    kind: 'lease',
    at,
    rootId: null,
    conversations: [],
    turns: [],
    nodes: [],
    edges: [],
    links: [],
    bodies: [],
    engines: [],
    dropEngines: [],
    blocks: [],
    dropBlocks: [],
    events: [],
  }
}
