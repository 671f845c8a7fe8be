import { BOOLEAN, dot, isDigit, isLineEnd, letterE, minus, NULL, NUMBER, plus, slash, star, zero } from './chars.ts'

/**
 * Reads an unquoted value between two places of `text`: a number, true, false or null; undefined for anything else.
 * Infinite numbers and NaN are returned as they are.
 */
export function readBareValue(text: string, from: number, to: number): number | boolean | null | undefined {
  const first = text.charCodeAt(from)
  if (isDigit(first) || first === minus) {
    const value = readNumber(text, from, to)
    return Number.isNaN(value) ? undefined : value
  }
  return literals.get(text.slice(from, to))
}

/** Like `readBareValue`, and also reads the values that JSON5 and Python add. */
export function readLooseValue(text: string, from: number, to: number): number | boolean | null | undefined {
  const value = readBareValue(text, from, to)
  if (value !== undefined) return value
  const token = text.slice(from, to)
  if (looseLiterals.has(token)) return looseLiterals.get(token)
  const loose = readLooseNumber(token)
  return Number.isNaN(loose) ? undefined : loose
}

/** The kind of value that the beginning of a number or literal shows, or 0. */
export function kindBegun(token: string): number {
  const first = token.charCodeAt(0)
  if (isDigit(first) || first === minus) return NUMBER
  if ('true'.startsWith(token) || 'false'.startsWith(token)) return BOOLEAN
  return 'null'.startsWith(token) ? NULL : 0
}

const literals = new Map<string, boolean | null>([
  ['true', true],
  ['false', false],
  ['null', null],
])

const looseLiterals = new Map<string, number | boolean | null>([
  ['True', true],
  ['False', false],
  ['None', null],
  ['NaN', Number.NaN],
  ['+NaN', Number.NaN],
  ['-NaN', Number.NaN],
])

/**
 * Reads the number between two places of `text` by the grammar of JSON. It may be infinite, and is NaN where there is
 * none.
 */
function readNumber(text: string, from: number, to: number): number {
  const isNegative = text.charCodeAt(from) === minus
  const start = isNegative ? from + 1 : from
  const point = afterDigits(text, start, to)
  if (point === start || (point > start + 1 && text.charCodeAt(start) === zero)) return Number.NaN
  const end = point < to && text.charCodeAt(point) === dot ? afterDigits(text, point + 1, to) : point
  if (end !== to || end === point + 1 || end - start > exactLength) return readLong(text, from, to)
  const power = end === point ? 1 : (powers[end - point - 1] ?? Number.NaN)
  const digits = digitsOf(text, start, point) * power + digitsOf(text, point + 1, end)
  // Both sides of the division are exact, so the quotient is rounded once, as it should be.
  return (isNegative ? -digits : digits) / power
}

/** Reads a number by the grammar of JSON5, leading zeros allowed: `+1`, `.5`, `5.`, `0xFF`, `Infinity`. */
function readLooseNumber(token: string): number {
  const first = token.charCodeAt(0)
  const isSigned = first === minus || first === plus
  const bare = isSigned ? token.slice(1) : token
  if (bare === 'Infinity') return first === minus ? -Infinity : Infinity
  if (!looseNumber.test(bare)) return Number.NaN
  const value = Number(bare)
  return first === minus ? -value : value
}

/** True when the number spelled at that place is whole and has more digits than a JavaScript number keeps. */
export function losesDigits(value: number, text: string, from: number): boolean {
  if (Math.abs(value) <= Number.MAX_SAFE_INTEGER) return false
  const end = afterDigits(text, isDigit(text.charCodeAt(from)) ? from : from + 1, text.length)
  const next = text.charCodeAt(end)
  return next !== dot && (next | 32) !== letterE
}

/** A JavaScript number keeps this many digits exactly, with or without a point among them. */
const exactLength = 15
const powers = Array.from({ length: exactLength + 1 }, (_, exponent) => 10 ** exponent)
/** No digit matches two parts of the pattern, so time stays in proportion to the length. */
const looseNumber = /^(?:0[xX][0-9a-fA-F]+|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)$/

function digitsOf(text: string, from: number, to: number): number {
  let value = 0
  for (let at = from; at < to; at++) value = value * 10 + text.charCodeAt(at) - zero
  return value
}

/** Reads many digits or an exponent: checks the grammar here and leaves the value to the language. */
function readLong(text: string, from: number, to: number): number {
  let at = text.charCodeAt(from) === minus ? from + 1 : from
  at = afterDigits(text, at, to)
  if (at < to && text.charCodeAt(at) === dot) {
    const point = at
    at = afterDigits(text, at + 1, to)
    if (at === point + 1) return Number.NaN
  }
  if (at < to && (text.charCodeAt(at) | 32) === letterE) at = afterExponent(text, at + 1, to)
  return at === to ? Number(text.slice(from, to)) : Number.NaN
}

function afterExponent(text: string, from: number, to: number): number {
  const sign = text.charCodeAt(from)
  const start = sign === plus || sign === minus ? from + 1 : from
  const end = afterDigits(text, start, to)
  return end === start ? -1 : end
}

function afterDigits(text: string, from: number, to: number): number {
  let at = from
  while (at < to && isDigit(text.charCodeAt(at))) at++
  return at
}

/** Skips one comment, which may come in pieces. */
export class CommentReader {
  isOpen = false
  /** Set when the slash begins no comment. */
  isBroken = false

  private state = atSlash

  /** Call it behind the first slash. */
  open(): void {
    this.isOpen = true
    this.isBroken = false
    this.state = atSlash
  }

  /** Reads on. Returns the place behind the comment, or the end of the text. */
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
