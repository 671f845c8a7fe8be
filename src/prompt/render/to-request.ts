import { DefinitionError } from '../../base/error.ts'
import type { Json } from '../../base/json.ts'
import { flag, oneOf, type Rules, readOptions } from '../../base/options.ts'
import type { CheckedSchema, JsonSchema } from '../../base/schema.ts'
import { shapeSchema } from '../shape/shape-schema.ts'
import { itemsIn, type JsonRecord, type Layer } from '../slots/slot.ts'
import { emptyPrompt } from './empty.ts'
import { type MediaBlock, mediaBlock } from './media-block.ts'
import { RENDER, type RenderOptions, skippedPart } from './options.ts'
import { outputOf } from './output.ts'
import { type RequestOptions, requestOptionsOf } from './request-options.ts'
import { type PromptMessage, toMessages } from './to-messages.ts'

/** What a model is sent, in the form of the Model port; its `path` is the caller's to add. */
export interface PromptRequest<Out = unknown> extends RequestOptions {
  readonly messages: readonly RequestMessage[]
  readonly tools: readonly { readonly name: string; readonly description: string; readonly inputSchema: JsonSchema }[]
  readonly outputSchema: JsonSchema | null
  /** Checks the answer; null where it is a text. */
  readonly output: CheckedSchema<Out> | null
  /** `json`, `markdown`, `text`, or what the prompt says. */
  readonly outputFormat: string
}

export type RequestMessage =
  | { readonly role: 'system'; readonly content: string }
  | { readonly role: 'user'; readonly content: string | readonly MediaBlock[] }
  | { readonly role: 'assistant'; readonly content: string | readonly MediaBlock[]; readonly calls: readonly [] }

export interface RequestRenderOptions extends Pick<RenderOptions, 'titles' | 'onWarning'> {
  readonly strictOrder?: boolean
  /** `text`: the tools are told in the text, for models that cannot call them. Default `native`. */
  readonly tools?: 'native' | 'text'
}

const OPTIONS: Rules<RequestRenderOptions> = {
  titles: RENDER.titles,
  onWarning: RENDER.onWarning,
  strictOrder: flag,
  tools: oneOf('native', 'text'),
}

/** The prompt as a request of a model. Throws EmptyPromptError. */
export function toRequest<Out>(view: Layer, options: RequestRenderOptions = {}): PromptRequest<Out> {
  const { tools = 'native', ...others } = readOptions('toRequest()', options, OPTIONS)
  const said = toMessages(view, { ...others, rich: true, toolsInText: tools === 'text' })
  const messages = said.flatMap((message) => requestMessage(message, options))
  if (messages.at(-1)?.role !== 'user') throw emptyPrompt('no part of what is asked can be sent to a model')
  const { format, checked } = outputOf(view)
  return {
    messages,
    tools: tools === 'native' ? toolSchemas(view) : [],
    outputSchema: checked?.jsonSchema ?? null,
    output: checked as CheckedSchema<Out> | null,
    outputFormat: format,
    ...requestOptionsOf((view.get('options') ?? {}) as JsonRecord),
  }
}

function requestMessage({ role, content }: PromptMessage, options: RequestRenderOptions): RequestMessage[] {
  const blocks = blocksOf(content, options)
  const said = onlyText(blocks)
  if (said === '' || blocks.length === 0) return []
  if (role === 'user') return [{ role, content: said ?? blocks }]
  if (role === 'assistant') return [{ role, content: said ?? blocks, calls: [] }]
  if (said === undefined) throw new DefinitionError('definition', `prompt: a message of role "${role}" is a text only.`)
  return [{ role: 'system', content: said }]
}

function blocksOf(content: PromptMessage['content'], { onWarning }: RequestRenderOptions): MediaBlock[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return content.flatMap((part) => {
    const block = mediaBlock(part)
    if (block === undefined) onWarning?.(skippedPart(part.type, 'models are not sent parts of this type'))
    return block ?? []
  })
}

/** Parts that are nothing but text are said as one. */
function onlyText(blocks: readonly MediaBlock[]): string | undefined {
  if (!blocks.every((block) => block.type === 'text')) return undefined
  return blocks.map(({ text }) => text).join('\n\n')
}

function toolSchemas(view: Layer): PromptRequest['tools'] {
  const tools = itemsIn<{ name: string; desc: string; kwargs: Json }>(view, 'tools')
  return tools.map(({ name, desc, kwargs }) => {
    return { name, description: desc, inputSchema: { type: 'object', properties: {}, ...shapeSchema(kwargs) } }
  })
}
