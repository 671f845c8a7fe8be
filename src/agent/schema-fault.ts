import { messageOf } from '../base/error.ts'
import type { CheckedSchema, JsonSchema } from '../base/schema.ts'

const TYPES = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']

/** Why a schema cannot describe the arguments of a tool, as the rest of a sentence; undefined when it can. */
export function schemaFault(schema: CheckedSchema): string | undefined {
  try {
    return faultIn(schema.jsonSchema, '')
  } catch (error) {
    return `has no JSON Schema: ${messageOf(error)}`
  }
}

function faultIn(schema: JsonSchema, path: string): string | undefined {
  const { type, properties = {}, required = [], items } = schema
  const wrong = [type ?? []].flat().find((name) => !TYPES.includes(String(name)))
  if (wrong !== undefined) return `says type ${JSON.stringify(wrong)}${at(path)}: there are ${TYPES.join(', ')}.`
  if (!isRecord(properties)) return `has properties that are no object${at(path)}.`
  if (!Array.isArray(required) || required.some((name) => typeof name !== 'string')) {
    return `has a "required" that is no list of names${at(path)}.`
  }
  for (const [name, inner] of Object.entries(properties)) {
    const fault = isRecord(inner) ? faultIn(inner, path === '' ? name : `${path}.${name}`) : undefined
    if (fault !== undefined) return fault
  }
  return isRecord(items) ? faultIn(items, `${path}[]`) : undefined
}

function at(path: string): string {
  return path === '' ? '' : ` at ${path}`
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
