import type { Commit } from '../../graph/commit.ts'
import type { Id } from '../../graph/rows.ts'
import type { WholeTree } from '../archive.ts'
import { asNew } from '../as-new.ts'
import type { ChainLink, Tables, Tree } from '../memory/tables.ts'
import { conversationText, linkText, marksOf, nodeText, turnText } from '../pack-tree.ts'
import { packEvents } from '../sqlite/events.ts'
import { chainHash } from '../tree-chain.ts'
import { unpackTree } from '../unpack-tree.ts'

/** What the record of the commit's tree will have of it; undefined where there is none, or none is kept. */
export function nextLink(tables: Tables, commit: Commit): ChainLink | undefined {
  const { rootId, kind, at, conversations, turns, nodes, links, edges } = commit
  const tree = rootId === null ? undefined : tables.trees.get(rootId)
  if (rootId === null || tree?.chain === null) return undefined
  const rows = [
    ...conversations.map(conversationText),
    ...turns.map(turnText),
    ...nodes.map(nodeText),
    ...links.map(linkText),
  ]
  const fresh = new Map(edges.length === 0 ? [] : nodes.map(({ id, turnId }) => [id, turnId]))
  const turnOf = (id: Id): Id => fresh.get(id) ?? tables.nodes.get(id)?.row.turnId ?? ''
  const seq = (tree?.seq ?? 0) + commit.events.length
  const record = { kind, at, seq, events: packEvents(commit.events), marks: marksOf(rows, edges, turnOf) }
  const hash = chainHash(tree?.chain?.at(-1)?.hash ?? '', record)
  return { kind, at, seq, marks: record.marks, hash }
}

export function extend(tree: Tree, link: ChainLink): void {
  tree.chain ??= []
  tree.chain.push(link)
}

/** The rows of a whole tree as a commit would bring them. */
export function newRows(whole: WholeTree): Commit {
  const { conversations, turns, nodes, links, ...rest } = unpackTree(whole)
  return {
    ...rest,
    conversations: conversations.map(asNew),
    turns: turns.map(asNew),
    nodes: nodes.map(asNew),
    links: links.map(asNew),
  }
}
