import { greater, less, slash } from './chars.ts'

/** Recognises `<think> ... </think>` and its kin, one character at a time. */
export class ThinkBlock {
  /** Between the two tags. */
  isInside = false

  /** The name as far as it is read; undefined where no tag began. */
  private tag: string | undefined
  /** The name that closes the block. */
  private name = ''
  private last = 0

  /** True for a character that belongs to a block: nothing in it counts. */
  take(code: number): boolean {
    const { last } = this
    this.last = code
    // A tag in back quotes is spoken of, not used.
    if (code === less && last !== backQuote) this.tag = ''
    else if (this.tag !== undefined) this.takeName(code, this.tag)
    return this.isInside
  }

  reset(): void {
    this.isInside = false
    this.tag = undefined
  }

  private takeName(code: number, tag: string): void {
    if (code === greater) return this.closeTag(tag)
    const isSlash = code === slash && tag === ''
    const isLetter = (code | 32) >= 97 && (code | 32) <= 122
    this.tag = (isSlash || isLetter) && tag.length < longest ? tag + String.fromCharCode(code).toLowerCase() : undefined
  }

  private closeTag(tag: string): void {
    this.tag = undefined
    if (this.isInside) this.isInside = tag !== `/${this.name}`
    else if (names.has(tag)) {
      this.isInside = true
      this.name = tag
    }
  }
}

const names = new Set(['think', 'thinking', 'thought', 'reasoning', 'reflection', 'scratchpad'])
const longest = 12
const backQuote = 96
