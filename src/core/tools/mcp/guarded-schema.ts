import { isRecord, type Json, toJson } from '../../base/json.ts'
import { hasTooManyKeywords } from '../../base/schema/json-check.ts'
import { type JsonSchema, refersTo, resolvePointer, tidyJsonSchema } from '../../base/schema/json-schema.ts'
import { type CheckedSchema, readSchema, type Validation } from '../../base/schema/schema.ts'
import type { Secrets } from '../../base/secrets/secrets.ts'

/** A larger schema cannot be a description of arguments. */
const MOST_BYTES = 262_144
/** The most schemas that a check may visit, with every reference written out. */
const MOST_STEPS = 5_000

/**
 * Prepares the input schema of a server for the model and for our check. Parts that could make a check run for ever
 * (patterns, references that multiply, more keywords than are compiled in time) are left to the server. Returns a text if the schema cannot be used at all.
 */
export function guardedSchema(given: unknown, secrets: Secrets): CheckedSchema | string {
  const plain = toJson(given)
  if (!plain.ok) return `its input schema is not plain JSON: ${plain.error}`
  if (plain.text.length > MOST_BYTES) return `its input schema is larger than ${MOST_BYTES / 1024} KB`
  if (!isRecord(plain.value)) return NO_OBJECT
  const { type = 'object' } = plain.value
  if (type !== 'object') return NO_OBJECT
  const clean = secrets.cleanJson({ ...plain.value, type })
  const shown = tidyJsonSchema(clean, 'its input schema')
  const isLarge = stepsIn(shown as Json) > MOST_STEPS || hasTooManyKeywords(shown)
  const checks = isLarge ? ANY_OBJECT : (withoutPatterns(shown as Json) as JsonSchema)
  return new GuardedSchema(shown, checks)
}

const NO_OBJECT = 'its input schema does not describe an object'
const ANY_OBJECT: JsonSchema = { type: 'object' }

class GuardedSchema implements CheckedSchema {
  readonly jsonSchema: JsonSchema
  private readonly checks: JsonSchema
  private checked: CheckedSchema | undefined

  constructor(shown: JsonSchema, checks: JsonSchema) {
    this.jsonSchema = shown
    this.checks = checks
  }

  async validate(value: unknown): Promise<Validation> {
    const checked = await this.prepare()
    return checked.validate(value)
  }

  /** Falls back to "any object" for a schema that no validator takes. */
  async prepare(): Promise<CheckedSchema> {
    this.checked ??= (await prepared(this.checks)) ?? readSchema(ANY_OBJECT, 'its input schema')
    return this.checked
  }
}

async function prepared(schema: JsonSchema): Promise<CheckedSchema | undefined> {
  try {
    const checked = readSchema(schema, 'its input schema')
    await checked.prepare()
    return checked
  } catch {
    return undefined
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
  const referred = ($ref: string): number => {
    const pointer = refersTo({ $ref })
    const target = pointer === undefined ? undefined : resolvePointer(root as JsonSchema, pointer)
    return target === undefined ? Number.POSITIVE_INFINITY : count(target as Json)
  }
  return count(root)
}

const REFERENCES: ReadonlySet<string> = new Set(['$ref', '$dynamicRef', '$recursiveRef'])

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
