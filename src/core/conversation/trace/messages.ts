// Requests and answers of models in the JSON forms of OpenTelemetry's conventions: messages with parts, instructions, tools.
//
// Stays true:
// - Each part says only what the program lets spans carry: the arguments of a call in a message are arguments, and so on.
// - Thoughts of a model and the bytes of media are in no span.

import type { Block, Content, ToolCall } from '../../graph/content.ts'
import type { NodeOutput } from '../../graph/rows.ts'
import type { Message, ModelSettings, ToolSchema } from '../../model/model.ts'
import type { SpanValue, Telemetry } from '../../tool/telemetry.ts'

/** A request to a model, as far as it is known. */
export interface AskedModel {
  readonly messages: readonly Message[]
  /** Null where nobody knows them any more. */
  readonly tools: readonly ToolSchema[] | null
  readonly settings: ModelSettings | null
}

type Shows = Telemetry['shows']

/** Adds instructions, messages and tools of a request, each where spans carry that kind of text. */
export function addAsked(to: Record<string, SpanValue>, { messages, tools }: AskedModel, shows: Shows): void {
  const first = messages.findIndex(({ role }) => role !== 'system')
  const told = messages.slice(0, first < 0 ? messages.length : first)
  if (shows('instructions')) {
    if (told.length > 0)
      to['gen_ai.system_instructions'] = JSON.stringify(told.flatMap(({ content }) => partsOf(content)))
    if (tools !== null && tools.length > 0) to['gen_ai.tool.definitions'] = JSON.stringify(tools.map(definitionOf))
  }
  if (!shows('input')) return
  to['gen_ai.input.messages'] = JSON.stringify(messages.slice(told.length).map((one) => inputMessage(one, shows)))
}

function definitionOf({ name, description, inputSchema }: ToolSchema): object {
  return { type: 'function', name, description, parameters: inputSchema }
}

function inputMessage(message: Message, shows: Shows): object {
  const { role, content } = message
  if (role === 'tool') {
    const response = shows('result') ? { response: textIn(content) } : {}
    return { role, parts: [{ type: 'tool_call_response', id: message.callId, ...response }] }
  }
  if (role !== 'assistant') return { role, parts: partsOf(content) }
  return { role, parts: [...(shows('output') ? partsOf(content) : []), ...callParts(message.calls, shows)] }
}

/** The answer of a model: its words and its calls. */
export function outputMessages({ content = '', calls = [] }: NodeOutput, finish: string, shows: Shows): string {
  const parts = [...partsOf(content), ...callParts(calls, shows)]
  return JSON.stringify([{ role: 'assistant', parts, finish_reason: finish }])
}

/** The input of a run. */
export function userMessage(text: string): string {
  return JSON.stringify([{ role: 'user', parts: [{ type: 'text', content: text }] }])
}

function callParts(calls: readonly ToolCall[], shows: Shows): object[] {
  return calls.map(({ id, name, input }) => {
    return { type: 'tool_call', id, name, ...(shows('arguments') ? { arguments: input } : {}) }
  })
}

function partsOf(content: Content): object[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', content }]
  return content.flatMap((block) => partOf(block))
}

function partOf(block: Block): object[] {
  if (block.type === 'reasoning') return []
  if (block.type === 'text') return [{ type: 'text', content: block.text }]
  if (block.type === 'json') return [{ type: 'text', content: JSON.stringify(block.value) }]
  const { type: modality, mediaType: mime_type, data } = block
  if (/^https?:/i.test(data)) return [{ type: 'uri', modality, mime_type, uri: data }]
  return [{ type: 'blob', modality, mime_type, size: data.length }]
}

function textIn(content: Content): string {
  return partsOf(content)
    .map((part) => ('content' in part ? String(part.content) : JSON.stringify(part)))
    .join('\n')
}
