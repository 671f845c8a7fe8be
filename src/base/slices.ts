/** How long a piece of a long walk may hold the event loop. */
const SLICE_MS = 10

/** Cuts a long walk into slices: other work gets its turn between two slices. */
export class Slices {
  private end = performance.now() + SLICE_MS

  /** Goes on at once while the slice lasts, else in the next turn of the event loop. */
  next(): Promise<void> | undefined {
    return performance.now() < this.end ? undefined : this.turn()
  }

  private async turn(): Promise<void> {
    await new Promise(setImmediate)
    this.end = performance.now() + SLICE_MS
  }
}
