import type { Json } from '../../base/json.ts'
import { readCeiling } from '../../grant/ceiling.ts'

/** True where a layer limits what an owner may use on a day. */
export function hasDayLimit(ceiling: readonly Json[]): boolean {
  return readCeiling(ceiling).some(({ perDay }) => perDay !== undefined)
}

/** Starts of principals with a day's budget, one after the other for each: so each counts for the next. */
export class DayStarts {
  private readonly open: Map<string, Promise<void>> = new Map()

  begin(id: string, start: () => Promise<void>): Promise<void> {
    const done = (this.open.get(id) ?? Promise.resolve()).then(start)
    const over = done.catch(() => undefined)
    const leave = () => {
      if (this.open.get(id) === over) this.open.delete(id)
    }
    this.open.set(id, over)
    over.then(leave, leave)
    return done
  }
}
