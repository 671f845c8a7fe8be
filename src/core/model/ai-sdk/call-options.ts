import type { Json } from '../../base/json.ts'
import type { ModelRequest, ModelSettings, ToolSchema } from '../model.ts'
import { type AiSdkModel, isAnthropic, providerName } from './ai-sdk-model.ts'
import { type AiSdkMessage, toAiSdkPrompt } from './prompt.ts'
import { isExactSchema, isOpenAi } from './response-format.ts'
import type { Wrapping } from './wrapping.ts'

type ProviderOptions = { readonly [provider: string]: Json }

/** The options of `doStream`, except for the signal. */
export function callOptions(model: AiSdkModel, { request, format }: Pick<Wrapping, 'request' | 'format'>): object {
  const { settings, tools } = request
  const reasoning = settings.reasoning === undefined ? {} : reasoningOptions(model, settings.reasoning)
  const { providerOptions: own } = settings
  const providerOptions = merged([defaultsOf(model), format.providerOptions, reasoning.providerOptions, own])
  return {
    prompt: withCacheMarks(model, request, toAiSdkPrompt(model, request.messages)),
    ...plainSettings(settings),
    ...(tools.length === 0
      ? {}
      : { tools: tools.map((tool) => functionTool(model, tool)), toolChoice: { type: 'auto' } }),
    ...(format.responseFormat === undefined ? {} : { responseFormat: format.responseFormat }),
    ...(reasoning.reasoning === undefined ? {} : { reasoning: reasoning.reasoning }),
    ...(providerOptions === undefined ? {} : { providerOptions }),
  }
}

/** OpenAI would make every schema exact: it would require optional fields and refuse unknown keywords. */
function functionTool(model: AiSdkModel, tool: ToolSchema): object {
  const isLoose = isOpenAi(model) && !isExactSchema(tool.inputSchema)
  return isLoose ? { type: 'function', ...tool, strict: false } : { type: 'function', ...tool }
}

const PLAIN = ['temperature', 'topP', 'topK', 'maxOutputTokens', 'seed', 'presencePenalty', 'frequencyPenalty'] as const

function plainSettings(settings: ModelSettings): object {
  const given: Record<string, unknown> = {}
  for (const key of PLAIN) if (settings[key] !== undefined) given[key] = settings[key]
  if (settings.stopSequences !== undefined) given['stopSequences'] = [...settings.stopSequences]
  return given
}

/** The store keeps the conversation, so OpenAI need not: it then sends its reasoning along, encrypted. */
function defaultsOf({ provider }: AiSdkModel): ProviderOptions | undefined {
  return provider === 'openai.responses' ? { openai: { store: false } } : undefined
}

/** Merges option by option; later ones win. */
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
 * Claude caches up to a mark. One mark follows the instructions and covers the tools too; one stands at the end, where
 * the next call of the same run begins. A single question without tools would pay for the second mark and never use it.
 */
function withCacheMarks(model: AiSdkModel, request: ModelRequest, prompt: AiSdkMessage[]): AiSdkMessage[] {
  if (request.settings.promptCache === false || !isAnthropic(model)) return prompt
  const instructions = prompt.findIndex(({ role }) => role === 'system')
  const goesOn = request.tools.length > 0 || prompt.some(({ role }) => role === 'assistant')
  const marked = new Set([instructions, goesOn ? prompt.length - 1 : -1])
  return prompt.map((message, at) => (marked.has(at) ? { ...message, providerOptions: CACHE_MARK } : message))
}

type Level = NonNullable<ModelSettings['reasoning']>

/** v4 has one option for reasoning; before that every provider has its own. */
function reasoningOptions(
  model: AiSdkModel,
  level: Level,
): { reasoning?: Level; providerOptions?: { readonly [provider: string]: Json } } {
  if (model.specificationVersion === 'v4') return { reasoning: level }
  if (isAnthropic(model)) return { providerOptions: { anthropic: anthropicOptions(model.modelId, level) } }
  const name = providerName(model)
  if (name === 'google')
    return { providerOptions: { google: { thinkingConfig: googleThinking(model.modelId, level) } } }
  return { providerOptions: { [name]: { reasoningEffort: level } } }
}

const BUDGETS = { minimal: 1_024, low: 2_048, medium: 8_192, high: 16_384, xhigh: 24_576 } as const
/** Claude 3 to 4.5 take a budget of thinking tokens, later ones an effort. */
const CLAUDE_WITH_BUDGET = /claude-(?:3|(?:opus|sonnet|haiku)-4(?:-[0-5])?(?:-\d{8})?$)/

function anthropicOptions(modelId: string, level: Level): { [key: string]: Json } {
  if (level === 'none') return { thinking: { type: 'disabled' } }
  if (CLAUDE_WITH_BUDGET.test(modelId)) return { thinking: { type: 'enabled', budgetTokens: BUDGETS[level] } }
  return { thinking: { type: 'adaptive' }, effort: level === 'minimal' ? 'low' : level }
}

function googleThinking(modelId: string, level: Level): { [key: string]: Json } {
  if (/gemini-2/.test(modelId)) {
    return { thinkingBudget: level === 'none' ? 0 : BUDGETS[level], includeThoughts: level !== 'none' }
  }
  if (level === 'none' || level === 'minimal') return { thinkingLevel: 'minimal' }
  return { thinkingLevel: level === 'xhigh' ? 'high' : level, includeThoughts: true }
}
