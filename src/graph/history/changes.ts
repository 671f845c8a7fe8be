import type { Id } from '../rows.ts'

const FEW = 8
/** Stands for no rows yet; never written. */
const NONE: never[] = []

/** The rows of one table that a draft adds or changes, in the order they were first put. Most drafts put only a few. */
export class Changes<Row extends { readonly id: Id }> {
  rows: Row[] = NONE
  private index: Map<Id, number> | null = null

  get(id: Id): Row | undefined {
    const at = this.find(id)
    return at < 0 ? undefined : this.rows[at]
  }

  has(id: Id): boolean {
    return this.find(id) >= 0
  }

  put(row: Row): void {
    const at = this.find(row.id)
    if (at >= 0) {
      this.rows[at] = row
      return
    }
    if (this.rows === NONE) this.rows = [row]
    else this.rows.push(row)
    if (this.index !== null) this.index.set(row.id, this.rows.length - 1)
    else if (this.rows.length > FEW) this.index = new Map(this.rows.map(({ id }, place) => [id, place]))
  }

  private find(id: Id): number {
    if (this.index !== null) return this.index.get(id) ?? -1
    const { rows } = this
    for (let at = 0; at < rows.length; at++) if (rows[at]?.id === id) return at
    return -1
  }
}
