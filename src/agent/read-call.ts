import { sha256 } from '../base/hash.ts'
import { JSON_LIMITS, type Json, type JsonLimits, parseJson, toJson, truncateUtf8 } from '../base/json.ts'
import type { ToolCall } from '../graph/content.ts'
import type { Part } from '../model/model.ts'
import { CALLS_LIMIT } from './answer-size.ts'

/** Arguments that are not JSON stay as text, marked: the task answers the model with what is wrong. */
export function readCall(part: Extract<Part, { type: 'tool-call' }>): ToolCall {
  const { input, providerMetadata } = part
  const { callId, tool } = shortNames(part)
  const call = readInput(callId, tool, input)
  return providerMetadata === undefined ? call : { ...call, providerMetadata }
}

/** The id and the tool of a call, as a model said them. No tool has a longer name; ids that differ stay apart. */
export function shortNames({ id, name }: { readonly id: string; readonly name: string }): CallNames {
  return { callId: shortened(String(id), LONGEST_ID), tool: shortened(String(name), LONGEST_NAME) }
}

interface CallNames {
  readonly callId: string
  readonly tool: string
}

const LONGEST_NAME = 256
/** Some servers keep more in it than an id. */
const LONGEST_ID = 4_096
const SHOWN = 100
/** Of arguments that are not JSON: for the model to see what it wrote. */
const SHOWN_BYTES = 10_000

function shortened(text: string, longest: number): string {
  return text.length <= longest ? text : `${text.slice(0, SHOWN).toWellFormed()}…${sha256(text)}`
}

const LIMITS: Required<JsonLimits> = { ...JSON_LIMITS, maxBytes: CALLS_LIMIT }

function readInput(id: string, name: string, input: Json): ToolCall {
  if (typeof input !== 'string') return readValue(id, name, input)
  if (input.trim() === '') return { id, name, input: {} }
  const parsed = parseJson(input, LIMITS)
  if (parsed.ok) return { id, name, input: parsed.value }
  return { id, name, input: truncateUtf8(input, SHOWN_BYTES), invalid: parsed.error }
}

/** A model of one's own may give anything: what JSON cannot keep could not be recorded. */
function readValue(id: string, name: string, input: Exclude<Json, string>): ToolCall {
  const json = toJson(input, LIMITS)
  return json.ok ? { id, name, input: json.value } : { id, name, input: null, invalid: json.error }
}
