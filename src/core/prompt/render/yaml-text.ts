import { isRecord, type Json, type JsonRecord } from '../../base/json.ts'
import { type Layers, SchemaOutput, type SlotLayer } from '../slots/slot.ts'

/** Data as YAML in block style, keys in their order, without a line break at its end. Reads back as the same data. */
export function yamlText(value: Json): string {
  return isNested(value) ? nestedLines(value, '').join('\n') : scalarText(value, '  ')
}

/** Writes entries in their order: an object would put keys that look like numbers first. */
function yamlEntries(entries: readonly (readonly [string, Json])[], indent: string): string {
  return entries.flatMap(([key, item]) => entryLines(key, item, indent)).join('\n')
}

type Nested = readonly Json[] | JsonRecord

/** Lists and objects with something in them take lines of their own. */
function isNested(value: Json): value is Json[] | JsonRecord {
  if (Array.isArray(value)) return value.length > 0
  return isRecord(value) && Object.keys(value).length > 0
}

function nestedLines(value: Nested, indent: string): string[] {
  if (isList(value)) return value.flatMap((item) => itemLines(item, indent))
  return Object.entries(value).flatMap(([key, item]) => entryLines(key, item, indent))
}

function isList(value: Nested): value is readonly Json[] {
  return Array.isArray(value)
}

/** The content of an item begins on the line of its dash. */
function itemLines(item: Json, indent: string): string[] {
  if (!isNested(item)) return [`${indent}- ${scalarText(item, `${indent}  `)}`]
  const [first = '', ...others] = nestedLines(item, `${indent}  `)
  return [`${indent}- ${first.slice(indent.length + 2)}`, ...others]
}

function entryLines(key: string, item: Json, indent: string): string[] {
  const name = keyText(key)
  // YAML marks a longer key with `?`; its value then follows a mark of its own.
  const start = name.length > longestKey ? [`${indent}? ${name}`, `${indent}:`] : [`${indent}${name}:`]
  const last = start.pop() ?? ''
  if (!isNested(item)) return [...start, `${last} ${scalarText(item, `${indent}  `)}`]
  return [...start, last, ...nestedLines(item, `${indent}  `)]
}

const longestKey = 1_000

function keyText(key: string): string {
  return isPlain(key) ? key : quoted(key)
}

function scalarText(value: Json, indent: string): string {
  if (typeof value !== 'string') return JSON.stringify(value)
  if (isPlain(value)) return value
  return isBlock(value) ? blockText(value, indent) : quoted(value)
}

/** True for a text that YAML reads as that text only: no number, no keyword, no sign. */
function isPlain(text: string): boolean {
  return plain.test(text) && text.length < longestKey && !reserved.test(text)
}

const plain = /^[\p{L}_/][\p{L}\p{N}_\-+/.,()'"!? ]*(?<! )$/u
const reserved = /^(?:true|false|null|yes|no|on|off|y|n)$/i

/** True for lines that a block shows as they are. */
function isBlock(text: string): boolean {
  return text.includes('\n') && /^[^\s]/.test(text) && !/[^\P{C}\n]|[\u2028\u2029]|[ \t](?:\n|$)|\n\n$/u.test(text)
}

function blockText(text: string, indent: string): string {
  const isOpen = text.endsWith('\n')
  const lines = (isOpen ? text.slice(0, -1) : text).split('\n')
  return [isOpen ? '|' : '|-', ...lines.map((line) => (line === '' ? '' : `${indent}${line}`))].join('\n')
}

/** JSON is YAML. Escapes every character that an editor might not show. */
function quoted(text: string): string {
  return JSON.stringify(text).replace(/[^\P{C}\n]|[\u2028\u2029]/gu, escaped)
}

function escaped(char: string): string {
  return Array.from({ length: char.length }, (_, index) => {
    return `\\u${char.charCodeAt(index).toString(16).padStart(4, '0')}`
  }).join('')
}

export function yamlPrompt({ agent, request }: Layers): string {
  return `.agent:${yamlLayer(agent)}.request:${yamlLayer(request)}`
}

export function jsonPrompt({ agent, request }: Layers): string {
  return `{\n  ".agent": ${jsonLayer(agent)},\n  ".request": ${jsonLayer(request)}\n}\n`
}

function yamlLayer(layer: SlotLayer): string {
  return layer.size === 0 ? ' {}\n' : `\n${yamlEntries(entriesOf(layer), '  ')}\n`
}

function jsonLayer(layer: SlotLayer): string {
  if (layer.size === 0) return '{}'
  const lines = entriesOf(layer).map(([slot, value]) => {
    return `    ${JSON.stringify(slot)}: ${JSON.stringify(value, null, 2).replaceAll('\n', '\n    ')}`
  })
  return `{\n${lines.join(',\n')}\n  }`
}

/** Writes a library's schema as its JSON Schema. */
function entriesOf(layer: SlotLayer): [string, Json][] {
  return [...layer].map(([slot, value]) => {
    if (!(value instanceof SchemaOutput)) return [slot, value]
    return [slot, { $schema: value.checked.jsonSchema as { [key: string]: Json } }]
  })
}
