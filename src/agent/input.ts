import { after } from '../base/after.ts'
import { type Json, toJson } from '../base/json.ts'
import { type Checked, type CheckedSchema, describeIssues, type Issue } from '../base/schema.ts'
import { type Block, type Content, isBlock } from '../graph/content.ts'

export type ReadInput =
  | { readonly ok: true; readonly value: Json }
  | { readonly ok: false; readonly error: string; readonly issues: readonly Issue[] }

/**
 * What an agent is asked: checked against its `input` schema, with defaults filled in, as JSON; without one, a text or
 * blocks.
 */
export function readInput(name: string, schema: CheckedSchema | null, input: unknown): ReadInput | Promise<ReadInput> {
  if (schema !== null) return after(schema.validate(input), (checked) => asJson(checked, input))
  if (typeof input === 'string' && input.trim() !== '') return { ok: true, value: input }
  if (Array.isArray(input)) return readBlocks(name, input)
  return refused(`"${name}" has no input schema: give it a text that is not empty, or a list of blocks.`)
}

/** The input as the first message says it: JSON where the agent has a schema. */
export function inputContent(schema: CheckedSchema | null, value: Json): Content {
  if (typeof value === 'string') return value
  return schema === null && Array.isArray(value) ? (value as unknown as readonly Block[]) : JSON.stringify(value)
}

function readBlocks(name: string, input: readonly unknown[]): ReadInput {
  const json = toJson(input)
  if (!json.ok) return refused(`The blocks for "${name}" are not JSON: ${json.error}`)
  const blocks = json.value as Json[]
  const wrong = blocks.findIndex((block) => !isBlock(block))
  if (blocks.length > 0 && wrong === -1) return { ok: true, value: blocks }
  const which = blocks.length === 0 ? 'there is none' : `number ${wrong} is none`
  return refused(
    `"${name}" takes blocks, { type: 'text', text }, { type: 'json', value } or { type: 'image' | 'audio' | 'video' | 'file', mediaType, data }: ${which}.`,
  )
}

/** What a schema made of the input need not be JSON; then the input itself is taken. */
function asJson(checked: Checked, input: unknown): ReadInput {
  if (!checked.ok) return { ok: false, error: describeIssues(checked.issues), issues: checked.issues }
  const parsed = toJson(checked.value)
  const json = parsed.ok ? parsed : toJson(input)
  return json.ok ? { ok: true, value: json.value } : refused(`It is not JSON: ${json.error}`)
}

function refused(error: string): ReadInput {
  return { ok: false, error, issues: [] }
}
