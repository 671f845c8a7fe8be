import type { Commit } from '../../graph/commit.ts'
import type { EventRow } from '../../graph/event.ts'
import type { Id } from '../../graph/rows.ts'
import type { WholeTree, WrittenRow } from '../archive.ts'
import { type ChainRecord, chainHash } from '../commit-chain.ts'
import { packEvents } from './event-text.ts'
import { conversationText, linkText, marksOf, nodeText, turnText } from './tree-text.ts'

/** The rows that a commit writes, in the order of stored trees. */
function rowsOfCommit({ conversations, turns, nodes, links }: Commit): WrittenRow[] {
  return [
    ...conversations.map(conversationText),
    ...turns.map(turnText),
    ...nodes.map(nodeText),
    ...links.map(linkText),
  ]
}

/** The record of a commit to a tree. `turnOf` gives the turn of a node that the commit does not write. */
export function recordOf(
  { kind, at, events, edges, nodes, ...commit }: Commit,
  before: Pick<ChainRecord, 'hash' | 'seq'>,
  turnOf: (nodeId: Id) => Id,
): ChainRecord {
  const rows = rowsOfCommit({ kind, at, events, edges, nodes, ...commit })
  const fresh = new Map(edges.length === 0 ? [] : nodes.map(({ id, turnId }) => [id, turnId]))
  const marks = marksOf(rows, edges, (id) => fresh.get(id) ?? turnOf(id))
  const seq = before.seq + events.length
  const record = { kind, at, seq, events: packEvents(events as readonly EventRow[]), marks }
  return { ...record, hash: chainHash(before.hash, record) }
}

const ORDER = ['c', 't', 'n', 'l']

/** A whole tree after further commits. Rows that they do not write keep their bytes. */
export function grownTree(tree: WholeTree, commits: readonly Commit[]): WholeTree {
  const rows = new Map(tree.rows.map((row) => [row.letter + row.id, row]))
  const bodies = new Map(tree.bodies.map((body) => [body.hash, body]))
  const records = [...tree.records]
  const edges = [...tree.edges]
  for (const commit of commits) {
    const turnOf = (id: Id): Id => rows.get(`n${id}`)?.turnId ?? ''
    records.push(recordOf(commit, records.at(-1) ?? { hash: '', seq: 0 }, turnOf))
    for (const row of rowsOfCommit(commit)) rows.set(row.letter + row.id, row)
    for (const body of commit.bodies) bodies.set(body.hash, body)
    edges.push(...commit.edges)
  }
  const ordered = [...rows.values()].sort((a, b) => ORDER.indexOf(a.letter) - ORDER.indexOf(b.letter))
  return { rootId: tree.rootId, rows: ordered, edges, bodies: [...bodies.values()], records }
}
