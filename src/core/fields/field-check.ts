import type { JsonSchema } from '../base/schema/json-schema.ts'
import { type CheckedSchema, type Issue, readSchema, type Validation } from '../base/schema/schema.ts'
import type { Path } from '../base/text.ts'
import { dotPath } from './field-path.ts'
import { type Location, locate } from './locate.ts'
import { type PathPattern, type PathSegment, readPath } from './path-pattern.ts'

/**
 * Checks single fields of a document against their part of its schema. The whole document is checked at the end, so
 * this class skips what one field alone cannot show.
 */
export class FieldCheck {
  private readonly schema: JsonSchema
  private readonly checks = new Map<string, Promise<CheckedSchema | undefined>>()
  private readonly ready = new Map<string, CheckedSchema | undefined>()

  private readonly whole: unknown

  constructor(schema: JsonSchema) {
    this.schema = schema
    const { $id: _, ...whole } = schema
    this.whole = moved(whole)
  }

  /** Answers at once where a field at the same place was checked before. The paths of the issues start at the root. */
  check(path: Path, value: unknown): readonly Issue[] | Promise<readonly Issue[]> {
    const location = locate(this.schema, path)
    if (location === undefined) return []
    if (location === null) return [{ path, message: 'is not in the schema' }]
    const name = JSON.stringify(location)
    if (this.ready.has(name)) return run(this.ready.get(name), path, value)
    return this.prepared(name, location).then((check) => run(check, path, value))
  }

  /** Prepares the check of fields at this place, which takes longer than the check. Never rejects. */
  async prepareAt(path: Path): Promise<void> {
    const location = locate(this.schema, path)
    if (location != null) await this.prepared(JSON.stringify(location), location)
  }

  private prepared(name: string, location: Location): Promise<CheckedSchema | undefined> {
    const known = this.checks.get(name)
    if (known !== undefined) return known
    const making = this.prepare(location).then((check) => {
      this.ready.set(name, check)
      return check
    })
    this.checks.set(name, making)
    return making
  }

  /** Undefined for a part of the schema that cannot be used alone. */
  private async prepare(location: Location): Promise<CheckedSchema | undefined> {
    return (await prepared(this.whole, location)) ?? (await prepared(withoutPatterns(this.whole), location))
  }
}

/** Undefined where the part of the schema cannot be used. */
async function prepared(whole: unknown, location: Location): Promise<CheckedSchema | undefined> {
  try {
    const check = readSchema({ $defs: { whole }, allOf: [spelled(location)] }, 'a field of the output')
    await check.prepare()
    return check
  } catch {
    return undefined
  }
}

/**
 * Removes patterns, because a library may accept some that JSON Schema does not allow. The library checks them in the
 * whole answer.
 */
function withoutPatterns(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(withoutPatterns)
  if (typeof part !== 'object' || part === null) return part
  const entries = Object.entries(part).filter(([word, inner]) => word !== 'pattern' || typeof inner !== 'string')
  return Object.fromEntries(entries.map(([word, inner]) => [word, DATA.has(word) ? inner : withoutPatterns(inner)]))
}

const DATA: ReadonlySet<string> = new Set(['enum', 'const', 'default', 'examples'])

const wholeAt = '#/$defs/whole'

function spelled(location: Location): JsonSchema {
  if ('all' in location) return { allOf: location.all.map(spelled) }
  if ('any' in location) return { anyOf: location.any.map(spelled) }
  return { $ref: wholeAt + location.at.split('/').map(encodeURIComponent).join('/') }
}

/** A copy that can stand inside another schema: references to its root now point to its new place. */
function moved(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(moved)
  if (typeof part !== 'object' || part === null) return part
  return Object.fromEntries(
    Object.entries(part).map(([word, inner]) => {
      const isRef = word === '$ref' && typeof inner === 'string' && inner.startsWith('#')
      return [word, isRef ? wholeAt + inner.slice(1) : moved(inner)]
    }),
  )
}

function run(
  check: CheckedSchema | undefined,
  path: Path,
  value: unknown,
): readonly Issue[] | Promise<readonly Issue[]> {
  const checked = check?.validate(value)
  if (checked === undefined) return []
  return checked instanceof Promise ? checked.then((late) => issuesOf(late, path)) : issuesOf(checked, path)
}

function issuesOf(checked: Validation, path: Path): readonly Issue[] {
  return checked.ok ? [] : checked.issues.map((issue) => ({ ...issue, path: [...path, ...issue.path] }))
}

/**
 * Lists the paths of `wanted` that `value` lacks, as people write them. Null counts as a value. For `items[*].title` it
 * names every item without a title; an empty list lacks nothing.
 */
export function missingFields(value: unknown, wanted: readonly (string | Path)[]): string[] {
  return emptyFields(value, wanted, true)
}

/** Like `missingFields`, but the caller decides whether null counts as a value. */
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

/** The keys that the segment matches; undefined where one is required and missing. */
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
