import { flag, int, list, number, oneOf, readOptions, record } from '../../base/options.ts'
import { type AiSdkModel, isAiSdkModel } from '../ai-sdk/ai-sdk-model.ts'
import { fromAiSdk } from '../ai-sdk/from-ai-sdk.ts'
import type { Model, ModelSettings } from '../model.ts'
import { namedModel } from './named-model.ts'

/** Every form of a model: `"provider/model"` or an alias, a model of the AI SDK, or a Model. */
export type ModelLike = Model | AiSdkModel | string

/** Undefined for a value that is not a model. */
export function toModel(value: unknown): Model | undefined {
  if (typeof value === 'string') return value.trim() === '' ? undefined : namedModel(value.trim())
  if (typeof value !== 'object' || value === null) return undefined
  if (typeof (value as Partial<Model>).stream === 'function') return value as Model
  return isAiSdkModel(value) ? fromAiSdk(value) : undefined
}

/** Refuses settings that no model knows, and values that every provider would refuse. */
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
