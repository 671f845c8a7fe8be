import { type Json, toJson } from '../../base/json.ts'
import type { Block, Usage } from '../../graph/content.ts'
import type { FinishReason, ModelResponse, Part } from '../model.ts'
import { type AiSdkModel, isAnthropic } from './ai-sdk-model.ts'

/** The fields of a stream part, of any version, that are used here. */
interface StreamPart {
  readonly type?: unknown
  readonly id?: unknown
  readonly delta?: unknown
  readonly toolCallId?: unknown
  readonly toolName?: unknown
  readonly input?: unknown
  readonly providerExecuted?: unknown
  readonly mediaType?: unknown
  readonly data?: unknown
  readonly usage?: unknown
  readonly finishReason?: unknown
  readonly providerMetadata?: unknown
  readonly error?: unknown
  readonly modelId?: unknown
}

interface Open {
  text: string
  metadata: Json | undefined
}

/**
 * Reads the stream of one answer. It ignores parts that it does not know: sources, pings, metadata, and those of later
 * versions.
 */
export class PartReader {
  private readonly model: AiSdkModel
  private readonly texts: Map<string, Open> = new Map()
  private readonly reasonings: Map<string, Open> = new Map()
  private readonly tools: Map<string, string> = new Map()
  private response: ModelResponse | undefined

  constructor(model: AiSdkModel) {
    this.model = model
  }

  /** Throws the error that an `error` part carries. */
  read(value: unknown): readonly Part[] {
    if (typeof value !== 'object' || value === null) return NOTHING
    const part: StreamPart = value
    switch (part.type) {
      case 'text-start':
        this.open(this.texts, part)
        return NOTHING
      case 'text-delta':
        return this.textDelta(part)
      case 'text-end':
        return this.textEnd(part)
      case 'reasoning-start':
        this.open(this.reasonings, part)
        return NOTHING
      case 'reasoning-delta':
        return this.reasoningDelta(part)
      case 'reasoning-end':
        return this.reasoningEnd(part)
      default:
        return this.readOther(part)
    }
  }

  private readOther(part: StreamPart): readonly Part[] {
    switch (part.type) {
      case 'tool-input-start':
        if (part.providerExecuted !== true) this.tools.set(text(part.id), text(part.toolName))
        return NOTHING
      case 'tool-input-delta':
        return this.toolInput(part)
      case 'tool-call':
        return toolCall(part)
      case 'file':
        return file(part)
      case 'response-metadata':
        this.response = responseIn(part)
        return NOTHING
      case 'finish':
        return this.finish(part)
      case 'error':
        throw part.error
      default:
        return NOTHING
    }
  }

  private textDelta(part: StreamPart): readonly Part[] {
    const open = this.texts.get(text(part.id)) ?? this.open(this.texts, part)
    open.metadata = metadataOf(part) ?? open.metadata
    return part.delta === '' ? NOTHING : [{ type: 'text-delta', text: text(part.delta) }]
  }

  private textEnd(part: StreamPart): readonly Part[] {
    const metadata = metadataOf(part) ?? this.texts.get(text(part.id))?.metadata
    this.texts.delete(text(part.id))
    return metadata === undefined ? NOTHING : [{ type: 'text-end', providerMetadata: metadata }]
  }

  private reasoningDelta(part: StreamPart): readonly Part[] {
    const open = this.reasonings.get(text(part.id)) ?? this.open(this.reasonings, part)
    open.metadata = metadataOf(part) ?? open.metadata
    const delta = text(part.delta)
    open.text += delta
    return delta === '' ? NOTHING : [{ type: 'reasoning-delta', text: delta }]
  }

  /** Keeps reasoning without text too: it is encrypted or redacted, and the provider may want it back. */
  private reasoningEnd(part: StreamPart): readonly Part[] {
    const open = this.reasonings.get(text(part.id))
    this.reasonings.delete(text(part.id))
    const metadata = metadataOf(part) ?? open?.metadata
    const said = open?.text ?? ''
    if (said === '' && metadata === undefined) return NOTHING
    const block: Block = { type: 'reasoning', text: said }
    return [{ type: 'block', block: metadata === undefined ? block : { ...block, providerMetadata: metadata } }]
  }

  private toolInput(part: StreamPart): readonly Part[] {
    const name = this.tools.get(text(part.id))
    if (name === undefined || part.delta === '') return NOTHING
    return [{ type: 'tool-input-delta', id: text(part.id), name, text: text(part.delta) }]
  }

  private finish(part: StreamPart): readonly Part[] {
    const usage = usageIn(part.usage, { model: this.model, metadata: metadataOf(part) })
    const finish = { type: 'finish', reason: readReason(part.finishReason), usage } as const
    return [this.response === undefined ? finish : { ...finish, response: this.response }]
  }

  private open(into: Map<string, Open>, part: StreamPart): Open {
    const open = { text: '', metadata: metadataOf(part) }
    into.set(text(part.id), open)
    return open
  }
}

const NOTHING: readonly Part[] = []

function responseIn({ id, modelId }: StreamPart): ModelResponse {
  return { ...(typeof id === 'string' ? { id } : {}), ...(typeof modelId === 'string' ? { model: modelId } : {}) }
}

const REASONS: readonly string[] = ['stop', 'tool-calls', 'length', 'content-filter', 'other'] satisfies FinishReason[]

/**
 * Providers make up a finish when the connection ended without one: `interrupted` in v4, `other` without a reason of
 * the provider's in v3, `unknown` in v2. That is a cut stream, never an answer.
 */
function readReason(reason: unknown): FinishReason {
  if (typeof reason === 'string') return known(reason)
  if (typeof reason !== 'object' || reason === null) return 'error'
  const { unified, raw } = reason as { unified?: unknown; raw?: unknown }
  if (unified === 'other' && (raw === undefined || raw === null)) return 'error'
  return known(unified)
}

function known(reason: unknown): FinishReason {
  return REASONS.includes(String(reason)) ? (reason as FinishReason) : 'error'
}

/** Skips calls that the provider has run itself. */
function toolCall(part: StreamPart): readonly Part[] {
  if (part.providerExecuted === true) return NOTHING
  const call = {
    type: 'tool-call',
    id: text(part.toolCallId),
    name: text(part.toolName),
    input: typeof part.input === 'string' ? part.input : (jsonOf(part.input) ?? {}),
  } as const
  const providerMetadata = metadataOf(part)
  return [providerMetadata === undefined ? call : { ...call, providerMetadata }]
}

function file(part: StreamPart): readonly Part[] {
  const data = dataOf(part.data)
  if (data === undefined) return NOTHING
  const mediaType = text(part.mediaType)
  const providerMetadata = metadataOf(part)
  const block = { type: mediaKind(mediaType), mediaType, data } as const
  return [{ type: 'block', block: providerMetadata === undefined ? block : { ...block, providerMetadata } }]
}

function mediaKind(mediaType: string): 'image' | 'audio' | 'video' | 'file' {
  const [kind = ''] = mediaType.split('/')
  return kind === 'image' || kind === 'audio' || kind === 'video' ? kind : 'file'
}

/** Base64 text, bytes, or the object that v4 wraps around them. */
function dataOf(data: unknown): string | undefined {
  if (typeof data === 'string') return data
  if (data instanceof Uint8Array) return Buffer.from(data).toString('base64')
  if (data instanceof URL) return data.href
  if (typeof data !== 'object' || data === null) return undefined
  const tagged = data as { type?: unknown; data?: unknown; url?: unknown }
  if (tagged.type === 'data') return dataOf(tagged.data)
  return tagged.type === 'url' ? String(tagged.url) : undefined
}

function metadataOf(part: StreamPart): Json | undefined {
  return part.providerMetadata === undefined ? undefined : jsonOf(part.providerMetadata)
}

function jsonOf(value: unknown): Json | undefined {
  const json = toJson(value)
  return json.ok ? json.value : undefined
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Reads flat usage (v2) and nested usage (v3 and v4). A count that the provider leaves out is 0. */
function usageIn(usage: unknown, from: { model: AiSdkModel; metadata: Json | undefined }): Usage {
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

/**
 * v2 has no field for tokens written to the cache, and Claude's provider does not count cached tokens as input there.
 */
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

/** Passes nonsense through, so that `readUsage` refuses it. */
function count(value: unknown): number {
  if (value === undefined || value === null) return 0
  return typeof value === 'number' ? Math.round(value) : Number.NaN
}
