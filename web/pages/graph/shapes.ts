// What the graph draws: frames of columns, nodes in them, and lines.

import { type Edge, MarkerType, type Node } from '@xyflow/react'
import type { GraphNode } from '../../data/types.ts'
import { span, tokens } from '../../words/format.ts'
import type { Shown } from '../../words/shown.ts'
import type { Column } from './columns.ts'
import { type Layout, NODE } from './places.ts'

export interface CallFacts extends Record<string, unknown> {
  readonly state: Shown
  readonly name: string
  readonly line: string
  readonly isCode: boolean
  readonly versions: number
}

export interface FrameFacts extends Record<string, unknown> {
  readonly agent: string
  readonly role: string
  readonly isFork: boolean
}

export type DrawnNode = Node<CallFacts, 'call'> | Node<FrameFacts, 'frame'>

export function drawNodes(columns: readonly Column[], layout: Layout): DrawnNode[] {
  return columns.flatMap((column) => {
    const place = layout.columns[column.id]
    if (place === undefined) return []
    const { x, y, width, height } = place
    const frame: DrawnNode = {
      id: column.id,
      type: 'frame',
      position: { x, y },
      width,
      height,
      data: { agent: column.agent, role: column.role, isFork: column.isFork },
      selectable: false,
      focusable: false,
    }
    return [frame, ...column.nodes.map((node) => drawNode(node, column, layout))]
  })
}

function drawNode(node: GraphNode, column: Column, layout: Layout): DrawnNode {
  const facts = factsOf(node, column)
  return {
    id: node.id,
    type: 'call',
    parentId: column.id,
    position: layout.nodes[node.id] ?? { x: 0, y: 0 },
    ...NODE,
    data: facts,
    ariaLabel: `${facts.name}, ${facts.line}`,
  }
}

function factsOf(node: GraphNode, { agent, nodes, versions }: Column): CallFacts {
  const calls = nodes.filter(({ kind }) => kind === 'agent_message')
  return {
    state: shownGraphNode(node),
    name: nameOf(node, agent, calls.findIndex(({ id }) => id === node.id) + 1),
    line: lineOf(node),
    isCode: node.tool !== null && node.childConversationId === null,
    versions: versions[node.versionSet]?.length ?? 1,
  }
}

function nameOf({ kind, tool }: GraphNode, agent: string, call: number): string {
  if (tool !== null) return tool
  if (kind === 'user_message') return 'Input'
  return kind === 'agent_message' ? `${agent}, call ${call}` : kind.replaceAll('_', ' ')
}

function lineOf(node: GraphNode): string {
  const { state, usage, startedAt, endedAt, preview, wait } = node
  const used = usage.inputTokens + usage.outputTokens
  if (state === 'pending') return 'not begun'
  if (wait !== null) return `waits for ${wait.on === 'children' ? 'subagents' : wait.on}`
  const took = startedAt === null || endedAt === null ? '' : span(endedAt - startedAt)
  const parts = [used > 0 ? `${tokens(used)} tokens` : '', took].filter((part) => part !== '')
  return parts.length === 0 || node.kind === 'user_message' ? preview.slice(0, 40) : parts.join(', ')
}

export function shownGraphNode({ state, wait, isError }: Pick<GraphNode, 'state' | 'wait' | 'isError'>): Shown {
  if (state === 'awaiting_approval' || wait?.on === 'approval' || wait?.on === 'question') return 'needs'
  return state === 'finished' && isError ? 'failed' : STATES[state]
}

const STATES: Readonly<Record<GraphNode['state'], Shown>> = {
  pending: 'queued',
  awaiting_approval: 'needs',
  running: 'working',
  waiting: 'waiting',
  finished: 'done',
  errored: 'failed',
  rejected: 'cancelled',
  skipped: 'cancelled',
  stopped: 'cancelled',
  uncertain: 'uncertain',
}

const ARROW = { type: MarkerType.ArrowClosed, width: 16, height: 16 } as const

export interface RouteFacts extends Record<string, unknown> {
  readonly path: string
}

export function drawEdges(columns: readonly Column[], { routes }: Layout): Edge[] {
  const known = new Set(columns.flatMap(({ nodes }) => nodes.map(({ id }) => id)))
  return columns.flatMap(({ id, edges, nodes, from, isFork }) => {
    const inside = edges.map(({ from: a, to: b }) => ({ id: `${a} ${b}`, source: a, target: b, markerEnd: ARROW }))
    const first = nodes[0]
    if (from === null || first === undefined || !known.has(from)) return inside
    const className = isFork ? 'e-fork' : 'e-spawn'
    const begun = {
      id: `${from} ${id}`,
      source: from,
      target: first.id,
      className,
      sourceHandle: 'out',
      targetHandle: 'in',
      type: 'route',
      data: { path: routes[id] ?? '' },
    }
    // Above the frames that it enters and leaves.
    return [...inside, { ...begun, markerEnd: ARROW, zIndex: 1 }]
  })
}
