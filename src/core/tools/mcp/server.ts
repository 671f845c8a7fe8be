import type { Client, ContentBlock, RequestOptions } from '@modelcontextprotocol/client'
import type { Json } from '../../base/json.ts'
import type { Secrets } from '../../base/secrets/secrets.ts'
import type { Block } from '../../graph/content.ts'
import { MOST_DESCRIPTION } from './options.ts'

/** The part of a server that its tools use. */
export interface OpenServer {
  /** The secrets that no text may show. */
  readonly secrets: Secrets
  /** How long one call may take. */
  readonly timeoutMs: number
  /** True when the server of the last request has gone. */
  readonly isLost: boolean
  /** Sends one request. Restarts the server first if it has ended. */
  request<T>(send: (client: Client, options: RequestOptions) => Promise<T>, options: RequestOptions): Promise<T>
}

/** Base64 characters of one picture, sound or file. */
const MOST_MEDIA = 5_000_000
const MEDIA_TYPE = /^[\w.+-]{1,64}\/[\w.+-]{1,64}$/

/** A block of a server's answer, with a label before it. */
export interface LabelledBlock {
  readonly label: string
  readonly block: ContentBlock
}

/** Turns a server's answer into content for a model: a text, or blocks where there are pictures, sounds or files. */
export function shownResult(content: readonly ContentBlock[], structured: unknown, secrets: Secrets): string | Block[] {
  const blocks = shownBlocks(
    content.map((block) => ({ label: '', block })),
    secrets,
  )
  if (blocks.length === 0 && structured !== undefined) return JSON.stringify(secrets.cleanJson(structured as Json))
  return blocks
}

/** Like `shownResult`, for blocks with labels. It also finds a secret that is split over several blocks. */
export function shownBlocks(content: readonly LabelledBlock[], secrets: Secrets): string | Block[] {
  const parts = content.map(({ label, block }) => partOf(label, block, secrets)).filter(isSomething)
  const texts = secrets.cleanAll(parts.map((part) => ('text' in part ? part.text : '')))
  const blocks = parts.map((part, at): Block => {
    return 'text' in part ? { type: 'text', text: `${secrets.clean(part.label)}${texts[at] ?? ''}` } : part.media
  })
  if (blocks.some(({ type }) => type !== 'text')) return blocks
  return blocks.map((block) => (block.type === 'text' ? block.text : '')).join('\n')
}

type Part = { readonly label: string; readonly text: string } | { readonly media: Block }

function isSomething(part: Part): boolean {
  return 'media' in part || part.text.trim() !== ''
}

function partOf(label: string, block: ContentBlock, secrets: Secrets): Part {
  switch (block.type) {
    case 'text':
      return { label, text: block.text }
    case 'image':
    case 'audio':
      return { media: mediaOf(block.type, block, secrets) }
    case 'resource': {
      const { resource } = block
      if ('text' in resource) return { label: `${label}[${resource.uri}]\n`, text: resource.text }
      const { mimeType = 'application/octet-stream', blob } = resource
      return { media: mediaOf('file', { mimeType, data: blob }, secrets) }
    }
    case 'resource_link': {
      const { uri, title, name, description } = block
      return { label, text: `[resource ${uri}] ${title ?? name}: ${description ?? ''}` }
    }
  }
}

interface Media {
  readonly mimeType: string
  readonly data: string
}

function mediaOf(type: 'image' | 'audio' | 'file', { mimeType, data }: Media, secrets: Secrets): Block {
  if (!MEDIA_TYPE.test(mimeType)) return note(type, 'its media type is none')
  if (data === '') return note(type, 'it is empty')
  if (data.length > MOST_MEDIA) return note(type, `it has ${data.length} characters, more than ${MOST_MEDIA}`)
  const isSecret = secrets.clean(mimeType) !== mimeType || secrets.clean(data) !== data
  return isSecret ? note(type, 'it holds a secret') : { type, mediaType: mimeType, data }
}

function note(type: string, reason: string): Block {
  return { type: 'text', text: `[${type} left out: ${reason}]` }
}

/** Cleans a server's text: removes characters that people cannot see and models can read, and cuts it to length. */
export function shownText(text: string): string {
  const visible = text.replaceAll('\r\n', '\n').replaceAll(UNSEEN, '').toWellFormed()
  return visible.length <= MOST_DESCRIPTION ? visible : `${visible.slice(0, MOST_DESCRIPTION).toWellFormed()} [cut]`
}

/** Cleans a server's text and puts it in one line: for names, errors, lines of a list. */
export function shownLine(text: string): string {
  return shownText(text).replaceAll(/\s+/g, ' ').trim()
}

/** Invisible characters, those that change the direction, and all that control a terminal but tabs and line ends. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it takes out
const UNSEEN = /[\u{E0000}-\u{E007F}\u00AD\u200B-\u200F\u202A-\u202E\u2060-\u2069\uFEFF\0-\x08\x0B-\x1F\x7F-\x9F]/gu
