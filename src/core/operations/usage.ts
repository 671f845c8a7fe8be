// Operations of usage over days.

import type { DaysQuery, PricedDay } from '../conversation/data/usage-by-day.ts'
import type { Page } from './form/page.ts'
import { byDay, SeenLists } from './look/seen-lists.ts'
import { operation } from './operation.ts'
import type { Operating } from './port.ts'

export const USAGE = {
  /** The usage and cost of one owner, or of all, by day, agent and model. Both days are included. */
  usageByDay: operation({
    summary: 'What you used and what it cost, by day, agent and model; of all owners and agents that you see.',
    scope: 'read',
    http: 'GET /v1/usage',
    query: {
      from: { type: 'string', description: 'The first day, by UTC: `2026-11-17`. Default: today.' },
      to: { type: 'string', description: 'The last day. Default: today.' },
      owner: { type: 'string', description: 'Only of this owner.' },
    },
    gives: ['UsageByDay', 'The sums.'],
    run: (on, query: DaysQuery) => usageByDay(on, query),
    as: async ({ on, principal }, query: DaysQuery): Promise<PricedDay[]> => {
      const { from, to } = query
      const read = ({ owner }: Partial<DaysQuery>) =>
        usageByDay(on, owner === undefined ? { from, to } : { from, to, owner })
      const seen = new SeenLists(principal)
      return seen.ofItsAgents(await seen.overOwners({ ...query, limit: EVERY_DAY }, read, byDay))
    },
    ask: ({ from = today(), to = today(), ...query }: UsageDays): DaysQuery => ({ ...query, from, to }),
    wire: (usage: readonly PricedDay[]): Page<'usage', PricedDay> => ({ usage, next: null }),
  }),
} as const

/** Which days to sum up: the server's usual ones where you leave them out. */
export interface UsageDays {
  /** The first day: `2026-11-01`. */
  readonly from?: string
  /** The last day. */
  readonly to?: string
  /** Only what this owner used. */
  readonly owner?: string
}

const EVERY_DAY = Number.MAX_SAFE_INTEGER

function today(): string {
  return new Date().toISOString().slice(0, 10)
}

async function usageByDay({ store, recordings }: Operating, query: DaysQuery): Promise<PricedDay[]> {
  await recordings.settled()
  const { usageByDay: read } = await import('../conversation/data/usage-by-day.ts')
  return read(store, query)
}
