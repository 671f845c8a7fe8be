import type { Json } from '../../base/json.ts'
import type { Block, Content } from '../../graph/content.ts'
import type { Part } from '../../model/model.ts'

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

export type LongPart = Extract<Part, { readonly text: string }>

/** True for a part that must be read piece by piece, so that other work gets a turn in between. */
export function isLong(part: Part): part is LongPart {
  return 'text' in part && typeof part.text === 'string' && part.text.length > PIECE
}

/** The end of the piece that begins there. It never cuts a character in two. */
export function pieceEnd(text: string, from: number): number {
  const end = from + PIECE
  return (text.charCodeAt(end - 1) & 0xfc00) === 0xd800 ? end + 1 : end
}

const PIECE = 500_000
