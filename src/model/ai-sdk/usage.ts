import type { Json } from '../../base/json.ts'
import type { Usage } from '../../graph/content.ts'
import { type AiSdkModel, isAnthropic } from './ai-sdk-model.ts'

/** The usage of v2 is flat, of v3 and v4 nested. What a provider does not tell counts as none. */
export function usageIn(usage: unknown, from: { model: AiSdkModel; metadata: Json | undefined }): Usage {
  if (typeof usage !== 'object' || usage === null) return counted({})
  const { inputTokens, outputTokens } = usage as { inputTokens?: unknown; outputTokens?: unknown }
  if (typeof inputTokens !== 'object' || inputTokens === null) return flatUsage(usage, from)
  const input = inputTokens as { total?: unknown; noCache?: unknown; cacheRead?: unknown; cacheWrite?: unknown }
  const output = (outputTokens ?? {}) as { total?: unknown; text?: unknown; reasoning?: unknown }
  return counted({
    input: input.total ?? count(input.noCache) + count(input.cacheRead) + count(input.cacheWrite),
    output: output.total ?? count(output.text) + count(output.reasoning),
    cacheRead: input.cacheRead,
    cacheWrite: input.cacheWrite,
  })
}

/** v2 has no place for written tokens, and Claude's provider does not count cached ones as input there. */
function flatUsage(usage: object, { model, metadata }: { model: AiSdkModel; metadata: Json | undefined }): Usage {
  const { inputTokens, outputTokens, cachedInputTokens } = usage as Record<string, unknown>
  const written = isAnthropic(model) ? anthropicWritten(metadata) : 0
  const beside = isAnthropic(model) ? count(cachedInputTokens) + written : 0
  return counted({
    input: count(inputTokens) + beside,
    output: outputTokens,
    cacheRead: cachedInputTokens,
    cacheWrite: written,
  })
}

function anthropicWritten(metadata: Json | undefined): number {
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata)) return 0
  const own = metadata['anthropic']
  if (typeof own !== 'object' || own === null || Array.isArray(own)) return 0
  return count(own['cacheCreationInputTokens'])
}

function counted(of: { input?: unknown; output?: unknown; cacheRead?: unknown; cacheWrite?: unknown }): Usage {
  return {
    inputTokens: count(of.input),
    outputTokens: count(of.output),
    cacheReadTokens: count(of.cacheRead),
    cacheWriteTokens: count(of.cacheWrite),
  }
}

/** What makes no sense stays so, to be refused where usage is read. */
function count(value: unknown): number {
  if (value === undefined || value === null) return 0
  return typeof value === 'number' ? Math.round(value) : Number.NaN
}
