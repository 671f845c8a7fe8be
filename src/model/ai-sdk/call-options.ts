import type { Json } from '../../base/json.ts'
import type { ModelRequest, ModelSettings } from '../model.ts'
import { type AiSdkModel, isAnthropic } from './ai-sdk-model.ts'
import { type PromptMessage, promptOf } from './prompt.ts'
import { reasoningOptions } from './reasoning.ts'
import { responseFormat } from './response-format.ts'

type ProviderOptions = { readonly [provider: string]: Json }

/** What `doStream` is called with, the signal aside. */
export function callOptions(model: AiSdkModel, request: ModelRequest): object {
  const { settings, tools } = request
  const format = responseFormat(model, request)
  const reasoning = settings.reasoning === undefined ? {} : reasoningOptions(model, settings.reasoning)
  const { providerOptions: own } = settings
  const providerOptions = merged([defaultsOf(model), format.providerOptions, reasoning.providerOptions, own])
  return {
    prompt: withCacheMarks(model, request, promptOf(model, request.messages)),
    ...plainSettings(settings),
    ...(tools.length === 0
      ? {}
      : { tools: tools.map((tool) => ({ type: 'function', ...tool })), toolChoice: { type: 'auto' } }),
    ...(format.responseFormat === undefined ? {} : { responseFormat: format.responseFormat }),
    ...(reasoning.reasoning === undefined ? {} : { reasoning: reasoning.reasoning }),
    ...(providerOptions === undefined ? {} : { providerOptions }),
  }
}

const PLAIN = ['temperature', 'topP', 'topK', 'maxOutputTokens', 'seed', 'presencePenalty', 'frequencyPenalty'] as const

function plainSettings(settings: ModelSettings): object {
  const given: Record<string, unknown> = {}
  for (const key of PLAIN) if (settings[key] !== undefined) given[key] = settings[key]
  if (settings.stopSequences !== undefined) given['stopSequences'] = [...settings.stopSequences]
  return given
}

/** What was said is in our rows: OpenAI need not keep it too, and sends its reasoning along, encrypted. */
function defaultsOf({ provider }: AiSdkModel): ProviderOptions | undefined {
  return provider === 'openai.responses' ? { openai: { store: false } } : undefined
}

/** Later ones win, option by option. */
function merged(all: readonly (ProviderOptions | undefined)[]): ProviderOptions | undefined {
  const result: Record<string, Json> = {}
  for (const options of all) {
    for (const [provider, own] of Object.entries(options ?? {})) {
      const before = result[provider]
      result[provider] = isObject(before) && isObject(own) ? { ...before, ...own } : own
    }
  }
  return Object.keys(result).length === 0 ? undefined : result
}

function isObject(value: Json | undefined): value is { [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const CACHE_MARK = { anthropic: { cacheControl: { type: 'ephemeral' } } }

/**
 * Claude caches up to a mark: one after the instructions, which covers the tools too, and one at the end, which the next
 * call of the same run begins with. A single question without tools would pay for the second and never use it.
 */
function withCacheMarks(model: AiSdkModel, request: ModelRequest, prompt: PromptMessage[]): PromptMessage[] {
  if (request.settings.promptCache === false || !isAnthropic(model)) return prompt
  const instructions = prompt.findIndex(({ role }) => role === 'system')
  const goesOn = request.tools.length > 0 || prompt.some(({ role }) => role === 'assistant')
  const marked = new Set([instructions, goesOn ? prompt.length - 1 : -1])
  return prompt.map((message, at) => (marked.has(at) ? { ...message, providerOptions: CACHE_MARK } : message))
}
