// The content of messages: texts, media, reasoning, structured data and tool calls, and the usage of a model call.
//
// Owns:      the types of content, and the few ways to turn content into text.
// Called by: rules (outcomes, folds), agent (requests and answers), model (adapters), conversation (events, transcripts).
// Must stay true:
//   - Content is JSON and provider-neutral. Only `providerMetadata` is opaque, and only its own provider reads it.
//   - Reasoning never leaves the agent whose model wrote it: `plainContent` removes it.

import type { Json } from '../base/json.ts'

/**
 * One piece of a message. `data` of media is base64 text or a URL. `providerMetadata` is opaque data that a provider wants back
 * with the piece, such as the signature of a reasoning.
 */
export type Block =
  | { readonly type: 'text'; readonly text: string; readonly providerMetadata?: Json }
  | { readonly type: 'reasoning'; readonly text: string; readonly providerMetadata?: Json }
  | {
      readonly type: 'image' | 'audio' | 'video' | 'file'
      readonly mediaType: string
      readonly data: string
      /** The name of the file, where it has one. */
      readonly filename?: string
      readonly providerMetadata?: Json
    }
  | { readonly type: 'json'; readonly value: Json }

export type Content = string | readonly Block[]

/** A call the model asked for. `id` is the provider's: data only, it may repeat. */
export interface ToolCall {
  /** The provider's name for the call. */
  readonly id: string
  /** The name of the tool. */
  readonly name: string
  /** The arguments. */
  readonly input: Json
  /** The error, when the model's arguments were not JSON; `input` is then the raw text. */
  readonly invalid?: string
  /** Opaque data that the provider wants back with the call. */
  readonly providerMetadata?: Json
}

/** `inputTokens` are all of the prompt, read from a cache or written to one included; `outputTokens` all of the answer. */
export interface Usage {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cacheReadTokens: number
  readonly cacheWriteTokens: number
}

export const NO_USAGE: Usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

/** All that a node has streamed in the try that goes on now. */
export interface LiveState {
  /** The number of the try. */
  readonly attempt: number
  /** The answer so far. */
  readonly text: string
  /** The thoughts so far. */
  readonly reasoning: string
  /** The calls that the model is writing, in order. */
  readonly calls: readonly LiveCall[]
}

/** A call that a model is writing. */
export interface LiveCall {
  /** The id of the call. */
  readonly callId: string
  /** The name of the tool. */
  readonly tool: string
  /** The arguments so far: the beginning of a JSON text. */
  readonly text: string
}

/** Adds input and output. Input already includes tokens read from and written to a cache. */
export function totalTokens({ inputTokens, outputTokens }: Usage): number {
  return inputTokens + outputTokens
}

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

/** The text of an answer as it was streamed: pieces of text joined, structured blocks on lines of their own. */
export function writtenText(content: Content): string {
  if (typeof content === 'string') return content
  let text = ''
  for (const block of content) {
    if (block.type === 'text') text += block.text
    if (block.type === 'json') text += `\n${JSON.stringify(block.value)}\n`
  }
  return text
}

/** Content without reasoning and provider metadata: a provider does not know an answer that was never completed. */
export function plainContent(content: Content): Content {
  if (typeof content === 'string') return content
  return content.filter(({ type }) => type !== 'reasoning').map(withoutMetadata)
}

function withoutMetadata<T extends Block | ToolCall>(value: T): T {
  if (!('providerMetadata' in value)) return value
  const { providerMetadata, ...rest } = value
  return rest as T
}

/** The call without the metadata that only its provider reads. */
export function plainCall(call: ToolCall): ToolCall {
  return withoutMetadata(call)
}

/** True for a block that users and tools may give: reasoning belongs to models. */
export function isBlock(block: Json): boolean {
  if (typeof block !== 'object' || block === null || Array.isArray(block)) return false
  const { type, text, mediaType, data, filename } = block
  if (type === 'text') return typeof text === 'string' && text.trim() !== ''
  if (type === 'json') return 'value' in block
  const isMedia = ['image', 'audio', 'video', 'file'].includes(String(type))
  if (filename !== undefined && typeof filename !== 'string') return false
  return isMedia && typeof mediaType === 'string' && typeof data === 'string' && data !== ''
}

/** True for a content that a node may keep: also an empty text, and the reasoning of a model. */
export function isStoredContent(value: unknown): value is Content {
  if (typeof value === 'string') return true
  return Array.isArray(value) && value.every((block: Json) => isBlock(block) || isText(block))
}

function isText(block: Json): boolean {
  if (typeof block !== 'object' || block === null || Array.isArray(block)) return false
  return (block['type'] === 'text' || block['type'] === 'reasoning') && typeof block['text'] === 'string'
}

/** True for a content without visible text: reasoning and spaces do not count. */
export function saysNothing(content: Content): boolean {
  if (typeof content === 'string') return content.trim() === ''
  return content.every((block) => block.type === 'reasoning' || (block.type === 'text' && block.text.trim() === ''))
}
