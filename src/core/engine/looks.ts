/** The reason of a look, the widest first: everything that is due; nodes that nobody has claimed; those that this process is to take. */
const REASONS = ['all', 'runnable', 'own'] as const
export type Look = (typeof REASONS)[number]

/** Looks one after the other. Everything that is asked for during one is one more look, as wide as the widest of them. */
export class Looks {
  private readonly lookAt: (what: Look) => Promise<void>
  private current: Promise<void> | undefined
  private next: Look | undefined

  constructor(lookAt: (what: Look) => Promise<void>) {
    this.lookAt = lookAt
  }

  /** Looks now, or once more after the current look. */
  ask(what: Look): void {
    if (this.current === undefined) this.begin(what)
    else if (this.next === undefined || REASONS.indexOf(what) < REASONS.indexOf(this.next)) this.next = what
  }

  /** Resolves when the current look is over. */
  async over(): Promise<void> {
    await this.current
  }

  private begin(what: Look): void {
    this.current = this.lookAt(what).finally(() => {
      this.current = undefined
      const { next } = this
      this.next = undefined
      if (next !== undefined) this.begin(next)
    })
  }
}
