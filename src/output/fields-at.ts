import type { Path } from '../base/path.ts'
import type { PathPattern, PathSegment } from './path-pattern.ts'

export interface FieldAt {
  readonly path: Path
  readonly value: unknown
}

/** What a document has at a path, in order. */
export function fieldsAt(document: unknown, pattern: PathPattern): FieldAt[] {
  let found: FieldAt[] = [{ path: [], value: document }]
  for (const segment of pattern) found = found.flatMap((place) => below(place, segment))
  return found
}

function below({ path, value }: FieldAt, segment: PathSegment): FieldAt[] {
  return keysIn(value, segment).map((key) => ({ path: [...path, key], value: Reflect.get(Object(value), key) }))
}

function keysIn(value: unknown, { key, index, isAnyKey }: PathSegment): (string | number)[] {
  if (Array.isArray(value)) {
    if (index === '*') return [...value.keys()]
    return index !== undefined && index < value.length ? [index] : []
  }
  if (typeof value !== 'object' || value === null) return []
  if (isAnyKey) return Object.keys(value)
  return key !== undefined && Object.hasOwn(value, key) ? [key] : []
}
