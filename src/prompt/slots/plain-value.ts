import { LegateError } from '../../base/error.ts'
import { type Json, toJson } from '../../base/json.ts'

/** A frozen copy that is nothing but JSON: what a caller does with its own object later changes no prompt. */
export function plainValue(value: unknown, where: string): Json {
  const plain = toJson(value)
  if (!plain.ok) throw new LegateError('unserialisable', `prompt, ${where}: ${plain.error}`)
  return frozen(plain.value)
}

/** Freezes data of our own, all the way down. */
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
