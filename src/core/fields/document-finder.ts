import {
  apostrophe,
  BOOLEAN,
  colon,
  greater,
  isAnySpace,
  isBare,
  isLineEnd,
  LIST,
  less,
  NULL,
  NUMBER,
  OBJECT,
  openBrace,
  openBracket,
  quote,
  STRING,
  slash,
} from './chars.ts'
import type { CommitRule } from './schema-view.ts'

/** Looks for a place in a text where the document may begin. It skips fences and prose, and whole think blocks. */
export class DocumentFinder {
  private readonly rule: CommitRule
  private readonly think = new ThinkBlock()
  private place = atStart

  constructor(rule: CommitRule) {
    this.rule = rule
  }

  /** True when the text ends in a think block that was never closed. */
  get isInThink(): boolean {
    return this.think.isInside
  }

  /** Returns the next place where the document may begin, or the end of the text. */
  find(text: string, from: number): number {
    for (let at = from; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (this.think.take(code)) continue
      if (this.mayBegin(code)) return at
      this.pass(code)
    }
    return text.length
  }

  /** Called when the last candidate was not the document: the search continues behind its first character. */
  resume(): void {
    this.place = inside
    this.think.reset()
  }

  private mayBegin(code: number): boolean {
    const { kinds, hasSchema } = this.rule
    if (code === openBrace) return (kinds & OBJECT) !== 0
    // A number in brackets is often a footnote: without a schema a list has to stand where one is expected.
    if (code === openBracket) return (kinds & LIST) !== 0 && (hasSchema || this.place !== inside)
    if (this.place !== atStart && !(hasSchema && this.place === atLine)) return false
    if (code === quote || code === apostrophe) return (kinds & STRING) !== 0
    return isBare(code) && (kinds & (NUMBER | BOOLEAN | NULL)) !== 0
  }

  private pass(code: number): void {
    if (isLineEnd(code)) this.place = this.place === atStart ? atStart : atLine
    else if (code === colon) this.place = afterColon
    else if (!isAnySpace(code)) this.place = inside
  }
}

const atStart = 0
const atLine = 1
const afterColon = 2
const inside = 3

/** Recognises `<think> ... </think>` and its kin, one character at a time. */
class ThinkBlock {
  /** True between the opening and the closing tag. */
  isInside = false

  /** The part of the tag's name that has been read; undefined outside of a tag. */
  private tag: string | undefined
  /** The name that closes the block. */
  private name = ''
  private last = 0
  /**
   * The tag follows a back quote. If another back quote follows the tag, the text only mentions it and no block begins.
   */
  private isQuoted = false
  /** A quoted tag has ended; the next character decides whether it opens a block. */
  private isWaiting = false

  /** True for a character inside a block, which the search ignores. */
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

/** Removes the think blocks from a text. A block that is never closed stays. */
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
