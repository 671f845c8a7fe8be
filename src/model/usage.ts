import { NO_USAGE, type Usage } from '../graph/content.ts'

/** What a model says it used. */
export interface ToldUsage {
  readonly usage: Usage
  /** Why it was not taken; null where it was. */
  readonly fault: string | null
}

/**
 * The one place that reads what a model says it used: whole numbers, 0 or more. Anything else is not counted, because a sum
 * of it would be wrong for ever; a budget then counts what was held back for the call.
 */
export function readUsage(told: unknown): ToldUsage {
  if (typeof told !== 'object' || told === null) return refused(told === undefined ? 'nothing' : wordsFor(told))
  const { inputTokens, outputTokens, cacheReadTokens = 0, cacheWriteTokens = 0 } = told as Usage
  const usage = { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens }
  for (const key in usage) {
    const count = usage[key as keyof Usage]
    if (!Number.isSafeInteger(count) || count < 0) return refused(`${key} ${wordsFor(count)}`)
  }
  return { usage, fault: null }
}

function refused(what: string): ToldUsage {
  return { usage: NO_USAGE, fault: what }
}

function wordsFor(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 40)) : String(value).slice(0, 40)
}
