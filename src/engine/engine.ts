import type { Claims, Draft } from '../graph/draft.ts'
import type { Id, Node } from '../graph/rows.ts'
import type { Claim } from '../rules/turn/claim.ts'

/** Why a running node is asked to stop. `shutdown` and `lost` are not its own to commit: others go on with it. */
export type StopCause = 'cancel' | 'timeout' | 'stalled' | 'shutdown' | 'lost'

/** One claimed node while it runs in this process. */
export interface Work {
  readonly claim: Claim
  /** Aborts when the node is asked to stop. Made when first read: most nodes never need it. */
  readonly signal: AbortSignal
  /** Why `signal` aborted; null while it has not. */
  readonly stopCause: StopCause | null
  /** Called when the node is asked to stop, by what waits for code that may not hear the signal. */
  onStop: (() => void) | null
  /** Says that a model was asked: it is stalled when its first word does not come for too long. */
  asked(): void
  /** Says that something came: from here on, it is stalled when nothing more comes for too long. */
  heard(): void
  /** Says that it is at work: it may be silent for as long as it likes after that. */
  stirred(): void
  /** Gives the worker to others while code inside the node awaits something (a child): waiting holds no worker. */
  lend<T>(wait: Promise<T>): Promise<T>
}

/** Runs a node to its end; at once where nothing has to be waited for. Must not throw. */
export type Execute = (node: Node, work: Work) => void | Promise<void>

/**
 * Decides where and when a runnable node runs. Delivers nodes at least once and holds no result: the claim in the store
 * decides. So the same agents run in one process or in several. All a runtime knows of what runs its nodes.
 */
export interface Engine {
  readonly id: Id
  /** Begins to claim and run nodes. Safe to call again. */
  start(execute: Execute): Promise<void>
  /** Workers for the nodes that a commit of this process makes runnable; null when it would not run them. */
  claims(now: number): Claims | null
  /** A commit of this process: it has claimed nodes, asked some to stop, or put something off. */
  committed(draft: Draft): void
  /** Takes up what others have left, from now on. Rejects when what that needs cannot be loaded. */
  takeUp(): Promise<void>
  /** Lets running nodes finish within the grace, then gives their claims back. */
  stop(): Promise<void>
  /** Nothing can be written any more: ends what runs and gives nothing back. */
  halt(): void
}
