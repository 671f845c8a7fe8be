import { isRecord, type Json, toJson } from '../../base/json.ts'
import type { JsonSchema } from '../../base/schema/json-schema.ts'
import { type CheckedSchema, readSchema, type Validation } from '../../base/schema/schema.ts'
import type { Secrets } from '../../base/secrets/secrets.ts'

/** A larger schema cannot be a description of arguments. */
const MOST_BYTES = 262_144
/** The most schemas that a check may visit, with every reference written out. */
const MOST_STEPS = 5_000

/**
 * Prepares the input schema of a server for the model and for our check. Parts that could make a check run for ever
 * (patterns, references that multiply) are left to the server. Returns a text if the schema cannot be used at all.
 */
export function guardedSchema(given: unknown, secrets: Secrets): CheckedSchema | string {
  const plain = toJson(given)
  if (!plain.ok) return `its input schema is not plain JSON: ${plain.error}`
  if (plain.text.length > MOST_BYTES) return `its input schema is larger than ${MOST_BYTES / 1024} KB`
  if (!isRecord(plain.value)) return NO_OBJECT
  const { type = 'object' } = plain.value
  if (type !== 'object') return NO_OBJECT
  const clean = secrets.cleanJson({ ...plain.value, type })
  const shown = readSchema(clean as JsonSchema, 'its input schema').jsonSchema
  const checks = stepsIn(shown as Json) > MOST_STEPS ? ANY_OBJECT : (withoutPatterns(shown as Json) as JsonSchema)
  return new GuardedSchema(shown, readSchema(checks, 'its input schema'))
}

const NO_OBJECT = 'its input schema does not describe an object'
const ANY_OBJECT: JsonSchema = { type: 'object' }

class GuardedSchema implements CheckedSchema {
  readonly jsonSchema: JsonSchema
  private checked: CheckedSchema

  constructor(shown: JsonSchema, checked: CheckedSchema) {
    this.jsonSchema = shown
    this.checked = checked
  }

  async validate(value: unknown): Promise<Validation> {
    await this.prepare()
    return this.checked.validate(value)
  }

  /** Falls back to "any object" for a schema that no validator takes. */
  async prepare(): Promise<void> {
    try {
      await this.checked.prepare()
    } catch {
      this.checked = readSchema(ANY_OBJECT, 'its input schema')
    }
  }
}

/** Counts the schemas with all references written out; infinite where they lead back to themselves. */
function stepsIn(root: Json): number {
  const known = new Map<Json, number>()
  const count = (value: Json): number => {
    if (typeof value !== 'object' || value === null) return 0
    const seen = known.get(value)
    if (seen !== undefined) return seen
    known.set(value, Number.POSITIVE_INFINITY) // until it is counted: it is inside itself
    let steps = 1
    for (const [key, inner] of Object.entries(value)) {
      steps += typeof inner === 'string' && REFERENCES.has(key) ? referred(inner) : count(inner)
    }
    known.set(value, steps)
    return steps
  }
  const referred = (pointer: string): number => {
    const target = resolve(root, pointer)
    return target === undefined ? Number.POSITIVE_INFINITY : count(target)
  }
  return count(root)
}

const REFERENCES: ReadonlySet<string> = new Set(['$ref', '$dynamicRef', '$recursiveRef'])

/** Follows only pointers into the schema itself. */
function resolve(root: Json, pointer: string): Json | undefined {
  if (pointer !== '#' && !pointer.startsWith('#/')) return undefined
  let at: Json | undefined = root
  for (const part of pointer.split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return undefined
    at = (at as Record<string, Json>)[key]
  }
  return at
}

/**
 * Removes patterns. Where patterns name properties, the rule for other properties goes too, because it depends on them.
 */
function withoutPatterns(value: Json, isMap = false): Json {
  if (Array.isArray(value)) return value.map((item) => withoutPatterns(item))
  if (!isRecord(value)) return value
  const isOpen = !isMap && 'patternProperties' in value
  const entries = Object.entries(value).filter(([key]) => {
    if (isMap) return true
    return !(key === 'pattern' || key === 'patternProperties' || (isOpen && CLOSERS.has(key)))
  })
  const inside = (key: string, inner: Json) =>
    !isMap && DATA.has(key) ? inner : withoutPatterns(inner, !isMap && MAPS.has(key))
  return Object.fromEntries(entries.map(([key, inner]) => [key, inside(key, inner)]))
}

const CLOSERS: ReadonlySet<string> = new Set(['additionalProperties', 'unevaluatedProperties'])
/** Keywords whose keys are names that the user chose. */
const MAPS: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions', 'dependentSchemas'])
const DATA: ReadonlySet<string> = new Set(['enum', 'const', 'default', 'examples'])
