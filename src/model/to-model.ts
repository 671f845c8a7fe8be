import { type AiSdkModel, isAiSdkModel } from './ai-sdk/ai-sdk-model.ts'
import { fromAiSdk } from './ai-sdk/from-ai-sdk.ts'
import type { Model } from './model.ts'
import { namedModel } from './named/named-model.ts'

/** What may be given as a model: `"provider/model"` or an alias, a model of the AI SDK, or a Model. */
export type ModelLike = Model | AiSdkModel | string

/** Undefined for what is no model. */
export function toModel(value: unknown): Model | undefined {
  if (typeof value === 'string') return value.trim() === '' ? undefined : namedModel(value.trim())
  if (typeof value !== 'object' || value === null) return undefined
  if (typeof (value as Partial<Model>).stream === 'function') return value as Model
  return isAiSdkModel(value) ? fromAiSdk(value) : undefined
}
