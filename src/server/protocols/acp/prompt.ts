import type { Block } from '../../../doors/rows.ts'
import { type Content, InputError } from '../../../index.ts'

/** A piece of a prompt, as ACP writes it. */
type PromptBlock = { readonly type: string; readonly [key: string]: unknown }

/** The parts of a prompt from an editor: texts, images, sounds, documents, and names of files. */
export function contentOf(prompt: readonly PromptBlock[]): Content {
  const blocks = prompt.flatMap(blockOf)
  const [first] = blocks
  if (first === undefined) throw new InputError('invalid_input', 'The prompt says nothing.')
  return blocks.every(({ type }) => type === 'text')
    ? blocks.map((one) => ('text' in one ? one.text : '')).join('\n')
    : blocks
}

function blockOf(block: PromptBlock): Block[] {
  const { type, text, data, mimeType, uri, resource } = block
  if (type === 'text') return textBlock(text)
  if ((type === 'image' || type === 'audio') && isText(data) && isText(mimeType))
    return [{ type, mediaType: mimeType, data }]
  // A link is a name: an agent that may read the file opens it itself.
  if (type === 'resource_link') return textBlock(`[${String(block['name'] ?? uri)}](${String(uri)})`)
  return type === 'resource' ? documentOf(resource) : []
}

function documentOf(resource: unknown): Block[] {
  const { uri, text, blob, mimeType } = Object(resource) as Readonly<Record<string, unknown>>
  if (isText(text)) return textBlock(`<document uri=${JSON.stringify(uri)}>\n${text}\n</document>`)
  if (isText(blob))
    return [{ type: 'file', mediaType: isText(mimeType) ? mimeType : 'application/octet-stream', data: blob }]
  return []
}

function textBlock(text: unknown): Block[] {
  return isText(text) && text.trim() !== '' ? [{ type: 'text', text }] : []
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
