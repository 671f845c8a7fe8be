import { sizeOf } from '../base/json.ts'
import type { Usage } from '../graph/content.ts'
import type { CallCost } from '../graph/turn/reserve.ts'
import type { Model, ModelRequest } from '../model/model.ts'
import { costOf } from '../model/named/prices.ts'

export interface Estimate extends CallCost {
  /** Is the price of the model known? Without it dollars are 0. */
  readonly isPriced: boolean
}

/** Bytes of a token, about: those of letters beyond ASCII are more, and so are their tokens. */
const BYTES = 4
/** An answer without a limit of its own: what it is thought to take, and what every provider lets it be asked for. */
const EXPECTED_ANSWER = 1_000
const MOST_ANSWER = 4_096

/** What a call will cost, about, and not less than the one before it did: contexts grow. */
export function estimateOf(model: Model, request: ModelRequest, before: Usage): Estimate {
  const { maxOutputTokens } = request.settings
  const inputTokens = Math.max(tokensOf(request), before.inputTokens)
  const least = Math.max(maxOutputTokens ?? EXPECTED_ANSWER, before.outputTokens)
  const question = priceOf(model, inputTokens, 0)
  const whole = priceOf(model, inputTokens, MILLION)
  return {
    question: { tokens: inputTokens, usd: question ?? 0 },
    answer: { least, most: Math.max(least, maxOutputTokens ?? MOST_ANSWER) },
    usdPerToken: ((whole ?? 0) - (question ?? 0)) / MILLION,
    isPriced: question !== null,
  }
}

const MILLION = 1_000_000

/** The same request for an answer of at most so many tokens: a provider that heeds it costs no more than was held. */
export function withAnswerOf(request: ModelRequest, answerTokens: number): ModelRequest {
  const { settings } = request
  const maxOutputTokens = Math.min(settings.maxOutputTokens ?? answerTokens, answerTokens)
  return { ...request, settings: { ...settings, maxOutputTokens } }
}

/** What a call has used whose provider was not heard to the end, about. */
export function usageOf(request: ModelRequest, text: string): Usage {
  const outputTokens = Math.ceil(sizeOf(text) / BYTES)
  return { inputTokens: tokensOf(request), outputTokens, cacheReadTokens: 0, cacheWriteTokens: 0 }
}

function priceOf({ id }: Model, inputTokens: number, outputTokens: number): number | null {
  return costOf({ inputTokens, outputTokens, cacheReadTokens: 0, cacheWriteTokens: 0 }, id)
}

function tokensOf({ messages, tools, outputSchema }: ModelRequest): number {
  return Math.ceil(sizeOf(JSON.stringify([messages, tools, outputSchema])) / BYTES)
}
