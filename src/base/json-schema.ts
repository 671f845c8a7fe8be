import { DefinitionError, messageOf } from './error.ts'
import { type Json, toJson } from './json.ts'

/** A JSON Schema, draft 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>

/**
 * A copy fit to be shown to a model: plain JSON, no titles and no `$schema`, tuples of older drafts in today's form,
 * and an object schema says `type` and `properties`. A property that is named "title" stays.
 */
export function tidyJsonSchema(schema: unknown, where: string): JsonSchema {
  const plain = toJson(schema)
  if (!plain.ok) throw new DefinitionError('definition', `${where}: the JSON Schema is not plain JSON. ${plain.error}`)
  const tidy = tidied(plain.value)
  if (!isRecord(tidy)) throw new DefinitionError('definition', `${where}: a JSON Schema must be an object.`)
  return isObjectSchema(tidy) ? { ...tidy, type: 'object', properties: tidy['properties'] ?? {} } : tidy
}

/** True when the object has at least one word of JSON Schema in it, or nothing at all, which accepts everything. */
export function looksLikeJsonSchema(value: object): boolean {
  const keys = Object.keys(value)
  if (keys.length === 0) return true
  const type: unknown = Reflect.get(value, 'type')
  if (typeof type === 'string' || Array.isArray(type)) return true
  return keys.some((key) => key !== 'type' && (key.startsWith('$') || keywords.has(key)))
}

export type JsonCheck = (value: unknown) => readonly JsonCheckError[]

export interface JsonCheckError {
  /** A JSON pointer into the value. */
  readonly pointer: string
  readonly message: string
}

/**
 * Compiles with a validator of its own, so that schemas with the same `$id` never meet, and so that nothing is kept
 * when the check is dropped. Nothing is fetched. Unknown keywords and formats are ignored.
 * Rejects with a DefinitionError when the schema cannot be used. The check may throw on a schema that never ends.
 */
export async function compileJsonSchema(schema: JsonSchema, where: string): Promise<JsonCheck> {
  const { Ajv2020 } = await import('ajv/dist/2020.js')
  const compile = (unicodeRegExp: boolean): JsonCheck => {
    const check = new Ajv2020({ ...ajvOptions, unicodeRegExp }).compile(schema)
    return (value) => (check(value) ? [] : (check.errors ?? []).map(readError))
  }
  try {
    return compile(true)
  } catch (error) {
    try {
      // Patterns of other languages often hold escapes that only the older form of expression takes.
      return compile(false)
    } catch {
      const message = `${where}: not a usable JSON Schema: ${messageOf(error)}`
      throw new DefinitionError('definition', message, { cause: error })
    }
  }
}

const ajvOptions = {
  strict: false,
  allErrors: true,
  ownProperties: true,
  validateFormats: false,
  validateSchema: false,
  meta: false,
  logger: false,
} as const

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

/** Before 2020-12 a tuple was a list in `items`, and `additionalItems` was what came after it. */
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

function isRecord(value: Json | undefined): value is { [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function readError(error: {
  instancePath: string
  keyword: string
  params: Readonly<Record<string, unknown>>
  message?: string
}): JsonCheckError {
  const message = error.message ?? `breaks "${error.keyword}"`
  return { pointer: error.instancePath, message: message + detailOf(error.params) }
}

/** The part that a person or a model needs to correct the value and the standard message leaves out. */
function detailOf(params: Readonly<Record<string, unknown>>): string {
  const extra = params['additionalProperty'] ?? params['unevaluatedProperty']
  if (typeof extra === 'string') return `: "${extra}"`
  const allowed = params['allowedValues'] ?? ('allowedValue' in params ? [params['allowedValue']] : undefined)
  if (!Array.isArray(allowed)) return ''
  return `: ${allowed
    .slice(0, 20)
    .map((value) => JSON.stringify(value))
    .join(', ')}`
}
