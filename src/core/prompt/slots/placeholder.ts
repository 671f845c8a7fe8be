import { DefinitionError, LegateError } from '../../base/error.ts'
import { type Json, type JsonRecord, toJson } from '../../base/json.ts'

/** Values for `${name}`. */
export type Mappings = { readonly [name: string]: unknown }

export type ReadMappings = ReadonlyMap<string, Json>

const NO_MAPPINGS: ReadMappings = new Map()

export function readMappings(mappings: Mappings | undefined): ReadMappings {
  if (mappings === undefined) return NO_MAPPINGS
  const plain = plainValue(mappings, 'mappings')
  if (typeof plain !== 'object' || plain === null || Array.isArray(plain)) {
    throw new DefinitionError('definition', 'prompt, mappings: give an object, as in { name: value }.')
  }
  return new Map(Object.entries(plain))
}

/**
 * Replaces the placeholders of all keys and texts once; inserted text is not searched again. A text that is a single
 * placeholder becomes its value, of any type; a name without a value stays as it is written.
 */
export function fillPlaceholders(value: Json, mappings: ReadMappings): Json {
  if (mappings.size === 0) return value
  if (typeof value === 'string') return fillText(value, mappings)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => fillPlaceholders(item, mappings))
  return fillRecord(value, mappings)
}

export function fillText(text: string, mappings: ReadMappings): Json {
  const whole = wholePlaceholder.exec(text.trim())
  const value = whole === null ? undefined : mappings.get((whole[1] ?? '').trim())
  return value === undefined ? fillKey(text, mappings) : value
}

export function fillKey(key: string, mappings: ReadMappings): string {
  if (mappings.size === 0) return key
  return key.replace(placeholder, (written: string, name: string) => {
    const value = mappings.get(name.trim())
    return value === undefined ? written : inLine(value)
  })
}

const placeholder = /\$\{([^{}]*)\}/g
const wholePlaceholder = /^\$\{([^{}]*)\}$/

function fillRecord(record: JsonRecord, mappings: ReadMappings): Json {
  const filled = new Map<string, Json>()
  for (const [key, value] of Object.entries(record)) {
    const name = fillKey(key, mappings)
    if (filled.has(name)) {
      throw new DefinitionError('definition', `prompt: with these mappings two keys become ${JSON.stringify(name)}.`)
    }
    filled.set(name, fillPlaceholders(value, mappings))
  }
  return Object.fromEntries(filled)
}

/** A frozen copy of pure JSON, so that a caller who changes its own object later changes no prompt. */
export function plainValue(value: unknown, where: string): Json {
  const plain = toJson(value)
  if (!plain.ok) throw new LegateError('unserialisable', `prompt, ${where}: ${plain.error}`)
  return frozen(plain.value)
}

/** Freezes our own data, all the way down. */
export function frozen(value: Json): Json {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const item of Object.values(value)) frozen(item)
  Object.freeze(value)
  return value
}

/** Data in one line: texts as they are, everything else as JSON. */
export function inLine(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
