// One process at a time does the upkeep of a store: it holds a row of the registry.
//
// Stays true:
// - Of two processes that take the row, one is refused: every write is compared and set.
// - Nobody compares clocks of two machines. Who wants the lease of another must see the row unchanged for its whole length,
//   and who holds it stops earlier than that.

import type { Registry, RegistryRow } from '../../doors/rows.ts'
import { isLegateError, type Json } from '../../index.ts'

interface LeaseData {
  readonly [key: string]: Json
  /** Null: it was given back. */
  readonly holder: string | null
  /** Data that the holder keeps with the lease. */
  readonly note: Json
}

const KIND = 'lease'
/** The share of its length for which a holder counts on a lease that it does not renew. */
const SURE = 0.6
/** How often it is renewed in its length. */
const RENEWALS = 6

export interface RegistryLeaseOptions {
  readonly name: string
  readonly leaseMs: number
  /** A name that no other process has. */
  readonly holder: string
}

/** A lease on the upkeep of a store. */
export class RegistryLease {
  private readonly registry: Registry
  private readonly options: RegistryLeaseOptions
  private row: RegistryRow | undefined
  private sureUntil = 0
  private renewAt = 0
  private seen: { readonly version: number; readonly at: number } | undefined

  constructor(registry: Registry, options: RegistryLeaseOptions) {
    this.registry = registry
    this.options = options
  }

  /** True while this process may act on it. */
  get isHeld(): boolean {
    return this.row !== undefined && performance.now() < this.sureUntil
  }

  /** The data that this process, or the one before, kept with it. */
  get note(): Json {
    return this.row === undefined ? null : dataOf(this.row).note
  }

  /** Takes it or renews it where it is time. True where it is held. */
  async take(): Promise<boolean> {
    if (this.isHeld && performance.now() < this.renewAt) return true
    const now = performance.now()
    const row = this.isHeld ? this.row : await this.registry.get(KIND, this.options.name)
    if (row !== undefined && !this.mayTake(row, now)) return false
    return this.write(row, row === undefined ? null : dataOf(row).note)
  }

  private mayTake(row: RegistryRow, now: number): boolean {
    const { holder } = dataOf(row)
    if (holder === null || holder === this.options.holder) return true
    if (this.seen?.version !== row.version) this.seen = { version: row.version, at: now }
    return now - this.seen.at >= this.options.leaseMs
  }

  /** Keeps something with it. False where it is lost. */
  async keep(note: Json): Promise<boolean> {
    return this.isHeld && this.write(this.row, note)
  }

  /** Keeps something with it, whoever holds it. That one sees it when it writes next. */
  async leave(note: Json): Promise<void> {
    for (let isDone = false; !isDone; ) {
      const row = await this.registry.get(KIND, this.options.name)
      isDone = (await this.put(row, { holder: row === undefined ? null : dataOf(row).holder, note })) !== undefined
    }
    this.row = undefined
  }

  /** Gives it back, so that another takes it at once. */
  async release(): Promise<void> {
    const { row } = this
    this.row = undefined
    if (row === undefined) return
    const data: LeaseData = { holder: null, note: dataOf(row).note }
    await this.put(row, data)
  }

  private async write(row: RegistryRow | undefined, note: Json): Promise<boolean> {
    const began = performance.now()
    this.row = await this.put(row, { holder: this.options.holder, note })
    if (this.row === undefined) return false
    this.sureUntil = began + this.options.leaseMs * SURE
    this.renewAt = began + this.options.leaseMs / RENEWALS
    return this.isHeld
  }

  /** The new row; undefined where another was faster. */
  private async put(row: RegistryRow | undefined, data: LeaseData): Promise<RegistryRow | undefined> {
    const next = {
      kind: KIND,
      id: this.options.name,
      owner: null,
      version: (row?.version ?? 0) + 1,
      at: Date.now(),
      data,
    }
    try {
      await this.registry.put(next)
      return next
    } catch (error) {
      if (isStale(error)) return undefined
      throw error
    }
  }
}

function dataOf(row: RegistryRow): LeaseData {
  return row.data as LeaseData
}

/** True where another writer of the row was faster. */
export function isStale(error: unknown): boolean {
  return isLegateError(error, 'conflict') && error.details['stale'] === true
}
