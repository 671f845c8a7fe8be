import type { Usage } from '../graph/content.ts'
import type { Money } from '../graph/rows.ts'
import type { Model, ModelRequest } from '../model/model.ts'
import { costOf } from '../model/named/prices.ts'

export interface Estimate extends Omit<Money, 'usd'> {
  readonly usd: number | null
}

/** Characters of a token, about; and what an answer is thought to take that has no limit of its own. */
const CHARACTERS = 4
const EXPECTED_OUTPUT = 1_000

/**
 * What a call will cost, about, and not less than the one before it did: contexts grow. `usd` is null when the price of
 * the model is not known.
 */
export function estimateOf(model: Model, request: ModelRequest, before: Usage): Estimate {
  const { settings } = request
  const inputTokens = Math.max(tokensOf(request), before.inputTokens)
  const outputTokens = Math.max(settings.maxOutputTokens ?? EXPECTED_OUTPUT, before.outputTokens)
  const usage = { inputTokens, outputTokens, cacheReadTokens: 0, cacheWriteTokens: 0 }
  return { tokens: inputTokens + outputTokens, usd: costOf(usage, model.id) }
}

/** The same request for an answer of at most what is left, about, when the question is paid. */
export function withinTokens(request: ModelRequest, left: number): ModelRequest {
  const { maxOutputTokens = left } = request.settings
  const most = Math.max(1, Math.min(maxOutputTokens, left - tokensOf(request)))
  return { ...request, settings: { ...request.settings, maxOutputTokens: most } }
}

function tokensOf({ messages, tools, outputSchema }: ModelRequest): number {
  return Math.ceil(JSON.stringify([messages, tools, outputSchema]).length / CHARACTERS)
}
