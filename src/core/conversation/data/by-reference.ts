// Long texts by reference: an item that would fill a page by itself has the beginnings of its texts, and how long the text is.
// `runtime.result(nodeId)` and `GET /v1/results/{id}` give all of the text.

import { jsonBytes } from '../../base/page/json-bytes.ts'
import { PAGE_BYTES } from '../../base/page/room.ts'
import { textOf } from '../../graph/content.ts'
import type { TranscriptLine } from '../../graph/context.ts'
import type { Node } from '../../graph/rows.ts'
import type { NodeInfo } from './node-info.ts'

const BEGINNING = 2_000

/** The line, or its beginning where its text would fill a page. */
export function shortLine(line: TranscriptLine): TranscriptLine {
  if (!isLong(line)) return line
  return { ...line, text: beginningOf(line.text), wholeBytes: Buffer.byteLength(line.text) }
}

/** The node, or the beginnings of its texts where they would fill a page: `output.bytes` is the size of all of its text then. */
export function shortNode(node: Node): Node {
  if (!isLong(node)) return node
  const { input, output, metadata } = node
  return {
    ...node,
    input: shortened(input),
    output: { ...shortened(output), bytes: wholeBytes(node) },
    metadata: shortened(metadata),
  }
}

/** The data of a node, or the beginnings of its texts. */
export function shortInfo(info: NodeInfo): NodeInfo {
  if (!isLong(info)) return info
  const { input, output } = info
  return { ...info, input: shortened(input), output: shortened(output), wholeBytes: wholeBytes(info) }
}

function wholeBytes({ input, output }: Pick<Node, 'input' | 'output'>): number {
  return output.bytes ?? Buffer.byteLength(textOf(output.content ?? input.content ?? ''))
}

/** Would the item fill a page by itself? */
export function isLong(item: unknown): boolean {
  return jsonBytes(item, PAGE_BYTES) > PAGE_BYTES
}

/** The value with the beginnings of its long texts. */
export function shortened<Value>(value: Value): Value {
  return shortPart(value) as Value
}

function shortPart(value: unknown): unknown {
  if (typeof value === 'string') return beginningOf(value)
  if (Array.isArray(value)) return value.map(shortPart)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, shortPart(part)]))
}

function beginningOf(text: string): string {
  return text.length > BEGINNING ? `${text.slice(0, BEGINNING).toWellFormed()}…` : text
}
