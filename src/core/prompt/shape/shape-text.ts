import { isRecord, type Json, type JsonRecord } from '../../base/json.ts'
import type { JsonSchema } from '../../base/schema/schema.ts'
import { isDescribed } from './read-shape.ts'

/** Writes the shape for a model: JSON with `<type>` for values and `// description` behind them. */
export function shapeText(shape: Json): string {
  return `${valueText(shape, '')}${comment(shape)}`
}

function valueText(shape: Json, indent: string): string {
  if (Array.isArray(shape)) return listText(shape, indent)
  if (!isRecord(shape)) return `<${oneLine(String(shape))}>`
  if (!isDescribed(shape)) return fieldsText(shape, indent)
  const { $schema, $type = 'any' } = shape
  return $schema === undefined ? valueText($type, indent) : `<JSON Schema ${JSON.stringify($schema)}>`
}

function fieldsText(fields: JsonRecord, indent: string): string {
  const entries = Object.entries(fields)
  if (entries.length === 0) return '{}'
  const inner = `${indent}  `
  const lines = entries.map(([key, shape], index) => {
    const comma = index < entries.length - 1 ? ',' : ''
    return `${inner}${JSON.stringify(key)}: ${valueText(shape, inner)}${comma}${comment(shape)}`
  })
  return ['{', ...lines, `${indent}}`].join('\n')
}

function listText(items: readonly Json[], indent: string): string {
  if (items.length === 0) return '[]'
  const inner = `${indent}  `
  const lines = items.map((item) => `${inner}${valueText(item, inner)},${comment(item)}`)
  return ['[', ...lines, `${inner}...`, `${indent}]`].join('\n')
}

/** Writes a description in one line, because a second line would read as part of the structure. */
function comment(shape: Json): string {
  if (!isRecord(shape) || !isDescribed(shape)) return ''
  const { $desc, $default } = shape
  const fallback = $default === undefined ? '' : `(default: ${JSON.stringify($default)})`
  const text = [oneLine(String($desc ?? '')), fallback].filter((part) => part !== '').join(' ')
  return text === '' ? '' : ` // ${text}`
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}

/** The JSON Schema of a type in words, or undefined for words that only a reader understands. */
export function typeSchema(text: string): JsonSchema | undefined {
  return text.length > maxLength ? undefined : read(text.trim(), 0)
}

const maxLength = 1_000
const maxDepth = 8

const TYPES: ReadonlyMap<string, JsonSchema> = new Map<string, JsonSchema>([
  ...named('string', 'str', 'string'),
  ...named('integer', 'int', 'integer'),
  ...named('number', 'float', 'double', 'number'),
  ...named('boolean', 'bool', 'boolean'),
  ...named('object', 'dict', 'object'),
  ...named('array', 'list', 'array'),
  ...named('null', 'null', 'none'),
  ['any', {}],
])

function named(type: string, ...words: readonly string[]): [string, JsonSchema][] {
  return words.map((word) => [word, { type }])
}

function read(text: string, depth: number): JsonSchema | undefined {
  if (depth > maxDepth) return undefined
  const known = TYPES.get(text.toLowerCase())
  if (known !== undefined) return known
  const choices = split(text, '|')
  if (choices.length > 1) return union(choices, depth)
  if (text.endsWith('[]')) return listOf(text.slice(0, -2), depth)
  const [, maker = '', inner = ''] = /^([A-Za-z]+)\[(.*)\]$/s.exec(text) ?? []
  switch (maker.toLowerCase()) {
    case 'list':
      return listOf(inner, depth)
    case 'optional':
      return union([inner, 'null'], depth)
    case 'literal':
      return union(split(inner, ','), depth)
    default:
      return literal(text)
  }
}

function listOf(item: string, depth: number): JsonSchema | undefined {
  const items = read(item.trim(), depth + 1)
  return items === undefined ? undefined : { type: 'array', items }
}

/** Undefined unless every choice is known: `a|b` may be anything. */
function union(choices: readonly string[], depth: number): JsonSchema | undefined {
  const schemas: JsonSchema[] = []
  for (const choice of choices) {
    const schema = read(choice.trim(), depth + 1)
    if (schema === undefined) return undefined
    schemas.push(schema)
  }
  if (schemas.every((schema) => 'const' in schema)) return { enum: schemas.map((schema) => schema['const']) }
  return { anyOf: schemas }
}

function literal(text: string): JsonSchema | undefined {
  const [, double, single] = /^(?:"([^"\\]*)"|'([^'\\]*)')$/.exec(text) ?? []
  const value = double ?? single
  return value === undefined ? undefined : { const: value }
}

/** Splits at the separators outside of brackets and quotes. */
function split(text: string, separator: string): string[] {
  const parts = ['']
  let depth = 0
  for (const [piece] of text.matchAll(pieces)) {
    if (piece === '[') depth++
    if (piece === ']') depth--
    if (piece === separator && depth === 0) parts.push('')
    else parts.push(`${parts.pop() ?? ''}${piece}`)
  }
  return parts
}

const pieces = /"[^"]*"|'[^']*'|[\s\S]/g
