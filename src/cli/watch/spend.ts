import { costOf, type Usage } from '../../index.ts'

/** Tokens, and dollars where the price of the model is known. */
export interface Spend {
  readonly tokens: number
  readonly usd: number | null
}

export const NOTHING: Spend = { tokens: 0, usd: 0 }

export function spendOf(usage: Usage, model: string): Spend {
  return { tokens: usage.inputTokens + usage.outputTokens, usd: priceOf(usage, model) }
}

/** A config file that cannot be read is no reason to show nothing. */
function priceOf(usage: Usage, model: string): number | null {
  try {
    return costOf(usage, model)
  } catch {
    return null
  }
}

/** Unknown and something is unknown: a sum that left out a part would be a wrong number. */
export function sumOf(spends: readonly Spend[]): Spend {
  const used = spends.filter(({ tokens }) => tokens > 0)
  return {
    tokens: used.reduce((sum, { tokens }) => sum + tokens, 0),
    usd: used.reduce<number | null>((sum, { usd }) => (sum === null || usd === null ? null : sum + usd), 0),
  }
}
