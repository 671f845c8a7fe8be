// The Store port: where graphs are kept.
//
// Owns:      the interface that every store implements, and the errors with which all of them refuse a commit.
// Called by: the ledger commits; runtime, engine and conversation read. `store/memory`, and `sqlite`, `postgres` and `json` of
//            `stores`, implement it; `storeConformance` of legate/testing checks an implementation.
// Must stay true:
//   - A store knows rows, not rules: it checks versions, keys and edges, and nothing about agents.
//   - A commit is applied whole or refused, and is acknowledged only when it would survive what the store promises (I3).
//   - Whoever has read an event can read the rows of its commit.

import { ConflictError, type StoreError } from '../base/error.ts'
import type { Later } from '../base/maybe.ts'
import type { Commit, EngineRow } from '../graph/commit.ts'
import type { LocalReader, StoreReader, TreeReader } from '../graph/reader.ts'
import type { Edge, Id } from '../graph/rows.ts'
import type { Archive } from './archive.ts'
import type { ChangePage } from './feed.ts'
import type { Registry } from './registry.ts'
import type { DayUsage, SpentQuery } from './spent.ts'

/** Whether there is work for a sweep. */
export interface Agenda {
  /** The time of the store. */
  readonly now: number
  readonly engines: readonly EngineRow[]
  readonly claimants: readonly Id[]
  /** False where no deadline is over, nobody waits in vain and nothing has to be stopped. */
  readonly isDue: boolean
  /** False where no node is runnable, now or later. */
  readonly isRunnable: boolean
  /** See `Scans.nextDue`. */
  readonly nextDue: number | undefined
}

/** Where graphs are kept. Reads see every commit that was acknowledged before them. */
export interface Store extends StoreReader {
  readonly name: string
  /**
   * How another program names the same rows: the path of a file or folder, or the address of a database without its password.
   * Missing where no other program can.
   */
  readonly address?: string
  /** True where other processes may open the same rows. Then running nodes also write their streams. */
  readonly shared: boolean
  /** True where it refuses every commit: a process can only look at it. */
  readonly isReadOnly?: boolean
  /**
   * Applies the whole commit or nothing, and writes `seq` into the events. Throws ConflictError when a row is not at the
   * version the commit expects, StoreError (`store_busy`, `store_full`, `store_readonly`, `store_closed`, `store_gone`) when it
   * cannot write. Done when the rows would survive what the store's durability promises: when it returns, or when its promise
   * resolves.
   */
  commit(commit: Commit): Later<void>
  /**
   * Stores all commits that `work` makes in one transaction, each still whole or refused alone; `work` does nothing but plan and
   * commit, and runs once. Missing: sharing a transaction saves nothing. Fails where nothing of it could be stored.
   */
  together?(work: () => void): Later<void>
  /**
   * The rows of a tree as this process knows them, for plans: only of a store far away, which keeps copies. They may be old. Then
   * the commit of a plan on them is refused, and the ledger plans again on `tree(rootId)`. `isNew`: the id was made just now, so
   * there is nothing to ask for.
   */
  known?(rootId: Id, isNew?: boolean): TreeReader | undefined
  /**
   * The time by which leases are granted and judged, in milliseconds. A store that several machines share gives its own; without
   * it the runtime's clock counts.
   */
  now?(): Later<number>
  /** Answers with one question all that a sweep looks for. A store whose questions cost nothing leaves it out. */
  agenda?(query: {
    readonly now: number
    /** Turns that were asked to stop by then have had their time. */
    readonly stopBefore: number
  }): Promise<Agenda>
  /**
   * True while others tell this process of the work that they leave. Then a change that nobody names is no reason to look for work:
   * the next sweep finds all of it.
   */
  hears?(): boolean
  /** One error for each tree that was found to be changed from outside: see `tampered` of ERROR_CODES. */
  tampered?(): readonly StoreError[]
  /** Exports, imports, deletes and verifies whole trees. */
  readonly archive?: Archive
  /**
   * The changes of all trees after a cursor, those of one tree in their order: runs at the root that begin, end or are queued,
   * people who are asked and their answers, and calls that nobody knows the end of. `null` begins with the oldest that is kept;
   * `changes(null, 0)` gives the cursor of now. Imports make no change.
   */
  changes(after: string | null, limit: number): Later<ChangePage>
  /** The usage of owners by day, agent and model. It stays when a tree is deleted. */
  usage(query: SpentQuery): Later<readonly DayUsage[]>
  /** Rows that belong to no tree: tokens, webhooks, keys, limits. */
  readonly registry: Registry
  /**
   * Calls `changed` after another process has committed, and when the store is gone. A store that cannot tell what changed gives
   * null. Returns a function that ends it.
   */
  watch(changed: (change: StoreChange | null) => void): () => void
  /** Tells the other processes that a tree has work which this one cannot do. */
  leave?(rootId: Id): void
  /** The queue in which its commits leave their wakes. Missing: an engine finds work by watching and looking. */
  readonly wakes?: WakeQueue
  close(): Promise<void>
}

/** Brings each wake to one process that works. A wake may be lost, late or come twice: rows alone say what there is to do. */
export interface WakeQueue {
  /** How people tell it from others. */
  readonly name?: string
  /** Gives wakes whose time has come to `taker`. Returns a function that ends it. */
  listen(taker: WakeTaker): Promise<() => Promise<void>>
}

/** A process that takes wakes. */
export interface WakeTaker {
  /** Does what is due in a tree. `at` is the moment that the wake was meant for. False where work is left that others may do. */
  wake(rootId: Id, at: number | null): Promise<boolean>
  /** Takes errors that nobody waits for. */
  report(error: unknown): void
}

/** A commit of another process, as far as others must act on it. */
export interface StoreChange {
  readonly rootId: Id
  /** It left a node that nobody has claimed. */
  readonly runnable: boolean
  /** The process that was to claim it cannot: anybody may. */
  readonly isLeft: boolean
  /** It asked running nodes to stop. */
  readonly stop: boolean
  /** The turns that it ended. */
  readonly ended: readonly Id[]
}

/** A store in this process: it answers at once, and keeps nothing that it would have to load first. */
export interface LocalStore extends Omit<Store, keyof LocalReader>, LocalReader {
  /** Forgets everything that is not in the rows, as a new process would. For tests of I5. */
  reopen(): void
}

/**
 * Why a commit is refused, in the same words for every store. `stale`: another writer was faster, and a new plan on the current
 * rows may be accepted. Else the commit itself is wrong.
 */
export function staleRow(table: string, row: { readonly id: Id; readonly version: number }): ConflictError {
  const found = row.version === 1 ? 'is there already' : `is not at version ${row.version - 1} any more`
  return conflict({ table, id: row.id, stale: true }, `The row ${row.id} of ${table} ${found}.`)
}

export function takenKey(node: { readonly id: Id; readonly kind: string; readonly turnId: Id }): ConflictError {
  const message = `Turn ${node.turnId} already has a ${node.kind} node with the idempotency key of ${node.id}.`
  return conflict({ table: 'nodes', id: node.id, stale: true }, message)
}

export function knownEdge(edge: Edge): ConflictError {
  const message = `The ${edge.type} edge ${edgeName(edge)} is there already.`
  return conflict({ table: 'edges', id: edgeName(edge), stale: true }, message)
}

export function foreignRow(table: string, id: Id): ConflictError {
  const message = `The row ${id} of ${table} does not belong where the commit puts it: its tree, conversation or turn is another or does not exist.`
  return conflict({ table, id, stale: false }, message)
}

export function wrongEdge(edge: Edge): ConflictError {
  const message = `The ${edge.type} edge ${edgeName(edge)} must join two nodes of conversation ${edge.conversationId}.`
  return conflict({ table: 'edges', id: edgeName(edge), stale: false }, message)
}

/** The changed rows existed: their tree was deleted meanwhile, and a new plan finds that out. */
export function unknownTree(rootId: Id, { conversations, turns, nodes, links }: Commit): ConflictError {
  const stale = [conversations, turns, nodes, links].some((rows) => rows.some(({ version }) => version > 1))
  const message = `There is no tree ${rootId}, and the commit does not bring its root conversation.`
  return conflict({ table: 'trees', id: rootId, stale }, message)
}

export function openTree(rootId: Id, runId: Id): ConflictError {
  const message = `The tree ${rootId} cannot be deleted: its run ${runId} has not ended. Cancel it first, or wait for its end.`
  return new ConflictError('conflict', message, { details: { rootId, runId, stale: false } })
}

/** A commit of no tree may have engines and blocks only. */
export function requireNoTreeRows(commit: Commit): void {
  const { conversations, turns, nodes, edges, links, bodies, events } = commit
  const rows = [conversations, turns, nodes, edges, links, bodies, events]
  if (rows.every((list) => list.length === 0)) return
  throw conflict({ table: 'trees', id: '', stale: false }, 'The commit names no tree, but has rows or events of one.')
}

function edgeName(edge: Edge): string {
  return `${edge.from} -> ${edge.to}`
}

function conflict(details: { table: string; id: string; stale: boolean }, message: string): ConflictError {
  return new ConflictError('conflict', message, { details })
}
