// The upkeep of a store: one of the servers that share it sends webhooks and deletes what is not kept any longer.
//
// Stays true:
// - A server without webhooks and without retention only looks now and then whether there are some.
// - Its timer keeps no process alive, and a failure of the store only makes it wait.

import { randomUUID } from 'node:crypto'
import type { Registry } from '../../doors/rows.ts'
import { isLegateError, type Json } from '../../index.ts'
import type { Courier } from '../hooks/courier.ts'
import { RegistryLease } from '../hooks/lease.ts'
import type { Retention } from '../hooks/retention.ts'
import type { Webhooks } from '../hooks/webhooks.ts'

export interface UpkeepParts {
  readonly registry: Registry
  readonly leaseMs: number
  /** The cursor of the newest change. */
  readonly newest: () => Promise<string>
  readonly webhooks: Webhooks
  readonly retention: Retention
  readonly courier: (isHeld: () => boolean) => Courier
  readonly report: (error: unknown) => void
}

interface Note {
  readonly cursor: string | null
  readonly sweptAt: number
}

const BUSY_MS = 200
const IDLE_MS = 2_000
const FAILED_MS = 5_000
const SWEEP_EVERY_MS = 3_600_000
const NAME = 'upkeep'

/** Runs in rounds from its making until `close`. */
export class Upkeep {
  readonly courier: Courier
  private readonly parts: UpkeepParts
  private readonly lease: RegistryLease
  private timer: NodeJS.Timeout | undefined
  private running: Promise<void> | undefined
  private sweeping: Promise<void> | undefined
  private isClosed = false
  private lastFailure = ''
  private sweptAt = 0

  constructor(parts: UpkeepParts) {
    this.parts = parts
    this.lease = new RegistryLease(parts.registry, { name: NAME, leaseMs: parts.leaseMs, holder: randomUUID() })
    this.courier = parts.courier(() => this.lease.isHeld && !this.isClosed)
    this.next(IDLE_MS / 10)
  }

  /** True while this process does the upkeep. */
  get isHeld(): boolean {
    return this.lease.isHeld
  }

  /** Sees to it that the first webhook hears of everything from now on, and of nothing before. */
  async begin(): Promise<void> {
    if (await this.parts.webhooks.hasAny()) return
    const note: Note = { cursor: await this.parts.newest(), sweptAt: this.note.sweptAt }
    await this.lease.leave(note as unknown as Json)
  }

  /** Looks at once. */
  wake(): void {
    if (this.running === undefined) this.next(0)
  }

  /** Deliveries under way may end within the grace. */
  async close(graceMs: number): Promise<void> {
    this.isClosed = true
    clearTimeout(this.timer)
    await this.courier.close(graceMs)
    await this.running
    await this.lease.release().catch(() => undefined)
  }

  private next(ms: number): void {
    clearTimeout(this.timer)
    if (this.isClosed) return
    this.timer = setTimeout(() => {
      this.running = this.round()
        .then((wait) => this.next(wait))
        .finally(() => {
          this.running = undefined
        })
    }, ms).unref()
  }

  /** Gives how long to wait for the next one. Never throws. */
  private async round(): Promise<number> {
    try {
      const wait = await this.work()
      this.lastFailure = ''
      return wait
    } catch (error) {
      if (isLegateError(error, 'store_closed') || isLegateError(error, 'store_readonly')) this.isClosed = true
      else if (String(error) !== this.lastFailure) this.parts.report(error)
      this.lastFailure = String(error)
      return FAILED_MS
    }
  }

  private async work(): Promise<number> {
    const { webhooks, retention } = this.parts
    const [hasHooks, hasRules] = [await webhooks.hasAny(), await retention.hasRules()]
    if (!hasHooks && !hasRules) {
      if (this.lease.isHeld) await this.lease.release()
      this.courier.forget()
      return IDLE_MS
    }
    if (!(await this.lease.take())) {
      this.courier.forget()
      return BUSY_MS
    }
    if (hasHooks) {
      const { cursor } = this.note
      await this.courier.round({ cursor, keep: (next) => this.keep({ cursor: next }) })
    }
    if (this.sweptAt > this.note.sweptAt) await this.keep({ sweptAt: this.sweptAt })
    if (hasRules) this.sweep()
    return hasHooks ? BUSY_MS : IDLE_MS
  }

  private get note(): Note {
    const note = this.lease.note as Partial<Note> | null
    return { cursor: note?.cursor ?? null, sweptAt: note?.sweptAt ?? 0 }
  }

  private keep(change: Partial<Note>): Promise<boolean> {
    return this.lease.keep({ ...this.note, ...change } as unknown as Json)
  }

  /** Beside the rounds: it may take long, and the lease is renewed meanwhile. */
  private sweep(): void {
    if (this.sweeping !== undefined || Date.now() - Math.max(this.sweptAt, this.note.sweptAt) < SWEEP_EVERY_MS) return
    this.sweeping = this.parts.retention
      .sweep()
      .then(() => {
        this.sweptAt = Date.now()
      })
      .catch(this.parts.report)
      .finally(() => {
        this.sweeping = undefined
      })
  }
}
