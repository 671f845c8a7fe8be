// The processes that work on one store, as this one saw them last.
//
// Owns:      which of them takes work that all of them hear of.
// Called by: the local engine asks it when another process has left work; each sweep tells it who lives.
// Must stay true:
//   - It only spreads work. Whoever is not first takes the same nodes with its second sweep, so a process that is gone, or is not
//     known yet, delays work and never loses it.

import type { EngineRow } from '../graph/commit.ts'
import type { Id, Node } from '../graph/rows.ts'
import type { StoreChange } from '../store/store.ts'
import { isDead } from './lease.ts'

export class Crew {
  private readonly own: Id
  private others: readonly Id[] = []
  /** True where another process has code that this one has not. */
  private lacksCode = false
  /** Trees whose work this process is to take. */
  private readonly expected = new Set<Id>()

  /** Nodes that each of the last two sweeps has found and left to others: one may not see what the other saw. */
  private passedOver: readonly ReadonlySet<Id>[] = []
  private readonly works: boolean

  /** `works` is false for a process that runs no nodes. */
  constructor(own: Id, works: boolean) {
    this.own = own
    this.works = works
  }

  /** Takes note of the processes that run nodes. */
  learn(engines: readonly EngineRow[], now: number): void {
    const works = (engine: EngineRow) => engine.agents?.length !== 0 && engine.draining !== true && !isDead(engine, now)
    const others = engines.filter((engine) => engine.id !== this.own && works(engine))
    const own = engines.find(({ id }) => id === this.own)?.agents ?? []
    this.others = others.map(({ id }) => id)
    this.lacksCode = others.some(({ agents }) => agents?.some((name) => !own.includes(name)))
  }

  /** True where this process is to look for work that another one has left: it is the first for its tree, or the first cannot. */
  hear({ rootId, isLeft }: StoreChange): boolean {
    if (isLeft) return true
    if (!this.isFirst(rootId)) return false
    this.expected.add(rootId)
    return true
  }

  /**
   * Begins a look for work. Gives the function that says, of the trees that this process had heard of by then, whose work it leaves to
   * others: all of it where it took nothing, for want of workers, else what it may have no code for. Mostly, what is not taken was
   * taken by others.
   */
  begin(): (taken?: ReadonlySet<Id>) => readonly Id[] {
    const expected = [...this.expected]
    this.expected.clear()
    return (taken) => {
      if (this.others.length === 0) return []
      if (taken === undefined) return expected
      return this.lacksCode ? expected.filter((rootId) => !taken.has(rootId)) : []
    }
  }

  /**
   * Begins a sweep. Gives the function that says which nodes it may claim: those of trees that this process is first for, and those
   * that one of the two sweeps before has found, too: whoever is first for them had time enough. Undefined for all, where there are no others.
   */
  beginSweep(): ((node: Pick<Node, 'id' | 'rootId'>) => boolean) | undefined {
    if (this.others.length === 0) return undefined
    const before = this.passedOver
    const passedOver = new Set<Id>()
    this.passedOver = [passedOver, ...before].slice(0, 2)
    return ({ id, rootId }) => {
      const mayClaim = before.some((seen) => seen.has(id)) || this.isFirst(rootId)
      if (!mayClaim) passedOver.add(id)
      return mayClaim
    }
  }

  /** True where others wait for this process to take the work of a tree. */
  isAwaited(rootId: Id): boolean {
    return this.works && this.others.length > 0 && this.isFirst(rootId)
  }

  /** Processes that know of each other find the same one to be first, and each is first for about as many trees. */
  isFirst(rootId: Id): boolean {
    if (this.others.length === 0) return true
    const own = weightOf(this.own + rootId)
    return this.others.every((id) => weightOf(id + rootId) <= own)
  }
}

/** A number that is as good as random, and the same for the same text. */
function weightOf(text: string): number {
  let weight = 0x811c9dc5
  for (let at = 0; at < text.length; at++) weight = Math.imul(weight ^ text.charCodeAt(at), 0x01000193)
  weight = Math.imul(weight ^ (weight >>> 16), 0x85ebca6b)
  return (weight ^ (weight >>> 13)) >>> 0
}
