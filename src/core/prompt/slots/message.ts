import { InputError } from '../../base/error.ts'
import { isRecord, type Json, type JsonRecord } from '../../base/json.ts'
import { inLine } from './placeholder.ts'

/** A piece of a message: `{ type: 'text', text }`, or `{ type: T, ... }` of any other kind. */
export type MessagePart = { readonly type: string; readonly [field: string]: Json }

/** Reads any form of a history into a list of messages. Equal messages stay, because people repeat themselves. */
export function readHistory(value: Json): Json {
  if (value === null) return []
  const items = Array.isArray(value) ? value : [value]
  return items.map(readMessage)
}

/** Reads any form of an attachment into a list of parts. */
export function readAttachment(value: Json): Json {
  if (value === null) return []
  const items = Array.isArray(value) ? value : [value]
  return items.map(readPart)
}

function readMessage(item: Json): Json {
  if (!isRecord(item)) return { role: 'user', content: inLine(item) }
  const { role = 'user', content, ...others } = item
  if (typeof role !== 'string' || role.trim() === '') {
    throw new InputError('invalid_input', `prompt, chat_history: a role is a text, not ${JSON.stringify(role)}.`)
  }
  if (content === undefined) {
    throw new InputError('invalid_input', 'prompt, chat_history: a message has a role and content.')
  }
  return { role, content: readContent(content), ...others }
}

function readContent(content: Json): Json {
  if (content === null) return ''
  if (Array.isArray(content)) return content.map(readPart)
  return isPart(content) ? [readPart(content)] : inLine(content)
}

/** Adds the field named after the type, if only as null, unless the part holds its content elsewhere. */
function readPart(item: Json): Json {
  if (!isPart(item)) return { type: 'text', text: inLine(item) }
  const { type } = item
  if (typeof type !== 'string') return { type: 'text', text: inLine(item) }
  if (type === 'text') return { ...item, text: inLine(item['text'] ?? '') }
  const isWhole = Object.hasOwn(item, type) || Object.hasOwn(item, 'data') || Object.hasOwn(item, 'value')
  return isWhole ? item : Object.fromEntries([...Object.entries(item), [type, null]])
}

function isPart(item: Json): item is JsonRecord {
  return isRecord(item) && typeof item['type'] === 'string'
}
