// The rows of a tree as data, for programs that show it as those with the store do.
//
// Called by: `ScopedRuntime.treeData` and `trees`, for the routes of `/v1/trees`.
// Must stay true:
//   - Authority does not leave the process: rows come without ceilings, without attributes for tools, without request hashes.
//   - The answer is bounded: of a tree with too many nodes only the open ones are given, of one with too many turns only the newest
//     and the open ones.

import { idsUpward, type StoreReader, type TreeReader } from '../../graph/reader.ts'
import type { Conversation, Edge, Id, Link, Node, Turn } from '../../graph/rows.ts'
import { look } from '../../store/look.ts'

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
  /** True where only the open nodes and delegations are given; of a tree with many turns, only the newest and open ones. */
  readonly isCut: boolean
}

const MOST_NODES = 20_000
const MOST_TURNS = 1_000
/** A larger tree is given with so many of the root's newest turns, and the open ones. */
const NEWEST_TURNS = 50
const PAGE = 500

/** Reads a tree: with all of its nodes, or only with those that are open. */
export async function readTreeData(store: StoreReader, rootId: Id, nodes: 'all' | 'open'): Promise<TreeData> {
  const root = await look(store, rootId, (tree) => tree.conversation(rootId))
  const isLong = (root?.turnCount ?? 0) > MOST_TURNS
  const conversations = isLong ? undefined : await conversationsOf(store, rootId)
  if (conversations === undefined) return readOpen(store, rootId)
  return look(store, rootId, (tree) => {
    const turns = conversations.flatMap(({ id, turnCount }) => [...tree.turnsOf(id, { limit: Math.max(1, turnCount) })])
    const total = turns.reduce((sum, { nodeCount }) => sum + nodeCount, 0)
    return dataOf(tree, { rootId, conversations, turns }, nodes === 'open' || total > MOST_NODES)
  })
}

/** Reads what is open of a large tree, and its newest turns. */
async function readOpen(store: StoreReader, rootId: Id): Promise<TreeData> {
  const open = await store.openTurns(MOST_TURNS, rootId)
  return look(store, rootId, (tree) => {
    const runs = open.flatMap(({ id }) => [...idsUpward((turnId) => tree.link(turnId), id)])
    const newest = tree.turnsOf(rootId, { limit: NEWEST_TURNS })
    const turns = new Map(newest.map((turn) => [turn.id, turn]))
    for (const turn of runs.flatMap((id) => tree.turn(id) ?? [])) turns.set(turn.id, turn)
    const ids = new Set([rootId, ...[...turns.values()].map(({ conversationId }) => conversationId)])
    const conversations = [...ids].flatMap((id) => tree.conversation(id) ?? [])
    return dataOf(tree, { rootId, conversations, turns: [...turns.values()] }, true)
  })
}

type TreeParts = Pick<TreeData, 'rootId' | 'conversations' | 'turns'>

function dataOf(tree: TreeReader, { rootId, conversations, turns }: TreeParts, isCut: boolean): TreeData {
  const nodes = turns.flatMap(({ id }) => [...(isCut ? tree.openNodes(id) : tree.nodesOf(id))])
  return {
    rootId,
    lastSeq: tree.lastSeq(rootId),
    conversations: conversations.map((row) => ({ ...row, ceiling: [] })),
    turns: turns.map((row) => ({ ...row, ceiling: [], attributes: null, requestHash: null })),
    nodes,
    edges: isCut ? [] : nodes.flatMap(({ id }) => [...tree.edgesFrom(id)]),
    links: turns.flatMap(({ id }) => [...(isCut ? tree.openLinks(id) : tree.linksOf(id))]),
    isCut,
  }
}

/** The conversations of a tree; undefined where it has too many turns. */
async function conversationsOf(store: StoreReader, rootId: Id): Promise<readonly Conversation[] | undefined> {
  const rows: Conversation[] = []
  for (let after: Id | undefined; ; ) {
    const page = await store.conversations({ rootId, limit: PAGE, ...(after === undefined ? {} : { after }) })
    rows.push(...page)
    after = page.at(-1)?.id
    if (rows.reduce((sum, { turnCount }) => sum + turnCount, 0) > MOST_TURNS) return undefined
    if (page.length < PAGE) return rows
  }
}
