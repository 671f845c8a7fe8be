// Reads messages of A2A: their parts become contents of ours. Pure functions.

import { parseJson } from '../../../core/base/json.ts'
import type { Block } from '../../../doors/rows.ts'
import type { Content, Json } from '../../../index.ts'
import { type A2aMessage, type A2aPart, A2aRefusal } from './wire.ts'

/** The types of content that a peer may send to an agent that takes messages. */
export const INPUT_TYPES: readonly string[] = Object.freeze([
  'text/plain',
  'application/json',
  'application/pdf',
  'image/*',
  'audio/*',
  'video/*',
])

/** The input of a run: a value for an agent with `input`, words and media for one that takes messages. */
export function messageInput({ parts }: A2aMessage, takesValue: boolean): unknown {
  if (parts.length === 0) throw malformed('The message has no parts.')
  if (takesValue) return valueIn(parts)
  const blocks = parts.map(blockOf)
  const [first] = blocks
  return blocks.length === 1 && first?.type === 'text' ? first.text : blocks
}

/** The value of a message: its data part, or a text that is JSON. */
function valueIn(parts: readonly A2aPart[]): unknown {
  const [part] = parts
  if (part === undefined || parts.length > 1) throw malformed('This agent takes one data part.')
  if (part.data !== undefined) return part.data
  if (part.text === undefined) throw unsupported('This agent takes a data part, not files.')
  const json = parseJson(part.text)
  return json.ok ? json.value : part.text
}

function blockOf({ text, data, raw, url, mediaType = '', filename = '' }: A2aPart): Block {
  if (text !== undefined) return { type: 'text', text }
  if (data !== undefined) return { type: 'json', value: data }
  // A server that fetched what a caller names would fetch from inside.
  if (url !== undefined) throw unsupported('Files are sent as data: use raw instead of url.')
  if (raw === undefined) throw malformed('A part has neither text nor data nor a file.')
  if (!isTaken(mediaType)) throw unsupported(`This agent takes no ${mediaType || 'files without a media type'}.`)
  return { type: kindOf(mediaType), mediaType, data: raw, ...named(filename) }
}

function isTaken(mediaType: string): boolean {
  return INPUT_TYPES.some(
    (type) => type === mediaType || (type.endsWith('/*') && mediaType.startsWith(type.slice(0, -1))),
  )
}

function kindOf(mediaType: string): 'image' | 'audio' | 'video' | 'file' {
  return (['image', 'audio', 'video'] as const).find((kind) => mediaType.startsWith(`${kind}/`)) ?? 'file'
}

export function named(filename: string): { readonly filename?: string } {
  return filename === '' ? {} : { filename }
}

/** The parts of an answer as content: a text where they are texts. */
export function blocksOf(parts: readonly A2aPart[]): Content {
  const isText = parts.every(({ text }) => text !== undefined)
  return isText ? textIn({ parts }) : parts.map(blockIn)
}

function blockIn({ text, data, raw, url, mediaType = 'application/octet-stream', filename = '' }: A2aPart): Block {
  if (text !== undefined) return { type: 'text', text }
  return data === undefined
    ? { type: kindOf(mediaType), mediaType, data: raw ?? url ?? '', ...named(filename) }
    : { type: 'json', value: data }
}

/** The words of a message. */
export function textIn({ parts }: Pick<A2aMessage, 'parts'>): string {
  return parts.flatMap(({ text }) => (text === undefined ? [] : [text])).join('\n')
}

/** The data of a message, part by part. */
export function dataParts({ parts }: Pick<A2aMessage, 'parts'>): Json[] {
  return parts.flatMap(({ data }) => (data === undefined ? [] : [data]))
}

export function malformed(message: string): A2aRefusal {
  return new A2aRefusal('RequestMalformedError', message)
}

function unsupported(message: string): A2aRefusal {
  return new A2aRefusal('ContentTypeNotSupportedError', message)
}
