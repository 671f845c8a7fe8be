import { parseOwnJson } from '../base/json.ts'
import { emptyCommit } from '../graph/commit.ts'
import type { Edge } from '../graph/rows.ts'
import { applyCommit } from './memory-commit.ts'
import { emptyTables, type Tables, type Tree } from './memory-tables.ts'

/** The same rows in new tables, each row written as text and read back: nothing survives that is not plain data. */
export function reloadTables(old: Tables): Tables {
  const tables = emptyTables()
  for (const [hash, { text }] of old.bodies) tables.bodies.set(hash, { text: again(text), trees: 0 })
  const trees = [...old.trees].sort((a, b) => a.number - b.number)
  for (const tree of trees) reloadTree(tables, tree)
  for (const [id, row] of old.engines) tables.engines.set(id, again(row))
  for (const [id, blocks] of old.blocks) tables.blocks.set(id, blocks.map(again))
  tables.lastBlock = old.lastBlock
  for (const { id } of old.ended) {
    const tree = tables.trees.get(id)
    if (tree !== undefined) tables.ended.add(tree)
  }
  return tables
}

function reloadTree(tables: Tables, old: Tree): void {
  const turns = old.conversations.flatMap((conversation) => conversation.turns)
  const nodes = turns.flatMap((turn) => turn.nodes)
  const asNew = <Row extends { readonly version: number }>({ row }: { readonly row: Row }) => {
    return { ...again(row), version: 1 }
  }
  applyCommit(tables, {
    ...emptyCommit('mutate', 0, old.id),
    conversations: old.conversations.map(asNew),
    turns: turns.map(asNew),
    nodes: nodes.map(asNew),
    edges: nodes.flatMap(({ edgesOut }) => (edgesOut ?? []).map((edge) => again<Edge>(edge))),
    links: turns.flatMap(({ links }) => links.map(asNew)),
    bodies: [...(old.bodies ?? [])].map((hash) => ({ hash, text: '' })),
    events: old.events.map((event) => again(event)),
  })
  for (const { row } of old.conversations) restore(tables.conversations.get(row.id), row)
  for (const { row } of turns) restore(tables.turns.get(row.id), row)
  for (const { row } of nodes) restore(tables.nodes.get(row.id), row)
  for (const turn of turns) for (const { row } of turn.links) restore(tables.links.get(row.id), row)
}

/** New rows have version 1; these had another. */
function restore<Row extends { readonly version: number }>(entry: { row: Row } | undefined, { version }: Row): void {
  if (entry !== undefined) entry.row = { ...entry.row, version }
}

function again<Row>(row: Row): Row {
  return parseOwnJson(JSON.stringify(row)) as Row
}
