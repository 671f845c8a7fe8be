import { parseOwnJson } from '../base/json.ts'
import type { EventRow } from '../graph/event.ts'
import { keyOf } from './memory-commit.ts'
import {
  emptyTables,
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
} from './memory-rows.ts'

/** The same rows in new tables, each row written as text and read back: nothing survives that is not plain data. */
export function reloadTables(old: Tables): Tables {
  const tables = emptyTables()
  const turns: [TurnEntry, TurnEntry][] = []
  const trees = [...old.trees.values()].sort((a, b) => a.number - b.number)
  for (const tree of trees) turns.push(...reloadTree(tables, tree))
  for (const [hash, { text, trees }] of old.bodies) tables.bodies.set(hash, { text: again(text), trees })
  for (const [id, { row, version }] of old.engines) tables.engines.set(id, { row: again(row), version, isLinked: true })
  reloadNodes(tables, old)
  for (const [turn, before] of turns) reloadLinks(tables, turn, before)
  for (const [id, block] of old.blocks) tables.blocks.set(id, again(block))
  for (const tree of old.ended.inOrder()) {
    const reloaded = tables.trees.get(tree.rootId)
    if (reloaded !== undefined) tables.ended.add(reloaded)
  }
  return tables
}

function reloadTree(tables: Tables, old: Tree): [TurnEntry, TurnEntry][] {
  const tree = newTree(old.rootId)
  tree.seq = old.seq
  for (const event of old.events) tree.events.push(again<EventRow>(event))
  for (const hash of old.bodies) tree.bodies.add(hash)
  const turns: [TurnEntry, TurnEntry][] = []
  for (const before of old.conversations) {
    const conversation = newConversation(again(before.row), tree)
    tables.conversations.add(conversation.row.id, conversation)
    linkConversation(tables, conversation)
    for (const beforeTurn of before.turns) {
      const turn = newTurn(again(beforeTurn.row), conversation)
      tables.turns.add(turn.row.id, turn)
      linkTurn(tables, turn)
      turns.push([turn, beforeTurn])
    }
  }
  return turns
}

function reloadNodes(tables: Tables, old: Tables): void {
  const nodes = [...old.nodes.values()].sort((a, b) => a.number - b.number)
  for (const before of nodes) {
    const turn = tables.turns.get(before.row.turnId)
    if (turn === undefined) continue
    const node = newNode(again(before.row), turn)
    tables.nodes.add(node.row.id, node)
    linkNode(tables, node)
    reloadKey(turn, node)
    for (const edge of before.out) node.out.push(again(edge))
    for (const edge of before.in) node.in.push(again(edge))
  }
}

function reloadKey(turn: TurnEntry, node: NodeEntry): void {
  const { kind, idempotencyKey } = node.row
  if (idempotencyKey === null) return
  turn.keys ??= new Map()
  turn.keys.set(keyOf(kind, idempotencyKey), node)
}

function reloadLinks(tables: Tables, turn: TurnEntry, before: TurnEntry): void {
  for (const old of before.links.entries) {
    const link = newLink(again(old.row), turn)
    tables.links.add(link.row.id, link)
    linkLink(link)
  }
}

function again<Row>(row: Row): Row {
  return parseOwnJson(JSON.stringify(row)) as Row
}
