// Reading rows: by id, by scan, and whole trees.
//
// Owns:      the read side of the store port (`Reader`, `Scanner`), and the walk that collects all rows of a tree.
// Called by: stores implement `Reader` and `Scanner`; drafts read through `Reader`; sweeps, lists and audits use the scans.
// Must stay true:
//   - A reader gives rows as they were put, and nobody changes them.
//   - A read sees every commit that was acknowledged before it.
//   - An id that is unknown gives undefined, never an error (I9).

import { isLegateError } from '../base/error.ts'
import type { StoredBlock } from './commit.ts'
import type { EventRow } from './event.ts'
import type { Conversation, Edge, EngineRow, Id, Link, Node, Turn } from './rows.ts'

/**
 * The stored rows that the graph's rules may read. Synchronous, so that a rule reads and decides in one piece; a row that
 * changed since then makes the commit fail, not the rule. Rows come back as they were put; nobody may change them.
 */
export interface Reader {
  /**
   * Counts the writes, for a store that no other process can write to. A commit that was planned on this very count needs no
   * further check.
   */
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

/** Keyset scans over the whole store, for sweeps, lists and readers. */
export interface Scanner extends Reader {
  /** Pending, no blockers, `wakeAt` due, of one of these agents and kinds; oldest first. */
  runnable(query: RunnableQuery): readonly Node[]
  /** Running turns whose deadline is at or before `now`. */
  overdue(now: number, limit: number): readonly Turn[]
  /** Running nodes of turns that were asked to stop at or before `before`. */
  unstopped(before: number, limit: number): readonly Node[]
  /** Nodes that await a person, those that must be answered first before the others. */
  awaiting(query: AwaitingQuery): readonly Node[]
  /** Waiting nodes with a time at which they continue by themselves, the earliest first. */
  timed(query: AwaitingQuery): readonly Node[]
  /** Nodes an engine has claimed. */
  claimedBy(engineId: Id, limit: number): readonly Node[]
  /** The engines that have claimed nodes. */
  claimants(): readonly Id[]
  engines(): readonly EngineRow[]
  engine(id: Id): EngineRow | undefined
  /** The earliest moment after `now` at which a pending node wakes, a waiting one continues or a running turn expires. */
  nextDue(now: number): number | undefined
  /** Events of a tree with a sequence greater than `after`, in order. */
  events(rootId: Id, after: number, limit: number): readonly EventRow[]
  /** Blocks that running nodes of a tree have streamed into a shared store: those after that number, in order. */
  blocks(rootId: Id, after: number): readonly StoredBlock[]
  /** Root conversations, newest first. */
  roots(query: { readonly limit: number; readonly before?: Id }): readonly Conversation[]
  /** Conversations of a tree, or of all trees, by id. */
  conversations(query: ConversationsQuery): readonly Conversation[]
  /** Conversations, turns and nodes whose id has this ending; at most `limit`. */
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
  /** The names of the agents whose code they need: see `codeOf`. */
  readonly agents: readonly string[]
}

/** All rows of one tree: those that a walk from its root reaches, and those that only name its root. */
export interface TreeRows {
  readonly rootId: Id
  readonly conversations: ReadonlyMap<Id, Conversation>
  readonly turns: ReadonlyMap<Id, Turn>
  readonly nodes: ReadonlyMap<Id, Node>
  readonly links: ReadonlyMap<Id, Link>
  /** By the node they lead to. */
  readonly edgesTo: ReadonlyMap<Id, readonly Edge[]>
  /** By conversation, in order. */
  readonly turnsOf: ReadonlyMap<Id, readonly Turn[]>
  /** By turn, in order. */
  readonly nodesOf: ReadonlyMap<Id, readonly Node[]>
  /** By the turn of the host, in order. */
  readonly linksOf: ReadonlyMap<Id, readonly Link[]>
  /** Read on first use. */
  readonly events: readonly EventRow[]
  readonly blocks: readonly StoredBlock[]
}

const MANY = Number.MAX_SAFE_INTEGER
const PAGE = 1_000

/** All trees of a store, the newest first. */
export function readTrees(store: Scanner): TreeRows[] {
  return [...eachTree(store)]
}

/**
 * Reads all trees one by one, so that only one need be in memory. Skips trees that were changed from outside: the store reports
 * them.
 */
export function* eachTree(store: Scanner): Generator<TreeRows> {
  const members = new Map<Id, Id[]>()
  for (const { id, rootId } of allConversations(store)) {
    const known = members.get(rootId)
    if (known === undefined) members.set(rootId, [id])
    else known.push(id)
  }
  for (const { id } of store.roots({ limit: MANY })) {
    const tree = readUntouched(store, id, members.get(id) ?? [])
    if (tree !== undefined) yield tree
  }
}

function readUntouched(store: Scanner, rootId: Id, members: readonly Id[]): TreeRows | undefined {
  try {
    return read(store, rootId, members)
  } catch (error) {
    if (isLegateError(error, 'tampered')) return undefined
    throw error
  }
}

export function readTree(store: Scanner, rootId: Id): TreeRows {
  const members: Id[] = []
  for (const { id } of allConversations(store, rootId)) members.push(id)
  return read(store, rootId, members)
}

/** Conversations of a tree, or of all of them, by id. */
function* allConversations(store: Scanner, rootId?: Id): Generator<Conversation> {
  for (let after = ''; ; ) {
    const page = store.conversations({ after, limit: PAGE, ...(rootId === undefined ? {} : { rootId }) })
    yield* page
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE) return
    after = last.id
  }
}

/** Rows that a walk from the root reaches come first, hosts before their children. */
function read(store: Scanner, rootId: Id, members: readonly Id[]): TreeRows {
  const tree = new Rows(store, rootId)
  tree.walk(rootId)
  for (const id of members) tree.walk(id)
  return tree
}

class Rows implements TreeRows {
  readonly rootId: Id
  readonly conversations = new Map<Id, Conversation>()
  readonly turns = new Map<Id, Turn>()
  readonly nodes = new Map<Id, Node>()
  readonly links = new Map<Id, Link>()
  readonly edgesTo = new Map<Id, readonly Edge[]>()
  readonly turnsOf = new Map<Id, readonly Turn[]>()
  readonly nodesOf = new Map<Id, readonly Node[]>()
  readonly linksOf = new Map<Id, readonly Link[]>()
  readonly blocks: readonly StoredBlock[]
  private readonly store: Scanner
  private known: readonly EventRow[] | undefined

  constructor(store: Scanner, rootId: Id) {
    this.store = store
    this.rootId = rootId
    this.blocks = store.blocks(rootId, 0)
  }

  get events(): readonly EventRow[] {
    this.known ??= readEvents(this.store, this.rootId)
    return this.known
  }

  walk(first: Id): void {
    const open: Id[] = [first]
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      const conversation = this.store.conversation(id)
      if (conversation === undefined || this.conversations.has(id)) continue
      this.conversations.set(id, conversation)
      const turns = this.store.turnsOf(id, { limit: MANY })
      this.turnsOf.set(id, turns)
      for (const turn of turns) open.push(...this.addTurn(turn))
    }
  }

  /** Adds a turn with its rows, and gives the conversations it delegated to. */
  private addTurn(turn: Turn): Id[] {
    this.turns.set(turn.id, turn)
    const nodes = this.store.nodesOf(turn.id)
    const links = this.store.linksOf(turn.id)
    this.nodesOf.set(turn.id, nodes)
    this.linksOf.set(turn.id, links)
    for (const node of nodes) {
      this.nodes.set(node.id, node)
      this.edgesTo.set(node.id, this.store.edgesTo(node.id))
    }
    for (const link of links) this.links.set(link.id, link)
    return links.map(({ childConversationId }) => childConversationId)
  }
}

function readEvents(store: Scanner, rootId: Id): EventRow[] {
  const events: EventRow[] = []
  for (;;) {
    const page = store.events(rootId, events.at(-1)?.seq ?? 0, PAGE)
    for (const event of page) events.push(event)
    if (page.length < PAGE) return events
  }
}

/** Finds runs and delegations, as a draft does. */
interface RunFinder {
  findTurn(id: Id): Turn | undefined
  findLink(id: Id): Link | undefined
}

/** Yields a run and the runs above it up to the root: those that delegated it, or whose budget it continues. */
export function* runsUpward(draft: RunFinder, turnId: Id): Generator<Turn> {
  for (let id: Id | null | undefined = turnId; id != null; ) {
    const turn: Turn | undefined = draft.findTurn(id)
    if (turn === undefined) return
    yield turn
    id = draft.findLink(id)?.hostTurnId ?? turn.wokenBy
  }
}

/** Yields the ids of a run and of those above it. `linkOf` gives the delegation that started a run. */
export function* idsUpward(linkOf: (turnId: Id) => Link | undefined, turnId: Id): Generator<Id> {
  for (let id: Id | undefined = turnId; id !== undefined; id = linkOf(id)?.hostTurnId) yield id
}

/** The attributes of the request that a run serves: its caller's own, else those of the run above it. */
export function attributesOf(reader: Pick<Reader, 'turn' | 'link'>, turn: Turn): NonNullable<Turn['attributes']> {
  for (let at: Turn | undefined = turn; at !== undefined; ) {
    if (at.attributes !== null) return at.attributes
    const above: string | null = reader.link(at.id)?.hostTurnId ?? at.wokenBy
    at = above === null ? undefined : reader.turn(above)
  }
  return NONE
}

const NONE: NonNullable<Turn['attributes']> = Object.freeze({})

/** A run and its conversation. */
export interface RunPlace {
  readonly turn: Turn
  readonly conversation: Conversation
}

/** The run that asked for this one, or made its conversation; undefined at the root. */
export function hostOf(store: Reader, { turn, conversation }: RunPlace): RunPlace | undefined {
  if (conversation.parentTurnId === null) return undefined
  const host = store.turn(store.link(turn.id)?.hostTurnId ?? conversation.parentTurnId)
  const its = host === undefined ? undefined : store.conversation(host.conversationId)
  return host === undefined || its === undefined ? undefined : { turn: host, conversation: its }
}
