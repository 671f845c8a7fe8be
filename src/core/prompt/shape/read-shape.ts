import { DefinitionError } from '../../base/error.ts'
import { isRecord, type Json, type JsonRecord } from '../../base/json.ts'
import { nearest } from '../../base/options.ts'
import { type Path, pathText } from '../../base/text.ts'

/** A description of an output that cannot be read, and where in it. */
export class ShapeError extends DefinitionError {
  readonly path: Path
  readonly problem: string

  constructor(path: Path, problem: string, slot = 'output') {
    super('definition', `prompt, ${pathText([slot, ...path])}: ${problem}`)
    this.path = path
    this.problem = problem
  }
}

/**
 * Reads a description into one form: `{ field: shape }`, `[shape]`, a type in words, `{ $type, $desc, $default }` or `{
 * $schema }`. Keys with a dot mean the same as those with a dollar, and win over them. Throws a ShapeError.
 */
export function readShape(shape: Json): Json {
  return readNode(shape, [])
}

/** Reads a whole output, where a text may also be an instruction and an empty value demands nothing. */
export function readRootShape(shape: Json): Json {
  return typeof shape === 'string' ? shape : readNode(shape, [])
}

/** True for a type with a description, false for an object of fields. Takes shapes that `readShape` returned. */
export function isDescribed(shape: JsonRecord): boolean {
  return Object.hasOwn(shape, '$type') || Object.hasOwn(shape, '$schema')
}

const WORDS = ['type', 'desc', 'default', 'schema']

function readNode(shape: Json, path: Path): Json {
  if (shape === null) return 'any'
  if (typeof shape === 'string') return shape.trim() === '' ? 'any' : shape.trim()
  if (Array.isArray(shape)) return shape.map((item, index) => readNode(item, [...path, index]))
  if (isRecord(shape)) return readRecord(shape, path)
  const advice = 'Write a type, such as int or str, or { $type: ..., $desc: ... }.'
  throw new ShapeError(path, `${JSON.stringify(shape)} is no type. ${advice}`)
}

function readRecord(shape: JsonRecord, path: Path): Json {
  const keys = Object.keys(shape)
  if (!keys.some(isWord)) return readFields(shape, path)
  const other = keys.find((key) => !isWord(key))
  if (other !== undefined) {
    const advice = 'Beside $type there are $desc and $default; fields belong inside of $type.'
    throw new ShapeError([...path, other], `the key ${JSON.stringify(other)} does not belong here. ${advice}`)
  }
  return word(shape, 'schema') === undefined ? readDescribed(shape, path) : readEmbedded(shape, path)
}

function readFields(shape: JsonRecord, path: Path): Json {
  const fields = Object.entries(shape).map(([key, value]): [string, Json] => {
    const meant = /^[$.]/.test(key) ? nearest(key.slice(1), WORDS) : undefined
    if (meant !== undefined) throw new ShapeError([...path, key], `there is no "${key}". Did you mean $${meant}?`)
    return [key, readNode(value, [...path, key])]
  })
  return Object.fromEntries(fields)
}

/** Merges a described type inside a described type into one; the outer description wins. */
function readDescribed(shape: JsonRecord, path: Path): Json {
  const key = Object.hasOwn(shape, '.type') ? '.type' : '$type'
  const inner = readNode(shape[key] ?? null, [...path, key])
  const desc = readDesc(shape, path)
  const own = {
    ...(desc === '' ? {} : { $desc: desc }),
    ...(word(shape, 'default') === undefined ? {} : { $default: word(shape, 'default') ?? null }),
  }
  if (isRecord(inner) && Object.hasOwn(inner, '$type')) return { ...inner, ...own }
  return Object.keys(own).length === 0 ? inner : { $type: inner, ...own }
}

function readDesc(shape: JsonRecord, path: Path): string {
  const desc = word(shape, 'desc') ?? ''
  if (typeof desc !== 'object') return String(desc).trim()
  throw new ShapeError([...path, Object.hasOwn(shape, '.desc') ? '.desc' : '$desc'], 'a description is a text.')
}

function readEmbedded(shape: JsonRecord, path: Path): Json {
  const schema = word(shape, 'schema')
  if (Object.keys(shape).length > 1) throw new ShapeError(path, 'beside $schema there is no other key.')
  if (isRecord(schema)) return { $schema: schema }
  throw new ShapeError(path, '$schema is a JSON Schema object, as in { $schema: { type: object } }.')
}

/** `.x` wins over `$x`. */
function word(shape: JsonRecord, name: string): Json | undefined {
  return Object.hasOwn(shape, `.${name}`) ? shape[`.${name}`] : own(shape, `$${name}`)
}

function own(shape: JsonRecord, key: string): Json | undefined {
  return Object.hasOwn(shape, key) ? shape[key] : undefined
}

function isWord(key: string): boolean {
  return /^[$.]/.test(key) && WORDS.includes(key.slice(1))
}
