// Shares: how many of something everybody holds at a time, so that nobody's keep others from theirs.
//
// Owns:      the counts, and the three bounds: of one id, of an id together with all that it hands on to, and of all.
// Called by: streams of the server, sessions of MCP.

/** The most that may be held at a time. */
export interface ShareLimits {
  /** By one id. */
  readonly each: number
  /** By all together. */
  readonly inAll: number
}

/** Why one more is refused. */
export interface FullShare {
  readonly whose: 'own' | 'maker' | 'all'
  readonly count: number
}

/** An id and those that it stands under have at most this many times the share of one. */
const TOGETHER = 8

interface HeldShare {
  own: number
  together: number
}

/** Counts by ids. A holder names itself first, then those whom its share counts for too. */
export class Shares {
  private readonly limits: ShareLimits
  private readonly held: Map<string, HeldShare> = new Map()
  private all = 0

  constructor(limits: ShareLimits) {
    this.limits = limits
  }

  /** Why these cannot hold one more; undefined where they can. */
  full(ids: readonly string[]): FullShare | undefined {
    const { each, inAll } = this.limits
    const [first = ''] = ids
    const own = this.held.get(first)?.own ?? 0
    if (own >= each) return { whose: 'own', count: own }
    const maker = ids.map((id) => this.held.get(id)?.together ?? 0).find((count) => count >= each * TOGETHER)
    if (maker !== undefined) return { whose: 'maker', count: maker }
    return this.all >= inAll ? { whose: 'all', count: this.all } : undefined
  }

  /** Holds one more, until the function that it gives is called. */
  hold(ids: readonly string[]): () => void {
    this.tally(ids, 1)
    let isHeld = true
    return () => {
      if (isHeld) this.tally(ids, -1)
      isHeld = false
    }
  }

  private tally(ids: readonly string[], more: 1 | -1): void {
    this.all += more
    for (const [at, id] of ids.entries()) {
      const { own, together } = this.held.get(id) ?? { own: 0, together: 0 }
      if (together + more === 0) this.held.delete(id)
      else this.held.set(id, { own: at === 0 ? own + more : own, together: together + more })
    }
  }
}
