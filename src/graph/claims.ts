import type { Id } from './rows.ts'

/** Lets a commit hand the nodes it makes runnable to the engine that makes it. */
export interface Claims {
  readonly engineId: Id
  /** Reserves a worker, if the engine has one and the code for such a node. */
  take(kind: string, agentName: string): boolean
  /** Workers that were reserved and are not needed. */
  giveBack(taken: number): void
}
