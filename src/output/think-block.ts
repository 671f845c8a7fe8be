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
  /** The tag stands behind a back quote: with one on its other side it is spoken of, not used. */
  private isQuoted = false
  /** A quoted tag is over; the next character decides. */
  private isWaiting = false

  /** True for a character that belongs to a block: nothing in it counts. */
  take(code: number): boolean {
    if (this.isWaiting) {
      this.isWaiting = false
      this.isInside = code !== backQuote
    }
    if (code === less) this.openTag()
    else if (this.tag !== undefined) this.takeName(code, this.tag)
    this.last = code
    return this.isInside
  }

  reset(): void {
    this.isInside = false
    this.isWaiting = false
    this.tag = undefined
  }

  private openTag(): void {
    this.tag = ''
    this.isQuoted = this.last === backQuote
  }

  private takeName(code: number, tag: string): void {
    if (code === greater) return this.closeTag(tag)
    const isSlash = code === slash && tag === ''
    const isLetter = (code | 32) >= 97 && (code | 32) <= 122
    this.tag = (isSlash || isLetter) && tag.length < longest ? tag + String.fromCharCode(code).toLowerCase() : undefined
  }

  private closeTag(tag: string): void {
    this.tag = undefined
    if (this.isInside) {
      this.isInside = tag !== `/${this.name}`
      return
    }
    if (!names.has(tag)) return
    this.name = tag
    this.isInside = !this.isQuoted
    this.isWaiting = this.isQuoted
  }
}

/** The text without its blocks. One that is never closed is no block. */
export function withoutThinking(text: string): string {
  const block = new ThinkBlock()
  let kept = ''
  let from = 0
  for (let at = 0; at < text.length; at++) {
    const wasInside = block.isInside
    block.take(text.charCodeAt(at))
    if (block.isInside === wasInside) continue
    if (block.isInside) kept += text.slice(from, text.lastIndexOf('<', at))
    from = block.isInside ? text.lastIndexOf('<', at) : at + 1
  }
  return kept + text.slice(from)
}

const names = new Set(['think', 'thinking', 'thought', 'reasoning', 'reflection', 'scratchpad'])
const longest = 12
const backQuote = 96
