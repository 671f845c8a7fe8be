import { isRecord, type Json } from '../../base/json.ts'
import { type CheckedSchema, readSchema } from '../../base/schema/schema.ts'
import { isDescribed } from '../shape/read-shape.ts'
import { shapeSchema } from '../shape/shape-schema.ts'
import { shapeText, typeSchema } from '../shape/shape-text.ts'
import { isEmpty, SchemaOutput, type SlotLayer } from '../slots/slot.ts'

/** The demands of a prompt on the answer. */
export interface Output {
  /** `json`, `markdown`, `text`, or the format that the prompt names. */
  readonly format: string
  /** The lines of the block about the answer; empty where there are none. */
  readonly requirement: readonly string[]
  /** Checks the answer, if it is JSON of a known shape. */
  readonly checked: CheckedSchema | null
}

/** A named output format wins; otherwise a shape means JSON, and everything else Markdown. */
export function outputOf(view: SlotLayer): Output {
  const asked = askedOf(view)
  const said = view.get('output_format')
  const format = typeof said === 'string' ? said : asked.schema === null ? 'markdown' : 'json'
  const isShown = typeof said === 'string' || asked.lines.length > 0
  const heading = isShown ? headingOf(format) : []
  return {
    format,
    requirement: [...heading, ...(format === 'json' ? asked.jsonLines : asked.lines)],
    checked: format === 'json' && asked.schema !== null ? asked.schema() : null,
  }
}

interface OutputRequest {
  readonly schema: (() => CheckedSchema) | null
  readonly lines: readonly string[]
  readonly jsonLines: readonly string[]
}

const NOTHING: OutputRequest = { schema: null, lines: [], jsonLines: [] }

function askedOf(view: SlotLayer): OutputRequest {
  const output = view.get('output')
  if (output instanceof SchemaOutput) return schemaAsked(output.checked)
  if (output === undefined || isEmpty(output)) return NOTHING
  if (isEmbedded(output)) return schemaAsked(readSchema(output.$schema, 'output of a prompt', 'output'))
  if (isText(output)) return instruction(textOf(output))
  const text = shapeText(output)
  return {
    schema: () => readSchema(shapeSchema(output), 'output of a prompt', 'output'),
    lines: [text],
    jsonLines: ['Data Structure:', text],
  }
}

function schemaAsked(checked: CheckedSchema): OutputRequest {
  const text = JSON.stringify(checked.jsonSchema, null, 2)
  return { schema: () => checked, lines: [text], jsonLines: ['JSON Schema:', text] }
}

function instruction(text: string): OutputRequest {
  const lines = text === '' ? [] : [text]
  return { schema: null, lines, jsonLines: lines }
}

function isEmbedded(output: Json): output is { $schema: { [key: string]: Json } } {
  return isRecord(output) && isRecord(output['$schema'])
}

/** Words that are no type are an instruction, and an answer that is a text is not JSON. */
function isText(output: Json): boolean {
  const type = typeOf(output)
  if (type === undefined) return false
  const schema = typeSchema(type)
  return schema === undefined ? typeof output === 'string' : schema['type'] === 'string'
}

function typeOf(output: Json): string | undefined {
  if (typeof output === 'string') return output
  const type = isRecord(output) && isDescribed(output) ? output['$type'] : undefined
  return typeof type === 'string' ? type : undefined
}

/** The instruction of an output that is a text. The type itself adds nothing. */
function textOf(output: Json): string {
  if (isRecord(output)) return String(output['$desc'] ?? '')
  const text = String(output)
  return typeSchema(text) === undefined ? text : ''
}

function headingOf(format: string): string[] {
  if (format === 'json') return ['Data Format: JSON']
  if (format === 'markdown') return ['Data Format: markdown text']
  return format === 'text' ? [] : [`Data Format: ${format}`]
}
