import type { Json } from '../../base/json.ts'
import type { JsonSchema } from '../../base/schema/schema.ts'
import type { ModelRequest } from '../model.ts'
import { type AiSdkModel, isAnthropic, isChat, providerName } from './ai-sdk-model.ts'

export interface Format {
  readonly responseFormat?: object
  readonly providerOptions?: { readonly [provider: string]: Json }
}

/**
 * Returns the output schema as a setting, if the provider is known to take it with this schema and these tools.
 * Otherwise only words tell the model: a refused request would be worse than an answer that needs a second try.
 */
export function responseFormat(model: AiSdkModel, { outputSchema, tools }: ModelRequest): Format {
  if (outputSchema === null || outputSchema['type'] !== 'object') return NONE
  // Gemini's client writes references out, and fails where they lead back to themselves.
  if (providerName(model) === 'google' && JSON.stringify(outputSchema).includes('"$ref"')) return NONE
  const isExact = isExactSchema(outputSchema)
  if (!takesSchema(model, { isExact, hasTools: tools.length > 0 })) return NONE
  const json = { responseFormat: { type: 'json', schema: outputSchema, name: 'answer' } }
  return isExact || !isOpenAi(model) ? json : { ...json, providerOptions: { openai: { strictJsonSchema: false } } }
}

function takesSchema(model: AiSdkModel, { isExact, hasTools }: { isExact: boolean; hasTools: boolean }): boolean {
  if (isOpenAi(model)) return true
  if (isAnthropic(model)) return isExact && !OLD_CLAUDE.test(model.modelId)
  // Gemini 2 refuses JSON answers beside tools.
  if (providerName(model) === 'google') return !hasTools || !/gemini-[12]/.test(model.modelId)
  // Most providers that copied OpenAI's chat format refuse settings that they do not know.
  const isKnown = !isChat(model) || SCHEMA_IN_CHAT.includes(providerName(model))
  return isKnown && isExact && !hasTools
}

const SCHEMA_IN_CHAT: readonly string[] = ['ollama', 'vllm', 'lmstudio', 'openrouter']

export function isOpenAi(model: AiSdkModel): boolean {
  return ['openai', 'azure'].includes(providerName(model))
}

const NONE: Format = {}

/** The provider would force these models to call a tool with the schema, which forbids thinking and other tools. */
const OLD_CLAUDE = /claude-(?:instant|v?2|3)|claude-(?:sonnet|opus)-4(?:-0)?(?:-\d{8})?$/

const EXACT_KEYS: ReadonlySet<string> = new Set([
  '$schema',
  '$defs',
  '$ref',
  'title',
  'description',
  'type',
  'properties',
  'required',
  'additionalProperties',
  'items',
  'enum',
  'const',
  'anyOf',
])

/** True when every object is closed, every property is required, and no keyword is unknown to strict modes. */
export function isExactSchema(schema: unknown): boolean {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return false
  const { type, properties, required, additionalProperties, items, anyOf, $defs } = schema as Shape
  if (Object.keys(schema).some((key) => !EXACT_KEYS.has(key))) return false
  const names = Object.keys(properties ?? {})
  if (type === 'object' && (additionalProperties !== false || names.some((name) => !required?.includes(name)))) {
    return false
  }
  const below = [...Object.values(properties ?? {}), ...Object.values($defs ?? {}), ...(anyOf ?? [])]
  return (items === undefined ? below : [...below, items]).every(isExactSchema)
}

type Shape = JsonSchema & {
  readonly type?: unknown
  readonly properties?: Record<string, unknown>
  readonly required?: readonly string[]
  readonly additionalProperties?: unknown
  readonly items?: unknown
  readonly anyOf?: readonly unknown[]
  readonly $defs?: Record<string, unknown>
}
