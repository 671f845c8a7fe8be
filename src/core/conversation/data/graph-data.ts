import { anything, int, type OptionRules, readOptions, text } from '../../base/options.ts'
import { jsonBytes } from '../../base/page/json-bytes.ts'
import { PageRoom } from '../../base/page/room.ts'
import type { Usage } from '../../graph/content.ts'
import { type WaitingOn, waitOf } from '../../graph/kinds.ts'
import { isDeleted, isReplaced, rangeOf } from '../../graph/lane.ts'
import type { TreeReader } from '../../graph/reader.ts'
import type { Conversation, EdgeType, Id, Link, Node, NodeState, Purpose, Turn, TurnState } from '../../graph/rows.ts'
import { lookWith } from '../../store/look.ts'
import { missingError, notFound } from '../../store/not-found.ts'
import type { Store } from '../../store/store.ts'
import { positiveNumber } from '../page-limits.ts'
import { type LaneInfo, lanesOf } from '../tree.ts'

/** Which part of a graph to give. */
export interface GraphQuery {
  /** The most turns of the page. Default 20. */
  readonly turns?: number
  /** Turns older than this one. Default: the newest. */
  readonly before?: Id
  /** The most bytes of rows to read for the page, which has one turn in any case. Default: no limit. */
  readonly maxBytes?: number
}

/** A node of a graph, without its contents: `runtime.nodeInfo` has them. */
export interface GraphNode {
  readonly id: Id
  readonly kind: string
  /** Why a model is called; null for other nodes. */
  readonly purpose: Purpose | null
  readonly state: NodeState
  /** True where a call failed or was refused. */
  readonly isError: boolean
  /** The beginning of what it holds. */
  readonly preview: string
  /** The turn it belongs to: the id of a run. */
  readonly turnId: Id
  /** The run it belongs to: the same id. */
  readonly runId: Id
  readonly laneId: Id
  readonly conversationId: Id
  /** Nodes with the same one are versions of each other. */
  readonly versionSet: Id
  /** False for what was replaced or deleted, here or with its turn. */
  readonly isActive: boolean
  /** The number of its try, from 1. */
  readonly attempt: number
  /** The tool that a task calls; null for other nodes. */
  readonly tool: string | null
  /** The conversation of the subagent that a task started last; null where it started none. */
  readonly childConversationId: Id | null
  /** The run of that subagent. */
  readonly childRunId: Id | null
  readonly createdAt: number
  readonly startedAt: number | null
  readonly endedAt: number | null
  readonly usage: Usage
  /** Why it does not run yet; null while it runs, and when it has ended. */
  readonly wait: WaitingOn | null
}

export interface GraphEdge {
  readonly from: Id
  readonly to: Id
  readonly type: EdgeType
}

export interface GraphTurn {
  readonly id: Id
  /** Its position in its lane, from 0. */
  readonly ordinal: number
  readonly state: TurnState
  /** False where another turn has taken its place. */
  readonly isActive: boolean
  /** The turn that it replaced or was copied from. */
  readonly source: Id | null
  readonly startedAt: number | null
  readonly endedAt: number | null
}

/** A page of a lane's graph: some of its turns with all their nodes. */
export interface GraphData {
  readonly conversationId: Id
  readonly rootId: Id
  readonly agent: string
  readonly title: string | null
  /** The node that this lane was forked at; null for a first lane. */
  readonly forkedAt: Id | null
  /** Oldest first, with those that were replaced. */
  readonly turns: readonly GraphTurn[]
  /** By turn, then in their order. */
  readonly nodes: readonly GraphNode[]
  /** All edges that lead to a node of the page; they may come from a node of another page. */
  readonly edges: readonly GraphEdge[]
  /** The lanes that were forked from this one, newest first. */
  readonly lanes: readonly LaneInfo[]
  /** The nodes of the page that have versions on it, oldest first: `conversation.history.versions(nodeId)` has all of them. */
  readonly versions: { readonly [versionSet: Id]: readonly Id[] }
  /** Pass it as `before` for the page before this one; null where there is none. */
  readonly before: Id | null
  /** The tree's last event: `runtime.events(rootId, { after: seq })` goes on from here. */
  readonly seq: number
}

const QUERY: OptionRules<GraphQuery> = { turns: anything, before: text, maxBytes: int(1) }

/** Reads one page of a lane. It costs what the page holds, however long the lane is. */
export async function graphOf(store: Store, id: Id, query: GraphQuery): Promise<GraphData> {
  const { before, maxBytes } = readOptions('graph(conversationId, options)', query, QUERY)
  const found = await lookWith(store, id, (tree) => {
    const row = tree.conversation(id)
    const cursor = before === undefined ? undefined : tree.turn(before)
    if (row === undefined || (before !== undefined && cursor?.laneId !== row.id)) return { row }
    return { row, page: pageOf(tree, row, { limit: query.turns ?? 20, cursor, maxBytes }) }
  })
  if (found.row === undefined) throw await notFound(store, 'conversation', id)
  // A tree goes whole: a run of this one was not deleted, and of another one nothing is said.
  if (found.page === undefined) throw missingError('run', before ?? '', undefined)
  return found.page
}

function pageOf(
  tree: TreeReader,
  row: Conversation,
  {
    limit,
    cursor,
    maxBytes,
  }: {
    readonly limit: number
    /** Turns older than this one; undefined for the newest. */
    readonly cursor: Turn | undefined
    readonly maxBytes: number | undefined
  },
): GraphData {
  const last = (cursor?.ordinal ?? row.turnCount) - 1
  const place = { last, limit: positiveNumber(limit, 'turns') }
  const turns =
    maxBytes === undefined ? turnsUpTo(tree, row.id, place) : fittingTurns(tree, row.id, { ...place, maxBytes })
  const nodes = turns.flatMap((turn) => nodesOf(tree, row, turn))
  const first = turns[0]
  return {
    conversationId: row.id,
    rootId: row.rootId,
    agent: row.agent.name,
    title: row.title,
    forkedAt: row.lane?.from?.nodeId ?? null,
    turns: turns.map((turn) => turnOf(row, turn)),
    nodes,
    edges: nodes.flatMap(({ id }) => tree.edgesTo(id).map(({ from, to, type }) => ({ from, to, type }))),
    lanes: lanesOf(tree, row.id),
    versions: versionsIn(nodes),
    before: first === undefined || first.ordinal === 0 ? null : first.id,
    seq: tree.lastSeq(row.rootId),
  }
}

interface TurnPlace {
  readonly last: number
  readonly limit: number
}

function turnsUpTo(tree: TreeReader, id: Id, place: TurnPlace): readonly Turn[] {
  return place.last < 0 ? [] : tree.turnsOf(id, place)
}

/** The newest of them whose rows fit, oldest first. */
function fittingTurns(tree: TreeReader, id: Id, place: TurnPlace & { readonly maxBytes: number }): readonly Turn[] {
  const room = new PageRoom(place.maxBytes)
  const found: Turn[] = []
  for (let { last } = place; found.length < place.limit; last = (found[0]?.ordinal ?? 0) - 1) {
    const [turn] = turnsUpTo(tree, id, { last, limit: 1 })
    if (turn === undefined || !room.take(jsonBytes(tree.nodesOf(turn.id), room.left))) break
    found.unshift(turn)
  }
  return found
}

function turnOf({ lane }: Conversation, turn: Turn): GraphTurn {
  const { id, ordinal, state, history, startedAt, endedAt } = turn
  const isActive = rangeOf(lane, ordinal) === undefined
  return { id, ordinal, state, isActive, source: history?.source ?? null, startedAt, endedAt }
}

function nodesOf(tree: TreeReader, { lane }: Conversation, turn: Turn): GraphNode[] {
  const isActive = rangeOf(lane, turn.ordinal) === undefined
  const links = new Map(tree.linksOf(turn.id).map((link) => [link.taskId, link]))
  return tree.nodesOf(turn.id).map((node) => graphNode(tree, node, isActive, links.get(node.id)))
}

/** A node as surfaces show it. */
export function graphNode(
  tree: TreeReader,
  node: Node,
  /** Whether its turn still counts. */
  isActive: boolean,
  /** The delegation that it started last. */
  link: Link | undefined,
): GraphNode {
  const { id, kind, purpose, state, preview, turnId, laneId, conversationId, versionSet, attempt } = node
  const { createdAt, startedAt, endedAt, usage } = node
  return {
    id,
    kind,
    purpose,
    state,
    isError: node.output.isError === true,
    preview,
    turnId,
    runId: turnId,
    laneId,
    conversationId,
    versionSet,
    isActive: isActive && !isReplaced(node) && !isDeleted(node),
    attempt,
    tool: node.input.call?.name ?? null,
    childConversationId: link?.childConversationId ?? node.output.subagent?.child_conversation_id ?? null,
    childRunId: link?.id ?? null,
    createdAt,
    startedAt,
    endedAt,
    usage,
    wait: endedAt !== null || state === 'running' ? null : waitOf(tree, node),
  }
}

function versionsIn(nodes: readonly GraphNode[]): GraphData['versions'] {
  const sets = new Map<Id, Id[]>()
  for (const { id, versionSet } of nodes) sets.set(versionSet, [...(sets.get(versionSet) ?? []), id])
  return Object.fromEntries([...sets].filter(([, ids]) => ids.length > 1))
}
