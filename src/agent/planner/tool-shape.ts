import type { Json } from '../../base/json.ts'
import type { JsonSchema } from '../../base/schema.ts'

/** A tool's arguments in the words of a prompt: `{ city: { $type: 'str', $desc: 'Which one' } }`. */
export function toolShape(schema: JsonSchema): Json {
  const { type, properties } = schema as { type?: unknown; properties?: unknown }
  if (type !== 'object' || typeof properties !== 'object' || properties === null) return { $schema: schema as Json }
  const required = Array.isArray(schema['required']) ? (schema['required'] as unknown[]) : []
  const fields = Object.entries(properties).map(([name, field]): [string, Json] => {
    const { type: inner, description } = fieldOf(field as JsonSchema)
    const notes = [description, required.includes(name) ? '' : '(may be left out)'].filter((text) => text !== '')
    return [name, notes.length === 0 ? inner : { $type: inner, $desc: notes.join(' ') }]
  })
  return Object.fromEntries(fields)
}

const TYPES: ReadonlyMap<unknown, string> = new Map([
  ['string', 'str'],
  ['integer', 'int'],
  ['number', 'float'],
  ['boolean', 'bool'],
])

function fieldOf(schema: JsonSchema): { readonly type: Json; readonly description: string } {
  const description = typeof schema['description'] === 'string' ? schema['description'] : ''
  const { type, enum: choices, items } = schema as { type?: unknown; enum?: unknown; items?: unknown }
  if (Array.isArray(choices) && choices.every((choice) => typeof choice === 'string')) {
    return { type: choices.map((choice) => JSON.stringify(choice)).join(' | '), description }
  }
  const simple = TYPES.get(type)
  if (simple !== undefined) return { type: simple, description }
  if (type === 'array' && typeof items === 'object' && items !== null) {
    return { type: [fieldOf(items as JsonSchema).type], description }
  }
  return { type: { $schema: schema as Json }, description }
}
