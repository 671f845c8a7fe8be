/** Starts under the limit of a day, one after the other for each id that has one: so each counts for the next. */
export class DayStarts {
  private readonly open: Map<string, Promise<void>> = new Map()

  /** Begins when all starts are over that count for one of these ids. */
  begin(ids: readonly string[], start: () => Promise<void>): Promise<void> {
    const before = ids.flatMap((id) => this.open.get(id) ?? [])
    const done = Promise.all(before).then(start)
    const over = done.catch(() => undefined)
    const leave = () => {
      for (const id of ids) if (this.open.get(id) === over) this.open.delete(id)
    }
    for (const id of ids) this.open.set(id, over)
    over.then(leave, leave)
    return done
  }
}
