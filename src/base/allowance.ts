/** How much of something there may be: so much at once, and so much more with each second. */
export class Allowance {
  private readonly burst: number
  private readonly perSecond: number
  private left: number
  private since: number | undefined

  constructor(burst: number, perSecond: number) {
    this.burst = burst
    this.perSecond = perSecond
    this.left = burst
  }

  /** True where there is enough left at this time, which is then used. A clock that goes back gives nothing. */
  take(amount: number, now: number): boolean {
    const passed = Math.max(0, now - (this.since ?? now)) / 1_000
    this.left = Math.min(this.burst, this.left + passed * this.perSecond)
    this.since = now
    if (amount > this.left) return false
    this.left -= amount
    return true
  }
}
