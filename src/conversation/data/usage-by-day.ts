import { InputError } from '../../base/error.ts'
import { type OptionRules, readOptions, text } from '../../base/options.ts'
import { costOfCalls } from '../../model/named/prices.ts'
import { isCharge } from '../../rules/settle/charges.ts'
import type { DayUsage } from '../../store/spent.ts'
import type { Store } from '../../store/store.ts'

/** Which days to sum up. */
export interface DaysQuery {
  /** Only of this owner. Default: all that there are. */
  readonly owner?: string
  /** The first day, by UTC: `2026-11-17`. */
  readonly from: string
  /** The last day; it is included. */
  readonly to: string
}

/** The usage of an owner on a day with one agent and one model. The runs are counted where `model` is empty. */
export interface PricedDay extends DayUsage {
  /** US dollars; null where the price of the model is not known. */
  readonly usd: number | null
}

const QUERY: OptionRules<DaysQuery> = { owner: text, from: text, to: text }

/** Checks the query; then days in order, with what they cost. */
export async function usageByDay(store: Store, query: DaysQuery): Promise<PricedDay[]> {
  const { owner, from, to } = readOptions('usageByDay(query)', query, QUERY)
  const range = { from: dayOf(from, 'from'), to: dayOf(to, 'to') }
  const days = await store.usage(owner === undefined ? range : { ...range, owner })
  const own = days.filter((day) => !isCharge(day))
  return own.map((day) => ({ ...day, usd: usdOf(day) }))
}

function usdOf({ model, usage, modelCalls }: DayUsage): number | null {
  return model === '' ? 0 : costOfCalls(usage, modelCalls, model)
}

function dayOf(given: string | undefined, name: string): string {
  if (given !== undefined && /^\d{4}-\d{2}-\d{2}$/.test(given) && !Number.isNaN(Date.parse(given))) return given
  throw new InputError('invalid_input', `usageByDay({ ${name} }) takes a day by UTC, such as 2026-11-17.`)
}
