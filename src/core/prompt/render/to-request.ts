import { DefinitionError } from '../../base/error.ts'
import { isRecord, type Json, type JsonRecord } from '../../base/json.ts'
import { flag, type OptionRules, oneOf, readOptions } from '../../base/options.ts'
import type { CheckedSchema, JsonSchema } from '../../base/schema/schema.ts'
import { shapeSchema } from '../shape/shape-schema.ts'
import type { MessagePart } from '../slots/message.ts'
import { itemsIn, type SlotLayer } from '../slots/slot.ts'
import { emptyPrompt } from './blocks.ts'
import { RENDER, type RenderOptions, skippedPart } from './options.ts'
import { outputOf } from './output.ts'
import { type PromptMessage, toMessages } from './to-messages.ts'

/** The request to a model, in the form of the Model port; the caller adds `path`. */
export interface PromptRequest<Out = unknown> extends RequestOptions {
  readonly messages: readonly RequestMessage[]
  readonly tools: readonly { readonly name: string; readonly description: string; readonly inputSchema: JsonSchema }[]
  readonly outputSchema: JsonSchema | null
  /** Checks the answer; null where it is a text. */
  readonly output: CheckedSchema<Out> | null
  /** `json`, `markdown`, `text`, or the format that the prompt names. */
  readonly outputFormat: string
}

export type RequestMessage =
  | { readonly role: 'system'; readonly content: string }
  | { readonly role: 'user'; readonly content: string | readonly MediaBlock[] }
  | { readonly role: 'assistant'; readonly content: string | readonly MediaBlock[]; readonly calls: readonly [] }

export interface RequestRenderOptions extends Pick<RenderOptions, 'titles' | 'onWarning'> {
  /** User and assistant take turns, as many providers want it. Default true. */
  readonly strictOrder?: boolean
  /** `text`: describes the tools in the text, for models that cannot call them. Default `native`. */
  readonly tools?: 'native' | 'text'
}

const OPTIONS: OptionRules<RequestRenderOptions> = {
  titles: RENDER.titles,
  onWarning: RENDER.onWarning,
  strictOrder: flag,
  tools: oneOf('native', 'text'),
}

/** Renders the prompt as a request to a model. Throws EmptyPromptError. */
export function toRequest<Out>(view: SlotLayer, options: RequestRenderOptions = {}): PromptRequest<Out> {
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

/** Joins parts that are nothing but text into one text. */
function onlyText(blocks: readonly MediaBlock[]): string | undefined {
  if (!blocks.every((block) => block.type === 'text')) return undefined
  return blocks.map(({ text }) => text).join('\n\n')
}

function toolSchemas(view: SlotLayer): PromptRequest['tools'] {
  const tools = itemsIn<{ name: string; desc: string; kwargs: Json }>(view, 'tools')
  return tools.map(({ name, desc, kwargs }) => {
    return { name, description: desc, inputSchema: { type: 'object', properties: {}, ...shapeSchema(kwargs) } }
  })
}

/** A piece of content as models take it. `data` is base64 text or a URL. */
export type MediaBlock =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'json'; readonly value: Json }
  | { readonly type: 'image' | 'audio' | 'video' | 'file'; readonly mediaType: string; readonly data: string }

/** Translates parts in our own form, and those of chat APIs with the same content; undefined for all others. */
function mediaBlock(part: MessagePart): MediaBlock | undefined {
  const { type, value } = part
  switch (type) {
    case 'text':
      return { type, text: String(part['text'] ?? '') }
    case 'json':
      return value === undefined ? undefined : { type, value }
    case 'image':
    case 'audio':
    case 'video':
    case 'file':
      return fileBlock(type, part)
    case 'image_url':
      return fileBlock('image', { ...part, data: urlOf(part['image_url']) })
    case 'input_audio':
      return audioBlock(part['input_audio'])
    default:
      return undefined
  }
}

/** Reads the content under `data`, or under the name of the type; a data URL also holds the media type. */
function fileBlock(type: 'image' | 'audio' | 'video' | 'file', part: MessagePart): MediaBlock | undefined {
  const data = part['data'] ?? part[type]
  if (typeof data !== 'string' || data === '') return undefined
  const said = part['mediaType']
  const mark = data.startsWith('data:') ? data.indexOf(';base64,') : -1
  if (mark !== -1)
    return { type, mediaType: data.slice('data:'.length, mark), data: data.slice(mark + ';base64,'.length) }
  if (typeof said === 'string') return { type, mediaType: said, data }
  return type === 'image' ? { type, mediaType: 'image/*', data } : undefined
}

function urlOf(image: Json | undefined): Json {
  return (isRecord(image) ? image['url'] : image) ?? null
}

function audioBlock(audio: Json | undefined): MediaBlock | undefined {
  if (!isRecord(audio)) return undefined
  const { data, format = 'wav' } = audio
  return typeof data === 'string' ? { type: 'audio', mediaType: `audio/${String(format)}`, data } : undefined
}

export interface RequestOptions {
  /** `options.model`: the model of this request; null for the agent's own. */
  readonly model: string | null
  readonly settings: RequestSettings
  /** Options that are no known setting, for the provider's own request. */
  readonly providerOptions: { readonly [option: string]: Json }
}

export interface RequestSettings {
  /** How freely the model chooses its words. Default: the provider's. */
  readonly temperature?: number
  /** Chooses among the words that make up this share of probability. Default: the provider's. */
  readonly topP?: number
  /** How many of the likeliest words the model chooses from. Default: the provider's. */
  readonly topK?: number
  /** The most tokens of one answer. Default: the provider's. */
  readonly maxOutputTokens?: number
  /** Texts at which the answer ends. Default: the provider's. */
  readonly stopSequences?: readonly string[]
  /** Equal seeds ask for equal answers, where the provider can. Default: the provider's. */
  readonly seed?: number
  /** Makes words that were used before less likely. Default: the provider's. */
  readonly presencePenalty?: number
  /** Makes words less likely the more often they were used. Default: the provider's. */
  readonly frequencyPenalty?: number
}

/** Translates the options of a prompt into our settings; those of chat APIs have other names. */
function requestOptionsOf({ model = null, ...options }: JsonRecord): RequestOptions {
  if (model !== null && typeof model !== 'string') refuse('model', 'a text, such as "openai/gpt-5"', model)
  const settings: Record<string, Json> = {}
  const others: [string, Json][] = []
  for (const [name, value] of Object.entries(options)) {
    const setting = SETTINGS.get(name)
    if (setting === undefined) others.push([name, value])
    else settings[setting] = setting === 'stopSequences' ? textsOf(name, value) : numberOf(name, value)
  }
  return { model: model as string | null, settings, providerOptions: Object.fromEntries(others) }
}

const SETTINGS: ReadonlyMap<string, string> = new Map([
  ['temperature', 'temperature'],
  ['topP', 'topP'],
  ['top_p', 'topP'],
  ['topK', 'topK'],
  ['top_k', 'topK'],
  ['maxOutputTokens', 'maxOutputTokens'],
  ['max_tokens', 'maxOutputTokens'],
  ['max_completion_tokens', 'maxOutputTokens'],
  ['stopSequences', 'stopSequences'],
  ['stop', 'stopSequences'],
  ['seed', 'seed'],
  ['presencePenalty', 'presencePenalty'],
  ['presence_penalty', 'presencePenalty'],
  ['frequencyPenalty', 'frequencyPenalty'],
  ['frequency_penalty', 'frequencyPenalty'],
])

function numberOf(name: string, value: Json): number {
  return typeof value === 'number' ? value : refuse(name, 'a number', value)
}

function textsOf(name: string, value: Json): string[] {
  const texts = Array.isArray(value) ? value : [value]
  return texts.map((text) => (typeof text === 'string' ? text : refuse(name, 'a text or a list of texts', value)))
}

function refuse(name: string, what: string, value: Json): never {
  throw new DefinitionError('definition', `prompt: options.${name} is ${what}, not ${JSON.stringify(value)}.`)
}
