/** What an IdMap holds: the entry itself is the link of its bucket's chain. */
export interface Keyed {
  readonly id: string
  nextInBucket: this | null
}

/**
 * A map by id for entries that come and go by the million. A `Map` under churn leaves old tables behind that keep their
 * entries, and all later tables, alive until the next full collection; this one holds on to nothing that was deleted.
 */
export class IdMap<Entry extends Keyed> {
  private buckets: (Entry | null)[] = emptyBuckets(64)
  private count = 0

  get size(): number {
    return this.count
  }

  get(id: string): Entry | undefined {
    let entry = this.buckets[hashOf(id) & (this.buckets.length - 1)] ?? null
    while (entry !== null && entry.id !== id) entry = entry.nextInBucket
    return entry ?? undefined
  }

  /** The entry must be in no map. */
  add(entry: Entry): void {
    if (this.count >= this.buckets.length) this.grow()
    const at = hashOf(entry.id) & (this.buckets.length - 1)
    entry.nextInBucket = this.buckets[at] ?? null
    this.buckets[at] = entry
    this.count++
  }

  delete(entry: Entry): void {
    const at = hashOf(entry.id) & (this.buckets.length - 1)
    let before: Entry | null = null
    let found = this.buckets[at] ?? null
    while (found !== null && found !== entry) {
      before = found
      found = found.nextInBucket
    }
    if (found === null) return
    if (before === null) this.buckets[at] = entry.nextInBucket
    else before.nextInBucket = entry.nextInBucket
    entry.nextInBucket = null
    this.count--
  }

  /** In no particular order. */
  *[Symbol.iterator](): Generator<Entry> {
    for (const first of this.buckets) {
      for (let entry = first; entry !== null; entry = entry.nextInBucket) yield entry
    }
  }

  private grow(): void {
    const entries = [...this]
    this.buckets = emptyBuckets(this.buckets.length * 2)
    this.count = 0
    for (const entry of entries) this.add(entry)
  }
}

function emptyBuckets<Entry>(length: number): (Entry | null)[] {
  return new Array<Entry | null>(length).fill(null)
}

/** Ids differ in their last characters: five hex digits tell a million of them apart. */
function hashOf(id: string): number {
  // Ids also come from people and models: what is no text is found nowhere.
  if (typeof id !== 'string' || id.length < 5) return 0
  const end = id.length
  const first = (id.charCodeAt(end - 5) * 33 + id.charCodeAt(end - 4)) * 33 + id.charCodeAt(end - 3)
  return (first * 33 + id.charCodeAt(end - 2)) * 33 + id.charCodeAt(end - 1)
}
