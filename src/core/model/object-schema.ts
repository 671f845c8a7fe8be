import { isRecord, type Json } from '../base/json.ts'
import type { JsonSchema } from '../base/schema/schema.ts'

/** A schema whose top level is one plain object, which is all that providers take for a tool or an answer. */
export interface ObjectSchema {
  readonly schema: JsonSchema
  /** The name of the one field that holds the value; null where the value is the object itself. */
  readonly field: string | null
}

/** Keywords that no provider takes beside `type: "object"` at the top level. */
const REFUSED_AT_TOP = ['anyOf', 'oneOf', 'allOf', 'enum', 'const', 'not', '$ref'] as const

/**
 * The one place that wraps a schema that is not an object: a union, a reference, a text, a list, anything. The value goes
 * into a field of this name, and `unwrapped` takes it out again.
 */
export function objectSchema(given: JsonSchema, field: string): ObjectSchema {
  const schema = withoutChoices(given)
  if (isPlainObject(schema)) return { schema, field: null }
  const isAnything = Object.keys(schema).every((key) => key === 'description')
  const { $defs, definitions, ...inner } = inside(schema, field)
  return {
    schema: {
      type: 'object',
      properties: { [field]: inner },
      ...(isAnything ? {} : { required: [field], additionalProperties: false }),
      ...($defs === undefined ? {} : { $defs }),
      ...(definitions === undefined ? {} : { definitions }),
    },
    field,
  }
}

/** Wraps a value in the form that the provider sees. */
export function wrapped(value: Json, field: string): Json {
  return { [field]: value }
}

/** Unwraps a model's value. If the model left the field out, it gave the value itself. */
export function unwrapped(given: Json, field: string): Json {
  if (!isRecord(given) || Object.keys(given).length !== 1) return given
  return given[field] ?? (Object.hasOwn(given, field) ? null : given)
}

/** Moves the root into a definition, because references count from the root. */
export function rootedInDefinitions(schema: JsonSchema, name: string): JsonSchema {
  const { $defs, definitions, ...root } = moved(schema as Json, name) as { readonly [key: string]: Json }
  const defs = isRecord($defs) ? $defs : {}
  return {
    ...root,
    $defs: { ...defs, [name]: root as Json },
    ...(definitions === undefined ? {} : { definitions }),
  }
}

/** True when a reference points to the root, or to a place that is no definition. */
export function refersToRoot(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(refersToRoot)
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).some(([key, one]) => (key === '$ref' ? isRootReference(one) : refersToRoot(one)))
}

function isPlainObject(schema: JsonSchema): boolean {
  return schema['type'] === 'object' && REFUSED_AT_TOP.every((key) => schema[key] === undefined)
}

/** Joins several plain objects (`allOf`) into one. A schema without a type that has properties is an object too. */
function withoutChoices(schema: JsonSchema): JsonSchema {
  const { allOf, ...others } = schema
  if (!Array.isArray(allOf)) return typed(schema)
  const parts = [typed(others), ...allOf.map((part) => (isRecord(part) ? typed(part) : {}))]
  const objects = parts.filter((part) => Object.keys(part).length > 0)
  return objects.length > 0 && objects.every(isPlainObject) ? merged(objects) : schema
}

function typed(schema: JsonSchema): JsonSchema {
  const isObject = schema['type'] === undefined && isRecord(schema['properties'])
  return isObject ? { type: 'object', ...schema } : schema
}

function merged(objects: readonly JsonSchema[]): JsonSchema {
  const properties: Record<string, unknown> = {}
  for (const { properties: own } of objects) {
    for (const [name, schema] of Object.entries(isRecord(own) ? own : {})) {
      properties[name] = Object.hasOwn(properties, name) ? { allOf: [properties[name], schema] } : schema
    }
  }
  const required = [...new Set(objects.flatMap(({ required: own }) => (Array.isArray(own) ? own : [])))]
  const { additionalProperties: _, ...others } = Object.assign({}, ...objects) as JsonSchema
  return { ...others, properties, ...(required.length === 0 ? {} : { required }) }
}

/** The schema as it stands inside a field, with its definitions still at the root. */
function inside(schema: JsonSchema, field: string): JsonSchema {
  if (!refersToRoot(schema)) return asOneOf(schema)
  const { $defs, definitions } = rootedInDefinitions(schema, field)
  const reference = { $ref: `#/$defs/${field}`, $defs }
  return definitions === undefined ? reference : { ...reference, definitions }
}

/** A union is described by its members alone, under `anyOf`, which every provider knows. */
function asOneOf(schema: JsonSchema): JsonSchema {
  const { type, properties, oneOf, anyOf, ...others } = schema
  const members = anyOf ?? oneOf
  const saysMore = isRecord(properties) && Object.keys(properties).length > 0
  if (members === undefined || saysMore || (anyOf !== undefined && oneOf !== undefined)) return schema
  return type === undefined || type === 'object' ? { ...others, anyOf: members } : schema
}

function moved(value: Json, name: string): Json {
  if (Array.isArray(value)) return value.map((one) => moved(one, name))
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => {
      const isMoved = key === '$ref' && isRootReference(one)
      return [key, isMoved ? `#/$defs/${name}${String(one).slice(1)}` : moved(one, name)]
    }),
  )
}

function isRootReference(reference: unknown): boolean {
  return typeof reference === 'string' && /^#(?!\/(?:\$defs|definitions)\/)/.test(reference)
}
