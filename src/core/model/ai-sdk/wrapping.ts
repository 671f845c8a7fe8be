import { parseJson } from '../../base/json.ts'
import type { JsonSchema } from '../../base/schema/schema.ts'
import type { ToolCall } from '../../graph/content.ts'
import type { Message, ModelRequest, Part, ToolSchema } from '../model.ts'
import { unwrapped, wrapped } from '../object-schema.ts'
import type { AiSdkModel } from './ai-sdk-model.ts'
import { providerSchema } from './provider-schema.ts'
import { type Format, responseFormat } from './response-format.ts'

/** The field that wraps a tool's arguments, or an answer, where they are no object. */
const INPUT_FIELD = 'input'
const OUTPUT_FIELD = 'output'

/**
 * Stands between an agent and a provider. On the way there it wraps every value that is not an object, in schemas and in
 * earlier messages; on the way back it unwraps them. Agents, records and hooks never see the wrapping.
 */
export class Wrapping {
  /** The request as the provider takes it. */
  readonly request: ModelRequest
  /** The output schema as a setting, where the provider takes it. */
  readonly format: Format
  private readonly wrappedTools: ReadonlySet<string>
  private readonly texts: Map<string, FieldText> = new Map()
  private readonly answer: FieldText | null

  constructor(model: AiSdkModel, request: ModelRequest) {
    const tools = request.tools.map((tool) => ({ tool, ...providerSchema(model, tool.inputSchema, INPUT_FIELD) }))
    const output = outputOf(model, request.outputSchema)
    this.wrappedTools = new Set(tools.flatMap(({ tool, field }) => (field === null ? [] : [tool.name])))
    this.request = {
      ...request,
      messages: this.wrappedTools.size === 0 ? request.messages : request.messages.map((one) => this.sent(one)),
      tools: tools.map(({ tool, schema }): ToolSchema => ({ ...tool, inputSchema: schema })),
      outputSchema: output?.schema ?? null,
    }
    this.format = responseFormat(model, this.request)
    const isWrapped = output?.field != null && this.format.responseFormat !== undefined
    this.answer = isWrapped ? new FieldText(OUTPUT_FIELD) : null
  }

  /** Translates parts of the answer back into the agent's terms. */
  read(parts: readonly Part[]): readonly Part[] {
    if (this.wrappedTools.size === 0 && this.answer === null) return parts
    return parts.flatMap((part) => this.readPart(part))
  }

  private sent(message: Message): Message {
    if (message.role !== 'assistant' || message.calls.length === 0) return message
    return { ...message, calls: message.calls.map((call) => this.sentCall(call)) }
  }

  private sentCall(call: ToolCall): ToolCall {
    const isWrapped = this.wrappedTools.has(call.name) && call.invalid === undefined
    return isWrapped ? { ...call, input: wrapped(call.input, INPUT_FIELD) } : call
  }

  private readPart(part: Part): readonly Part[] {
    switch (part.type) {
      case 'tool-input-delta':
        return this.wrappedTools.has(part.name) ? withText(part, this.textOf(part.id).push(part.text)) : [part]
      case 'tool-call':
        return [this.wrappedTools.has(part.name) ? readCall(part) : part]
      case 'text-delta':
        return this.answer === null ? [part] : withText(part, this.answer.push(part.text))
      case 'text-end':
      case 'finish':
        return [...this.restOfAnswer(), part]
      default:
        return [part]
    }
  }

  private restOfAnswer(): readonly Part[] {
    const rest = this.answer?.end() ?? ''
    return rest === '' ? [] : [{ type: 'text-delta', text: rest }]
  }

  private textOf(id: string): FieldText {
    const text = this.texts.get(id) ?? new FieldText(INPUT_FIELD)
    this.texts.set(id, text)
    return text
  }
}

/** A plain text needs no output schema as a setting. */
function outputOf(model: AiSdkModel, schema: JsonSchema | null) {
  if (schema === null || (schema['type'] === 'string' && schema['enum'] === undefined)) return null
  return providerSchema(model, schema, OUTPUT_FIELD)
}

function withText(part: Extract<Part, { type: 'tool-input-delta' | 'text-delta' }>, text: string): readonly Part[] {
  return text === '' ? [] : [{ ...part, text }]
}

function readCall(part: Extract<Part, { type: 'tool-call' }>): Part {
  const { input } = part
  if (typeof input !== 'string') return { ...part, input: unwrapped(input, INPUT_FIELD) }
  const parsed = parseJson(input)
  if (!parsed.ok) return part
  return { ...part, input: JSON.stringify(unwrapped(parsed.value, INPUT_FIELD)) }
}

/** Takes the value of the one field of an object out of its text, piece by piece. Any other text stays as it is. */
export class FieldText {
  private readonly field: string
  private state: 'before' | 'inside' | 'beside' | 'behind' = 'before'
  private held = ''
  private depth = 0
  private isString = false
  private isEscaped = false

  constructor(field: string) {
    this.field = field
  }

  /** Returns the text that is certain by now, out of this piece and those held back before it. */
  push(text: string): string {
    if (this.state === 'beside') return text
    if (this.state !== 'before') return this.take(text)
    this.held += text
    const start = this.startIn(this.held)
    if (start === undefined) return ''
    const rest = this.held.slice(start)
    this.held = ''
    this.state = start === 0 ? 'beside' : 'inside'
    return start === 0 ? rest : this.take(rest)
  }

  /** Returns the text that is still held back when the text ends. The next text begins anew. */
  end(): string {
    const rest = this.held
    this.held = ''
    this.state = 'before'
    this.depth = 0
    this.isString = false
    return rest
  }

  /** The place where the value begins; 0 where this is no such object, undefined while that is unknown. */
  private startIn(text: string): number | undefined {
    const opening = `{"${this.field}":`
    let known = 0
    for (let at = 0; at < text.length; at++) {
      const character = text.charAt(at)
      if (/\s/.test(character)) continue
      if (known === opening.length) return at
      if (character !== opening[known++]) return 0
    }
    return text.length > MOST_HELD ? 0 : undefined
  }

  private take(text: string): string {
    if (this.state === 'behind') return ''
    for (let at = 0; at < text.length; at++) {
      if (!this.isEndAt(text.charAt(at))) continue
      this.state = 'behind'
      return text.slice(0, at)
    }
    return text
  }

  private isEndAt(character: string): boolean {
    if (this.isString) {
      if (this.isEscaped) this.isEscaped = false
      else if (character === '\\') this.isEscaped = true
      else if (character === '"') this.isString = false
      return false
    }
    if (character === '"') this.isString = true
    if (character === '{' || character === '[') this.depth++
    if (character === '}' || character === ']') this.depth--
    return this.depth < 0
  }
}

/** Nobody begins an object with so many spaces, so more than this is never held back. */
const MOST_HELD = 1_000
