/** Bytes of a page. */
export const PAGE_BYTES = 8_000_000

/** The bytes that a page has left. The first item of a page fits in any case, so that whoever reads on gets further. */
export class PageRoom {
  left: number
  /** True when an item did not fit: there is more. */
  isFull = false
  private isEmpty = true

  constructor(bytes: number = PAGE_BYTES) {
    this.left = bytes
  }

  /** Takes the bytes of one more item; false where the item does not fit. */
  take(bytes: number): boolean {
    if (this.isFull) return false
    this.isFull = !this.isEmpty && bytes > this.left
    if (this.isFull) return false
    this.isEmpty = false
    this.left -= bytes
    return true
  }
}
