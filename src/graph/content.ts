import type { Json } from '../base/json.ts'

/** One piece of what was said. `data` of media is base64 text or a URL. */
export type Block =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string; readonly providerMetadata?: Json }
  | { readonly type: 'image' | 'audio' | 'video' | 'file'; readonly mediaType: string; readonly data: string }
  | { readonly type: 'json'; readonly value: Json }

export type Content = string | readonly Block[]

/** A call the model asked for. `id` is the provider's: data only, it may repeat. */
export interface ToolCall {
  readonly id: string
  readonly name: string
  readonly input: Json
  /** Set when the model's arguments were not JSON; `input` is then the raw text. */
  readonly invalid?: string
}

export interface Usage {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cacheReadTokens: number
  readonly cacheWriteTokens: number
}

export const NO_USAGE: Usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

export function addUsage(a: Usage, b: Usage): Usage {
  if (b === NO_USAGE) return a
  if (a === NO_USAGE) return b
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    cacheReadTokens: a.cacheReadTokens + b.cacheReadTokens,
    cacheWriteTokens: a.cacheWriteTokens + b.cacheWriteTokens,
  }
}

/** All text of `content`, blocks joined by a line break; structured blocks as JSON. */
export function textOf(content: Content): string {
  if (typeof content === 'string') return content
  const parts: string[] = []
  for (const block of content) {
    if (block.type === 'text') parts.push(block.text)
    if (block.type === 'json') parts.push(JSON.stringify(block.value))
  }
  return parts.join('\n')
}
