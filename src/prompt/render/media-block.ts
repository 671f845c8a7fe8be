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
  const { type, mediaType, data, value } = part
  switch (type) {
    case 'text':
      return { type, text: String(part['text'] ?? '') }
    case 'json':
      return value === undefined ? undefined : { type, value }
    case 'image':
    case 'audio':
    case 'video':
    case 'file':
      return typeof data === 'string' && typeof mediaType === 'string' ? { type, mediaType, data } : undefined
    case 'image_url':
      return imageBlock(part['image_url'])
    case 'input_audio':
      return audioBlock(part['input_audio'])
    default:
      return undefined
  }
}

function imageBlock(image: Json | undefined): MediaBlock | undefined {
  const url = isRecord(image) ? image['url'] : image
  if (typeof url !== 'string' || url === '') return undefined
  const comma = url.indexOf(';base64,')
  if (!url.startsWith('data:') || comma === -1) return { type: 'image', mediaType: 'image/*', data: url }
  return { type: 'image', mediaType: url.slice('data:'.length, comma), data: url.slice(comma + ';base64,'.length) }
}

function audioBlock(audio: Json | undefined): MediaBlock | undefined {
  if (!isRecord(audio)) return undefined
  const { data, format = 'wav' } = audio
  return typeof data === 'string' ? { type: 'audio', mediaType: `audio/${String(format)}`, data } : undefined
}
