import type { Path } from '../base/path.ts'
import { type PathPattern, type PathSegment, readPath } from './path-pattern.ts'
import { dotPath } from './path-text.ts'

/**
 * The paths of `wanted` that `value` lacks, as people write them. Null is a value. Of `items[*].title` every item that
 * has no title is named; a list without items lacks nothing.
 */
export function missingFields(value: unknown, wanted: readonly (string | Path)[]): string[] {
  return emptyFields(value, wanted, true)
}

/** The same, where null need not be enough. */
export function emptyFields(value: unknown, wanted: readonly (string | Path)[], allowsNull: boolean): string[] {
  return wanted.flatMap((path) => missingIn({ value, pattern: readPath(path), path: [] }, allowsNull))
}

interface Place {
  readonly value: unknown
  readonly pattern: PathPattern
  readonly path: Path
}

function missingIn({ value, pattern, path }: Place, allowsNull: boolean): string[] {
  const [segment, ...rest] = pattern
  if (segment === undefined) return value === null && !allowsNull ? [dotPath(path)] : []
  const found = keysIn(value, segment)
  if (found === undefined) return [spell(path, segment)]
  return found.flatMap((key) =>
    missingIn({ value: Reflect.get(Object(value), key), pattern: rest, path: [...path, key] }, allowsNull),
  )
}

/** The keys that the segment takes; undefined where there should be one and is none. */
function keysIn(value: unknown, segment: PathSegment): (string | number)[] | undefined {
  if (Array.isArray(value)) {
    if (segment.index === '*') return [...value.keys()]
    const { index } = segment
    return index !== undefined && index < value.length ? [index] : undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  if (segment.isAnyKey) return Object.keys(value)
  return segment.key !== undefined && Object.hasOwn(value, segment.key) ? [segment.key] : undefined
}

function spell(path: Path, { key, index }: PathSegment): string {
  if (index === '*') return `${dotPath(path)}[*]`
  const name = index ?? key
  return name === undefined ? `${dotPath(path)}.*` : dotPath([...path, name])
}
