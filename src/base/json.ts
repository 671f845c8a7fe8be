import { LegateError, messageOf } from './error.ts'
import { type Json, plainData, tooLarge } from './plain-data.ts'

export type { Json } from './plain-data.ts'

export interface JsonLimits {
  /** How many arrays and objects may lie in one another; 64 unless said. */
  readonly maxDepth?: number
  /** UTF-8 bytes; 16,000,000 unless said. */
  readonly maxBytes?: number
  /** Values, with those in one another; 100,000 unless said. */
  readonly maxValues?: number
}

export type ParsedJson = { ok: true; value: Json } | { ok: false; error: string }

export type PlainJson = { ok: true; value: Json; text: string } | { ok: false; error: string }

/** Of all JSON that is read here. With more values, one look at each of them keeps everything else waiting. */
export const JSON_LIMITS: Required<JsonLimits> = { maxDepth: 64, maxBytes: 16_000_000, maxValues: 100_000 }

/** For text that this program wrote itself, and that may be as large as it likes. */
export const OWN_TEXT: Required<JsonLimits> = {
  maxDepth: 1_000,
  maxBytes: Number.MAX_SAFE_INTEGER,
  maxValues: Number.MAX_SAFE_INTEGER,
}

/**
 * Reads untrusted text in linear time and never throws. What it returns is plain data: strings are well-formed,
 * numbers finite, and a `__proto__` key is an ordinary property. A byte order mark is skipped.
 */
export function parseJson(text: string, limits: JsonLimits = {}): ParsedJson {
  const { maxDepth, maxBytes, maxValues } = { ...JSON_LIMITS, ...limits }
  if (isLarger(text, maxBytes)) return { ok: false, error: `The JSON text is longer than ${maxBytes} bytes.` }
  const scan = scanText(text, maxDepth)
  if (scan.tooDeep) return { ok: false, error: `The JSON text is nested more than ${maxDepth} levels deep.` }
  if (scan.values > maxValues) return { ok: false, error: `The JSON text has more than ${maxValues} values.` }
  try {
    const value: Json = JSON.parse(wellFormedText(text))
    const overflows = scan.mayOverflow && hasInfinity(value)
    return overflows ? { ok: false, error: 'The JSON text has a number too large to keep.' } : { ok: true, value }
  } catch (error) {
    return { ok: false, error: `Not valid JSON: ${messageOf(error)}` }
  }
}

/** Reads text that this program wrote itself, without the checks of `parseJson`. Throws on anything else. */
export function parseOwnJson(text: string): unknown {
  return JSON.parse(text)
}

/**
 * Turns what user code returned into plain JSON data of its own, with its text. Never throws: what JSON cannot
 * keep is refused with its path and what to do instead. `undefined` becomes null, a property of it is left out,
 * dates become ISO strings, `toJSON` is honoured. What this accepts, `parseJson` reads back as the same value.
 */
export function toJson(value: unknown, limits: Required<JsonLimits> = JSON_LIMITS): PlainJson {
  const plain = plainData(value, limits)
  if (!plain.ok) return plain
  const text = JSON.stringify(plain.value)
  if (isLarger(text, limits.maxBytes)) return { ok: false, error: tooLarge(limits) }
  return { ok: true, value: plain.value, text }
}

/** UTF-8 bytes. */
export function sizeOf(text: string): number {
  return Buffer.byteLength(text, 'utf8')
}

/** The longest beginning of the text that fits, cut between characters, and well-formed. Does not keep `text` alive. */
export function truncateUtf8(text: string, maxBytes: number): string {
  if (!(maxBytes > 0)) return ''
  if (!isLarger(text, maxBytes)) return text.toWellFormed()
  const bytes = Buffer.allocUnsafe(Math.floor(maxBytes))
  const { written } = encoder.encodeInto(text.slice(0, bytes.length), bytes)
  return bytes.toString('utf8', 0, written)
}

/** One text for equal data: keys sorted by code unit, no spaces. For digests, so order of insertion does not matter. */
export function canonicalJson(value: Json): string {
  return canonical(value, 0)
}

const canonicalDepth = 1000
const encoder = new TextEncoder()

function isLarger(text: string, maxBytes: number): boolean {
  if (text.length > maxBytes) return true
  return text.length * 3 > maxBytes && sizeOf(text) > maxBytes
}

interface Scan {
  readonly tooDeep: boolean
  readonly mayOverflow: boolean
  readonly values: number
}

/** One pass over the text, before parsing: how deep it goes, how much is in it, and whether a number could be infinite. */
function scanText(text: string, maxDepth: number): Scan {
  let depth = 0
  let values = 1
  let digits = 0
  let mayOverflow = false
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code >= zero && code <= nine) {
      digits++
      continue
    }
    if (digits > 0) mayOverflow ||= digits > 300 || (code | 32) === letterE
    digits = 0
    if (code === quote) index = endOfString(text, index)
    depth += nesting(code)
    values += isBegin(code) ? 1 : 0
    if (depth > maxDepth) return { tooDeep: true, mayOverflow, values }
  }
  return { tooDeep: false, mayOverflow: mayOverflow || digits > 300, values }
}

function nesting(code: number): number {
  if (code === openBrace || code === openBracket) return 1
  return code === closeBrace || code === closeBracket ? -1 : 0
}

/** Another value follows. */
function isBegin(code: number): boolean {
  return code === comma || code === openBrace || code === openBracket
}

/** Every character of the string is looked at once, also when it is nothing but backslashes. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1)
  while (end !== -1) {
    let slashes = end
    while (text.charCodeAt(slashes - 1) === backslash) slashes--
    if ((end - slashes) % 2 === 0) return end
    end = text.indexOf('"', end + 1)
  }
  return text.length
}

const quote = 34
const comma = 44
const backslash = 92
const openBracket = 91
const closeBracket = 93
const openBrace = 123
const closeBrace = 125
const zero = 48
const nine = 57
const letterE = 101

/** Lone surrogates become U+FFFD in the text already, written out or escaped, so that no value has to be walked. */
function wellFormedText(text: string): string {
  const bare = (text.charCodeAt(0) === byteOrderMark ? text.slice(1) : text).toWellFormed()
  if (!surrogateEscape.test(bare)) return bare
  return bare.replace(anyEscape, (found: string) => (loneEscape.test(found) ? '\\ufffd' : found))
}

const byteOrderMark = 0xfeff
const surrogateEscape = /\\u[dD][89a-fA-F]/
const anyEscape = /\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)/gs
const loneEscape = /^\\u[dD][89a-fA-F][0-9a-fA-F]{2}$/

function hasInfinity(root: Json): boolean {
  const open: Json[] = [root]
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (typeof value === 'number' && !Number.isFinite(value)) return true
    if (typeof value === 'object' && value !== null) for (const item of Object.values(value)) open.push(item)
  }
  return false
}

function canonical(value: Json, depth: number): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  if (depth >= canonicalDepth) {
    throw new LegateError('unserialisable', `The value is nested more than ${canonicalDepth} levels deep.`)
  }
  if (Array.isArray(value)) return `[${value.map((item) => canonical(item, depth + 1)).join(',')}]`
  const keys = Object.keys(value).sort()
  const fields: string[] = []
  for (const key of keys) {
    const item = value[key]
    if (item !== undefined) fields.push(`${JSON.stringify(key)}:${canonical(item, depth + 1)}`)
  }
  return `{${fields.join(',')}}`
}
