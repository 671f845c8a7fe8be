/** The first items of several lists: one of each list in turn, until there are enough. */
export function inTurn<Item>(lists: readonly (readonly Item[])[], limit: number): Item[] {
  const taken: Item[] = []
  const longest = lists.reduce((most, { length }) => Math.max(most, length), 0)
  for (let round = 0; round < longest; round++) {
    for (const list of lists) {
      if (taken.length >= limit) return taken
      if (round < list.length) taken.push(list[round] as Item)
    }
  }
  return taken
}

/** Gives the first items of the list of a name. */
export type ReadList<Item> = (name: string, limit: number) => readonly Item[]

/** Works as `inTurn`, and reads no more of the lists than it needs, however many names and items there are. */
export function readInTurn<Item>(names: Iterable<string>, limit: number, read: ReadList<Item>): Item[] {
  const rest = names[Symbol.iterator]()
  const first: string[] = []
  let named = limit > 0 ? rest.next() : undefined
  for (; named?.done === false && first.length < limit; named = rest.next()) first.push(named.value)
  const found = new Lists(read, limit)
  for (const name of first) found.add(name, Math.ceil(limit / first.length))
  // Lists that have nothing fit give their place to the next ones.
  for (; named?.done === false && found.count < limit; named = rest.next()) found.add(named.value, 1)
  while (found.count < limit && found.readOn());
  return inTurn(found.lists, limit)
}

class Lists<Item> {
  readonly lists: (readonly Item[])[] = []
  count = 0
  private readonly read: ReadList<Item>
  private readonly limit: number
  private readonly asked: { readonly name: string; share: number }[] = []

  constructor(read: ReadList<Item>, limit: number) {
    this.read = read
    this.limit = limit
  }

  add(name: string, share: number): void {
    this.put(this.asked.push({ name, share }) - 1, name, share)
  }

  /** Reads more of the lists that may have more; false where none has. */
  readOn(): boolean {
    let hasMore = false
    this.asked.forEach((list, at) => {
      if (list.share >= this.limit || (this.lists[at]?.length ?? 0) < list.share) return
      list.share = Math.min(list.share * 4, this.limit)
      this.put(at, list.name, list.share)
      hasMore = true
    })
    return hasMore
  }

  private put(at: number, name: string, share: number): void {
    const items = this.read(name, share)
    this.count += items.length - (this.lists[at]?.length ?? 0)
    this.lists[at] = items
  }
}
