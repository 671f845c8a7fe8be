interface TurnOfLane {
  readonly row: { readonly ordinal: number; readonly state: string }
}

/** The turns of a lane, as far as they are known. Ordinals of a lane have no gaps: turns in a row are all there are. */
export class LaneList<C extends TurnOfLane> {
  /** By ordinal. */
  private readonly cells: C[] = []
  /** All turns are here: the lane was made by who has the list. */
  readonly isWhole: boolean
  private hasNewest: boolean

  constructor(isWhole: boolean) {
    this.isWhole = isWhole
    this.hasNewest = isWhole
  }

  /** Takes a turn that was made, or read. */
  put(cell: C): void {
    const { ordinal } = cell.row
    const end = this.end(ordinal)
    for (let at = end - 1; this.cells[at]?.row.ordinal === ordinal; at--) if (this.cells[at] === cell) return
    this.cells.splice(end, 0, cell)
  }

  /** Takes turns that were read. `last` is what was asked for: more than there are if the newest was. */
  learn(cells: readonly C[], last: number): void {
    for (const cell of cells) this.put(cell)
    if (last === Number.MAX_SAFE_INTEGER) this.hasNewest = true
  }

  /** The newest turns up to an ordinal, oldest first; undefined when that is not known. */
  upTo(last: number, limit: number): C[] | undefined {
    const end = this.end(last)
    const first = Math.max(0, end - limit)
    return this.isWhole || this.isKnown({ first, end, last, limit }) ? this.cells.slice(first, end) : undefined
  }

  /** Of a whole list: the turn that is next. */
  queued(): C | undefined {
    return this.cells.find(({ row }) => row.state === 'queued')
  }

  private isKnown({ first, end, last, limit }: { first: number; end: number; last: number; limit: number }): boolean {
    const [oldest, newest] = [this.cells[first]?.row.ordinal, this.cells[end - 1]?.row.ordinal]
    if (oldest === undefined || newest === undefined || newest - oldest !== end - first - 1) return false
    const isTop = newest === last || (this.hasNewest && end === this.cells.length)
    return isTop && (end - first === limit || oldest === 0)
  }

  /** How many are up to an ordinal. */
  private end(last: number): number {
    let [low, high] = [0, this.cells.length]
    if ((this.cells[high - 1]?.row.ordinal ?? -1) <= last) return high
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.cells[middle]?.row.ordinal ?? 0) <= last) low = middle + 1
      else high = middle
    }
    return low
  }
}
