/**
 * A map by id for rows that come and go. Unlike `Map`, it holds on to nothing that was deleted: a `Map` under churn
 * leaves tables behind that keep their entries, and the next table, reachable until the next full collection.
 */
export class IdMap<Value> {
  private buckets: (Slot<Value> | undefined)[] = emptyBuckets(64)
  private count = 0

  get size(): number {
    return this.count
  }

  get(id: string): Value | undefined {
    let slot = this.buckets[hashOf(id) & (this.buckets.length - 1)]
    while (slot !== undefined && slot.id !== id) slot = slot.next
    return slot?.value
  }

  /** The id must not be in the map. */
  add(id: string, value: Value): void {
    if (this.count >= this.buckets.length) this.grow()
    const hash = hashOf(id)
    const index = hash & (this.buckets.length - 1)
    this.buckets[index] = { id, hash, value, next: this.buckets[index] }
    this.count++
  }

  delete(id: string): void {
    const index = hashOf(id) & (this.buckets.length - 1)
    let before: Slot<Value> | undefined
    for (let slot = this.buckets[index]; slot !== undefined; slot = slot.next) {
      if (slot.id === id) {
        if (before === undefined) this.buckets[index] = slot.next
        else before.next = slot.next
        slot.next = undefined
        this.count--
        return
      }
      before = slot
    }
  }

  /** In no particular order. */
  *values(): Generator<Value> {
    for (const first of this.buckets) {
      for (let slot = first; slot !== undefined; slot = slot.next) yield slot.value
    }
  }

  private grow(): void {
    const buckets = emptyBuckets<Value>(this.buckets.length * 2)
    for (const first of this.buckets) {
      let slot = first
      while (slot !== undefined) {
        const { next } = slot
        const index = slot.hash & (buckets.length - 1)
        slot.next = buckets[index]
        buckets[index] = slot
        slot = next
      }
    }
    this.buckets = buckets
  }
}

interface Slot<Value> {
  readonly id: string
  readonly hash: number
  readonly value: Value
  next: Slot<Value> | undefined
}

function emptyBuckets<Value>(length: number): (Slot<Value> | undefined)[] {
  return new Array<Slot<Value> | undefined>(length).fill(undefined)
}

function hashOf(id: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < id.length; index++) hash = Math.imul(hash ^ id.charCodeAt(index), 0x01000193)
  return hash ^ (hash >>> 15)
}
