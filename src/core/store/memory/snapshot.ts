import { parseOwnJson } from '../../base/json.ts'
import { type Commit, type EngineRow, emptyCommit, type Spent, type StoredBlock } from '../../graph/commit.ts'
import type { Edge, Id } from '../../graph/rows.ts'
import type { Tombstone } from '../archive.ts'
import { asNew } from '../archive.ts'
import { readTombstone } from '../not-found.ts'
import type { RegistryRow } from '../registry.ts'
import { applyCommit } from './commit.ts'
import { putSpent } from './feed.ts'
import { putRegistered, registered } from './registry-table.ts'
import { type ChainLink, emptyTables, type Feed, type StoredTree, type Tables } from './tables.ts'

/** A part of the tables as plain data, small enough to write in one process and read in another. */
export type Piece =
  /** Rows of one tree, at their versions. */
  | { readonly rows: Commit }
  /** The record of one tree's commits. */
  | { readonly chain: readonly ChainLink[]; readonly rootId: Id }
  /** Rows that belong to no tree; the last piece. */
  | { readonly rest: Rest }

interface Rest {
  readonly engines: readonly EngineRow[]
  readonly blocks: readonly (readonly StoredBlock[])[]
  readonly lastBlock: number
  /** Trees without an open turn, the one that ended first in front. */
  readonly ended: readonly Id[]
  readonly tombstones?: readonly Tombstone[]
  readonly registry?: readonly RegistryRow[]
  readonly feed?: Feed
  readonly spent?: readonly Spent[]
}

export function* piecesOf(tables: Tables): Generator<Piece> {
  const written = new Set<string>()
  const trees = tables.trees.values().sort((a, b) => a.number - b.number)
  for (const tree of trees) {
    for (const rows of rowsOf(tree)) yield { rows: { ...emptyCommit('mutate', 0, tree.id), ...rows } }
    for (const chain of inParts(tree.chain ?? [])) yield { chain, rootId: tree.id }
    for (const hash of tree.bodies ?? []) {
      const text = written.has(hash) ? '' : (tables.bodies.get(hash)?.text ?? '')
      written.add(hash)
      yield { rows: { ...emptyCommit('mutate', 0, tree.id), bodies: [{ hash, text }] } }
    }
  }
  yield { rest: restOf(tables) }
}

function restOf({ engines, blocks, lastBlock, ended, tombstones, registry, feed, spent }: Tables): Rest {
  return {
    engines: [...engines.values()],
    blocks: [...blocks.values()],
    lastBlock,
    ended: [...ended].map(({ id }) => id),
    ...(tombstones.length === 0 ? {} : { tombstones }),
    ...(registry.size === 0 ? {} : { registry: registered(registry) }),
    ...(feed.changes.length === 0 ? {} : { feed }),
    ...(spent.size === 0 ? {} : { spent: [...spent.values()] }),
  }
}

/** Restores tables from pieces. */
function tablesOf(pieces: Iterable<Piece>): Tables {
  const tables = emptyTables()
  for (const piece of pieces) putPiece(tables, piece)
  return tables
}

export function putPiece(tables: Tables, piece: Piece): void {
  if ('rows' in piece) putRows(tables, piece.rows)
  else if ('chain' in piece) putChain(tables, piece.rootId, piece.chain)
  else putRest(tables, piece.rest)
}

function putChain(tables: Tables, rootId: Id, links: readonly ChainLink[]): void {
  const tree = tables.trees.get(rootId)
  if (tree === undefined) return
  tree.chain ??= []
  tree.chain.push(...links)
}

/** How many rows make a piece. */
const SOME = 500

function* rowsOf(tree: StoredTree): Generator<Partial<Commit>> {
  for (const conversations of inParts(tree.conversations.map(({ row }) => row))) yield { conversations }
  const turns = tree.conversations.flatMap((conversation) => conversation.turns)
  const edges: Edge[] = []
  for (const turn of turns) {
    yield { turns: [turn.row], links: turn.links.map(({ row }) => row) }
    for (const nodes of inParts(turn.nodes)) {
      for (const { edgesOut } of nodes) if (edgesOut !== null) edges.push(...edgesOut)
      yield { nodes: nodes.map(({ row }) => row) }
    }
  }
  for (const part of inParts(edges)) yield { edges: part }
  for (const events of inParts(tree.events)) yield { events }
}

function* inParts<Item>(items: readonly Item[]): Generator<readonly Item[]> {
  for (let at = 0; at < items.length; at += SOME) yield items.slice(at, at + SOME)
}

function putRows(tables: Tables, rows: Commit): void {
  const { conversations, turns, nodes, links } = rows
  applyCommit(tables, {
    ...rows,
    conversations: conversations.map(asNew),
    turns: turns.map(asNew),
    nodes: nodes.map(asNew),
    links: links.map(asNew),
  })
  for (const row of conversations) restore(tables.conversations.get(row.id), row)
  for (const row of turns) restore(tables.turns.get(row.id), row)
  for (const row of nodes) restore(tables.nodes.get(row.id), row)
  for (const row of links) restore(tables.links.get(row.id), row)
}

function restore<Row>(entry: { row: Row } | undefined, row: Row): void {
  if (entry !== undefined) entry.row = row
}

function putRest(tables: Tables, rest: Rest): void {
  const { engines, blocks, lastBlock, ended, tombstones = [], registry = [], feed, spent = [] } = rest
  // One by one: there may be more than a call can take.
  for (const stone of tombstones) tables.tombstones.push(readTombstone(stone))
  for (const row of registry) putRegistered(tables.registry, row)
  for (const change of feed?.changes ?? []) tables.feed.changes.push(change)
  tables.feed.before = feed?.before ?? 0
  for (const one of spent) putSpent(tables, one)
  for (const row of engines) tables.engines.set(row.id, row)
  for (const list of blocks) {
    const [first] = list
    if (first !== undefined) tables.blocks.set(first.nodeId, [...list])
  }
  tables.lastBlock = lastBlock
  for (const id of ended) {
    const tree = tables.trees.get(id)
    if (tree !== undefined) tables.ended.add(tree)
  }
}

/** Copies the rows into new tables through text: only plain data survives. */
export function reloadTables(old: Tables): Tables {
  const tables = tablesOf(again(piecesOf(old)))
  // Plans that were made on the old tables must be checked again.
  tables.writes = old.writes + 1
  return tables
}

function* again(pieces: Iterable<Piece>): Generator<Piece> {
  for (const piece of pieces) yield parseOwnJson(JSON.stringify(piece)) as Piece
}
