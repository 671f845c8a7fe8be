import { DefinitionError } from '../error.ts'
import { isRecord, type Json, toJson } from '../json.ts'

/** A JSON Schema, draft 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>

/**
 * Copies a schema in the form that models are shown: plain JSON, no titles and no `$schema`, tuples of older drafts in today's
 * form, and `type` and `properties` in every object schema. A property named "title" stays.
 */
export function tidyJsonSchema(schema: unknown, where: string): JsonSchema {
  const plain = toJson(schema)
  if (!plain.ok) throw new DefinitionError('definition', `${where}: the JSON Schema is not plain JSON. ${plain.error}`)
  const tidy = tidied(plain.value)
  if (!isRecord(tidy)) throw new DefinitionError('definition', `${where}: a JSON Schema must be an object.`)
  return isObjectSchema(tidy) ? { ...tidy, type: 'object', properties: tidy['properties'] ?? {} } : tidy
}

/** True when the object has at least one keyword of JSON Schema, or is empty, which accepts everything. */
export function looksLikeJsonSchema(value: object): boolean {
  const keys = Object.keys(value)
  if (keys.length === 0) return true
  const type: unknown = Reflect.get(value, 'type')
  if (typeof type === 'string' || Array.isArray(type)) return true
  return keys.some((key) => key !== 'type' && (key.startsWith('$') || keywords.has(key)))
}

const schemaKeywords = new Set([
  ...['additionalProperties', 'unevaluatedProperties', 'propertyNames', 'items', 'additionalItems', 'unevaluatedItems'],
  ...['contains', 'if', 'then', 'else', 'not', 'contentSchema', 'prefixItems', 'allOf', 'anyOf', 'oneOf'],
])

const schemaMapKeywords = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'])

const otherKeywords = ['enum', 'const', 'required', 'format', 'pattern', 'description', 'title', 'default', 'examples']

const keywords = new Set([...schemaKeywords, ...schemaMapKeywords, ...otherKeywords])

const dropped = new Set(['title', '$schema', '$async'])

function tidied(schema: Json): Json {
  if (!isRecord(schema)) return schema
  const entries: [string, Json][] = []
  for (const [key, value] of Object.entries(modernTuple(schema))) {
    if (dropped.has(key)) continue
    if (schemaMapKeywords.has(key)) entries.push([key, tidiedValues(value)])
    else if (schemaKeywords.has(key)) entries.push([key, Array.isArray(value) ? value.map(tidied) : tidied(value)])
    else entries.push([key, value])
  }
  return Object.fromEntries(entries)
}

function tidiedValues(map: Json): Json {
  if (!isRecord(map)) return map
  return Object.fromEntries(Object.entries(map).map(([name, schema]) => [name, tidied(schema)]))
}

/** Before 2020-12 a tuple was a list in `items`, and `additionalItems` described the items behind it. */
function modernTuple(schema: { [key: string]: Json }): { [key: string]: Json } {
  const { items, additionalItems, ...others } = schema
  if (!Array.isArray(items)) return schema
  const modern = { ...others, prefixItems: items }
  return additionalItems === undefined ? modern : { ...modern, items: additionalItems }
}

function isObjectSchema(schema: Json): boolean {
  if (!isRecord(schema)) return false
  if (schema['type'] !== undefined) return schema['type'] === 'object'
  if (isRecord(schema['properties'])) return true
  const branches = schema['oneOf'] ?? schema['anyOf']
  return Array.isArray(branches) && branches.length > 0 && branches.every(isObjectSchema)
}
