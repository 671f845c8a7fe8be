// The graph as columns: one for each conversation and lane.

import type { GraphData, GraphNode } from '../../data/types.ts'

export interface Column {
  readonly id: string
  readonly agent: string
  /** What it is to the others: `lane main`, `child of lead`, `forked lane`. */
  readonly role: string
  readonly isFork: boolean
  readonly nodes: readonly GraphNode[]
  readonly edges: GraphData['edges']
  /** How many versions a node has, by its set. */
  readonly versions: GraphData['versions']
  /** The node of another column that it begins from. */
  readonly from: string | null
}

/** A conversation to load, and what it is to the others. */
export interface ColumnNode {
  readonly id: string
  readonly role: string
  readonly from: string | null
}

/** A subagent stands right behind the one that asked it, with all of its own. */
export function nearTheirHosts(columns: readonly Column[]): readonly Column[] {
  const hosts = new Map(columns.flatMap((column) => column.nodes.map(({ id }) => [id, column] as const)))
  const hostOf = ({ from }: Column) => (from === null ? undefined : hosts.get(from))
  const withOwn = (column: Column): readonly Column[] => [
    column,
    ...columns.filter((one) => one !== column && hostOf(one) === column).flatMap(withOwn),
  ]
  return columns.filter((column) => hostOf(column) === undefined).flatMap(withOwn)
}

/** The subagents and lanes of a conversation. */
export function nextOf({ nodes, lanes, agent }: GraphData): ColumnNode[] {
  const children = nodes.flatMap(({ id, childConversationId }) =>
    childConversationId === null ? [] : [{ id: childConversationId, role: `child of ${agent}`, from: id }],
  )
  return [...children, ...lanes.map(({ id }) => ({ id, role: 'forked lane', from: null }))]
}

export function columnOf(data: GraphData, { role, from }: Omit<ColumnNode, 'id'>): Column {
  const nodes = data.nodes.filter(({ isActive }) => isActive)
  const kept = new Set(nodes.map(({ id }) => id))
  return {
    id: data.conversationId,
    agent: data.agent,
    role: data.forkedAt === null ? role : `${role}, ${data.title ?? 'forked'}`,
    isFork: data.forkedAt !== null,
    nodes,
    edges: data.edges.filter(({ from: a, to: b }) => kept.has(a) && kept.has(b)),
    versions: data.versions,
    from: from ?? data.forkedAt,
  }
}
