// Collections for items that come and go by the million: nodes, turns, trees. `Map` and `Set` would keep deleted items alive
// (see `IdMap`), so a long-lived process would need more memory and longer collections. Use them only where a profile shows
// such churn; elsewhere a `Map` is right.

import type { KeptAlive } from './keep-shape.ts'

/** All maps share this one class, whatever they hold: their look-up is compiled once. */
class Slot<Value> {
  readonly id: string
  value: Value
  next: Slot<Value> | null

  constructor(id: string, value: Value, next: Slot<Value> | null) {
    this.id = id
    this.value = value
    this.next = next
  }
}

/**
 * A map for values that come and go by the million. A `Map` under churn leaves old tables behind, which keep their values and
 * all later tables alive until the next full collection; this one holds on to nothing that was deleted.
 */
export class IdMap<Value> {
  /** For the time when all maps are empty. */
  static readonly kept: KeptAlive = new Slot('', undefined, null)
  private buckets: (Slot<Value> | null)[] = emptyBuckets(64)
  private count = 0

  get size(): number {
    return this.count
  }

  get(id: string): Value | undefined {
    let slot = this.buckets[placeIn(this.buckets, id)] ?? null
    while (slot !== null && slot.id !== id) slot = slot.next
    return slot === null ? undefined : slot.value
  }

  has(id: string): boolean {
    return this.find(id) !== null
  }

  set(id: string, value: Value): void {
    const known = this.find(id)
    if (known === null) this.add(id, value)
    else known.value = value
  }

  /** The id must not be in the map. */
  add(id: string, value: Value): void {
    if (this.count >= this.buckets.length) this.grow()
    const at = placeIn(this.buckets, id)
    this.buckets[at] = new Slot(id, value, this.buckets[at] ?? null)
    this.count++
  }

  delete(id: string): void {
    const at = placeIn(this.buckets, id)
    let before: Slot<Value> | null = null
    let slot = this.buckets[at] ?? null
    while (slot !== null && slot.id !== id) {
      before = slot
      slot = slot.next
    }
    if (slot === null) return
    if (before === null) this.buckets[at] = slot.next
    else before.next = slot.next
    this.count--
  }

  clear(): void {
    this.buckets = emptyBuckets(64)
    this.count = 0
  }

  /** A snapshot in no particular order: later changes do not show in it. */
  entries(): (readonly [id: string, value: Value])[] {
    return this.slots().map(({ id, value }) => [id, value])
  }

  values(): Value[] {
    return this.slots().map(({ value }) => value)
  }

  private find(id: string): Slot<Value> | null {
    let slot = this.buckets[placeIn(this.buckets, id)] ?? null
    while (slot !== null && slot.id !== id) slot = slot.next
    return slot
  }

  private slots(): Slot<Value>[] {
    const slots: Slot<Value>[] = []
    for (const first of this.buckets) {
      for (let slot = first; slot !== null; slot = slot.next) slots.push(slot)
    }
    return slots
  }

  private grow(): void {
    const slots = this.slots()
    this.buckets = emptyBuckets(this.buckets.length * 2)
    this.count = 0
    for (const { id, value } of slots) this.add(id, value)
  }
}

function emptyBuckets<Value>(length: number): (Slot<Value> | null)[] {
  return new Array<Slot<Value> | null>(length).fill(null)
}

/** The bucket of an id. Ids differ in their last characters: five hex digits tell a million of them apart. */
function placeIn({ length }: readonly unknown[], id: string): number {
  // Ids also come from people and models: a value that is not a string matches nothing.
  if (typeof id !== 'string' || id.length < 5) return 0
  const end = id.length
  const first = (id.charCodeAt(end - 5) * 33 + id.charCodeAt(end - 4)) * 33 + id.charCodeAt(end - 3)
  return ((first * 33 + id.charCodeAt(end - 2)) * 33 + id.charCodeAt(end - 1)) & (length - 1)
}

/** An item knows its neighbours; it is in at most one chain. */
export interface ChainItem {
  before: this | null
  after: this | null
  isChained: boolean
}

/** A set in the order of adding. Like `Set`, but it holds on to nothing that was deleted: see IdMap. */
export class Chain<Item extends ChainItem> {
  first: Item | null = null
  private last: Item | null = null
  size = 0

  /** An item that is already in keeps its place. */
  add(item: Item): void {
    if (item.isChained) return
    item.isChained = true
    item.before = this.last
    if (this.last === null) this.first = item
    else this.last.after = item
    this.last = item
    this.size++
  }

  delete(item: Item): void {
    if (!item.isChained) return
    if (item.before === null) this.first = item.after
    else item.before.after = item.after
    if (item.after === null) this.last = item.before
    else item.after.before = item.before
    item.before = null
    item.after = null
    item.isChained = false
    this.size--
  }

  *[Symbol.iterator](): Generator<Item> {
    for (let item = this.first; item !== null; item = item.after) yield item
  }
}

/** The empty list; never written to. */
export const NONE: readonly never[] = []

/** Appends to a list of its owner alone. Most stay empty or get one item, and a list that grows from nothing takes room for many. */
export function added<Item>(list: readonly Item[], item: Item): readonly Item[] {
  if (list === NONE) return [item]
  ;(list as Item[]).push(item)
  return list
}
