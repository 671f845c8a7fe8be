/** So many may do something at the same time. The others wait for their turn. */
export class Places {
  private free: number
  private readonly waiting: (() => void)[] = []

  constructor(count: number) {
    this.free = count
  }

  /** Resolves when there is a place. It must be given back. */
  async take(): Promise<void> {
    if (this.free > 0) this.free--
    else await new Promise<void>((resolve) => this.waiting.push(resolve))
  }

  giveBack(): void {
    const next = this.waiting.shift()
    if (next === undefined) this.free++
    else next()
  }
}
