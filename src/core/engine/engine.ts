// The Engine port: where and when runnable nodes run.
//
// Owns:      the interface of an engine, and a running node as the code inside of it sees it (`Work`).
// Called by: the runtime starts an engine, offers it commits and closes it; node code uses `Work`. `engine/local` implements it.
// Must stay true:
//   - A node is delivered at least once. The claim in the store decides whose result counts, never the engine (I4).
//   - An engine keeps no result and no plan in memory that is not in the rows: another process can always continue.
//   - Waiting holds no worker (I5).

import type { Claims, Commit, ProcessReport } from '../graph/commit.ts'
import type { Draft } from '../graph/draft.ts'
import type { AgentRef, Id, Node } from '../graph/rows.ts'
import type { Claim } from '../rules/turn/claim.ts'
import type { Ledger } from '../store/ledger.ts'

/** Why a running node is asked to stop. After `shutdown` or `lost` it must not commit its end: another process continues it. */
export type StopCause = 'cancel' | 'timeout' | 'stalled' | 'shutdown' | 'lost'

/** One claimed node while it runs in this process. */
export interface Work {
  readonly claim: Claim
  /** Aborts when the node is asked to stop. Made when first read: most nodes never need it. */
  readonly signal: AbortSignal
  /** Why `signal` aborted; null while it has not. */
  readonly stopCause: StopCause | null
  /** Called when the node is asked to stop, for code that may not notice the signal. */
  onStop: (() => void) | null
  /** Reports that a model was called: the node counts as stalled when its first word takes too long. */
  noteModelCall(): void
  /** Reports that output arrived: from here on, the node counts as stalled when nothing more arrives for too long. */
  noteOutput(): void
  /** Reports activity: after that the node may stay silent for any time. */
  noteActivity(): void
  /** Lends the worker to others while code inside the node awaits something (a child): waiting holds no worker. */
  lend<T>(wait: Promise<T>): Promise<T>
}

/** Makes the engine of a runtime: `createRuntime({ engine: { create } })`. */
export type EngineFactory = (ledger: Ledger, options: EngineOptions) => Engine

/** Everything that a runtime tells its engine. */
export interface EngineOptions {
  /** The most nodes that run at the same time. */
  readonly workers: number
  /** How long `stop` and a cancelled node may take. */
  readonly graceMs: number
  /** How often it looks at all rows. */
  readonly sweepMs: number
  /** How long the others wait for a sign of life. */
  readonly leaseMs: number
  /** How long a model may think before its first word. */
  readonly firstWordMs: number
  /** How long a model may be silent in the middle of its answer. */
  readonly stalledMs: number
  /** Names of the agents this process has code for; it grows. The empty name stands for agents that need none. */
  readonly agents: ReadonlySet<string>
  /** The kinds of nodes that it has code for. */
  readonly kinds: ReadonlySet<string>
  /** False where this process leaves the nodes of an agent to others for now. Left out: it runs all that it has code for. */
  readonly mayRun?: (agent: AgentRef) => boolean
  /** Facts of this process for the others, beside its agents. It stays one object while nothing changes. */
  readonly tell?: () => ProcessReport
  /** Called before each node runs. */
  readonly beforeNode: () => void
  /** Called after each sweep: other processes may have written without a notice. */
  readonly swept: () => void
  /** Takes errors that nobody waits for. */
  readonly report: (error: unknown) => void
}

/** Runs a node to its end; at once where it need not wait. Must not throw. */
export type Executor = (node: Node, work: Work) => void | Promise<void>

/**
 * Decides where and when a runnable node runs. Delivers nodes at least once and holds no result: the claim in the store
 * decides. So the same agents run in one process or in several. A runtime knows its engine only through this port.
 */
export interface Engine {
  readonly id: Id
  /** Begins to claim and run nodes. Safe to call again. */
  start(execute: Executor): Promise<void>
  /** Offers workers for the nodes that a commit of this process makes runnable; null when it would not run them. */
  claims(now: number): Claims | null
  /** Reports a commit of this process: it may have claimed nodes, asked some to stop, deferred work, or left it to others. */
  committed(commit: Commit, draft: Draft): void
  /**
   * Does what is due and claims what runs here: in one tree, or in all trees from now on. Safe to call at any time: where nothing
   * is due, nothing happens. Rejects when the code for that cannot be loaded.
   */
  takeUp(rootId?: Id): Promise<void>
  /** Lets running nodes finish within the grace, then gives their claims back. */
  stop(): Promise<void>
  /** Stops at once: nothing can be written any more, so it ends running nodes and gives no claim back. */
  halt(): void
}
