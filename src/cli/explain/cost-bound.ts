import { modelInfo, type Turn } from '../../index.ts'

export interface CostBound {
  /** US dollars; null when it cannot be known. */
  readonly usd: number | null
  /** How it was found, or why it was not. */
  readonly how: string
}

/** What a run can cost at most, without its subagents: every call fills the model's window at its dearest price. */
export function costBound(model: string | null, { limits, spend }: Pick<Turn, 'limits' | 'spend'>): CostBound {
  const limit = spend?.limit.usd ?? null
  const byCalls = boundOfCalls(model, { calls: limits.turns, tokens: spend?.limit.tokens ?? null })
  if (limit === null || (byCalls.usd !== null && byCalls.usd < limit)) return byCalls
  return { usd: limit, how: 'the budget, which binds its subagents too' }
}

interface Calls {
  readonly calls: number
  readonly tokens: number | null
}

function boundOfCalls(model: string | null, { calls, tokens }: Calls): CostBound {
  if (model === null) return { usd: null, how: 'no model is named' }
  const { price, contextWindow } = modelInfo(model)
  if (price === null) return { usd: null, how: `the price of ${model} is not known` }
  const dearest = Math.max(price.input, price.output, price.cacheRead, price.cacheWrite)
  if (tokens !== null) return { usd: (tokens * dearest) / 1_000_000, how: `a budget of ${tokens} tokens` }
  if (contextWindow === null) return { usd: null, how: `the context window of ${model} is not known` }
  const usd = (calls * contextWindow * dearest) / 1_000_000
  return { usd, how: `${calls} calls that each fill ${contextWindow} tokens; subagents come on top` }
}
