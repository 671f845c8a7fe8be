/** An item knows its neighbours; it is in at most one chain. */
export interface Chained {
  before: this | null
  after: this | null
  isChained: boolean
}

/** A set in the order of adding. Like `Set`, but it holds on to nothing that was deleted: see IdMap. */
export class Chain<Item extends Chained> {
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
