import type { Json } from '../../base/json.ts'
import { isRecord, type JsonRecord } from '../slots/slot.ts'
import { isDescribed } from './read-shape.ts'

/** The shape as a model reads it: JSON with `<type>` for values and `// description` behind them. */
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

/** A description is one line, whatever was written: a second one would read as part of the structure. */
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
