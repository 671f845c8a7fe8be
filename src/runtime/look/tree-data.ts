// The rows of a tree as data, for programs that show it as those with the store do.
//
// Called by: `ScopedRuntime.treeData` and `trees`, for the routes of `/v1/trees`.
// Must stay true:
//   - Authority does not leave the process: rows come without ceilings, without attributes for tools, without request hashes.
//   - The answer is bounded: of a tree with too many nodes only the open ones are given.

import type { StoreReader, TreeReader } from '../../graph/reader.ts'
import type { Conversation, Edge, Id, Link, Node, Turn } from '../../graph/rows.ts'

/** The rows of a tree at one moment. */
export interface TreeData {
  readonly rootId: Id
  /** The `seq` of its last event. */
  readonly lastSeq: number
  readonly conversations: readonly Conversation[]
  readonly turns: readonly Turn[]
  readonly nodes: readonly Node[]
  readonly edges: readonly Edge[]
  readonly links: readonly Link[]
  /** True where only the open nodes and delegations are given. */
  readonly isCut: boolean
}

const MOST_NODES = 20_000
const PAGE = 500

/** Reads a tree: with all of its nodes, or only with those that are open. */
export async function readTreeData(store: StoreReader, rootId: Id, nodes: 'all' | 'open'): Promise<TreeData> {
  const conversations = await conversationsOf(store, rootId)
  const tree = await store.tree(rootId)
  const turns = conversations.flatMap(({ id, turnCount }) => [...tree.turnsOf(id, { limit: Math.max(1, turnCount) })])
  const total = turns.reduce((sum, { nodeCount }) => sum + nodeCount, 0)
  const isCut = nodes === 'open' || total > MOST_NODES
  const shown = turns.flatMap(({ id }) => [...(isCut ? tree.openNodes(id) : tree.nodesOf(id))])
  return {
    rootId,
    lastSeq: tree.lastSeq(rootId),
    conversations: conversations.map((row) => ({ ...row, ceiling: [] })),
    turns: turns.map((row) => ({ ...row, ceiling: [], attributes: null, requestHash: null })),
    nodes: shown,
    edges: isCut ? [] : edgesOf(tree, shown),
    links: turns.flatMap(({ id }) => [...(isCut ? tree.openLinks(id) : tree.linksOf(id))]),
    isCut,
  }
}

function edgesOf(tree: TreeReader, nodes: readonly Node[]): readonly Edge[] {
  return nodes.flatMap(({ id }) => [...tree.edgesFrom(id)])
}

async function conversationsOf(store: StoreReader, rootId: Id): Promise<readonly Conversation[]> {
  const rows: Conversation[] = []
  for (let after: Id | undefined; ; ) {
    const page = await store.conversations({ rootId, limit: PAGE, ...(after === undefined ? {} : { after }) })
    rows.push(...page)
    after = page.at(-1)?.id
    if (page.length < PAGE) return rows
  }
}
