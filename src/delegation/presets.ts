import type { Json } from '../base/json.ts'
import type { JsonSchema } from '../base/schema/schema.ts'

export type Presets = { readonly [field: string]: Json }

/** Adds the presets to the input. They replace whatever the model wrote there. */
export function withPresets(input: unknown, presets: Presets | undefined): unknown {
  if (presets === undefined) return input
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return input
  return { ...input, ...presets }
}

/** Removes preset fields from the schema, so that the model does not see them. */
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
