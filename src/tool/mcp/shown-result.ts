import type { ContentBlock } from '@modelcontextprotocol/sdk/types.js'
import type { Block } from '../../graph/content.ts'
import type { Redaction } from './secrets.ts'

/** Base64 characters of one picture, sound or file. */
const MOST_MEDIA = 5_000_000
const MEDIA_TYPE = /^[\w.+-]{1,64}\/[\w.+-]{1,64}$/

/** What a server answered, as a model is shown it: a text, or blocks where there are pictures, sounds or files. */
export function shownResult(
  content: readonly ContentBlock[],
  structured: unknown,
  redaction: Redaction,
): string | Block[] {
  const blocks = content.flatMap((block) => blockOf(block, redaction))
  if (blocks.length === 0 && structured !== undefined) return redaction.clean(JSON.stringify(structured))
  if (blocks.every(({ type }) => type === 'text')) {
    return blocks.map((block) => (block.type === 'text' ? block.text : '')).join('\n')
  }
  return blocks
}

function blockOf(block: ContentBlock, redaction: Redaction): Block[] {
  const text = (words: string): Block[] => (words.trim() === '' ? [] : [{ type: 'text', text: redaction.clean(words) }])
  switch (block.type) {
    case 'text':
      return text(block.text)
    case 'image':
    case 'audio':
      return [mediaOf(block.type, block.mimeType, block.data)]
    case 'resource': {
      const { resource } = block
      if ('text' in resource) return text(`[${resource.uri}]\n${resource.text}`)
      return [mediaOf('file', resource.mimeType ?? 'application/octet-stream', resource.blob)]
    }
    case 'resource_link':
      return text(`[resource ${block.uri}] ${block.title ?? block.name}: ${block.description ?? ''}`)
  }
}

function mediaOf(type: 'image' | 'audio' | 'file', mediaType: string, data: string): Block {
  if (!MEDIA_TYPE.test(mediaType)) return note(type, 'its media type is none')
  if (data === '') return note(type, 'it is empty')
  if (data.length > MOST_MEDIA) return note(type, `it has ${data.length} characters, more than ${MOST_MEDIA}`)
  return { type, mediaType, data }
}

function note(type: string, reason: string): Block {
  return { type: 'text', text: `[${type} left out: ${reason}]` }
}
