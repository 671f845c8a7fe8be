import type { Aftermath } from 'legate/testing'

/** What a suite did in all, for its line of figures. */
export class Totals {
  kills = 0
  events = 0
  uncertain = 0
  private readonly started = performance.now()

  add({ kills, events, uncertain }: Aftermath): void {
    this.kills += kills
    this.events += events
    this.uncertain += uncertain
  }

  /** Says it the way all suites do. An aftermath that lost or doubled anything would have thrown. */
  toString(): string {
    const seconds = Math.round((performance.now() - this.started) / 1000)
    const counts = `${thousands(this.kills)} kills, ${thousands(this.events)} events, 0 lost, 0 duplicated`
    return `${counts}, ${thousands(this.uncertain)} uncertain (all reported), ${seconds} s`
  }
}

function thousands(count: number): string {
  return count.toLocaleString('en-US')
}
