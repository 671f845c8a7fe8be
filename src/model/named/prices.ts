import type { Usage } from '../../graph/content.ts'
import { readConfig } from './config.ts'
import { PRICE_TABLE, PRICES_AS_OF, type TableRow } from './price-table.ts'

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

/** Of `provider/model`: `prices` of the config file, else our table. */
export function modelInfo(id: string): ModelInfo {
  const own = ownRow(id)
  const row = own ?? tableRow(id)
  if (row === undefined) return { contextWindow: null, price: null, asOf: PRICES_AS_OF }
  return {
    contextWindow: row.contextWindow,
    price: priceOf(row, 0),
    asOf: own === undefined ? PRICES_AS_OF : null,
  }
}

/** What one call has cost in US dollars; null when the price of the model is not known. */
export function costOf(usage: Usage, id: string): number | null {
  const row = ownRow(id) ?? tableRow(id)
  const price = row === undefined ? null : priceOf(row, usage.inputTokens)
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

function ownRow(id: string): TableRow | undefined {
  const { prices } = readConfig()
  return prices.get(id) ?? prices.get(withoutDate(id))
}

function tableRow(id: string): TableRow | undefined {
  return table.get(id) ?? table.get(withoutDate(id))
}

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
