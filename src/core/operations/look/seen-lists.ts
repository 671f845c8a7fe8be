import type { ConversationInfo, RunInfo } from '../../conversation/data/lists.ts'
import type { PricedDay } from '../../conversation/data/usage-by-day.ts'
import type { InboxItem } from '../../conversation/inbox/inbox.ts'
import { maySee, mayStart, ownersSeenBy, type Principal, seesAllAgents } from '../../grant/principal.ts'
import type { Id } from '../../graph/rows.ts'

/** A list that may be of one owner. */
interface OwnedQuery {
  readonly owner?: string
  readonly limit?: number
}

/** A list by pages. */
interface PagedQuery extends OwnedQuery {
  readonly before?: Id
}

/** How many pages are looked at for one: a principal of few agents in a large store asks again from where it is. */
const MOST_LOOKS = 20

/** How often a list without pages is read anew, each time four times as long. */
const MOST_READS = 5
const MOST_LISTED = 100

/** An item that names the agent at the root of its tree. */
type OfAgent = { readonly path: readonly string[] } | { readonly agent: string }

/** Lists as a principal sees them. */
export class SeenLists {
  private readonly principal: Principal

  constructor(principal: Principal) {
    this.principal = principal
  }

  /** Without trees of agents that the principal may not see. */
  ofItsAgents<Item extends OfAgent>(items: readonly Item[]): Item[] {
    return items.filter((item) => mayStart(this.principal, ('path' in item ? item.path[0] : item.agent) ?? ''))
  }

  /** A list of what its agents ask for: reads more where others stood between. */
  async filtered<Item extends OfAgent, Query extends OwnedQuery>(
    query: Query,
    read: (query: Query) => Promise<Item[]>,
    order: (a: Item, b: Item) => number,
  ): Promise<Item[]> {
    if (seesAllAgents(this.principal)) return this.overOwners(query, read, order)
    const { limit = MOST_LISTED } = query
    for (let most = limit, looks = 1; ; most *= 4, looks++) {
      const items = await this.overOwners({ ...query, limit: most }, read, order)
      const own = this.ofItsAgents(items)
      if (own.length >= limit || items.length < most || looks === MOST_READS) return own.slice(0, limit)
    }
  }

  /** A page of trees of its agents, newest first: reads on where others stood between them. */
  async listed<Item extends OfAgent & { readonly rootId?: Id; readonly id?: Id }, Query extends PagedQuery>(
    query: Query,
    read: (query: Query) => Promise<Item[]>,
    order: (a: Item, b: Item) => number,
  ): Promise<Item[]> {
    const { limit = 50 } = query
    const found: Item[] = []
    for (let at = query, looks = 0; looks < MOST_LOOKS; looks++) {
      const page = await this.overOwners(at, read, order)
      found.push(...this.ofItsAgents(page))
      const last = page.at(-1)
      const before = last?.rootId ?? last?.id
      if (found.length >= limit || page.length < limit || before === undefined) break
      at = { ...at, before }
    }
    return found.slice(0, limit)
  }

  /** Joins the lists of all owners that the principal sees. An owner that it does not see has nothing. */
  async overOwners<Item, Query extends OwnedQuery>(
    query: Query,
    read: (query: Query) => Promise<Item[]>,
    order: (a: Item, b: Item) => number,
  ): Promise<Item[]> {
    const seen = ownersSeenBy(this.principal)
    const { owner, limit } = query
    if (owner === undefined && seen === 'all') return read(query)
    const owners = owner === undefined ? seen : maySee(this.principal, owner) ? [owner] : []
    const items: Item[] = []
    for (const one of owners) items.push(...(await read({ ...query, owner: one })))
    return owners.length < 2 ? items : items.sort(order).slice(0, limit ?? 50)
  }
}

interface Expiring {
  readonly expiresAt: number
}

const NOT_YET = Number.MAX_SAFE_INTEGER

export function byExpiry(a: Expiring, b: Expiring): number {
  return a.expiresAt - b.expiresAt
}

export function bySince(a: InboxItem, b: InboxItem): number {
  return a.since - b.since
}

export function byCreation(a: ConversationInfo, b: ConversationInfo): number {
  return b.createdAt - a.createdAt
}

export function byStart(a: RunInfo, b: RunInfo): number {
  return (b.startedAt ?? NOT_YET) - (a.startedAt ?? NOT_YET)
}

export function byDay(a: PricedDay, b: PricedDay): number {
  return Number(a.day > b.day) - Number(a.day < b.day)
}
