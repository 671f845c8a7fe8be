import { IdMap, type Keyed } from './id-map.ts'

/** Values by id that come and go with every node or run. Like `Map`, but it holds on to nothing that was deleted: see IdMap. */
export class IdTable<Value> {
  private rows: IdMap<Row<Value>> = new IdMap()

  get size(): number {
    return this.rows.size
  }

  get(id: string): Value | undefined {
    return this.rows.get(id)?.value
  }

  has(id: string): boolean {
    return this.rows.get(id) !== undefined
  }

  set(id: string, value: Value): void {
    const known = this.rows.get(id)
    if (known === undefined) this.rows.add({ id, value, nextInBucket: null })
    else known.value = value
  }

  delete(id: string): void {
    const known = this.rows.get(id)
    if (known !== undefined) this.rows.delete(known)
  }

  clear(): void {
    this.rows = new IdMap()
  }

  /** As they are now: what changes meanwhile is not seen. */
  entries(): (readonly [id: string, value: Value])[] {
    return Array.from(this.rows, ({ id, value }) => [id, value] as const)
  }

  values(): Value[] {
    return Array.from(this.rows, ({ value }) => value)
  }
}

interface Row<Value> extends Keyed {
  value: Value
}
