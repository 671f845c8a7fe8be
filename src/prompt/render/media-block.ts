import type { Json } from '../../base/json.ts'
import type { Part } from '../slots/message.ts'
import { isRecord } from '../slots/slot.ts'

/** A piece of content as models take it. `data` is base64 text or a URL. */
export type MediaBlock =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'json'; readonly value: Json }
  | { readonly type: 'image' | 'audio' | 'video' | 'file'; readonly mediaType: string; readonly data: string }

/** Parts in our own form, and those of chat APIs with the same content; undefined for all others. */
export function mediaBlock(part: Part): MediaBlock | undefined {
  const { type, value } = part
  switch (type) {
    case 'text':
      return { type, text: String(part['text'] ?? '') }
    case 'json':
      return value === undefined ? undefined : { type, value }
    case 'image':
    case 'audio':
    case 'video':
    case 'file':
      return fileBlock(type, part)
    case 'image_url':
      return fileBlock('image', { ...part, data: urlOf(part['image_url']) })
    case 'input_audio':
      return audioBlock(part['input_audio'])
    default:
      return undefined
  }
}

/** The content is under `data`, or under the name of the type; a data URL also says what it is. */
function fileBlock(type: 'image' | 'audio' | 'video' | 'file', part: Part): MediaBlock | undefined {
  const data = part['data'] ?? part[type]
  if (typeof data !== 'string' || data === '') return undefined
  const said = part['mediaType']
  const mark = data.startsWith('data:') ? data.indexOf(';base64,') : -1
  if (mark !== -1)
    return { type, mediaType: data.slice('data:'.length, mark), data: data.slice(mark + ';base64,'.length) }
  if (typeof said === 'string') return { type, mediaType: said, data }
  return type === 'image' ? { type, mediaType: 'image/*', data } : undefined
}

function urlOf(image: Json | undefined): Json {
  return (isRecord(image) ? image['url'] : image) ?? null
}

function audioBlock(audio: Json | undefined): MediaBlock | undefined {
  if (!isRecord(audio)) return undefined
  const { data, format = 'wav' } = audio
  return typeof data === 'string' ? { type: 'audio', mediaType: `audio/${String(format)}`, data } : undefined
}
