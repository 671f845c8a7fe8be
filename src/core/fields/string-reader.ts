/// <reference lib="es2024.string" />

import { backslash, carriageReturn, hexValue, isLineEnd, letterU, letterX, quote } from './chars.ts'

/**
 * Reads one string, which may come in pieces. Its output is well-formed: it holds back half of a surrogate pair until
 * the other half arrives, and writes U+FFFD when it does not.
 */
export class StringReader {
  /** The text read before this piece. */
  value = ''
  /** The text that this piece added. */
  delta = ''
  isClosed = false
  /** Set where the string breaks the grammar; reading stopped there. */
  isBroken = false
  /** Set when the string has an unknown escape, which was kept as written. */
  hasWrongEscape = false

  private readonly isStrict: boolean
  private readonly escaped: EscapeReader
  /** Characters below this one may not stand in the string. */
  private floor = 0
  private end = quote
  private high = ''

  constructor(isStrict: boolean) {
    this.isStrict = isStrict
    this.escaped = new EscapeReader(isStrict)
  }

  /** With `isOneLine` the string may hold no line end and no other control character. */
  open(end: number, isOneLine: boolean): void {
    this.value = ''
    this.delta = ''
    this.isClosed = false
    this.isBroken = false
    this.hasWrongEscape = false
    this.escaped.isOpen = false
    this.end = end
    this.floor = isOneLine ? 32 : 0
    this.high = ''
  }

  /** Reads on. Returns the place behind the closing quote, the place of the error, or the end of the text. */
  read(text: string, from: number): number {
    let at = this.escaped.isOpen ? this.readEscape(text, from) : from
    while (at < text.length && !this.isBroken) {
      const stop = this.readPlain(text, at)
      if (stop === text.length) return stop
      const code = text.charCodeAt(stop)
      if (code === this.end) return this.close(stop + 1)
      if (code !== backslash) return this.fail(stop)
      this.escaped.open()
      at = this.readEscape(text, stop + 1)
    }
    return at
  }

  /** Moves the new text into the value and returns it. */
  takeDelta(): string {
    const { delta } = this
    this.delta = ''
    this.value = this.value === '' ? delta : this.value + delta
    return delta
  }

  private readPlain(text: string, from: number): number {
    const { floor, end } = this
    let at = from
    let bits = 0
    for (; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (code === end || code === backslash || code < floor) break
      bits |= code
    }
    if (at > from) this.append(text.slice(from, at), bits >= firstSurrogate)
    return at
  }

  private readEscape(text: string, from: number): number {
    const { escaped } = this
    let at = from
    while (at < text.length && escaped.isOpen) {
      if (escaped.take(text.charAt(at))) at++
    }
    if (escaped.isOpen) return at
    if (escaped.isWrong && this.isStrict) return this.fail(at)
    if (escaped.isWrong) this.hasWrongEscape = true
    if (escaped.text !== '') this.append(escaped.text, escaped.text.charCodeAt(0) >= firstSurrogate)
    return at
  }

  private append(piece: string, mayBeIll: boolean): void {
    const whole = mayBeIll || this.high !== '' ? this.wellFormed(piece) : piece
    this.delta = this.delta === '' ? whole : this.delta + whole
  }

  private wellFormed(piece: string): string {
    const text = this.high + piece
    const last = text.charCodeAt(text.length - 1)
    const isHigh = last >= firstSurrogate && last < firstLowSurrogate
    this.high = isHigh ? text.slice(-1) : ''
    return (isHigh ? text.slice(0, -1) : text).toWellFormed()
  }

  private close(at: number): number {
    if (this.high !== '') this.delta += replacement
    this.isClosed = true
    return at
  }

  private fail(at: number): number {
    this.isBroken = true
    return at
  }
}

const firstSurrogate = 0xd800
const firstLowSurrogate = 0xdc00
const replacement = '\ufffd'

/** Reads one escape of a string, which may come in pieces. */
export class EscapeReader {
  /** The text that the escape stands for, once `isOpen` is false. */
  text = ''
  isOpen = false
  /** Set when the grammar has no such escape; `text` then holds it as written. */
  isWrong = false

  private readonly isStrict: boolean
  /** The characters of the escape so far, from the backslash on. */
  private read = ''
  private code = 0
  /** Hexadecimal digits still to come; 0 before the character behind the backslash. */
  private digits = 0
  /** Set behind a backslash and a carriage return, which take the next line feed along. */
  private isAfterReturn = false

  constructor(isStrict: boolean) {
    this.isStrict = isStrict
  }

  open(): void {
    this.text = ''
    this.isOpen = true
    this.isWrong = false
    this.read = '\\'
    this.code = 0
    this.digits = 0
    this.isAfterReturn = false
  }

  /** Takes one more character and returns whether it belongs to the escape. */
  take(char: string): boolean {
    if (this.isAfterReturn) return this.close('', char === '\n')
    if (this.digits > 0) return this.takeDigit(char)
    this.read += char
    const code = char.charCodeAt(0)
    if (code === letterU) this.digits = 4
    else if (code === letterX && !this.isStrict) this.digits = 2
    else if (code === carriageReturn && !this.isStrict) this.isAfterReturn = true
    else this.takeSingle(char, code)
    return true
  }

  private takeSingle(char: string, code: number): void {
    const meant = (this.isStrict ? strictEscapes : looseEscapes).get(char)
    if (meant !== undefined) this.close(meant, true)
    else if (this.isStrict) this.refuse()
    else this.close(isLineEnd(code) ? '' : char, true)
  }

  private takeDigit(char: string): boolean {
    const value = hexValue(char.charCodeAt(0))
    if (value < 0) return this.refuse()
    this.read += char
    this.code = this.code * 16 + value
    this.digits--
    if (this.digits > 0) return true
    return this.close(String.fromCharCode(this.code), true)
  }

  private refuse(): boolean {
    this.isWrong = true
    return this.close(this.read, false)
  }

  private close(text: string, isTaken: boolean): boolean {
    this.text = text
    this.isOpen = false
    return isTaken
  }
}

const strictEscapes = new Map([
  ['"', '"'],
  ['\\', '\\'],
  ['/', '/'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
])

/** Any other character stands for itself. */
const looseEscapes = new Map([...strictEscapes, ['v', '\v'], ['0', '\0']])
