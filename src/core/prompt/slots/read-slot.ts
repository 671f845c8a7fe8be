import { DefinitionError } from '../../base/error.ts'
import { isRecord, type Json } from '../../base/json.ts'
import { readSchema, type Schema } from '../../base/schema/schema.ts'
import { readRootShape, readShape, ShapeError } from '../shape/read-shape.ts'
import { shapeSchema } from '../shape/shape-schema.ts'
import { readAttachment, readHistory } from './message.ts'
import { fillPlaceholders, frozen, plainValue, type ReadMappings } from './placeholder.ts'
import { SchemaOutput, type SlotValue } from './slot.ts'

/**
 * Reads a value into the one form of its slot, as a copy. Throws a DefinitionError; for a shape a ShapeError with the
 * place.
 */
export function readSlot(slot: string, value: unknown, mappings: ReadMappings): SlotValue {
  if (slot === 'output' && isStandardSchema(value)) {
    return new SchemaOutput(readSchema(value as Schema, 'output of a prompt'))
  }
  const filled = fillPlaceholders(plainValue(value, slot), mappings)
  return frozen(formOf(slot, typeof filled === 'string' ? cleanText(filled) : filled))
}

function formOf(slot: string, value: Json): Json {
  if (value === null) return null
  switch (slot) {
    case 'chat_history':
      return readHistory(value)
    case 'attachment':
      return readAttachment(value)
    case 'tools':
      return readTools(value)
    case 'output':
      return readRootShape(value)
    case 'output_format':
      if (typeof value === 'string' && value !== '') return value
      return refuse('output_format is a text, such as "json", "markdown" or "text".')
    case 'options':
      if (isRecord(value)) return value
      return refuse('options are an object, as in { temperature: 0 }.')
    default:
      return value
  }
}

function readTools(value: Json): Json {
  const tools = Array.isArray(value) ? value : [value]
  return tools.map((tool, index) => {
    if (!isRecord(tool)) return refuse(`tools[${index}] is not an object. A tool is { name, desc, kwargs, returns }.`)
    const { name, desc = '', kwargs = {}, returns, ...others } = tool
    const [unknown] = Object.keys(others)
    if (unknown !== undefined)
      refuse(`tools[${index}] has no ${JSON.stringify(unknown)}: a tool is { name, desc, kwargs, returns }.`)
    if (typeof name !== 'string' || name.trim() === '') refuse(`tools[${index}] needs a name.`)
    if (typeof desc !== 'string') refuse(`tools[${index}].desc is a text.`)
    const read = { name, desc, kwargs: shapeIn(kwargs, ['tools', index, 'kwargs']) }
    if ((shapeSchema(read.kwargs)['type'] ?? 'object') !== 'object')
      refuse(`tools[${index}].kwargs is an object of fields.`)
    return returns === undefined ? read : { ...read, returns: shapeIn(returns, ['tools', index, 'returns']) }
  })
}

function shapeIn(shape: Json, [slot, index, key]: [string, number, string]): Json {
  try {
    return readShape(shape)
  } catch (error) {
    if (!(error instanceof ShapeError)) throw error
    throw new ShapeError([index, key, ...error.path], error.problem, slot)
  }
}

function isStandardSchema(value: unknown): boolean {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  return '~standard' in value
}

function refuse(message: string): never {
  throw new DefinitionError('definition', `prompt: ${message}`)
}

/**
 * Removes the indentation that all lines share and the space around the text: texts are often indented like the code.
 */
function cleanText(text: string): string {
  if (!text.includes('\n')) return text.trim()
  const lines = text.split('\n')
  const shared = sharedIndent(lines)
  return lines
    .map((line) => (line.trim() === '' ? '' : line.slice(shared)))
    .join('\n')
    .trim()
}

/** How many leading blanks all lines with content share. */
function sharedIndent(lines: readonly string[]): number {
  let shared: string | undefined
  for (const line of lines) {
    if (line.trim() === '') continue
    const indent = indentOf(line)
    shared = shared === undefined ? indent : commonStart(shared, indent)
    if (shared === '') return 0
  }
  return shared?.length ?? 0
}

function indentOf(line: string): string {
  let end = 0
  while (line[end] === ' ' || line[end] === '\t') end++
  return line.slice(0, end)
}

function commonStart(a: string, b: string): string {
  let end = 0
  while (end < a.length && a[end] === b[end]) end++
  return a.slice(0, end)
}
