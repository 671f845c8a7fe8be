import { messageOf } from './error.ts'
import { pathText } from './path.ts'

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

export type PlainData = { ok: true; value: Json } | { ok: false; error: string }

/** A copy of the value that is nothing but JSON data, or the first thing in it that cannot be. Never throws. */
export function plainData(value: unknown, limits: PlainLimits): PlainData {
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

/** What is said of a value beyond `maxBytes`. */
export function tooLarge(limits: PlainLimits): string {
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
  /** Bytes that may still be written, counted low; bounds values that share parts again and again. */
  left: number
  /** Values that there may still be. */
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
