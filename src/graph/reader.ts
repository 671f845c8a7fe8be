import type { StoredBlock } from './commit.ts'
import type { EventRow } from './event.ts'
import type { Conversation, Edge, EngineRow, Id, Link, Node, Turn } from './rows.ts'

/**
 * What the graph's rules may ask of stored rows. Synchronous, so that a rule reads and decides in one piece; a row that
 * changed since then makes the commit fail, not the rule. Rows come back as they were put; nobody may change them.
 */
export interface Reader {
  /** How often it was written to, where nobody else can write. A commit that was planned on this very state fits it. */
  changes?(): number
  conversation(id: Id): Conversation | undefined
  turn(id: Id): Turn | undefined
  node(id: Id): Node | undefined
  link(id: Id): Link | undefined
  body(hash: string): string | undefined
  edgesFrom(nodeId: Id): readonly Edge[]
  edgesTo(nodeId: Id): readonly Edge[]
  /** All nodes of a turn, by ordinal. */
  nodesOf(turnId: Id): readonly Node[]
  /** Those that are pending, awaiting approval, running or waiting. */
  openNodes(turnId: Id): readonly Node[]
  /** A node by its idempotency key; unique per turn and kind. */
  nodeByKey(turnId: Id, kind: string, key: string): Node | undefined
  /** The delegations of a run, by ordinal. */
  linksOf(hostTurnId: Id): readonly Link[]
  linkAt(hostTurnId: Id, ordinal: number): Link | undefined
  /** Delegations of a run that have no outcome yet. */
  openLinks(hostTurnId: Id): readonly Link[]
  /** The newest `limit` turns of a lane with an ordinal of at most `last`, oldest first. */
  turnsOf(laneId: Id, range: { readonly last?: number; readonly limit: number }): readonly Turn[]
  /** The first queued turn of a lane. */
  queuedTurn(laneId: Id): Turn | undefined
  /** The sequence number of a tree's last event; 0 when there is none. */
  lastSeq(rootId: Id): number
}

/** Keyset scans over the whole store: what sweeps, lists and readers need. */
export interface Scanner extends Reader {
  /** Pending, no blockers, `wakeAt` due, of one of these agents and kinds; oldest first. */
  runnable(query: RunnableQuery): readonly Node[]
  /** Running turns whose deadline is at or before `now`. */
  overdue(now: number, limit: number): readonly Turn[]
  /** Running nodes of turns that were asked to stop at or before `before`. */
  unstopped(before: number, limit: number): readonly Node[]
  /** Nodes that await a person, those that must be answered first before the others. */
  awaiting(query: AwaitingQuery): readonly Node[]
  /** Waiting nodes that go on by themselves at some moment, the earliest first. */
  timed(query: AwaitingQuery): readonly Node[]
  /** Nodes an engine has claimed. */
  claimedBy(engineId: Id, limit: number): readonly Node[]
  /** The engines that have claimed nodes. */
  claimants(): readonly Id[]
  engines(): readonly EngineRow[]
  engine(id: Id): EngineRow | undefined
  /** The earliest moment after `now` at which a pending node wakes, a waiting one goes on or a running turn expires. */
  nextDue(now: number): number | undefined
  /** Events of a tree with a sequence greater than `after`, in order. */
  events(rootId: Id, after: number, limit: number): readonly EventRow[]
  /** What running nodes of a tree have streamed, where the store is shared: the blocks after that number, in order. */
  blocks(rootId: Id, after: number): readonly StoredBlock[]
  /** Root conversations, newest first. */
  roots(query: { readonly limit: number; readonly before?: Id }): readonly Conversation[]
  /** Conversations of a tree, or of all trees, by id. */
  conversations(query: ConversationsQuery): readonly Conversation[]
  /** Conversations, turns and nodes whose id ends so; at most `limit`. */
  findIds(
    ending: string,
    limit: number,
  ): readonly { readonly id: Id; readonly type: 'conversation' | 'turn' | 'node' }[]
  /** Turns of any conversation that have not ended. */
  openTurns(limit: number): readonly Turn[]
  /** Turns of user conversations that have not ended. */
  openRoots(limit: number): readonly Turn[]
}

export interface ConversationsQuery {
  readonly rootId?: Id
  /** Only those with a greater id. */
  readonly after?: Id
  readonly limit: number
}

export interface AwaitingQuery {
  readonly limit: number
  /** Only those after this one. */
  readonly after?: { readonly wakeAt: number; readonly id: Id }
}

export interface RunnableQuery {
  readonly now: number
  readonly limit: number
  readonly kinds: readonly string[]
  /** By whose code they need: see `codeOf`. */
  readonly agents: readonly string[]
}
