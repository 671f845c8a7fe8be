// How long trees are kept: by the options of the server, and by a row of the registry for each owner that an admin has set one for.

import type { Registry, RegistryRow } from '../../doors/rows.ts'
import { InputError, type Json, type Runtime } from '../../index.ts'
import { isStale } from './lease.ts'

/** How long trees without an open run are kept. */
export interface RetentionOptions {
  /** Days after which a tree in which nothing happens is deleted. Default: never. */
  readonly keepDays?: number
  /** Days for single owners: `{ ann: 30 }`. What an admin sets with `PUT /v1/owners/{owner}` comes first. */
  readonly keepDaysOf?: Readonly<Record<string, number>>
}

/** The settings of an owner. */
export interface OwnerSettings {
  readonly owner: string
  /** Days; null: as the server's options say. */
  readonly keepDays: number | null
}

const KIND = 'owner'
const DAY_MS = 86_400_000
const PAGE = 500
const MOST_TRIES = 20

/** The settings of owners, and the deletion of what they no longer keep. */
export class Retention {
  private readonly runtime: Pick<Runtime, 'prune'>
  private readonly registry: Registry
  private readonly options: RetentionOptions

  constructor(runtime: Pick<Runtime, 'prune' | 'store'>, options: RetentionOptions) {
    this.runtime = runtime
    this.registry = runtime.store.registry
    this.options = options
  }

  async get(owner: string): Promise<OwnerSettings> {
    const row = await this.registry.get(KIND, owner)
    return { owner, keepDays: row === undefined ? null : daysOf(row) }
  }

  async set({ owner, keepDays }: OwnerSettings): Promise<OwnerSettings> {
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const known = await this.registry.get(KIND, owner)
      const data: Json = { keepDays }
      try {
        await this.registry.put({
          kind: KIND,
          id: owner,
          owner,
          version: (known?.version ?? 0) + 1,
          at: Date.now(),
          data,
        })
        return { owner, keepDays }
      } catch (error) {
        if (!isStale(error)) throw error
      }
    }
    throw new InputError('invalid_input', `Others set ${owner} again and again: try it once more.`)
  }

  /** Is anything ever deleted? */
  async hasRules(): Promise<boolean> {
    const { keepDays, keepDaysOf = {} } = this.options
    if (keepDays !== undefined || Object.keys(keepDaysOf).length > 0) return true
    return (await this.registry.list(KIND, { limit: 1 })).length > 0
  }

  /** Deletes trees that are older than their owner keeps them. Gives how many. */
  async sweep(): Promise<number> {
    const { keepDays } = this.options
    const rules = await this.rules()
    let gone = 0
    for (const [owner, days] of rules) {
      gone += (await this.runtime.prune({ owner, olderThanMs: days * DAY_MS })).length
    }
    if (keepDays === undefined) return gone
    const others = { olderThanMs: keepDays * DAY_MS, notOwners: [...rules.keys()] }
    return gone + (await this.runtime.prune(others)).length
  }

  private async rules(): Promise<Map<string, number>> {
    const rules = new Map(Object.entries(this.options.keepDaysOf ?? {}))
    for (let after: string | undefined; ; ) {
      const page = await this.registry.list(KIND, { ...(after === undefined ? {} : { after }), limit: PAGE })
      for (const row of page) {
        const days = daysOf(row)
        if (days !== null) rules.set(row.id, days)
      }
      if (page.length < PAGE) return rules
      after = page.at(-1)?.id
    }
  }
}

function daysOf({ data }: RegistryRow): number | null {
  const { keepDays } = data as { readonly keepDays?: unknown }
  return typeof keepDays === 'number' ? keepDays : null
}
