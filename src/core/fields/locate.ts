import { type JsonSchema, refersTo, resolvePointer } from '../base/schema/json-schema.ts'
import type { Path } from '../base/text.ts'
import type { PathPattern, PathSegment } from './path-pattern.ts'
import { isSchemaObject } from './schema-view.ts'

/** The place in a schema that describes a field: one pointer, or several of which all or one must fit. */
export type Location =
  | { readonly at: string }
  | { readonly all: readonly Location[] }
  | { readonly any: readonly Location[] }

/** Undefined where the schema does not describe the field, null where it forbids it. */
export function locate(root: JsonSchema, path: Path): Location | null | undefined {
  let location: Location | null | undefined = { at: '' }
  for (const key of path) {
    if (location === null || location === undefined) return location
    location = below(location, { root, key, depth: 0 })
  }
  return location
}

interface Step {
  readonly root: JsonSchema
  readonly key: string | number
  readonly depth: number
}

type FoundLocation = Location | null | undefined

/** Bounds references, because schemas that refer to each other in a circle describe nothing. */
const maxDepth = 32

function below(location: Location, step: Step): FoundLocation {
  if ('all' in location) return all(location.all.map((part) => below(part, step)))
  if ('any' in location) return any(location.any.map((part) => below(part, step)))
  if (step.depth > maxDepth) return undefined
  const schema = resolvePointer(step.root, location.at)
  // A part with an `$id` of its own resolves references differently.
  if (!isSchemaObject(schema) || (location.at !== '' && schema['$id'] !== undefined)) return undefined
  return belowSchema(schema, location.at, { ...step, depth: step.depth + 1 })
}

function belowSchema(schema: JsonSchema, at: string, step: Step): FoundLocation {
  if (!mayHold(schema, step.key)) return null
  const parts = [ownBelow(schema, at, step.key)]
  const target = refersTo(schema)
  if (target !== undefined) parts.push(below({ at: target }, step))
  if (Array.isArray(schema['allOf'])) parts.push(...branches(schema['allOf'], `${at}/allOf`, step))
  for (const word of ['anyOf', 'oneOf']) {
    const list = schema[word]
    if (Array.isArray(list)) parts.push(any(branches(list, `${at}/${word}`, step)))
  }
  return all(parts)
}

function branches(list: readonly unknown[], at: string, step: Step): FoundLocation[] {
  return list.map((_, index) => below({ at: `${at}/${index}` }, step))
}

function mayHold({ type }: JsonSchema, key: string | number): boolean {
  if (type === undefined) return true
  const wanted = typeof key === 'number' ? 'array' : 'object'
  return Array.isArray(type) ? type.includes(wanted) : type === wanted
}

function ownBelow(schema: JsonSchema, at: string, key: string | number): FoundLocation {
  return typeof key === 'number' ? itemBelow(schema, at, key) : propertyBelow(schema, at, key)
}

function itemBelow({ prefixItems, items }: JsonSchema, at: string, index: number): FoundLocation {
  if (Array.isArray(prefixItems) && index < prefixItems.length) return { at: `${at}/prefixItems/${index}` }
  if (items === false) return null
  return items === undefined ? undefined : { at: `${at}/items` }
}

function propertyBelow(schema: JsonSchema, at: string, key: string): FoundLocation {
  const { properties, patternProperties, additionalProperties } = schema
  if (isSchemaObject(properties) && Object.hasOwn(properties, key)) return { at: `${at}/properties/${escaped(key)}` }
  if (patternProperties !== undefined || additionalProperties === undefined) return undefined
  return additionalProperties === false ? null : { at: `${at}/additionalProperties` }
}

function escaped(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1')
}

function all(parts: readonly FoundLocation[]): FoundLocation {
  if (parts.includes(null)) return null
  const said = parts.filter((part) => part !== undefined && part !== null)
  return said.length > 1 ? { all: said } : said[0]
}

function any(parts: readonly FoundLocation[]): FoundLocation {
  if (parts.includes(undefined)) return undefined
  const possible = parts.filter((part) => part !== undefined && part !== null)
  if (possible.length === 0) return null
  return possible.length > 1 ? { any: possible } : possible[0]
}

/** True when the schema describes a field there. One that it merely allows does not count. */
export function hasField(schema: JsonSchema, pattern: PathPattern): boolean {
  return spelledOut(pattern).some((path) => locate(schema, path) != null)
}

/** The concrete paths that a pattern stands for: in the text of a path a number may be a key or an index. */
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
