import { isLineEnd, slash, star } from './chars.ts'

/** Passes over one comment, which may come in pieces. */
export class CommentReader {
  isOpen = false
  /** A slash that begins no comment. */
  isBroken = false

  private state = atSlash

  /** Call it behind the first slash. */
  open(): void {
    this.isOpen = true
    this.isBroken = false
    this.state = atSlash
  }

  /** Reads on; returns the place behind the comment, or the end of the text. */
  read(text: string, from: number): number {
    let at = from
    while (at < text.length && this.isOpen) {
      this.take(text.charCodeAt(at))
      if (!this.isBroken) at++
    }
    return at
  }

  private take(code: number): void {
    if (this.state === inLine) this.isOpen = !isLineEnd(code)
    else if (this.state === atSlash) this.begin(code)
    else if (this.state === atStar && code === slash) this.isOpen = false
    else this.state = code === star ? atStar : inBlock
  }

  private begin(code: number): void {
    if (code === slash) this.state = inLine
    else if (code === star) this.state = inBlock
    else {
      this.isBroken = true
      this.isOpen = false
    }
  }
}

const atSlash = 0
const inLine = 1
const inBlock = 2
const atStar = 3
