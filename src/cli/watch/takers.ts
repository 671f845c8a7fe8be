import type { Id, Runtime, Turn } from '../../index.ts'
import { codeOf } from './code-of.ts'

/** A living process takes up what it has code for within its sweep, which is a second: then this is long. */
const PATIENCE_MS = 5_000
const LOOKED_AT = 200

/** The living processes of a store, and what they may be expected to take up. Nobody says which agents they have. */
export class Takers {
  /** Process ids by engine. */
  readonly alive: ReadonlyMap<Id, number>
  private readonly runtime: Runtime
  private busyWith: ReadonlySet<string> | undefined

  constructor(runtime: Runtime) {
    this.runtime = runtime
    this.alive = new Map(runtime.processes().flatMap(({ id, pid, isAlive }) => (isAlive ? [[id, pid]] : [])))
  }

  /** Could one of them go on with this run, which needs the code of that agent? What needs none is nobody's duty. */
  mayTake({ rootId, createdAt }: Turn, agent: string): boolean {
    if (this.alive.size === 0) return false
    const isFresh = Date.now() - Math.max(createdAt, this.lastEventAt(rootId)) < PATIENCE_MS
    return isFresh || (agent !== '' && this.agentsAtWork().has(agent))
  }

  private lastEventAt(rootId: Id): number {
    const { store } = this.runtime
    return store.events(rootId, store.lastSeq(rootId) - 1, 1).at(-1)?.at ?? 0
  }

  private agentsAtWork(): ReadonlySet<string> {
    const { store } = this.runtime
    this.busyWith ??= new Set(
      [...this.alive.keys()]
        .flatMap((id) => store.claimedBy(id, LOOKED_AT))
        .flatMap(({ conversationId }) => codeOf(store.conversation(conversationId))),
    )
    return this.busyWith
  }
}
