import type { Commit } from '../graph/commit.ts'
import type { EventRow } from '../graph/event.ts'
import type { Conversation, Edge, EngineRow, Id, Link, Node, Turn } from '../graph/rows.ts'
import { foreignRow, knownEdge, requireNoTreeRows, staleRow, takenKey, unknownTree, wrongEdge } from './conflict.ts'
import {
  type ConversationEntry,
  type EngineEntry,
  type LinkEntry,
  linkConversation,
  linkLink,
  linkNode,
  linkTurn,
  type NodeEntry,
  newConversation,
  newLink,
  newNode,
  newTree,
  newTurn,
  type Tables,
  type Tree,
  type TurnEntry,
  updateLink,
  updateNode,
  updateTurn,
} from './memory-rows.ts'

/** Applies all of the commit, or throws ConflictError and leaves the tables as they were. */
export function applyCommit(tables: Tables, commit: Commit): Tree | undefined {
  const staged = stage(tables, commit)
  for (let index = 0; index < staged.conversations.length; index++) {
    putConversation(
      tables,
      staged.conversations[index] as ConversationEntry,
      commit.conversations[index] as Conversation,
    )
  }
  for (let index = 0; index < staged.turns.length; index++) {
    putTurn(tables, staged.turns[index] as TurnEntry, commit.turns[index] as Turn)
  }
  for (let index = 0; index < staged.nodes.length; index++) {
    putNode(tables, staged.nodes[index] as NodeEntry, commit.nodes[index] as Node)
  }
  for (let index = 0; index < staged.links.length; index++) {
    putLink(staged.links[index] as LinkEntry, commit.links[index] as Link)
  }
  for (let index = 0; index < staged.engines.length; index++) {
    putEngine(staged.engines[index] as EngineEntry, commit.engines[index] as EngineRow)
  }
  if (staged.tree !== undefined) extend(tables, staged.tree, commit)
  putUntracked(tables, commit)
  return staged.tree
}

/** Makes the entries of new rows and raises the versions of known ones; both are taken back when a check fails. */
interface Staged {
  tree: Tree | undefined
  readonly conversations: ConversationEntry[]
  readonly turns: TurnEntry[]
  readonly nodes: NodeEntry[]
  readonly links: LinkEntry[]
  readonly engines: EngineEntry[]
  edges: number
}

function stage(tables: Tables, commit: Commit): Staged {
  const staged: Staged = { tree: undefined, conversations: [], turns: [], nodes: [], links: [], engines: [], edges: 0 }
  try {
    if (commit.rootId !== null) staged.tree = treeFor(tables, commit, commit.rootId)
    else requireNoTreeRows(commit)
    for (const row of commit.conversations) staged.conversations.push(stageConversation(tables, row, staged.tree))
    for (const row of commit.turns) staged.turns.push(stageTurn(tables, row, commit.rootId))
    for (const row of commit.nodes) staged.nodes.push(stageNode(tables, row, commit.rootId))
    for (const row of commit.links) staged.links.push(stageLink(tables, row, commit.rootId))
    for (const row of commit.engines) staged.engines.push(stageEngine(tables, row))
    for (const edge of commit.edges) {
      stageEdge(tables, edge)
      staged.edges++
    }
    return staged
  } catch (error) {
    unstage(tables, commit, staged)
    throw error
  }
}

function treeFor(tables: Tables, commit: Commit, rootId: Id): Tree {
  const tree = tables.trees.get(rootId)
  if (tree !== undefined) return tree
  if (commit.conversations.some((row) => row.id === rootId)) return newTree(rootId)
  throw unknownTree(rootId)
}

function stageConversation(tables: Tables, row: Conversation, tree: Tree | undefined): ConversationEntry {
  const known = tables.conversations.get(row.id)
  if (tree === undefined || row.rootId !== tree.rootId) throw foreignRow('conversations', row.id)
  expectVersion('conversations', row, known)
  if (known !== undefined) {
    if (known.tree !== tree) throw foreignRow('conversations', row.id)
    known.version = row.version
    return known
  }
  const entry = newConversation(row, tree)
  tables.conversations.add(row.id, entry)
  return entry
}

function stageTurn(tables: Tables, row: Turn, rootId: Id | null): TurnEntry {
  const known = tables.turns.get(row.id)
  if (row.rootId !== rootId) throw foreignRow('turns', row.id)
  expectVersion('turns', row, known)
  if (known !== undefined) {
    if (known.row.conversationId !== row.conversationId) throw foreignRow('turns', row.id)
    known.version = row.version
    return known
  }
  const conversation = tables.conversations.get(row.conversationId)
  if (conversation === undefined || conversation.row.rootId !== rootId) throw foreignRow('turns', row.id)
  const entry = newTurn(row, conversation)
  tables.turns.add(row.id, entry)
  return entry
}

function stageNode(tables: Tables, row: Node, rootId: Id | null): NodeEntry {
  const known = tables.nodes.get(row.id)
  if (row.rootId !== rootId) throw foreignRow('nodes', row.id)
  expectVersion('nodes', row, known)
  if (known !== undefined) {
    if (known.row.turnId !== row.turnId) throw foreignRow('nodes', row.id)
    known.version = row.version
    return known
  }
  const turn = tables.turns.get(row.turnId)
  if (turn === undefined || turn.row.rootId !== rootId || turn.row.conversationId !== row.conversationId) {
    throw foreignRow('nodes', row.id)
  }
  const entry = newNode(row, turn)
  if (row.idempotencyKey !== null) stageKey(turn, keyOf(row.kind, row.idempotencyKey), entry)
  tables.nodes.add(row.id, entry)
  return entry
}

export function keyOf(kind: string, key: string): string {
  return `${kind}\n${key}`
}

function stageKey(turn: TurnEntry, key: string, entry: NodeEntry): void {
  turn.keys ??= new Map()
  if (turn.keys.has(key)) throw takenKey(entry.row)
  turn.keys.set(key, entry)
}

function stageLink(tables: Tables, row: Link, rootId: Id | null): LinkEntry {
  const known = tables.links.get(row.id)
  if (row.rootId !== rootId) throw foreignRow('links', row.id)
  expectVersion('links', row, known)
  if (known !== undefined) {
    if (known.row.hostTurnId !== row.hostTurnId) throw foreignRow('links', row.id)
    known.version = row.version
    return known
  }
  const turn = tables.turns.get(row.hostTurnId)
  if (turn === undefined || turn.row.rootId !== rootId) throw foreignRow('links', row.id)
  const entry = newLink(row, turn)
  tables.links.add(row.id, entry)
  return entry
}

function stageEngine(tables: Tables, row: EngineRow): EngineEntry {
  const known = tables.engines.get(row.id)
  expectVersion('engines', row, known)
  if (known !== undefined) {
    known.version = row.version
    return known
  }
  const entry: EngineEntry = { row, version: row.version, isLinked: false }
  tables.engines.set(row.id, entry)
  return entry
}

function stageEdge(tables: Tables, edge: Edge): void {
  const from = tables.nodes.get(edge.from)
  const to = tables.nodes.get(edge.to)
  if (from === undefined || to === undefined || from === to) throw wrongEdge(edge)
  if (!isOf(edge, from) || !isOf(edge, to)) throw wrongEdge(edge)
  const shorter = from.out.length < to.in.length ? from.out : to.in
  if (shorter.some((other) => isSame(other, edge))) throw knownEdge(edge)
  from.out.push(edge)
  to.in.push(edge)
}

function isSame(a: Edge, b: Edge): boolean {
  return a.from === b.from && a.to === b.to && a.type === b.type
}

function isOf(edge: Edge, entry: NodeEntry): boolean {
  return entry.row.conversationId === edge.conversationId && entry.row.rootId === edge.rootId
}

function unstage(tables: Tables, commit: Commit, staged: Staged): void {
  for (let index = staged.edges - 1; index >= 0; index--) {
    const edge = commit.edges[index] as Edge
    tables.nodes.get(edge.from)?.out.pop()
    tables.nodes.get(edge.to)?.in.pop()
  }
  for (const entry of staged.nodes) {
    const { kind, idempotencyKey } = entry.row
    if (!entry.isLinked && idempotencyKey !== null) entry.turn.keys?.delete(keyOf(kind, idempotencyKey))
  }
  takeBack(tables.conversations, staged.conversations)
  takeBack(tables.turns, staged.turns)
  takeBack(tables.nodes, staged.nodes)
  takeBack(tables.links, staged.links)
  takeBack(tables.engines, staged.engines)
}

interface Staging {
  readonly row: { readonly id: Id; readonly version: number }
  version: number
  readonly isLinked: boolean
}

function takeBack<Entry extends Staging>(table: { delete(id: Id): unknown }, staged: readonly Entry[]): void {
  for (const entry of staged) {
    if (entry.isLinked) entry.version = entry.row.version
    else table.delete(entry.row.id)
  }
}

function putConversation(tables: Tables, entry: ConversationEntry, row: Conversation): void {
  if (entry.isLinked) entry.row = row
  else linkConversation(tables, entry)
}

function putTurn(tables: Tables, entry: TurnEntry, row: Turn): void {
  if (entry.isLinked) updateTurn(tables, entry, row)
  else linkTurn(tables, entry)
}

function putNode(tables: Tables, entry: NodeEntry, row: Node): void {
  if (entry.isLinked) updateNode(tables, entry, row)
  else linkNode(tables, entry)
}

function putLink(entry: LinkEntry, row: Link): void {
  if (entry.isLinked) updateLink(entry, row)
  else linkLink(entry)
}

function putEngine(entry: EngineEntry, row: EngineRow): void {
  entry.row = row
  entry.isLinked = true
}

function extend(tables: Tables, tree: Tree, commit: Commit): void {
  for (const event of commit.events) {
    ;(event as { seq: number } & EventRow).seq = ++tree.seq
    tree.events.push(event)
  }
  for (const { hash, text } of commit.bodies) {
    if (!tables.bodies.has(hash)) tables.bodies.set(hash, { text, trees: 0 })
    holdBody(tables, tree, hash)
  }
  for (const { output } of commit.nodes) if (output.bodyRef !== undefined) holdBody(tables, tree, output.bodyRef)
}

/** A body lives as long as a tree that brought it or names it. */
function holdBody(tables: Tables, tree: Tree, hash: string): void {
  const body = tables.bodies.get(hash)
  if (body === undefined || tree.bodies.has(hash)) return
  tree.bodies.add(hash)
  body.trees++
}

/** Rows without a version. A block of a claim that was lost, or of a node that has ended, is left out. */
function putUntracked(tables: Tables, commit: Commit): void {
  for (const id of commit.dropEngines) {
    tables.engines.delete(id)
    if (tables.claims.get(id)?.size === 0) tables.claims.delete(id)
  }
  for (const block of commit.blocks) {
    const node = tables.nodes.get(block.nodeId)?.row
    if (node?.state === 'running' && node.epoch === block.epoch) tables.blocks.set(block.nodeId, block)
  }
  for (const id of commit.dropBlocks) tables.blocks.delete(id)
}

function expectVersion(
  table: string,
  row: { readonly id: Id; readonly version: number },
  known: { readonly version: number } | undefined,
): void {
  if ((known?.version ?? 0) !== row.version - 1) throw staleRow(table, row)
}
