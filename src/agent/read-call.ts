import { type Json, parseJson, toJson } from '../base/json.ts'
import type { ToolCall } from '../graph/content.ts'
import type { Part } from '../model/model.ts'

/** Arguments that are not JSON stay as text, marked: the task answers the model with what is wrong. */
export function readCall(part: Extract<Part, { type: 'tool-call' }>): ToolCall {
  const { id, name, input, providerMetadata } = part
  const call = readInput(String(id), String(name), input)
  return providerMetadata === undefined ? call : { ...call, providerMetadata }
}

function readInput(id: string, name: string, input: Json): ToolCall {
  if (typeof input !== 'string') return readValue(id, name, input)
  if (input.trim() === '') return { id, name, input: {} }
  const parsed = parseJson(input)
  if (parsed.ok) return { id, name, input: parsed.value }
  return { id, name, input, invalid: parsed.error }
}

/** A model of one's own may give anything: what JSON cannot keep could not be recorded. */
function readValue(id: string, name: string, input: Exclude<Json, string>): ToolCall {
  const json = toJson(input)
  return json.ok ? { id, name, input: json.value } : { id, name, input: null, invalid: json.error }
}
