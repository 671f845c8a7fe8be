import type { StandardSchema } from '../../base/schema.ts'

/** What an answer must be: a schema of a library, or a shape. */
export type OutputShape = StandardSchema | Shape

/**
 * A type in words (`str`, `int`, `list[str]`, or any words), a list of one shape, an object of fields, or one of these
 * with a description. `{ $schema }` holds a JSON Schema.
 */
export type Shape = string | null | readonly Shape[] | { readonly [field: string]: unknown }

/** What an answer of this shape is, to the compiler. */
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

/** A type with a description: `field('int', 'How many there are')`. With a default the field may be left out. */
export function field<const T extends Shape>(type: T, description = '', ...preset: readonly unknown[]): Described<T> {
  return { $type: type, $desc: description, ...(preset.length === 0 ? {} : { $default: preset[0] }) }
}

export interface Described<T extends Shape> {
  readonly $type: T
  readonly $desc: string
  readonly $default?: unknown
  readonly [field: string]: unknown
}
