/** An entry of a trie; entries with the same hash form a list. */
interface Entry<Value> {
  readonly hash: number
  readonly key: string
  readonly value: Value
  readonly next: Entry<Value> | null
}

type Branch<Value> = readonly (Cell<Value> | undefined)[]
type Cell<Value> = Entry<Value> | Branch<Value>

const BITS = 4
const MASK = 15

/** A map that nobody changes: a new one shares nearly all of its parts with the one it was made from. */
export class Trie<Value> {
  private readonly top: Cell<Value> | undefined
  readonly size: number

  constructor(top?: Cell<Value>, size = 0) {
    this.top = top
    this.size = size
  }

  get(key: string): Value | undefined {
    const hash = hashOf(key)
    let cell = this.top
    for (let shift = 0; cell !== undefined && isBranch(cell); shift += BITS) cell = cell[(hash >>> shift) & MASK]
    for (let entry = cell ?? null; entry !== null; entry = entry.next) if (entry.key === key) return entry.value
    return undefined
  }

  has(key: string): boolean {
    return this.get(key) !== undefined
  }

  /** The map with one more value, or with another one for its key. */
  with(key: string, value: Value): Trie<Value> {
    const entry = { hash: hashOf(key), key, value, next: null }
    return new Trie(put(this.top, entry, 0), this.has(key) ? this.size : this.size + 1)
  }

  without(key: string): Trie<Value> {
    if (!this.has(key)) return this
    return new Trie(drop(this.top, { hash: hashOf(key), key }, 0), this.size - 1)
  }

  /** The values, in no particular order. */
  values(): Value[] {
    const found: Value[] = []
    const visit = (cell: Cell<Value> | undefined): void => {
      if (cell === undefined) return
      if (isBranch(cell)) return cell.forEach(visit)
      for (let entry: Entry<Value> | null = cell; entry !== null; entry = entry.next) found.push(entry.value)
    }
    visit(this.top)
    return found
  }
}

function isBranch<Value>(cell: Cell<Value>): cell is Branch<Value> {
  return Array.isArray(cell)
}

function put<Value>(cell: Cell<Value> | undefined, entry: Entry<Value>, shift: number): Cell<Value> {
  if (cell === undefined) return entry
  if (isBranch(cell)) {
    const at = (entry.hash >>> shift) & MASK
    const copy = cell.slice()
    copy[at] = put(cell[at], entry, shift + BITS)
    return copy
  }
  if (cell.hash === entry.hash) return { ...entry, next: without(cell, entry.key) }
  const branch: (Cell<Value> | undefined)[] = new Array(MASK + 1).fill(undefined)
  branch[(cell.hash >>> shift) & MASK] = cell
  return put(branch, entry, shift)
}

function without<Value>(entry: Entry<Value> | null, key: string): Entry<Value> | null {
  if (entry === null) return null
  return entry.key === key ? entry.next : { ...entry, next: without(entry.next, key) }
}

type Place = Pick<Entry<unknown>, 'hash' | 'key'>

function drop<Value>(cell: Cell<Value> | undefined, place: Place, shift: number): Cell<Value> | undefined {
  if (cell === undefined) return undefined
  if (!isBranch(cell)) return without(cell, place.key) ?? undefined
  const at = (place.hash >>> shift) & MASK
  const copy = cell.slice()
  copy[at] = drop(cell[at], place, shift + BITS)
  return copy.some((one) => one !== undefined) ? copy : undefined
}

/** FNV-1a: ids that were made one after the other differ in few characters. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return (hash ^ (hash >>> 15)) >>> 0
}

/** A list that grows at its head: the newest first. */
export interface List<Item> {
  readonly item: Item
  readonly rest: List<Item> | null
}

/** The items, oldest first. */
export function inOrder<Item>(list: List<Item> | null): Item[] {
  const items: Item[] = []
  for (let at = list; at !== null; at = at.rest) items.push(at.item)
  return items.reverse()
}
