// The names of OpenTelemetry's conventions for generative AI, in two vocabularies. They are drafts and change: this file is all
// that knows them.

import type { FinishReason, ModelResponse, ModelSettings } from '../../model/model.ts'
import type { SpanAttributes, SpanValue, Vocabulary } from '../../tool/telemetry.ts'

/** Providers by the first part of a model's id. Others keep their name. */
const PROVIDERS: Readonly<Record<string, string>> = {
  google: 'gcp.gemini',
  gemini: 'gcp.gemini',
  vertex: 'gcp.vertex_ai',
  bedrock: 'aws.bedrock',
  azure: 'azure.ai.openai',
  mistral: 'mistral_ai',
  xai: 'x_ai',
}

/** The page that says what the names mean. */
export const SCHEMA_URLS: Readonly<Record<Vocabulary, string>> = {
  '1.41': 'https://opentelemetry.io/schemas/1.41.0',
  latest: 'https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev',
}

/** The provider and the model of an id such as `openai/gpt-5`. */
export function modelNames(id: string): { readonly provider: string; readonly model: string } {
  const at = id.indexOf('/')
  const provider = at < 0 ? 'unknown' : id.slice(0, at)
  return { provider: spanWord(PROVIDERS[provider] ?? provider), model: spanWord(id.slice(at + 1)) }
}

/** A name in one span. Models may invent names of tools and agents: what does not look like a name may be text of a person. */
export function spanWord(text: string): string {
  return /^[\w.:@/+-]{1,128}$/.test(text) ? text : '_other'
}

/** The names of the facts of a run, by the conventions. */
export function runAttributes(
  {
    agent,
    hash,
    conversationId,
    runId,
  }: { readonly agent: string; readonly hash: string; readonly conversationId: string; readonly runId: string },
  vocabulary: Vocabulary,
): SpanAttributes {
  const attributes: Record<string, SpanValue> = {
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.name': agent,
    'gen_ai.conversation.id': conversationId,
    'legate.run.id': runId,
  }
  if (vocabulary === '1.41') attributes['gen_ai.agent.version'] = hash
  return attributes
}

/** Adds the tokens of a call. Who sums up spans counts each token once, so runs have none of these. */
export function addUsageAttributes(
  to: Record<string, SpanValue>,
  usage: {
    readonly inputTokens: number
    readonly outputTokens: number
    readonly cacheReadTokens: number
    readonly cacheWriteTokens: number
  },
  vocabulary: Vocabulary,
): void {
  to['gen_ai.usage.input_tokens'] = usage.inputTokens
  to['gen_ai.usage.output_tokens'] = usage.outputTokens
  if (usage.cacheReadTokens > 0) to['gen_ai.usage.cache_read.input_tokens'] = usage.cacheReadTokens
  if (usage.cacheWriteTokens > 0) to[CACHE_WRITE[vocabulary]] = usage.cacheWriteTokens
}

const CACHE_WRITE: Readonly<Record<Vocabulary, string>> = {
  '1.41': 'gen_ai.usage.cache_creation.input_tokens',
  latest: 'gen_ai.usage.cache_write.input_tokens',
}

/** Adds the settings of a request, as far as they are numbers. */
export function addSettings(to: Record<string, SpanValue>, settings: ModelSettings): void {
  for (const [key, name] of SETTINGS) {
    const value = settings[key]
    if (typeof value === 'number') to[`gen_ai.request.${name}`] = value
  }
}

const SETTINGS: readonly (readonly [keyof ModelSettings, string])[] = [
  ['temperature', 'temperature'],
  ['topP', 'top_p'],
  ['topK', 'top_k'],
  ['maxOutputTokens', 'max_tokens'],
  ['seed', 'seed'],
  ['presencePenalty', 'presence_penalty'],
  ['frequencyPenalty', 'frequency_penalty'],
]

/** Adds the names that a provider gave its answer. */
export function addResponse(to: Record<string, SpanValue>, { id, model }: ModelResponse): void {
  if (id !== undefined) to['gen_ai.response.id'] = spanWord(id)
  if (model !== undefined) to['gen_ai.response.model'] = spanWord(model)
}

/** Why a model ended its answer, in the words of the conventions. */
export const FINISHED: Readonly<Record<FinishReason, string>> = {
  stop: 'stop',
  'tool-calls': 'tool_call',
  length: 'length',
  'content-filter': 'content_filter',
  error: 'error',
  other: 'stop',
}

/** Adds the agent that a call starts, as the drafts name it. */
export function addTransfer(to: Record<string, SpanValue>, agent: string): void {
  to['gen_ai.transfer.mode'] = 'return_to_caller'
  to['gen_ai.transfer.target.name'] = agent
}
