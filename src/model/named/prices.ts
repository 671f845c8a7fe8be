import type { Usage } from '../../graph/content.ts'
import { lastGoodConfig, type UserConfig } from '../config.ts'
import { PRICE_TABLE, PRICES_AS_OF, type TableRow } from '../price-table.ts'

/** What is known of a model. Null is unknown, not nothing. */
export interface ModelInfo {
  readonly contextWindow: number | null
  /** US dollars per million tokens. */
  readonly price: {
    readonly input: number
    readonly output: number
    readonly cacheRead: number
    readonly cacheWrite: number
  } | null
  /** When our table was last compared with what providers publish; null for what the config file says. */
  readonly asOf: string | null
}

/** Of `provider/model`: `prices` of the config file, and our table for what they leave open. Never throws. */
export function modelInfo(id: string): ModelInfo {
  const { row, isOwn } = rowOf(id)
  return { contextWindow: row.contextWindow, price: priceOf(row, 0), asOf: isOwn ? null : PRICES_AS_OF }
}

/** What one call has cost in US dollars; null when the price of the model is not known. Never throws. */
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

/** `isOwn`: nothing of it is from our table. */
function rowOf(id: string): { readonly row: TableRow; readonly isOwn: boolean } {
  const config = lastGoodConfig()
  // The file may say another price than ours, which is then no longer true.
  if (config === undefined) return { row: UNKNOWN, isOwn: true }
  const own = ownRow(config, id)
  const known = table.get(id) ?? table.get(withoutDate(id))
  if (own === undefined) return { row: known ?? UNKNOWN, isOwn: false }
  if (known === undefined) return { row: own, isOwn: true }
  const contextWindow = own.contextWindow ?? known.contextWindow
  // A price is taken whole: ours for the cache or for long calls may not fit to theirs.
  if (own.input !== null) return { row: { ...own, contextWindow }, isOwn: true }
  return { row: { ...known, ...own, contextWindow, input: known.input, output: known.output }, isOwn: false }
}

function ownRow({ prices }: UserConfig, id: string): TableRow | undefined {
  return prices.get(id) ?? prices.get(withoutDate(id))
}

const UNKNOWN: TableRow = { contextWindow: null, input: null, output: null }

const table: ReadonlyMap<string, TableRow> = new Map(Object.entries(PRICE_TABLE))

/** `-20250929`, `-2025-08-07`, `-latest`: the same model at the same price. */
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
