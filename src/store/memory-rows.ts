import type { LiveBlock } from '../graph/commit.ts'
import type { EventRow } from '../graph/event.ts'
import type { Conversation, Edge, EngineRow, Id, Link, Node, Turn } from '../graph/rows.ts'
import { isOpen } from '../graph/states.ts'
import { EndedTrees, type Ending } from './ended-trees.ts'
import { IdMap } from './id-map.ts'

/** All rows of one root. A tree is forgotten as a whole. */
export interface Tree {
  readonly rootId: Id
  /** Grows with every tree of the store. */
  number: number
  ending: Ending<Tree> | null
  seq: number
  openTurns: number
  conversations: ConversationEntry[]
  events: EventRow[]
  /** Hashes. */
  readonly bodies: Set<string>
}

/** Where a row is kept. `version` runs ahead of `row` while a commit is checked. */
export interface ConversationEntry {
  row: Conversation
  version: number
  isLinked: boolean
  readonly tree: Tree
  turns: TurnEntry[]
}

export interface TurnEntry {
  row: Turn
  version: number
  isLinked: boolean
  readonly conversation: ConversationEntry
  readonly nodes: Series<NodeEntry>
  readonly links: Series<LinkEntry>
  /** Nodes by kind and idempotency key. */
  keys: Map<string, NodeEntry> | null
}

export interface NodeEntry {
  row: Node
  version: number
  isLinked: boolean
  readonly turn: TurnEntry
  /** Grows with every node of the store. */
  number: number
  out: Edge[]
  in: Edge[]
}

export interface LinkEntry {
  row: Link
  version: number
  isLinked: boolean
  readonly turn: TurnEntry
}

export interface EngineEntry {
  row: EngineRow
  version: number
  isLinked: boolean
}

/** Entries by ordinal. The first `closed` of them are known to be closed, so that looking for open ones skips them. */
export interface Series<Entry> {
  entries: Entry[]
  closed: number
}

export interface Tables {
  readonly trees: IdMap<Tree>
  /** Trees without an open turn. */
  readonly ended: EndedTrees<Tree>
  readonly conversations: IdMap<ConversationEntry>
  readonly turns: IdMap<TurnEntry>
  readonly nodes: IdMap<NodeEntry>
  readonly links: IdMap<LinkEntry>
  readonly lanes: IdMap<Series<TurnEntry>>
  readonly bodies: Map<string, { readonly text: string; trees: number }>
  readonly engines: Map<Id, EngineEntry>
  readonly blocks: Map<Id, LiveBlock>
  /** Pending, no blockers. */
  readonly ready: IdMap<NodeEntry>
  /** Pending, with a `wakeAt`. */
  readonly sleeping: IdMap<NodeEntry>
  readonly claims: Map<Id, IdMap<NodeEntry>>
  /** Running turns with a deadline. */
  readonly timed: IdMap<TurnEntry>
  /** Open turns that were asked to stop. */
  readonly stopping: IdMap<TurnEntry>
  /** Open turns of user conversations. */
  readonly openRoots: IdMap<TurnEntry>
  /** Counts trees and nodes as they come. */
  counter: number
}

export function emptyTables(): Tables {
  return {
    trees: new IdMap(),
    ended: new EndedTrees(),
    conversations: new IdMap(),
    turns: new IdMap(),
    nodes: new IdMap(),
    links: new IdMap(),
    lanes: new IdMap(),
    bodies: new Map(),
    engines: new Map(),
    blocks: new Map(),
    ready: new IdMap(),
    sleeping: new IdMap(),
    claims: new Map(),
    timed: new IdMap(),
    stopping: new IdMap(),
    openRoots: new IdMap(),
    counter: 0,
  }
}

export function newTree(rootId: Id): Tree {
  return { rootId, number: 0, ending: null, seq: 0, openTurns: 0, conversations: [], events: [], bodies: new Set() }
}

export function newConversation(row: Conversation, tree: Tree): ConversationEntry {
  return { row, version: row.version, isLinked: false, tree, turns: [] }
}

export function newTurn(row: Turn, conversation: ConversationEntry): TurnEntry {
  return {
    row,
    version: row.version,
    isLinked: false,
    conversation,
    nodes: { entries: [], closed: 0 },
    links: { entries: [], closed: 0 },
    keys: null,
  }
}

export function newNode(row: Node, turn: TurnEntry): NodeEntry {
  return { row, version: row.version, isLinked: false, turn, number: 0, out: [], in: [] }
}

export function newLink(row: Link, turn: TurnEntry): LinkEntry {
  return { row, version: row.version, isLinked: false, turn }
}

export function linkConversation(tables: Tables, entry: ConversationEntry): void {
  entry.isLinked = true
  if (entry.row.id === entry.row.rootId) linkTree(tables, entry.tree)
  entry.tree.conversations.push(entry)
}

function linkTree(tables: Tables, tree: Tree): void {
  tree.number = ++tables.counter
  tables.trees.add(tree.rootId, tree)
}

export function linkTurn(tables: Tables, entry: TurnEntry): void {
  const { row, conversation } = entry
  entry.isLinked = true
  conversation.turns.push(entry)
  const lane = tables.lanes.get(row.laneId)
  if (lane === undefined) tables.lanes.add(row.laneId, { entries: [entry], closed: 0 })
  else insert(lane, entry)
  if (row.state !== 'ended') conversation.tree.openTurns++
  indexTurn(tables, entry, { old: undefined, row })
}

export function linkNode(tables: Tables, entry: NodeEntry): void {
  entry.isLinked = true
  entry.number = ++tables.counter
  insert(entry.turn.nodes, entry)
  indexNode(tables, entry, { old: undefined, row: entry.row })
}

export function linkLink(entry: LinkEntry): void {
  entry.isLinked = true
  insert(entry.turn.links, entry)
}

export function updateTurn(tables: Tables, entry: TurnEntry, row: Turn): void {
  const old = entry.row
  entry.row = row
  const { tree } = entry.conversation
  if (old.state !== 'ended') tree.openTurns--
  if (row.state !== 'ended') tree.openTurns++
  indexTurn(tables, entry, { old, row })
  const lane = tables.lanes.get(row.laneId)
  if (row.state !== 'ended' && lane !== undefined) reopen(lane, entry)
}

export function updateNode(tables: Tables, entry: NodeEntry, row: Node): void {
  const old = entry.row
  entry.row = row
  indexNode(tables, entry, { old, row })
  if (isOpen(row.state)) reopen(entry.turn.nodes, entry)
}

export function updateLink(entry: LinkEntry, row: Link): void {
  entry.row = row
  if (row.outcome === null) reopen(entry.turn.links, entry)
}

/** The open entries of a series, in order. */
export function openOf<Entry extends { readonly row: unknown }>(
  series: Series<Entry>,
  isOpenEntry: (entry: Entry) => boolean,
): Entry[] {
  const { entries } = series
  while (series.closed < entries.length && !isOpenEntry(entries[series.closed] as Entry)) series.closed++
  const open: Entry[] = []
  for (let index = series.closed; index < entries.length; index++) {
    const entry = entries[index] as Entry
    if (isOpenEntry(entry)) open.push(entry)
  }
  return open
}

/** How many entries have an ordinal of at most `last`. */
export function countUpTo(series: Series<{ readonly row: { readonly ordinal: number } }>, last: number): number {
  let low = 0
  let high = series.entries.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const ordinal = series.entries[middle]?.row.ordinal ?? 0
    if (ordinal <= last) low = middle + 1
    else high = middle
  }
  return low
}

/**
 * Costs what the tree is large, whatever else is stored. The entries are emptied because V8's maps may keep deleted
 * entries reachable until the next full collection.
 */
export function forgetTree(tables: Tables, tree: Tree): void {
  tables.ended.delete(tree)
  tables.trees.delete(tree.rootId)
  for (const conversation of tree.conversations) {
    tables.conversations.delete(conversation.row.id)
    for (const turn of conversation.turns) forgetTurn(tables, turn)
    conversation.row = GONE
    conversation.turns = NONE
  }
  for (const hash of tree.bodies) {
    const body = tables.bodies.get(hash)
    if (body !== undefined && --body.trees === 0) tables.bodies.delete(hash)
  }
  tree.conversations = NONE
  tree.events = NONE
}

function forgetTurn(tables: Tables, turn: TurnEntry): void {
  indexTurn(tables, turn, { old: turn.row, row: undefined })
  tables.turns.delete(turn.row.id)
  tables.lanes.delete(turn.row.laneId)
  for (const node of turn.nodes.entries) forgetNode(tables, node)
  for (const link of turn.links.entries) {
    tables.links.delete(link.row.id)
    link.row = GONE
  }
  turn.row = GONE
  turn.keys = null
  turn.nodes.entries = NONE
  turn.links.entries = NONE
}

function forgetNode(tables: Tables, node: NodeEntry): void {
  indexNode(tables, node, { old: node.row, row: undefined })
  tables.nodes.delete(node.row.id)
  if (tables.blocks.size > 0) tables.blocks.delete(node.row.id)
  node.row = GONE
  node.out = NONE
  node.in = NONE
}

/** In place of what a forgotten entry held; nobody reaches it. */
const GONE = Object.freeze({}) as never
const NONE: never[] = []

function indexTurn(tables: Tables, entry: TurnEntry, { old, row }: Change<Turn>): void {
  const { id } = entry.row
  if (isTimed(old) !== isTimed(row)) move(tables.timed, id, isTimed(row) ? entry : undefined)
  if (isStopping(old) !== isStopping(row)) move(tables.stopping, id, isStopping(row) ? entry : undefined)
  if (entry.conversation.row.type !== 'user' || isOpenTurn(old) === isOpenTurn(row)) return
  move(tables.openRoots, id, isOpenTurn(row) ? entry : undefined)
}

function indexNode(tables: Tables, entry: NodeEntry, { old, row }: Change<Node>): void {
  const { id } = entry.row
  if (isReady(old) !== isReady(row)) move(tables.ready, id, isReady(row) ? entry : undefined)
  if (isSleeping(old) !== isSleeping(row)) move(tables.sleeping, id, isSleeping(row) ? entry : undefined)
  const before = claimantOf(old)
  const now = claimantOf(row)
  if (before === now) return
  if (before !== null) tables.claims.get(before)?.delete(id)
  if (now !== null) claimsOf(tables, now).add(id, entry)
}

/** A new row has no `old`, a forgotten one no `row`. */
interface Change<Row> {
  readonly old: Row | undefined
  readonly row: Row | undefined
}

function move<Entry>(index: IdMap<Entry>, id: Id, entry: Entry | undefined): void {
  if (entry === undefined) index.delete(id)
  else index.add(id, entry)
}

function isOpenTurn(row: Turn | undefined): boolean {
  return row !== undefined && row.state !== 'ended'
}

function isTimed(row: Turn | undefined): boolean {
  return row !== undefined && row.state === 'running' && row.deadline !== null
}

function isStopping(row: Turn | undefined): boolean {
  return row !== undefined && row.state !== 'ended' && row.cancel !== null
}

function isReady(row: Node | undefined): boolean {
  return row !== undefined && row.state === 'pending' && row.blockers === 0
}

function isSleeping(row: Node | undefined): boolean {
  return row !== undefined && row.state === 'pending' && row.wakeAt !== null
}

function claimantOf(row: Node | undefined): Id | null {
  return row !== undefined && isOpen(row.state) ? row.engineId : null
}

function claimsOf(tables: Tables, engineId: Id): IdMap<NodeEntry> {
  const claims = tables.claims.get(engineId)
  if (claims !== undefined) return claims
  const first = new IdMap<NodeEntry>()
  tables.claims.set(engineId, first)
  return first
}

function insert<Entry extends { readonly row: { readonly ordinal: number } }>(
  series: Series<Entry>,
  entry: Entry,
): void {
  const { entries } = series
  const last = entries[entries.length - 1]
  if (last === undefined || last.row.ordinal <= entry.row.ordinal) {
    entries.push(entry)
    return
  }
  const index = countUpTo(series, entry.row.ordinal)
  entries.splice(index, 0, entry)
  series.closed = Math.min(series.closed, index)
}

function reopen<Entry extends { readonly row: { readonly ordinal: number } }>(
  series: Series<Entry>,
  entry: Entry,
): void {
  if (series.closed > 0) series.closed = Math.min(series.closed, countUpTo(series, entry.row.ordinal - 1))
}
