import { flag, int, list, number, oneOf, readOptions, record } from '../base/options.ts'
import type { ModelSettings } from './model.ts'

/** Refuses a setting that no model would ever hear of, and values that every provider would refuse. */
export function readSettings(given: ModelSettings, where: string): ModelSettings {
  return readOptions(where, given, SETTINGS)
}

const SETTINGS = {
  temperature: number(0),
  topP: number(0, 1),
  topK: int(0),
  maxOutputTokens: int(1),
  stopSequences: list,
  seed: int(Number.MIN_SAFE_INTEGER),
  presencePenalty: number(),
  frequencyPenalty: number(),
  reasoning: oneOf('none', 'minimal', 'low', 'medium', 'high', 'xhigh'),
  promptCache: flag,
  providerOptions: record,
}
