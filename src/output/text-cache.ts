/// <reference lib="es2024.string" />

/** Spares memory: equal short texts become one, and no text keeps the pieces alive that it came from. */
export class TextCache {
  private readonly texts: string[] = new Array<string>(slots).fill('')

  /** The same text. `around` is how long the piece is that it was cut from whole, or 0. */
  kept(text: string, around: number): string {
    const { length } = text
    if (length > shortText) return whole(around > pieceLength ? halves(text) : text)
    if (length === 0) return text
    const slot = (text.charCodeAt(length - 1) * 7 + text.charCodeAt(0) * 31 + length) & (slots - 1)
    const known = this.texts[slot]
    if (known === text) return known
    this.texts[slot] = text
    return text
  }
}

/** A power of two. */
const slots = 256
/** Up to this length a text that is cut out is copied by the language itself. */
const shortText = 12
/** A piece that is no longer may as well be kept. */
const pieceLength = 64

/** Two halves side by side have to be put together in a place of their own. */
function halves(text: string): string {
  const half = text.length >> 1
  return text.slice(0, half) + text.slice(half)
}

/** A text of several pieces is put together when a character of it is read. What is well-formed stays as it is. */
function whole(text: string): string {
  return text.charCodeAt(0) === replacement ? text.toWellFormed() : text
}

const replacement = 0xfffd
