// JSON: reading untrusted text, copying values of users, canonical text, sizes and cuts.
//
// Owns:      the limits for foreign JSON, and the types `Json` and `JsonRecord`.
// Called by: whoever takes data from a model, a file, a tool or a user; hashes use `canonicalJson`.
// Must stay true:
//   - `parseJson` and `toJson` never throw: they give the value, or a fault with its path and a remedy.
//   - Both take linear time and bounded memory, whatever the input (I10).
//   - Their result is plain data: well-formed strings, finite numbers, no getters, and `__proto__` as an ordinary key.

import { LegateError, messageOf } from './error.ts'
import { pathText } from './text.ts'

export interface JsonLimits {
  /** How many arrays and objects may nest; 64 by default. */
  readonly maxDepth?: number
  /** UTF-8 bytes; 16,000,000 by default. */
  readonly maxBytes?: number
  /** Values, nested ones included; 100,000 by default. */
  readonly maxValues?: number
}

export type ParsedJson = { ok: true; value: Json } | { ok: false; error: string }

export type PlainJson = { ok: true; value: Json; text: string } | { ok: false; error: string }

/** The default limits for untrusted JSON. With more values, a single pass over them would block the process noticeably. */
export const JSON_LIMITS: Required<JsonLimits> = { maxDepth: 64, maxBytes: 16_000_000, maxValues: 100_000 }

/** Limits for text that this program wrote itself, which may be of any size. */
export const OWN_TEXT: Required<JsonLimits> = {
  maxDepth: 1_000,
  maxBytes: Number.MAX_SAFE_INTEGER,
  maxValues: Number.MAX_SAFE_INTEGER,
}

/**
 * Reads untrusted text in linear time and never throws. The result is plain data: strings are well-formed, numbers finite, and
 * a `__proto__` key is an ordinary property. A byte order mark is skipped.
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
 * Copies a value that user code returned into plain JSON data, together with its text. Never throws: it refuses a value that
 * JSON cannot keep, and names its path and a remedy. `undefined` becomes null, an undefined property is left out, dates become
 * ISO strings, `toJSON` is honoured. Every accepted value survives `parseJson` of its text unchanged.
 */
export function toJson(value: unknown, limits: Required<JsonLimits> = JSON_LIMITS): PlainJson {
  const plain = plainData(value, limits)
  if (!plain.ok) return plain
  const text = JSON.stringify(plain.value)
  if (isLarger(text, limits.maxBytes)) return { ok: false, error: tooLarge(limits) }
  return { ok: true, value: plain.value, text }
}

/** Counts UTF-8 bytes. */
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

/** Scans the text once before parsing: how deep it nests, how many values it holds, and whether a number could be infinite. */
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

/** True for a character after which another value follows. */
function isBegin(code: number): boolean {
  return code === comma || code === openBrace || code === openBracket
}

/** Looks at every character of the string once, even in a run of backslashes. */
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

/** Replaces lone surrogates by U+FFFD in the text itself, literal or escaped, so that nobody has to walk the parsed value. */
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

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

export type PlainData = { ok: true; value: Json } | { ok: false; error: string }

/** Copies the value as pure JSON data, or reports the first part that cannot be copied. Never throws. */
function plainData(value: unknown, limits: PlainLimits): PlainData {
  const walk: Walk = { path: [], ancestors: [], depth: 0, left: limits.maxBytes, values: limits.maxValues, limits }
  try {
    return { ok: true, value: plainOf(value, walk, 0) }
  } catch (error) {
    if (error instanceof Refusal) return { ok: false, error: error.message }
    return { ok: false, error: `${placeOf(walk)} could not be read: ${messageOf(error)}` }
  }
}

export interface PlainLimits {
  readonly maxDepth: number
  readonly maxBytes: number
  readonly maxValues: number
}

/** The refusal of a value beyond `maxBytes`. */
function tooLarge(limits: PlainLimits): string {
  return `The value is larger than ${limits.maxBytes} bytes as JSON; return less, or a reference to it.`
}

function tooMany({ maxValues }: PlainLimits): string {
  return `The value has more than ${maxValues} values in it; return less, or a reference to it.`
}

interface Walk {
  /** The keys from the root to the value in hand; only the first `depth` count. */
  readonly path: (string | number)[]
  readonly ancestors: object[]
  depth: number
  /** Bytes that may still be written, estimated low; it bounds values that share parts again and again. */
  left: number
  /** How many further values are allowed. */
  values: number
  readonly limits: PlainLimits
}

type Method = (key: string) => unknown

class Refusal extends Error {}

function plainOf(value: unknown, walk: Walk, depth: number): Json {
  walk.left -= 2
  if (walk.left < 0) throw new Refusal(tooLarge(walk.limits))
  if (--walk.values < 0) throw new Refusal(tooMany(walk.limits))
  switch (typeof value) {
    case 'string':
      walk.left -= value.length
      return value.toWellFormed()
    case 'boolean':
      return value
    case 'number':
      if (Number.isFinite(value)) return value === 0 ? 0 : value
      return refuse(walk, `is ${value}, which JSON cannot keep; return null or a string`)
    case 'undefined':
      return null
    case 'object':
      return value === null ? null : plainObjectOf(value, walk, depth)
    case 'bigint':
      return refuse(walk, 'is a BigInt; return it as a string or a number')
    default:
      return refuse(walk, `is a ${typeof value}; return data only`)
  }
}

function plainObjectOf(value: object, walk: Walk, depth: number): Json {
  if (depth >= walk.limits.maxDepth) return refuseDeep(value, walk)
  walk.ancestors[depth] = value
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
    return refuse(walk, 'is binary data; return it as base64 text')
  }
  const toJSON: unknown = Reflect.get(value, 'toJSON')
  if (typeof toJSON === 'function') return convert(value, toJSON as Method, walk)
  if (Array.isArray(value)) return plainArray(value, walk, depth)
  if (isPlain(value)) return plainRecord(value, walk, depth)
  return refuse(walk, `is an instance of ${classNameOf(value)}; ${adviceFor(value)}`)
}

/** Dates come this way too: their own toJSON answers null for an invalid date, which is refused instead. */
function convert(value: object, toJSON: Method, walk: Walk): Json {
  if (value instanceof Date && Number.isNaN(value.getTime())) return refuse(walk, 'is an invalid Date; return null')
  const depth = walk.depth
  const converted: unknown = Reflect.apply(toJSON, value, [String(walk.path[depth - 1] ?? '')])
  if (typeof converted !== 'object' || converted === null) return plainOf(converted, walk, depth)
  if (Array.isArray(converted)) return plainArray(converted, walk, depth)
  if (isPlain(converted)) return plainRecord(converted, walk, depth)
  return refuse(walk, `has a toJSON that returns an instance of ${classNameOf(converted)}; return plain data from it`)
}

function plainArray(value: readonly unknown[], walk: Walk, depth: number): Json {
  if (value.length * 2 > walk.left) throw new Refusal(tooLarge(walk.limits))
  const plain: Json[] = []
  for (let index = 0; index < value.length; index++) {
    walk.path[depth] = index
    walk.depth = depth + 1
    plain.push(plainOf(value[index], walk, depth + 1))
  }
  walk.depth = depth
  return plain
}

function plainRecord(value: object, walk: Walk, depth: number): Json {
  const plain: { [key: string]: Json } = {}
  for (const key of Object.keys(value)) {
    walk.path[depth] = key
    walk.depth = depth + 1
    const item: unknown = (value as Record<string, unknown>)[key]
    if (item === undefined) continue
    walk.left -= key.length + 2
    setOwn(plain, key.toWellFormed(), plainOf(item, walk, depth + 1))
  }
  walk.depth = depth
  return plain
}

/** Plain assignment to `__proto__` would change the prototype instead. */
function setOwn(record: { [key: string]: Json }, key: string, value: Json): void {
  if (key !== '__proto__') {
    record[key] = value
    return
  }
  Object.defineProperty(record, key, { value, enumerable: true, configurable: true, writable: true })
}

/** Also true for a plain object of another realm, whose prototype is that realm's root. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === null) return true
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype as object, 'isPrototypeOf')
}

function adviceFor(value: object): string {
  if (value instanceof Map) return 'return Object.fromEntries(map) or [...map]'
  if (value instanceof Set) return 'return [...set]'
  if (value instanceof Promise) return 'await it first'
  if (value instanceof Error) return 'throw it, or return its message'
  return 'return a plain object, or give the class a toJSON method'
}

function classNameOf(value: object): string {
  const maker: unknown = Reflect.get(value, 'constructor')
  return typeof maker === 'function' && maker.name !== '' ? maker.name.slice(0, 100) : 'a class'
}

/** Ancestors are compared only here: a cycle always runs into the depth limit. */
function refuseDeep(value: object, walk: Walk): never {
  const line = [...walk.ancestors, value]
  const repeat = line.findIndex((ancestor, index) => line.indexOf(ancestor) < index)
  walk.depth = repeat === -1 ? 3 : repeat
  if (repeat !== -1) return refuse(walk, 'is part of a cycle; return a value that does not contain itself')
  return refuse(walk, `is nested more than ${walk.limits.maxDepth} levels deep; return a flatter value`)
}

function refuse(walk: Walk, why: string): never {
  throw new Refusal(`${placeOf(walk)} ${why}.`)
}

function placeOf(walk: Walk): string {
  const place = pathText(walk.path.slice(0, walk.depth))
  return place === '' ? 'The value' : `"${place}"`
}

/** Copies plain data and freezes the copy, so that later changes by the giver have no effect. Other values stay as they are. */
export function frozenCopy<T>(value: T): T {
  if (Array.isArray(value)) return Object.freeze(value.map((item: unknown) => frozenCopy(item))) as T
  if (!isPlainObject(value)) return value
  const copy = Object.fromEntries(Object.entries(value).map(([key, item]) => [key, frozenCopy(item)]))
  return Object.freeze(copy) as T
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

export type JsonRecord = { [key: string]: Json }

/** True for an object that is not a list. */
export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
