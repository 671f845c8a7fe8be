import type { Json } from '../../base/json.ts'
import { type Block, type Content, type ToolCall, textOf } from '../../graph/content.ts'
import type { Message } from '../model.ts'
import { type AiSdkModel, type AiSdkVersion, isChat } from './ai-sdk-model.ts'

/** A message of a prompt, of any version: the versions differ only in file data and tool results. */
export interface AiSdkMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  content: string | AiSdkPart[]
  providerOptions?: object
}

export interface AiSdkPart {
  readonly type: string
  readonly [key: string]: unknown
}

type Media = Extract<Block, { readonly mediaType: string }>
type ToolMessage = Extract<Message, { readonly role: 'tool' }>

/**
 * Translates messages into a prompt. Equal messages always give an equal prompt, so that providers can cache its
 * beginning. System messages after the beginning become the user's, because most providers refuse them there. The
 * results of one answer's calls become one message, because some providers count them.
 */
export function toAiSdkPrompt(model: AiSdkModel, messages: readonly Message[]): AiSdkMessage[] {
  const writer = new PromptWriter(model)
  for (const message of messages) writer.add(message)
  return writer.end()
}

class PromptWriter {
  private readonly version: AiSdkVersion
  private readonly takesMediaInResults: boolean
  private readonly prompt: AiSdkMessage[] = []
  private readonly ids: CallIds = new CallIds()
  /** Media of tool results for a model that takes none there: they follow as the user's. */
  private aside: AiSdkPart[] = []

  constructor(model: AiSdkModel) {
    this.version = model.specificationVersion
    this.takesMediaInResults = !isChat(model)
  }

  add(message: Message): void {
    if (message.role !== 'tool') this.flushAside()
    switch (message.role) {
      case 'system':
        return this.system(message.content)
      case 'user':
        return this.user(message.content)
      case 'assistant':
        return this.assistant(message.content, message.calls)
      case 'tool':
        return this.tool(message)
    }
  }

  end(): AiSdkMessage[] {
    this.flushAside()
    return this.prompt
  }

  private system(content: string): void {
    const isLeading = this.prompt.every(({ role }) => role === 'system')
    if (isLeading) this.prompt.push({ role: 'system', content })
    else this.prompt.push({ role: 'user', content: [{ type: 'text', text: content }] })
  }

  private user(content: Content): void {
    const parts = blocksOf(content).flatMap((block) => this.userPart(block))
    if (parts.length > 0) this.prompt.push({ role: 'user', content: parts })
  }

  private userPart(block: Block): AiSdkPart[] {
    if (block.type === 'reasoning') return []
    if (isMedia(block)) return [this.filePart(block)]
    return [{ type: 'text', text: textOf([block]) }]
  }

  private assistant(content: Content, calls: readonly ToolCall[]): void {
    const said = blocksOf(content).map((block) => this.saidPart(block))
    const called = calls.map((call) => ({
      type: 'tool-call',
      toolCallId: this.ids.called(call),
      toolName: call.name,
      input: inputOf(call),
      ...optionsOf(call.providerMetadata),
    }))
    if (said.length + called.length > 0) this.prompt.push({ role: 'assistant', content: [...said, ...called] })
  }

  private saidPart(block: Block): AiSdkPart {
    if (block.type === 'json') return { type: 'text', text: JSON.stringify(block.value) }
    const options = optionsOf(block.providerMetadata)
    if (isMedia(block)) return { ...this.filePart(block), ...options }
    return { type: block.type, text: block.text, ...options }
  }

  private tool(message: ToolMessage): void {
    const result: AiSdkPart = {
      type: 'tool-result',
      toolCallId: this.ids.answered(message.callId),
      toolName: message.name,
      output: this.outputOf(message),
    }
    const last = this.prompt.at(-1)
    if (last?.role === 'tool' && typeof last.content !== 'string') last.content.push(result)
    else this.prompt.push({ role: 'tool', content: [result] })
  }

  private outputOf({ content, isError, name }: ToolMessage): AiSdkPart {
    const blocks = blocksOf(content)
    const media = blocks.filter(isMedia)
    if (isError) return { type: 'error-text', value: textOf(content) }
    if (media.length === 0) return { type: 'text', value: textOf(content) }
    if (this.takesMediaInResults) {
      return { type: 'content', value: blocks.flatMap((block) => this.resultPart(block)) }
    }
    this.aside.push({ type: 'text', text: `Given by ${name}:` }, ...media.map((block) => this.filePart(block)))
    const note = `[${media.length} ${media.length === 1 ? 'file' : 'files'} below]`
    return { type: 'text', value: [textOf(content), note].filter((text) => text !== '').join('\n') }
  }

  private resultPart(block: Block): AiSdkPart[] {
    if (block.type === 'reasoning') return []
    if (!isMedia(block)) return [{ type: 'text', text: textOf([block]) }]
    const { mediaType } = block
    const { url, data } = sourceOf(block)
    if (this.version === 'v4') return [this.filePart(block)]
    if (this.version === 'v2') {
      return url === undefined ? [{ type: 'media', data, mediaType }] : [{ type: 'text', text: url.href }]
    }
    const kind = block.type === 'image' ? 'image' : 'file'
    if (url !== undefined) return [{ type: `${kind}-url`, url: url.href, ...(kind === 'file' ? { mediaType } : {}) }]
    return [{ type: `${kind}-data`, data, mediaType }]
  }

  private filePart(block: Media): AiSdkPart {
    const { url, data, mediaType } = sourceOf(block)
    const plain = url ?? data
    const tagged = url === undefined ? { type: 'data', data } : { type: 'url', url }
    const named = block.filename === undefined ? {} : { filename: block.filename }
    return { type: 'file', mediaType, data: this.version === 'v4' ? tagged : plain, ...named }
  }

  private flushAside(): void {
    if (this.aside.length === 0) return
    this.prompt.push({ role: 'user', content: this.aside })
    this.aside = []
  }
}

function blocksOf(content: Content): readonly Block[] {
  if (typeof content !== 'string') return content.filter((block) => block.type !== 'text' || block.text !== '')
  return content === '' ? [] : [{ type: 'text', text: content }]
}

function isMedia(block: Block): block is Media {
  return 'mediaType' in block
}

/** Passes a URL to the provider as it is; nothing is fetched here. */
function sourceOf({ data, mediaType }: Media): { url?: URL; data: string; mediaType: string } {
  const inline = /^data:([^;,]*)[^,]*;base64,/i.exec(data)
  if (inline !== null) {
    return { data: data.slice(inline[0].length), mediaType: inline[1] === '' ? mediaType : (inline[1] ?? mediaType) }
  }
  if (/^(?:https?|gs|file|s3):\/\//i.test(data) && URL.canParse(data)) return { url: new URL(data), data, mediaType }
  return { data, mediaType }
}

/** Providers take objects only. Invalid JSON is shown as the text that it was. */
function inputOf({ input, invalid }: ToolCall): Json {
  if (invalid !== undefined) return { rawInvalidInput: input }
  return typeof input === 'object' && input !== null && !Array.isArray(input) ? input : { input }
}

function optionsOf(metadata: Json | undefined): { providerOptions?: Json } {
  return metadata === undefined ? {} : { providerOptions: metadata }
}

/**
 * Makes the ids of calls that a prompt needs: unique, of letters that every provider takes. Providers make ids up,
 * repeat them and leave them empty. Equal calls always get equal ids.
 */
class CallIds {
  private readonly used: Set<string> = new Set()
  /** Ids given to calls that have no result yet, by the provider's own id. */
  private readonly open: Map<string, string[]> = new Map()

  called({ id }: ToolCall): string {
    const plain = id.replaceAll(/[^a-zA-Z0-9_-]/g, '_').slice(0, 56) || 'call'
    let given = plain
    for (let count = 2; this.used.has(given); count++) given = `${plain}_${count}`
    this.used.add(given)
    const open = this.open.get(id)
    if (open === undefined) this.open.set(id, [given])
    else open.push(given)
    return given
  }

  /** Results come in the order of their calls. */
  answered(id: string): string {
    return this.open.get(id)?.shift() ?? id
  }
}
