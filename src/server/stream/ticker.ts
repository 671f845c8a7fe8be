const TICK_MS = 250

/** Tells readers of the feed that something has changed: one look at the store for all of them, and none while nobody waits. */
export class ChangeTicker {
  private readonly newest: () => Promise<string>
  /** Who waits, each with the cursor up to which it has read. */
  private readonly waiting: Map<() => void, string> = new Map()
  private timer: NodeJS.Timeout | undefined

  constructor(newest: () => Promise<string>) {
    this.newest = newest
  }

  /** Calls once when there may be something after the cursor. Gives the function that stops waiting. */
  onNext(cursor: string, call: () => void): () => void {
    this.waiting.set(call, cursor)
    this.timer ??= setInterval(() => {
      this.look().catch(() => undefined)
    }, TICK_MS).unref()
    return () => {
      this.waiting.delete(call)
      this.rest()
    }
  }

  private async look(): Promise<void> {
    const newest = await this.newest()
    // Each is compared with its own place: who began to wait while the store was asked misses nothing.
    for (const [call, cursor] of [...this.waiting]) {
      if (cursor === newest) continue
      this.waiting.delete(call)
      call()
    }
    this.rest()
  }

  private rest(): void {
    if (this.waiting.size > 0) return
    clearInterval(this.timer)
    this.timer = undefined
  }
}
