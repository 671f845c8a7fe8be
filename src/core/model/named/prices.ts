import type { Usage } from '../../graph/content.ts'
import { lastGoodConfig, type UserConfig } from '../config.ts'
import { PRICE_TABLE, PRICES_AS_OF, type TableRow } from '../price-table.ts'

/** Facts about a model. Null means unknown, not zero. */
export interface ModelInfo {
  readonly contextWindow: number | null
  /** US dollars per million tokens. */
  readonly price: {
    readonly input: number
    readonly output: number
    readonly cacheRead: number
    readonly cacheWrite: number
  } | null
  /** When our table was last compared with the providers' published prices; null for prices of the config file. */
  readonly asOf: string | null
}

/**
 * Looks up `provider/model` in `prices` of the config file, and in our table for what these leave open. Never throws.
 */
export function modelInfo(id: string): ModelInfo {
  const { row, isOwn } = rowOf(id)
  return { contextWindow: row.contextWindow, price: priceOf(row, 0), asOf: isOwn ? null : PRICES_AS_OF }
}

/** The cost of one call in US dollars; null when the model's price is unknown. Never throws. */
export function costOf(usage: Usage, id: string): number | null {
  const price = priceOf(rowOf(id).row, usage.inputTokens)
  if (price === null) return null
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = usage
  const plain = Math.max(0, inputTokens - cacheReadTokens - cacheWriteTokens)
  const perMillion =
    plain * price.input +
    cacheReadTokens * price.cacheRead +
    cacheWriteTokens * price.cacheWrite +
    outputTokens * price.output
  return perMillion / 1_000_000
}

/**
 * The cost of several calls by their sum, as if all of them were equally long: prices may grow with the length of a call. Null
 * when the model's price is unknown.
 */
export function costOfCalls(sum: Usage, calls: number, id: string): number | null {
  const share = (tokens: number) => tokens / Math.max(1, calls)
  const one = {
    inputTokens: share(sum.inputTokens),
    outputTokens: share(sum.outputTokens),
    cacheReadTokens: share(sum.cacheReadTokens),
    cacheWriteTokens: share(sum.cacheWriteTokens),
  }
  const cost = costOf(one, id)
  return cost === null ? null : cost * Math.max(1, calls)
}

/** `isOwn`: nothing in the row comes from our table. */
function rowOf(id: string): { readonly row: TableRow; readonly isOwn: boolean } {
  const config = lastGoodConfig()
  // An unreadable file may hold another price than ours, so ours is not used.
  if (config === undefined) return { row: UNKNOWN, isOwn: true }
  const own = ownRow(config, id)
  const known = table.get(id) ?? table.get(withoutDate(id))
  if (own === undefined) return { row: known ?? UNKNOWN, isOwn: false }
  if (known === undefined) return { row: own, isOwn: true }
  const contextWindow = own.contextWindow ?? known.contextWindow
  // Takes a price as a whole: our prices for the cache or for long calls may not match the user's.
  if (own.input !== null) return { row: { ...own, contextWindow }, isOwn: true }
  return { row: { ...known, ...own, contextWindow, input: known.input, output: known.output }, isOwn: false }
}

function ownRow({ prices }: UserConfig, id: string): TableRow | undefined {
  return prices.get(id) ?? prices.get(withoutDate(id))
}

const UNKNOWN: TableRow = { contextWindow: null, input: null, output: null }

const table: ReadonlyMap<string, TableRow> = new Map(Object.entries(PRICE_TABLE))

/** Removes `-20250929`, `-2025-08-07`, `-latest`: the same model at the same price. */
function withoutDate(id: string): string {
  return id.replace(/-(?:\d{8}|\d{4}-\d{2}-\d{2}|latest)$/, '')
}

function priceOf(row: TableRow, inputTokens: number): ModelInfo['price'] {
  if (row.input === null || row.output === null) return null
  const { long } = row
  if (long !== undefined && inputTokens > long.above) return { ...long, cacheWrite: long.input }
  return {
    input: row.input,
    output: row.output,
    cacheRead: row.cacheRead ?? row.input,
    cacheWrite: row.cacheWrite ?? row.input,
  }
}
