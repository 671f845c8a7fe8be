import type { TreeRows } from '../graph/audit/tree-rows.ts'
import type { Body, Conversation, Edge, Id, Link, Node, Turn } from '../graph/rows.ts'
import type { WholeTree, WrittenRow } from './archive.ts'
import { packEvents } from './sqlite/events.ts'
import { packConversation, packLink, packNode, packTurn } from './sqlite/rows.ts'
import { type ChainRecord, chainHash, edgeMark, memberText, rowMark, turnEdgesMarks } from './tree-chain.ts'

/** All of a tree as it would be stored. Without a record of its commits it gets one of a single commit. */
export function packTree(
  tree: TreeRows,
  { body, records }: { body: (hash: string) => string | undefined; records: readonly ChainRecord[] | null },
): WholeTree {
  const rows: WrittenRow[] = []
  for (const row of tree.conversations.values()) rows.push(conversationText(row))
  for (const row of tree.turns.values()) rows.push(turnText(row))
  for (const row of tree.nodes.values()) rows.push(nodeText(row))
  for (const row of tree.links.values()) rows.push(linkText(row))
  const edges = [...tree.edgesTo.values()].flat()
  const bodies = bodiesOf(tree, body)
  return { rootId: tree.rootId, rows, edges, bodies, records: records ?? [snapshot(tree, rows, edges)] }
}

export function conversationText(row: Conversation): WrittenRow {
  return { letter: 'c', id: row.id, turnId: null, text: packConversation(row) }
}

export function turnText(row: Turn): WrittenRow {
  return { letter: 't', id: row.id, turnId: null, text: packTurn(row) }
}

export function nodeText(row: Node): WrittenRow {
  return { letter: 'n', id: row.id, turnId: row.turnId, text: packNode(row) }
}

export function linkText(row: Link): WrittenRow {
  return { letter: 'l', id: row.id, turnId: row.hostTurnId, text: packLink(row) }
}

/** `turnOf` says of which turn a node is. */
export function marksOf(rows: Iterable<WrittenRow>, edges: readonly Edge[], turnOf: (nodeId: Id) => Id): string {
  let marks = ''
  for (const { letter, id, turnId, text } of rows) {
    marks += rowMark(letter, id, turnId === null ? text : memberText(turnId, text))
  }
  for (const edge of edges) marks += edgeMark(edge)
  return marks + turnEdgesMarks(edges, turnOf)
}

function snapshot(
  { events, conversations, nodes }: TreeRows,
  rows: readonly WrittenRow[],
  edges: readonly Edge[],
): ChainRecord {
  const [root] = conversations.values()
  const record = {
    kind: 'snapshot',
    at: events.at(-1)?.at ?? root?.createdAt ?? 0,
    seq: events.length,
    events: packEvents(events),
    marks: marksOf(rows, edges, (id) => nodes.get(id)?.turnId ?? ''),
  }
  return { ...record, hash: chainHash('', record) }
}

function bodiesOf({ nodes }: TreeRows, body: (hash: string) => string | undefined): Body[] {
  const hashes = new Set<string>()
  for (const { output } of nodes.values()) if (output.bodyRef !== undefined) hashes.add(output.bodyRef)
  return [...hashes].flatMap((hash) => {
    const text = body(hash)
    return text === undefined ? [] : [{ hash, text }]
  })
}
