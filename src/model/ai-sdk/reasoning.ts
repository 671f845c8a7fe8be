import type { Json } from '../../base/json.ts'
import type { ModelSettings } from '../model.ts'
import { type AiSdkModel, isAnthropic, providerName } from './ai-sdk-model.ts'

type Level = NonNullable<ModelSettings['reasoning']>

/** v4 has one word for it; before that every provider has its own. */
export function reasoningOptions(
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
/** Claude 3 to 4.5 think by a budget of tokens, later ones by effort. */
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
