import type { Json } from '../../base/json.ts'
import type { JsonSchema } from '../../base/schema.ts'
import { isRecord, type JsonRecord } from '../slots/slot.ts'
import { isDescribed } from './read-shape.ts'
import { typeSchema } from './type-text.ts'

/** What an answer of this shape must be. Every field must be there unless it has a default; more fields are allowed. */
export function shapeSchema(shape: Json): JsonSchema {
  if (Array.isArray(shape)) return listSchema(shape)
  if (!isRecord(shape)) return typeSchema(String(shape)) ?? { description: String(shape) }
  return isDescribed(shape) ? describedSchema(shape) : fieldsSchema(shape)
}

function listSchema(items: readonly Json[]): JsonSchema {
  const [first, ...others] = items
  if (first === undefined) return { type: 'array' }
  if (others.length === 0) return { type: 'array', items: shapeSchema(first) }
  return { type: 'array', items: { anyOf: items.map(shapeSchema) } }
}

function fieldsSchema(fields: JsonRecord): JsonSchema {
  const entries = Object.entries(fields)
  if (entries.length === 0) return { type: 'object' }
  return {
    type: 'object',
    properties: Object.fromEntries(entries.map(([key, shape]) => [key, shapeSchema(shape)])),
    required: entries.filter(([, shape]) => !hasDefault(shape)).map(([key]) => key),
  }
}

function describedSchema(shape: JsonRecord): JsonSchema {
  const { $schema, $type = 'any', $desc } = shape
  if (isRecord($schema)) return $schema
  const schema = shapeSchema($type)
  // A type in words that is no type to a validator is told beside the description.
  const words = typeof $type === 'string' && typeSchema($type) === undefined ? $type : undefined
  const description = [$desc, words === undefined || $desc === undefined ? words : `(${words})`]
    .filter(Boolean)
    .join(' ')
  return {
    ...schema,
    ...(description === '' ? {} : { description }),
    ...(hasDefault(shape) ? { default: shape['$default'] } : {}),
  }
}

function hasDefault(shape: Json): boolean {
  return isRecord(shape) && isDescribed(shape) && Object.hasOwn(shape, '$default')
}
