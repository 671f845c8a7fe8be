import { JSON_LIMITS, type Json } from '../../base/json.ts'
import type { Block, Content, ToolCall } from '../../graph/content.ts'
import type { LiveBody } from '../../graph/event.ts'

/** The content of one answer so far. It never reads closed text again, because an answer may have a million parts. */
export class AnswerContent {
  private closed: string[] | undefined
  /** The text since the last block. */
  private open = ''
  private blocks: Block[] | undefined
  private thoughts: Thoughts | undefined

  /** The whole text, without the blocks in between. */
  get text(): string {
    return this.closed === undefined ? this.open : this.closed.join('') + this.open
  }

  /** The reasoning that no block repeats. */
  get reasoning(): string {
    return this.thoughts?.rest ?? ''
  }

  get content(): Content {
    if (this.blocks === undefined) return this.open
    this.closeText()
    return this.blocks
  }

  addText(text: string): void {
    this.open += text
  }

  think(text: string): void {
    this.thoughts ??= new Thoughts()
    this.thoughts.add(text)
  }

  /** Blocks keep their order. */
  addBlock(block: Block): void {
    this.closeText()
    this.blocks ??= []
    this.blocks.push(block)
    // Keeps it once, because the deltas held the same text.
    if (block.type === 'reasoning') this.thoughts?.drop(block.text)
  }

  closeText(providerMetadata?: Json): void {
    const text = this.open
    if (text === '') return
    this.open = ''
    this.closed ??= []
    this.closed.push(text)
    this.blocks ??= []
    this.blocks.push(providerMetadata === undefined ? { type: 'text', text } : { type: 'text', text, providerMetadata })
  }
}

/** Reasoning, piece by piece. It compares pieces one by one, because joining them for each block takes too long. */
class Thoughts {
  private readonly pieces: string[] = []
  /** The first remaining piece, and where in it the rest begins. */
  private first = 0
  private begin = 0

  get rest(): string {
    const [head = '', ...tail] = this.pieces.slice(this.first)
    return head.slice(this.begin) + tail.join('')
  }

  add(text: string): void {
    this.pieces.push(text)
  }

  /** Removes the text where the rest begins with it. */
  drop(text: string): void {
    let [piece, begin, at] = [this.first, this.begin, 0]
    while (at < text.length) {
      const part = this.pieces[piece]
      if (part === undefined) return
      const length = Math.min(part.length - begin, text.length - at)
      if (!part.startsWith(text.slice(at, at + length), begin)) return
      at += length
      begin += length
      if (begin < part.length) break
      piece++
      begin = 0
    }
    this.first = piece
    this.begin = begin
  }
}

/** The end of the piece that begins there. It never cuts a character in two. */
export function pieceEnd(text: string, from: number): number {
  const end = from + PIECE
  return (text.charCodeAt(end - 1) & 0xfc00) === 0xd800 ? end + 1 : end
}

export const PIECE = 500_000

/** The most characters of one answer; more cannot be an answer. */
export const ANSWER_LIMIT: number = JSON_LIMITS.maxBytes

/**
 * The most characters of its tool calls together: they are stored with the answer, with each call and with the children
 * it starts.
 */
export const CALLS_LIMIT = 4_000_000

/** Measures one answer: texts, reasoning, calls, files and everything beside them. */
export class AnswerSize {
  private size = 0
  /** The part of the size that will come once more as a whole. */
  private announced = 0
  private calls = 0
  private values = 0

  /** Names what is too large; null where nothing is. */
  get excess(): string | null {
    if (this.size > ANSWER_LIMIT) return `is longer than ${ANSWER_LIMIT / 1e6} MB`
    if (this.calls > CALLS_LIMIT) return `has calls of more than ${CALLS_LIMIT / 1e6} MB`
    return this.values > JSON_LIMITS.maxValues ? `has more than ${JSON_LIMITS.maxValues} values` : null
  }

  /** Counts a delta. */
  addDelta(body: { readonly type: LiveBody['type']; readonly text: string }): void {
    const length = writtenLength(body.text)
    this.size += length
    if (body.type !== 'text-delta') this.announced += length
  }

  /** Counts a call or a block, without the part that its deltas counted already. */
  add(said: unknown): void {
    const { size, values } = sizeIn(said)
    this.values += values
    const known = Math.min(size, this.announced)
    this.announced -= known
    this.size += size - known
  }

  /**
   * Counts a call that was read. The characters and values of its part are counted already, but not the values inside a
   * text.
   */
  addCall(call: ToolCall, isText: boolean): void {
    const { size, values } = sizeIn(call.input)
    this.calls += size + call.id.length + call.name.length
    if (isText) this.values += values
  }
}

/**
 * Counts all texts and keys, and a few characters for each value. Stops early, because a custom model may return an
 * endless value.
 */
function sizeIn(said: unknown): { readonly size: number; readonly values: number } {
  const open: unknown[] = [said]
  let size = 0
  let values = 0
  for (let value = open.pop(); value !== undefined && size <= ANSWER_LIMIT; value = open.pop()) {
    values++
    size += typeof value === 'string' ? writtenLength(value) + VALUE_SIZE : VALUE_SIZE
    if (typeof value !== 'object' || value === null) continue
    for (const key in value) {
      if (!Object.hasOwn(value, key)) continue
      size += writtenLength(key)
      const item = (value as Record<string, unknown>)[key]
      if (item !== undefined) open.push(item)
    }
  }
  return { size, values }
}

const VALUE_SIZE = 8

/** The length in JSON: most control characters, and halves of a character, take six. */
function writtenLength(text: string): number {
  let length = text.length
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code >= 0x20 && (code & 0xf800) !== 0xd800) continue
    const isPair = code < 0xdc00 && code >= 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00
    if (isPair) at++
    else if (code !== LINE_FEED) length += ESCAPED - 1
  }
  return length
}

const ESCAPED = 6
const LINE_FEED = 10
