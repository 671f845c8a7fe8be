import { apostrophe, colon, isAnySpace, isBare, isLineEnd, openBrace, openBracket, quote } from './chars.ts'
import type { CommitRule } from './commit-rule.ts'
import { BOOLEAN, LIST, NULL, NUMBER, OBJECT, STRING } from './kinds.ts'
import { ThinkBlock } from './think-block.ts'

/** Looks for a place in a text where the document may begin. Fences and prose are passed over, think blocks whole. */
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

  /** The next place where the document may begin, or the end of the text. */
  find(text: string, from: number): number {
    for (let at = from; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (this.think.take(code)) continue
      if (this.mayBegin(code)) return at
      this.pass(code)
    }
    return text.length
  }

  /** What began there was not the document: goes on behind its first character. */
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
