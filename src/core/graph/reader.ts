// Reading rows: by id, by scan, and whole trees.
//
// Owns:      the read side of the store port (`TreeReader`, `Scans`), and the walk that collects all rows of a tree.
// Called by: stores implement both; drafts and running nodes read one tree; sweeps, lists and audits scan all of them.
// Must stay true:
//   - A reader gives rows as they were put, and nobody changes them.
//   - A read sees every commit that was acknowledged before it.
//   - An id that is unknown gives undefined, never an error (I9). A store in this process may know rows of other trees too; a
//     draft hides them, so no rule can lean on them.

import { isLegateError } from '../base/error.ts'
import { after, type Later } from '../base/maybe.ts'
import type { PageRoom } from '../base/page/room.ts'
import type { EngineRow, StoredBlock } from './commit.ts'
import type { EventRow } from './event.ts'
import type { RootState } from './kinds.ts'
import type { Conversation, Edge, Id, Link, Node, Turn } from './rows.ts'

/**
 * The stored rows of one tree: `store.tree(rootId)` gives them. Reading is synchronous, so that a rule reads and decides in one
 * piece; a row that changed since then makes the commit fail, not the rule. Rows come back as they were put; nobody may change
 * them.
 */
export interface TreeReader {
  /**
   * Counts the writes, for a store that no other process can write to. A commit that was planned on this very count needs no
   * further check.
   */
  writes?(): number
  /** A conversation by its id. */
  conversation(id: Id): Conversation | undefined
  /** A run by its id. */
  turn(id: Id): Turn | undefined
  /** A node by its id. */
  node(id: Id): Node | undefined
  /** The delegation that started a run, by the id of the run. */
  link(id: Id): Link | undefined
  /** A long text by its hash. */
  body(hash: string): string | undefined
  /** The edges that leave a node. */
  edgesFrom(nodeId: Id): readonly Edge[]
  /** The edges that lead to a node. */
  edgesTo(nodeId: Id): readonly Edge[]
  /** All nodes of a turn, by ordinal. */
  nodesOf(turnId: Id): readonly Node[]
  /** Those that are pending, awaiting approval, running or waiting. */
  openNodes(turnId: Id): readonly Node[]
  /** How many they are: a turn with many calls is asked after each of them. */
  openCount(turnId: Id): number
  /** A node by its idempotency key; unique per turn and kind. */
  nodeByKey(turnId: Id, kind: string, key: string): Node | undefined
  /** The delegations of a run, by ordinal. */
  linksOf(hostTurnId: Id): readonly Link[]
  /** A delegation of a run by its place among them. */
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

/** Keyset scans over all trees, for sweeps, lists and readers. A remote store answers them later. */
export interface Scans {
  /** Pending, no blockers, `wakeAt` due, of one of these agents and kinds: of each owner in turn, its oldest first. */
  runnable(query: RunnableQuery): Later<readonly Node[]>
  /** Running turns whose deadline is at or before `now`. */
  overdue(now: number, limit: number): Later<readonly Turn[]>
  /** Running nodes of turns that were asked to stop at or before `before`. */
  unstopped(before: number, limit: number): Later<readonly Node[]>
  /** Nodes that await a person, those that must be answered first before the others. */
  awaiting(query: AwaitingQuery): Later<readonly Node[]>
  /** Waiting nodes with a time at which they continue by themselves, the earliest first. */
  timed(query: AwaitingQuery): Later<readonly Node[]>
  /** Nodes an engine has claimed. */
  claimedBy(engineId: Id, limit: number): Later<readonly Node[]>
  /** The engines that have claimed nodes. */
  claimants(): Later<readonly Id[]>
  /** The engines that have a lease, or had one when they died. */
  engines(): Later<readonly EngineRow[]>
  /** An engine by its id. */
  engine(id: Id): Later<EngineRow | undefined>
  /** The earliest moment after `now` at which a pending node wakes, a waiting one continues or a running turn expires. */
  nextDue(now: number): Later<number | undefined>
  /**
   * Events of a tree with a sequence greater than `after`, in order. With `room` a store that reads them from elsewhere
   * gives only those of the first commits that fit, at least one: the room is full then.
   */
  events(rootId: Id, after: number, limit: number, room?: PageRoom): Later<readonly EventRow[]>
  /** Blocks that running nodes of a tree have streamed into a shared store: those after that number, in order. */
  blocks(rootId: Id, after: number): Later<readonly StoredBlock[]>
  /** Root conversations, newest first. */
  roots(query: RootsQuery): Later<readonly Conversation[]>
  /** Conversations of a tree, or of all trees, by id. */
  conversations(query: ConversationsQuery): Later<readonly Conversation[]>
  /** Conversations, turns and nodes whose id has this ending; at most `limit`. */
  findIds(
    ending: string,
    limit: number,
  ): Later<readonly { readonly id: Id; readonly type: 'conversation' | 'turn' | 'node' }[]>
  /** Turns of any conversation that have not ended: of one tree, or of all. */
  openTurns(limit: number, rootId?: Id): Later<readonly Turn[]>
  /** Turns of user conversations that have not ended. */
  openRoots(query: {
    readonly limit: number
    /** Only of trees of this owner. */
    readonly owner?: string
  }): Later<readonly Turn[]>
}

/** The read side of a store. */
export interface StoreReader extends Scans {
  /**
   * The rows of one tree: at once where they are in reach (memory, JSON, SQLite), else when they are loaded. A tree that does not
   * exist yet is empty. A reader stays valid and shows later commits when this process learns of them; ask again after you have
   * waited for something, to see all that was acknowledged meanwhile.
   */
  tree(rootId: Id): Later<TreeReader>
  /** Like `tree`, but its reader throws for rows of a large tree that are not here: the functions of `look` load them. */
  near?(rootId: Id): Promise<TreeReader>
  /**
   * The tree of a turn that this process has written to, without asking a store far away. The tree may have been deleted since:
   * whoever reads it then finds nothing.
   */
  writtenRoot?(turnId: Id): Id | undefined
  /** Those of these turns that are not open: they have ended, or their tree is gone. It reads no tree. */
  notOpen?(turnIds: readonly Id[]): Promise<readonly Id[]>
  /**
   * All turns that have not ended, some at a time with their conversations: whoever takes them one page after the other lets other
   * work go on between two pages. Passes over trees that were changed from outside.
   */
  openPages?(): Iterable<readonly Turn[]>
  /** The root of the tree that has this conversation, turn or node; undefined where no tree has it. */
  rootOf(id: Id): Later<Id | undefined>
  /** The root of that tree and whose it is, as the rows say that are not checked yet. One read, which loads no tree. */
  ownerOf(id: Id): Later<TreeOwner | undefined>
}

/** A tree and its owner. */
export interface TreeOwner {
  readonly rootId: Id
  readonly owner: string | null
}

/** The tree that has this conversation, turn or node; an empty one where none has it. */
export function treeWith(store: Pick<StoreReader, 'rootOf' | 'tree'>, id: Id): Later<TreeReader> {
  return after(store.rootOf(id), (rootId = id) => store.tree(rootId))
}

/** The read side of a store in this process: it answers at once, and reads all trees through one reader. */
export interface LocalReader extends TreeReader, LocalScans {
  /** The rows of one tree. */
  tree(rootId: Id): TreeReader
  /** The root of the tree that has this id. */
  rootOf(id: Id): Id | undefined
  /** That root, and whose it is. */
  ownerOf(id: Id): TreeOwner | undefined
}

/** Scans of a store in this process, which answers at once. */
export type LocalScans = {
  readonly [Name in keyof Scans]: (...query: Parameters<Scans[Name]>) => Awaited<ReturnType<Scans[Name]>>
}

export interface ConversationsQuery {
  readonly rootId?: Id
  /** Only those with a greater id. */
  readonly after?: Id
  readonly limit: number
}

/**
 * Which root conversations to list. With an owner, or for `failed`, `uncertain` and `open`, the work is that of the answer, however
 * much is stored. Without one, a query by agent or for `completed` may look at one tree after the other.
 */
export interface RootsQuery {
  readonly limit: number
  /** Only those made before this one. */
  readonly before?: Id
  readonly owner?: string
  /** The name of their agent. */
  readonly agent?: string
  readonly state?: RootState
}

export interface AwaitingQuery {
  readonly limit: number
  /** Only nodes of trees of this owner. */
  readonly owner?: string
  /** Only those after this one. */
  readonly after?: { readonly wakeAt: number; readonly id: Id }
}

export interface RunnableQuery {
  readonly now: number
  readonly limit: number
  readonly kinds: readonly string[]
  /** The names of the agents whose code they need: see `codeOf`. */
  readonly agents: readonly string[]
  /** The owner who was served last: the next one begins. Null stands for all trees without an owner. */
  readonly after?: string | null
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
  /** True for the hash of a long text that is there. */
  readonly hasBody: (hash: string) => boolean
}

const MANY = Number.MAX_SAFE_INTEGER
const PAGE = 1_000

/** All trees of a local store, the newest first. */
export function readTrees(store: LocalReader): TreeRows[] {
  const members = new Map<Id, Id[]>()
  for (const row of pagesOf(store)) addMember(members, row)
  const trees: TreeRows[] = []
  for (const { id } of store.roots({ limit: MANY })) {
    const tree = unlessTampered(() => readWith(store, id, members.get(id) ?? []))
    if (tree !== undefined) trees.push(tree)
  }
  return trees
}

/** All rows of one tree of a local store. Reads events on first use. */
export function readTree(store: LocalReader, rootId: Id): TreeRows {
  return readWith(store, rootId, Array.from(pagesOf(store, rootId), idOf))
}

function readWith(store: LocalReader, rootId: Id, members: readonly Id[]): TreeRows {
  return collect(store, {
    rootId,
    members,
    events: () => Array.from(eventPages(store, rootId)).flat(),
    blocks: store.blocks(rootId, 0),
  })
}

function* pagesOf(store: LocalReader, rootId?: Id): Generator<Conversation> {
  for (let page = store.conversations(pageAfter('', rootId)); page.length > 0; ) {
    yield* page
    page = store.conversations(pageAfter(page.at(-1)?.id ?? '', rootId))
  }
}

function* eventPages(store: LocalReader, rootId: Id): Generator<readonly EventRow[]> {
  for (let page = store.events(rootId, 0, PAGE); page.length > 0; ) {
    yield page
    page = store.events(rootId, page.at(-1)?.seq ?? 0, PAGE)
  }
}

export function pageAfter(after: Id, rootId: Id | undefined): ConversationsQuery {
  return { after, limit: PAGE, ...(rootId === undefined ? {} : { rootId }) }
}

export function addMember(members: Map<Id, Id[]>, { id, rootId }: Conversation): void {
  const known = members.get(rootId)
  if (known === undefined) members.set(rootId, [id])
  else known.push(id)
}

function idOf({ id }: { readonly id: Id }): Id {
  return id
}

/** Undefined where the rows were changed from outside: the store itself reports their tree. */
export function unlessTampered<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    return ignoreTampered(error)
  }
}

/** Passes over a tree that was changed from outside; throws any other error. */
export function ignoreTampered(error: unknown): undefined {
  if (!isLegateError(error, 'tampered')) throw error
}

/** Everything that a walk needs besides the tree's reader. */
export interface TreeParts {
  readonly rootId: Id
  /** The ids of its conversations. */
  readonly members: readonly Id[]
  readonly events: () => readonly EventRow[]
  readonly blocks: readonly StoredBlock[]
  /** So many of the newest turns of each conversation. Missing: all. */
  readonly newest?: number
}

/** Collects the rows that a walk from the root reaches first, hosts before their children, then all others of the tree. */
export function collect(tree: TreeReader, parts: TreeParts): TreeRows {
  const rows = new CollectedRows(parts, (hash) => isThere(tree, hash))
  for (const id of [parts.rootId, ...parts.members]) rows.walk(tree, id)
  return rows
}

/** The rows of a tree while they are being collected. Adding a turn again changes nothing. */
export class CollectedRows implements TreeRows {
  readonly rootId: Id
  readonly conversations: Map<Id, Conversation> = new Map()
  readonly turns: Map<Id, Turn> = new Map()
  readonly nodes: Map<Id, Node> = new Map()
  readonly links: Map<Id, Link> = new Map()
  readonly edgesTo: Map<Id, readonly Edge[]> = new Map()
  readonly turnsOf: Map<Id, readonly Turn[]> = new Map()
  readonly nodesOf: Map<Id, readonly Node[]> = new Map()
  readonly linksOf: Map<Id, readonly Link[]> = new Map()
  readonly blocks: readonly StoredBlock[]
  readonly hasBody: (hash: string) => boolean
  private readonly newest: number
  private readonly readEvents: () => readonly EventRow[]
  private known: readonly EventRow[] | undefined

  constructor({ rootId, events, blocks, newest = MANY }: TreeParts, hasBody: (hash: string) => boolean) {
    this.newest = newest
    this.hasBody = hasBody
    this.rootId = rootId
    this.readEvents = events
    this.blocks = blocks
  }

  get events(): readonly EventRow[] {
    this.known ??= this.readEvents()
    return this.known
  }

  walk(reader: TreeReader, first: Id): void {
    const open: Id[] = [first]
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      const conversation = reader.conversation(id)
      if (conversation === undefined || this.conversations.has(id)) continue
      this.conversations.set(id, conversation)
      const turns = reader.turnsOf(id, { limit: this.newest })
      this.turnsOf.set(id, turns)
      if (this.newest < MANY) open.push(...lanesBeside(conversation))
      for (const turn of turns) open.push(...this.addTurn(reader, turn))
    }
  }

  /** Adds a turn with its rows, and gives the conversations it delegated to. */
  addTurn(reader: TreeReader, turn: Turn): Id[] {
    this.turns.set(turn.id, turn)
    const nodes = reader.nodesOf(turn.id)
    const links = reader.linksOf(turn.id)
    this.nodesOf.set(turn.id, nodes)
    this.linksOf.set(turn.id, links)
    for (const node of nodes) {
      this.nodes.set(node.id, node)
      this.edgesTo.set(node.id, reader.edgesTo(node.id))
    }
    for (const link of links) this.links.set(link.id, link)
    return links.map(({ childConversationId }) => childConversationId)
  }
}

/** True also for a text that was changed: verifying reports that. */
function isThere(reader: TreeReader, hash: string): boolean {
  try {
    return reader.body(hash) !== undefined
  } catch (error) {
    return ignoreTampered(error) === undefined
  }
}

/** The newest lane that was forked from this one, and the one before this: from lane to lane they lead to all. */
export function lanesBeside({ lane }: Conversation): Id[] {
  return [lane?.newest ?? [], lane?.before ?? []].flat()
}

/** Yields a run and the runs above it up to the root: those that delegated it, or whose budget it continues. */
export function* runsUpward(
  draft: { findTurn(id: Id): Turn | undefined; findLink(id: Id): Link | undefined },
  turnId: Id,
): Generator<Turn> {
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
export function findAttributes(reader: Pick<TreeReader, 'turn' | 'link'>, turn: Turn): NonNullable<Turn['attributes']> {
  for (let at: Turn | undefined = turn; at !== undefined; ) {
    if (at.attributes !== null) return at.attributes
    const above: string | null = reader.link(at.id)?.hostTurnId ?? at.wokenBy
    at = above === null ? undefined : reader.turn(above)
  }
  return NONE
}

const NONE: NonNullable<Turn['attributes']> = Object.freeze({})

/** A run and its conversation, and the tree they are in. */
export interface RunPlace {
  readonly tree: TreeReader
  readonly turn: Turn
  readonly conversation: Conversation
}

/** The run that asked for this one, or made its conversation; undefined at the root. */
export function hostOf({ tree, turn, conversation }: RunPlace): RunPlace | undefined {
  if (conversation.parentTurnId === null) return undefined
  const host = tree.turn(tree.link(turn.id)?.hostTurnId ?? conversation.parentTurnId)
  const its = host === undefined ? undefined : tree.conversation(host.conversationId)
  return host === undefined || its === undefined ? undefined : { tree, turn: host, conversation: its }
}
