import { DefinitionError, messageOf } from '../error.ts'
import { isRecord, type Json, toJson } from '../json.ts'
import { anything, flag, list, listOf, number, type OptionRule, oneOf, readOptions, record, text } from '../options.ts'
import { type Path, pathText } from '../text.ts'

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

/**
 * Refuses the plain mistakes that no validator takes: a keyword with a value of another kind, an unknown type, a reference to
 * nowhere. Loads no validator, so that an agent or a tool is refused where it is defined. A pattern is first read when it is used.
 */
export function refuseMistakes(root: JsonSchema, where: string): void {
  const parts: Part[] = [{ schema: root, path: [] }]
  try {
    // Grows while it is read.
    for (const part of parts) for (const inner of partsOf(part)) parts.push(inner)
    if (!parts.some(({ schema }) => typeof schema['$id'] === 'string')) checkReferences(root, parts)
  } catch (error) {
    throw new DefinitionError('definition', `${where}: not a usable JSON Schema: ${messageOf(error)}`, { cause: error })
  }
}

/** A schema within a schema, and where. */
interface Part {
  readonly schema: JsonSchema
  readonly path: Path
}

function partsOf({ schema, path }: Part): Part[] {
  return Object.entries(schema).flatMap(([key, value]) => {
    check(path, { [key]: value }, rules.get(key) ?? anything)
    const at = [...path, key]
    if (lists.has(key) || schemaMapKeywords.has(key)) return partsWithin(value as object, at)
    return schemaKeywords.has(key) && isRecord(value) ? [{ schema: value, path: at }] : []
  })
}

/** The schemas of a list, or of an object whose keys are names. */
function partsWithin(given: object, path: Path): Part[] {
  return Object.entries(given).flatMap(([key, value]) => {
    check(path, { [key]: value }, aSchema)
    return isRecord(value) ? [{ schema: value, path: [...path, Array.isArray(given) ? Number(key) : key] }] : []
  })
}

function check(path: Path, given: JsonSchema, rule: OptionRule): void {
  readOptions(pathText(path) || 'the schema', given, Object.fromEntries(Object.keys(given).map((key) => [key, rule])))
}

/** Addresses of their own are left to the validator, which alone knows what they are relative to. */
function checkReferences(root: JsonSchema, parts: readonly Part[]): void {
  const anchors = new Set(parts.map(({ schema }) => `#${schema['$anchor'] ?? schema['$dynamicAnchor']}`))
  for (const { schema, path } of parts) {
    const { $ref } = schema
    const pointer = refersTo(schema)
    const target = pointer === undefined ? anchors.has(String($ref)) : resolvePointer(root, pointer)
    if ($ref === undefined || target === true || isRecord(target) || (pointer !== undefined && target === false))
      continue
    check(path, { $ref }, () => 'the place of a schema in this one, such as "#/$defs/item"')
  }
}

/** The pointer that `$ref` names within the same schema. */
export function refersTo({ $ref }: JsonSchema): string | undefined {
  if (typeof $ref !== 'string' || !$ref.startsWith('#')) return undefined
  const pointer = decode($ref.slice(1))
  return pointer === '' || pointer.startsWith('/') ? pointer : undefined
}

export function resolvePointer(root: JsonSchema, pointer: string): unknown {
  let at: unknown = root
  for (const part of pointer.split('/').slice(1)) {
    if (typeof at !== 'object' || at === null) return undefined
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
    at = Object.hasOwn(at, key) ? Reflect.get(at, key) : undefined
  }
  return at
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

const lists = new Set(['prefixItems', 'allOf', 'anyOf', 'oneOf'])
const types = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']
const aType = oneOf(...types)
const aSchema: OptionRule = (value) =>
  isRecord(value) || typeof value === 'boolean' ? null : 'a schema: an object, true or false'

const rules: ReadonlyMap<string, OptionRule> = new Map([
  ...[...schemaKeywords].map((name) => [name, lists.has(name) ? list : aSchema] as const),
  ...[...schemaMapKeywords].map((name) => [name, record] as const),
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'minLength', 'maxLength', 'minItems']
    .concat('maxItems', 'minProperties', 'maxProperties', 'minContains', 'maxContains')
    .map((name) => [name, number()] as const),
  ['type', (value: unknown) => (Array.isArray(value) && listOf(aType, '')(value) === null ? null : aType(value))],
  ['required', listOf(text, 'names')],
  ['enum', list],
  ['$ref', text],
  ['pattern', text],
  ['uniqueItems', flag],
])

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
