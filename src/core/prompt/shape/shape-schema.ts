import { isRecord, type Json, type JsonRecord } from '../../base/json.ts'
import type { JsonSchema, StandardSchema } from '../../base/schema/schema.ts'
import { isDescribed } from './read-shape.ts'
import { typeSchema } from './shape-text.ts'

/** The JSON Schema of a shape. Every field is required unless it has a default; more fields are allowed. */
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
  // A type in words that a validator does not know is added to the description.
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

/** The form of an answer: a schema of a library, or a shape. */
export type OutputShape = StandardSchema | Shape

/**
 * A type in words (`str`, `int`, `list[str]`, or any words), a list of one shape, an object of fields, or one of these
 * with a description. `{ $schema }` holds a JSON Schema.
 */
export type Shape = string | null | readonly Shape[] | { readonly [field: string]: unknown }

/** The TypeScript type of an answer of this shape. */
export type OutputOf<S> =
  S extends StandardSchema<unknown, infer Out>
    ? Out
    : S extends string
      ? Named<S>
      : S extends { readonly $type: infer Type }
        ? OutputOf<Type>
        : S extends { readonly $schema: unknown } | null
          ? unknown
          : S extends readonly (infer Item)[]
            ? OutputOf<Item>[]
            : S extends object
              ? { -readonly [Field in keyof S]: OutputOf<S[Field]> }
              : unknown

type Named<S extends string> = S extends 'str' | 'string'
  ? string
  : S extends 'int' | 'integer' | 'float' | 'double' | 'number'
    ? number
    : S extends 'bool' | 'boolean'
      ? boolean
      : unknown

/** Describes a type: `field('int', 'How many there are')`. A field with a default may be left out. */
export function field<const T extends Shape>(type: T, description = '', ...preset: readonly unknown[]): Described<T> {
  return { $type: type, $desc: description, ...(preset.length === 0 ? {} : { $default: preset[0] }) }
}

export interface Described<T extends Shape> {
  readonly $type: T
  readonly $desc: string
  readonly $default?: unknown
  readonly [field: string]: unknown
}
