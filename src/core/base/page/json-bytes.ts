import type { PageRoom } from './room.ts'

/** The first items that fit. */
export function fitting<Item>(items: Iterable<Item>, room: PageRoom): Item[] {
  const taken: Item[] = []
  for (const item of items) {
    if (!room.take(jsonBytes(item, room.left))) break
    taken.push(item)
  }
  return taken
}

/** The bytes of a value as JSON, counted up to a little more than `most`. */
export function jsonBytes(value: unknown, most: number = Number.POSITIVE_INFINITY): number {
  if (typeof value === 'string') return textBytes(value, most)
  if (typeof value !== 'object' || value === null) return value === undefined ? 0 : 8
  let bytes = 2
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length && bytes <= most; at++) bytes += 1 + jsonBytes(value[at], most - bytes)
    return bytes
  }
  for (const name in value) {
    if (bytes > most) break
    bytes += name.length + 4 + jsonBytes((value as { readonly [name: string]: unknown })[name], most - bytes)
  }
  return bytes
}

function textBytes(text: string, most: number): number {
  if (text.length > most) return text.length
  let bytes = 2
  for (let at = 0; at < text.length && bytes <= most; at++) bytes += charBytes(text.charCodeAt(at))
  return bytes
}

function charBytes(code: number): number {
  if (code < 0x20) return 6
  if (code === 0x22 || code === 0x5c) return 2
  return code < 0x80 ? 1 : code < 0x800 ? 2 : 3
}
