export const quote = 34
export const apostrophe = 39
export const star = 42
export const plus = 43
export const comma = 44
export const minus = 45
export const dot = 46
export const slash = 47
export const zero = 48
const nine = 57
export const colon = 58
export const less = 60
export const greater = 62
export const openBracket = 91
export const backslash = 92
export const closeBracket = 93
export const letterE = 101
export const letterU = 117
export const letterX = 120
export const openBrace = 123
export const closeBrace = 125
const newline = 10
export const carriageReturn = 13
export const byteOrderMark = 0xfeff

/** True for the white space that JSON allows. */
export function isSpace(code: number): boolean {
  return code === 32 || code === newline || code === carriageReturn || code === 9
}

/** True for the white space that JSON5 allows: also the other spaces and line ends of Unicode. */
export function isAnySpace(code: number): boolean {
  if (code < 128) return isSpace(code) || code === 11 || code === 12
  if (code === 160 || code === byteOrderMark || code === 0x1680) return true
  if (code < 0x2000 || code > 0x3000) return false
  return code <= 0x200a || code === 0x2028 || code === 0x2029 || code === 0x202f || code === 0x205f || code === 0x3000
}

export function isLineEnd(code: number): boolean {
  return code === newline || code === carriageReturn || code === 0x2028 || code === 0x2029
}

export function isDigit(code: number): boolean {
  return code >= zero && code <= nine
}

/** True for the characters of numbers, literals and unquoted keys: letters, digits and `+ - . _ $`. */
export function isBare(code: number): boolean {
  return code < 128 && bare[code] === 1
}

/** Returns the value of a hexadecimal digit, or -1 for any other character. */
export function hexValue(code: number): number {
  if (isDigit(code)) return code - zero
  const letter = code | 32
  return letter >= 97 && letter <= 102 ? letter - 87 : -1
}

const bare = new Uint8Array(128)
for (const char of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-._$') {
  bare[char.charCodeAt(0)] = 1
}

/** The kinds of values as bits of one number. */
export const OBJECT = 1
export const LIST = 2
export const STRING = 4
export const NUMBER = 8
export const BOOLEAN = 16
export const NULL = 32
export const ANY = 63

export function valueKind(value: unknown): number {
  if (value === null) return NULL
  if (typeof value === 'string') return STRING
  if (typeof value === 'number') return NUMBER
  if (typeof value === 'boolean') return BOOLEAN
  return Array.isArray(value) ? LIST : OBJECT
}

/** Bounds on one text. A text that exceeds one of them ends in the state `limit`. */
export interface ParserLimits {
  /** How deep objects and lists may nest. Default 64. */
  readonly maxDepth: number
  /** Characters of the text, including everything around the document. Default 16,000,000. */
  readonly maxLength: number
  /** Values of the document, including nested ones. Default 100,000. */
  readonly maxValues: number
}

/** The limits for all JSON that this package reads. */
export const PARSER_LIMITS: ParserLimits = { maxDepth: 64, maxLength: 16_000_000, maxValues: 100_000 }
