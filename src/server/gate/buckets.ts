interface Bucket {
  left: number
  at: number
}

/** Whoever comes with more keys than this loses the oldest: memory stays bounded whatever comes. */
const MOST_KEYS = 20_000

/** Token buckets by key. A key that was not seen for a minute has a full bucket. */
export class Buckets {
  private readonly size: number
  private readonly buckets: Map<string, Bucket> = new Map()

  constructor(perMinute: number) {
    this.size = perMinute
  }

  /** Takes one. Gives 0 where there was one, else the seconds until there is. */
  take(key: string, now = Date.now()): number {
    const bucket = this.fill(key, now)
    if (bucket.left < 1) return this.secondsUntilOne(bucket)
    bucket.left--
    return 0
  }

  /** The seconds until there is one, without taking any. */
  wait(key: string, now = Date.now()): number {
    const bucket = this.buckets.get(key)
    if (bucket === undefined) return 0
    const left = this.leftNow(bucket, now)
    return left >= 1 ? 0 : this.secondsUntilOne({ left, at: now })
  }

  get keys(): number {
    return this.buckets.size
  }

  private fill(key: string, now: number): Bucket {
    const known = this.buckets.get(key)
    const bucket = known === undefined ? { left: this.size, at: now } : { left: this.leftNow(known, now), at: now }
    // The newest stand last.
    this.buckets.delete(key)
    this.buckets.set(key, bucket)
    if (this.buckets.size > MOST_KEYS) this.dropOldest()
    return bucket
  }

  private leftNow({ left, at }: Bucket, now: number): number {
    return Math.min(this.size, left + (Math.max(0, now - at) * this.size) / 60_000)
  }

  private secondsUntilOne({ left }: Bucket): number {
    return Math.max(1, Math.ceil(((1 - left) * 60) / Math.max(this.size, 1e-6)))
  }

  private dropOldest(): void {
    const [oldest] = this.buckets.keys()
    if (oldest !== undefined) this.buckets.delete(oldest)
  }
}

/** The key of an address: all of an IPv6 network of 64 bits is one caller. */
export function addressKey(address: string): string {
  const plain = address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
  if (!plain.includes(':')) return plain
  const [head = '', tail] = plain.split('::')
  const left = head.split(':').filter(Boolean)
  const right = tail === undefined ? [] : tail.split(':').filter(Boolean)
  const zeros = Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => '0')
  return [...left, ...(tail === undefined ? [] : zeros), ...right].slice(0, 4).join(':')
}
