import { InputError } from '../base/error.ts'
import { parseJson } from '../base/json.ts'
import type { Path } from '../base/text.ts'

/** One step of a pattern: the keys of objects and the indexes of lists that it matches. */
export interface PathSegment {
  /** `*`: any key; undefined: none. */
  readonly key: string | undefined
  /** `*`: any index; undefined: none. */
  readonly index: number | '*' | undefined
  readonly isAnyKey: boolean
}

export type PathPattern = readonly PathSegment[]

/**
 * Reads a path in any of its forms: `tasks[0].title` or `["content-type"]`, `/tasks/0/title` (RFC 6901), or a list of
 * keys and indexes. `tasks[*]` is any item, `meta.*` any key, `/tasks/*` either. The empty text is the root.
 * Throws an InputError that says where the text is wrong.
 */
export function readPath(path: string | Path): PathPattern {
  if (typeof path !== 'string') return path.map(exactly)
  if (path === '') return []
  return path.startsWith('/') ? path.slice(1).split('/').map(readPointerPart) : readDotPath(path)
}

export function matchesKey(segment: PathSegment, key: string | number): boolean {
  if (typeof key === 'string') return segment.isAnyKey || segment.key === key
  return segment.index === key || segment.index === '*'
}

export function matchesPath(pattern: PathPattern, path: Path): boolean {
  if (pattern.length !== path.length) return false
  return pattern.every((segment, at) => matchesKey(segment, path[at] ?? ''))
}

const anyIndex: PathSegment = { key: undefined, index: '*', isAnyKey: false }
const anyKey: PathSegment = { key: undefined, index: undefined, isAnyKey: true }
const anything: PathSegment = { key: undefined, index: '*', isAnyKey: true }
const digits = /^(?:0|[1-9]\d*)$/

function exactly(key: string | number): PathSegment {
  if (typeof key === 'number') return { key: undefined, index: key, isAnyKey: false }
  return { key, index: undefined, isAnyKey: false }
}

/** The text of a pointer does not tell an index from a key. */
function either(text: string): PathSegment {
  return { key: text, index: digits.test(text) ? Number(text) : undefined, isAnyKey: false }
}

function readPointerPart(part: string): PathSegment {
  if (part === '*') return anything
  return either(part.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function readDotPath(text: string): PathSegment[] {
  const segments: PathSegment[] = []
  let at = 0
  while (at < text.length) {
    const end = text[at] === '[' ? endOfBracket(text, at) : endOfName(text, at, segments.length === 0)
    const part = text.slice(at, end)
    segments.push(part.startsWith('[') ? readBracket(part, text) : readName(part))
    at = end
  }
  return segments
}

/** A name follows a dot, unless it is the first. */
function endOfName(text: string, from: number, isFirst: boolean): number {
  const start = text[from] === '.' && !isFirst ? from + 1 : from
  let end = start
  while (end < text.length && text[end] !== '.' && text[end] !== '[') end++
  if (end === start || (start === from && !isFirst)) throw wrongPath(text, from)
  return end
}

function readName(part: string): PathSegment {
  const name = part.startsWith('.') ? part.slice(1) : part
  return name === '*' ? anyKey : either(name)
}

function endOfBracket(text: string, from: number): number {
  if (text[from + 1] !== '"') {
    const end = text.indexOf(']', from)
    if (end === -1) throw wrongPath(text, from)
    return end + 1
  }
  let end = from + 2
  while (end < text.length && text[end] !== '"') end += text[end] === '\\' ? 2 : 1
  if (text[end + 1] !== ']') throw wrongPath(text, from)
  return end + 2
}

function readBracket(part: string, text: string): PathSegment {
  const inner = part.slice(1, -1)
  if (inner === '*' || inner === '') return anyIndex
  if (digits.test(inner)) return exactly(Number(inner))
  const key = inner.startsWith('"') ? parseJson(inner) : undefined
  if (key?.ok && typeof key.value === 'string') return exactly(key.value)
  throw wrongPath(text, text.indexOf(part))
}

function wrongPath(text: string, at: number): InputError {
  const shown = JSON.stringify(text.slice(0, 200))
  const advice = 'write tasks[0].title, tasks[*], headers["content-type"] or /tasks/0/title'
  return new InputError('invalid_input', `${shown} is no path, from character ${at + 1} on; ${advice}.`)
}

export interface FieldAt {
  readonly path: Path
  readonly value: unknown
}

/** The fields that a document has at a path, in order. */
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
