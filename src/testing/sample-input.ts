import type { Json } from '../base/json.ts'
import type { JsonSchema } from '../base/schema.ts'

/** A value that fits a JSON Schema, for the schemas people write for tools; undefined where one cannot be told. */
export function sampleInput(schema: JsonSchema): Json | undefined {
  for (const key of ['default', 'const'] as const) if (schema[key] !== undefined) return schema[key] as Json
  const choices = schema['enum'] ?? schema['examples']
  if (Array.isArray(choices) && choices.length > 0) return choices[0] as Json
  const arms = schema['anyOf'] ?? schema['oneOf']
  if (Array.isArray(arms)) return firstSample(arms as JsonSchema[])
  const type = Array.isArray(schema['type']) ? schema['type'][0] : schema['type']
  return sampleOf(type as string | undefined, schema)
}

function sampleOf(type: string | undefined, schema: JsonSchema): Json | undefined {
  switch (type) {
    case 'object':
      return sampleObject(schema)
    case 'array':
      return sampleList(schema)
    case 'string':
      return schema['format'] === undefined && schema['pattern'] === undefined ? sampleText(schema) : undefined
    case 'integer':
    case 'number':
      return sampleNumber(schema)
    case 'boolean':
      return true
    case 'null':
      return null
    default:
      return undefined
  }
}

function sampleObject(schema: JsonSchema): Json | undefined {
  const properties = (schema['properties'] ?? {}) as { readonly [name: string]: JsonSchema }
  const made: { [name: string]: Json } = {}
  for (const name of (schema['required'] ?? []) as readonly string[]) {
    const value = sampleInput(properties[name] ?? {})
    if (value === undefined) return undefined
    made[name] = value
  }
  return made
}

function sampleList(schema: JsonSchema): Json | undefined {
  const count = Number(schema['minItems'] ?? 0)
  const item = sampleInput((schema['items'] ?? {}) as JsonSchema)
  if (count > 0 && item === undefined) return undefined
  return Array.from({ length: count }, () => item as Json)
}

function sampleText(schema: JsonSchema): string {
  return 'sample text'
    .repeat(50)
    .slice(0, Math.max(Number(schema['minLength'] ?? 1), Math.min(11, Number(schema['maxLength'] ?? 11))))
}

function sampleNumber(schema: JsonSchema): number {
  const above = schema['exclusiveMinimum'] === undefined ? undefined : Number(schema['exclusiveMinimum']) + 1
  const least = Number(schema['minimum'] ?? above ?? 1)
  return Math.min(least, Number(schema['maximum'] ?? least))
}

function firstSample(arms: readonly JsonSchema[]): Json | undefined {
  for (const arm of arms) {
    const value = sampleInput(arm)
    if (value !== undefined) return value
  }
  return undefined
}
