import type { Json } from '../base/json.ts'
import type { JsonSchema } from '../base/schema/schema.ts'

export type Presets = { readonly [field: string]: Json }

/** The input with its presets: they win over whatever the model has put there. */
export function withPresets(input: unknown, presets: Presets | undefined): unknown {
  if (presets === undefined) return input
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return input
  return { ...input, ...presets }
}

/** The schema without the fields that are preset: the model is not told of them. */
export function withoutPresets(schema: JsonSchema, presets: Presets | undefined): JsonSchema {
  if (presets === undefined) return schema
  const isShown = (field: string) => !Object.hasOwn(presets, field)
  const { properties, required, ...rest } = schema as { properties?: object; required?: readonly string[] }
  return {
    ...rest,
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).filter(([field]) => isShown(field))),
    }),
    ...(required && { required: required.filter(isShown) }),
  }
}
