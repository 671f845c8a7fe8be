import { InputError } from '../../base/error.ts'
import { type OptionRules, readOptions, text } from '../../base/options.ts'
import { costOfCalls } from '../../model/named/prices.ts'
import { isCharge } from '../../rules/settle/charges.ts'
import type { DayUsage } from '../../store/spent.ts'
import type { Store } from '../../store/store.ts'
import { ownerlessUsage } from './ownerless-usage.ts'

/** Which days to sum up. */
export interface DaysQuery {
  /** Only of this owner. Default: all that there are, and runs without an owner. */
  readonly owner?: string
  /** The first day, by UTC: `2026-11-17`. */
  readonly from: string
  /** The last day; it is included. */
  readonly to: string
}

/** The usage of an owner, or of runs without one, on a day with one agent and one model. The runs are counted where `model` is empty. */
export interface PricedDay extends Omit<DayUsage, 'owner'> {
  /** The owner of the root conversation; null for runs of no owner, such as those of the command line. */
  readonly owner: string | null
  /** US dollars; null where the price of the model is not known. */
  readonly usd: number | null
}

const QUERY: OptionRules<DaysQuery> = { owner: text, from: text, to: text }

/** Checks the query; then days in order, with what they cost. */
export async function usageByDay(store: Store, query: DaysQuery): Promise<PricedDay[]> {
  const { owner, from, to } = readOptions('usageByDay(query)', query, QUERY)
  const range = { from: dayOf(from, 'from'), to: dayOf(to, 'to') }
  const days = await store.usage(owner === undefined ? range : { ...range, owner })
  const own = days.filter((day) => !isCharge(day)).map((day) => ({ ...day, usd: usdOf(day) }))
  if (owner !== undefined) return own
  const nobodys = await ownerlessUsage(store, range)
  return [...own, ...nobodys.map((day) => ({ ...day, owner: null, usd: usdOf(day) }))].sort(byDay)
}

function byDay(a: PricedDay, b: PricedDay): number {
  if (a.day !== b.day) return a.day < b.day ? -1 : 1
  const [one, other] = [keyOf(a), keyOf(b)]
  return one < other ? -1 : Number(one > other)
}

function keyOf({ owner, agent, model }: PricedDay): string {
  return JSON.stringify([owner ?? '', agent, model])
}

function usdOf({ model, usage, modelCalls }: Pick<DayUsage, 'model' | 'usage' | 'modelCalls'>): number | null {
  return model === '' ? 0 : costOfCalls(usage, modelCalls, model)
}

function dayOf(given: string | undefined, name: string): string {
  if (given !== undefined && /^\d{4}-\d{2}-\d{2}$/.test(given) && !Number.isNaN(Date.parse(given))) return given
  throw new InputError('invalid_input', `usageByDay({ ${name} }) takes a day by UTC, such as 2026-11-17.`)
}
