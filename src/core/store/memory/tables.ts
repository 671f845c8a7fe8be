import { Chain, type ChainItem, IdMap, NONE } from '../../base/collections.ts'
import type { EngineRow, Spent, StoredBlock } from '../../graph/commit.ts'
import type { EventRow } from '../../graph/event.ts'
import type { Conversation, Edge, Id, Link, Node, Turn } from '../../graph/rows.ts'
import type { Tombstone } from '../archive.ts'
import type { ChainRecord } from '../commit-chain.ts'
import type { TreeChange } from '../feed.ts'
import type { RegistryTable } from './registry-table.ts'

/** A record without its events, which are in the tree's own list. */
export type ChainLink = Omit<ChainRecord, 'events'>

/** All rows of one root: a tree is forgotten as a whole. */
export class StoredTree implements ChainItem {
  readonly id: Id
  before: this | null = null
  after: this | null = null
  isChained = false
  /** A number that grows with every tree of the store. */
  readonly number: number
  /** The owner of its root conversation. */
  owner: string | null = null
  seq = 0
  openTurns = 0
  conversations: readonly ConversationEntry[] = NONE
  readonly events: EventRow[] = []
  /** Hashes of the bodies it holds. */
  bodies: Set<string> | null = null
  /** True where its rows come from a file and were not yet compared with its record. */
  isUnchecked = false
  /** The record of its commits; null where none is kept. */
  chain: ChainLink[] | null = null

  constructor(id: Id, number: number) {
    this.id = id
    this.number = number
  }
}

export class ConversationEntry {
  readonly id: Id
  row: Conversation
  readonly tree: StoredTree
  turns: readonly TurnEntry[] = NONE

  constructor(row: Conversation, tree: StoredTree) {
    this.id = row.id
    this.row = row
    this.tree = tree
  }
}

export class TurnEntry implements ChainItem {
  readonly id: Id
  before: this | null = null
  after: this | null = null
  isChained = false
  row: Turn
  readonly conversation: ConversationEntry
  /** By ordinal. */
  nodes: readonly NodeEntry[] = NONE
  /** How many of them have not ended. */
  openNodes = 0
  links: readonly LinkEntry[] = NONE

  constructor(row: Turn, conversation: ConversationEntry) {
    this.id = row.id
    this.row = row
    this.conversation = conversation
  }
}

export class NodeEntry implements ChainItem {
  readonly id: Id
  before: this | null = null
  after: this | null = null
  isChained = false
  row: Node
  readonly turn: TurnEntry
  edgesOut: Edge[] | null = null
  edgesIn: Edge[] | null = null

  constructor(row: Node, turn: TurnEntry) {
    this.id = row.id
    this.row = row
    this.turn = turn
  }
}

export class LinkEntry {
  readonly id: Id
  row: Link

  constructor(row: Link) {
    this.id = row.id
    this.row = row
  }
}

/** The turns of a lane, by ordinal. */
export class LaneEntry {
  readonly id: Id
  /** Made with its first turn: most lanes have no other, and a list that grows from nothing takes room for many. */
  turns: readonly TurnEntry[]
  /** How many of them are queued. */
  queued = 0

  constructor(id: Id, first: TurnEntry) {
    this.id = id
    this.turns = [first]
  }
}

/** The newest changes; each has the number after the one before it. Null for one whose owner was forgotten. */
export interface Feed {
  readonly changes: (TreeChange | null)[]
  /** How many came before them. */
  before: number
}

export interface Tables {
  readonly trees: IdMap<StoredTree>
  /** Trees that have an owner, by owner. */
  readonly owned: Map<string, Set<StoredTree>>
  /** Trees without an open turn, the one that ended first in front. */
  readonly ended: Chain<StoredTree>
  readonly conversations: IdMap<ConversationEntry>
  readonly turns: IdMap<TurnEntry>
  readonly nodes: IdMap<NodeEntry>
  readonly links: IdMap<LinkEntry>
  readonly lanes: IdMap<LaneEntry>
  readonly openTurns: Chain<TurnEntry>
  /** Pending nodes without blockers. */
  readonly ready: Chain<NodeEntry>
  readonly bodies: Map<string, { readonly text: string; trees: number }>
  readonly engines: Map<Id, EngineRow>
  readonly blocks: Map<Id, StoredBlock[]>
  /** The tombstones of deleted trees. */
  readonly tombstones: Tombstone[]
  readonly registry: RegistryTable
  lastBlock: number
  treeCount: number
  readonly feed: Feed
  /** By owner, day, agent and model. */
  readonly spent: Map<string, Spent>
  /** Counts commits. */
  writes: number
}

export function emptyTables(): Tables {
  return {
    trees: new IdMap(),
    owned: new Map(),
    ended: new Chain(),
    conversations: new IdMap(),
    turns: new IdMap(),
    nodes: new IdMap(),
    links: new IdMap(),
    lanes: new IdMap(),
    openTurns: new Chain(),
    ready: new Chain(),
    bodies: new Map(),
    engines: new Map(),
    blocks: new Map(),
    tombstones: [],
    registry: new Map(),
    lastBlock: 0,
    treeCount: 0,
    feed: { changes: [], before: 0 },
    spent: new Map(),
    writes: 0,
  }
}

/** Costs as much as the tree is large, whatever else is stored. */
export function forgetTree(tables: Tables, tree: StoredTree): void {
  tables.ended.delete(tree)
  tables.trees.delete(tree.id)
  disown(tables, tree)
  for (const conversation of tree.conversations) {
    tables.conversations.delete(conversation.id)
    for (const turn of conversation.turns) forgetTurn(tables, turn)
  }
  if (tree.bodies === null) return
  for (const hash of tree.bodies) {
    const body = tables.bodies.get(hash)
    if (body !== undefined && --body.trees === 0) tables.bodies.delete(hash)
  }
}

/** Lists a tree under the owner of its root. */
export function own(tables: Tables, tree: StoredTree, owner: string): void {
  tree.owner = owner
  const trees = tables.owned.get(owner)
  if (trees === undefined) tables.owned.set(owner, new Set([tree]))
  else trees.add(tree)
}

function disown({ owned }: Tables, tree: StoredTree): void {
  const trees = tree.owner === null ? undefined : owned.get(tree.owner)
  if (trees?.delete(tree) === true && trees.size === 0) owned.delete(tree.owner ?? '')
}

function forgetTurn(tables: Tables, turn: TurnEntry): void {
  tables.turns.delete(turn.id)
  tables.openTurns.delete(turn)
  tables.lanes.delete(turn.row.laneId)
  for (const node of turn.nodes) {
    tables.nodes.delete(node.id)
    tables.ready.delete(node)
    if (tables.blocks.size > 0) tables.blocks.delete(node.id)
  }
  for (const link of turn.links) tables.links.delete(link.id)
}

interface Ordered {
  readonly row: { readonly ordinal: number }
}

/** The list with one more entry, by ordinal. Rows come in order, except in hand-made commits. */
export function inserted<Entry extends Ordered>(entries: readonly Entry[], entry: Entry): readonly Entry[] {
  if (entries === NONE) return [entry]
  const last = entries[entries.length - 1]
  const isLast = last === undefined || last.row.ordinal <= entry.row.ordinal
  if (isLast) (entries as Entry[]).push(entry)
  else (entries as Entry[]).splice(countUpTo(entries, entry.row.ordinal), 0, entry)
  return entries
}

/** Counts the entries with an ordinal of at most `last`. */
export function countUpTo(entries: readonly Ordered[], last: number): number {
  let low = 0
  let high = entries.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((entries[middle]?.row.ordinal ?? 0) <= last) low = middle + 1
    else high = middle
  }
  return low
}
