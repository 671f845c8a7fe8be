import type { JsonSchema } from '../base/json-schema.ts'
import type { Path } from '../base/path.ts'
import { locate } from './locate.ts'
import type { PathPattern, PathSegment } from './path-pattern.ts'

/** Does the schema describe a field there? One that it merely allows does not count. */
export function hasField(schema: JsonSchema, pattern: PathPattern): boolean {
  return spelledOut(pattern).some((path) => locate(schema, path) != null)
}

/** Concrete paths that stand for a pattern: in the text of a path a number may be a key or an index. */
export function spelledOut(pattern: PathPattern): Path[] {
  let paths: (string | number)[][] = [[]]
  for (const segment of pattern) {
    paths = paths.flatMap((path) => keysOf(segment).map((key) => [...path, key])).slice(0, mostSpelled)
  }
  return paths
}

const mostSpelled = 64

function keysOf({ key, index, isAnyKey }: PathSegment): (string | number)[] {
  const keys: (string | number)[] = []
  if (index !== undefined) keys.push(index === '*' ? 0 : index)
  if (key !== undefined) keys.push(key)
  if (isAnyKey && key === undefined) keys.push('*')
  return keys
}
