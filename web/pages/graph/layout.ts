// Where every node stands: inside of a column from the top down, columns side by side, a child beside the task that began it.

import { Graph, layout } from '@dagrejs/dagre'
import { type ColumnPlace, type ColumnShape, type Layout, NODE, type Place } from './places.ts'

const GAP = { rank: 30, node: 16, column: 44 }
const PAD = { x: 16, top: 52, bottom: 20 }

export function layoutColumns(shapes: readonly ColumnShape[]): Layout {
  const columns: Record<string, ColumnPlace> = {}
  const nodes: Record<string, Place> = {}
  /** The height of each node below the top of the graph. */
  const heights = new Map<string, number>()
  let x = 0
  for (const shape of shapes) {
    const inside = layoutColumn(shape)
    // A column begins at the height of the node that began it.
    const y = Math.max(0, (heights.get(shape.from ?? '') ?? 0) - PAD.top)
    columns[shape.id] = { x, y, width: inside.width, height: inside.height }
    for (const [id, place] of Object.entries(inside.nodes)) {
      nodes[id] = place
      heights.set(id, y + place.y)
    }
    x += inside.width + GAP.column
  }
  return { columns, nodes }
}

function layoutColumn({ nodes, edges }: ColumnShape) {
  const graph = new Graph()
  graph.setGraph({ rankdir: 'TB', ranksep: GAP.rank, nodesep: GAP.node })
  graph.setDefaultEdgeLabel(() => ({}))
  for (const id of nodes) graph.setNode(id, { ...NODE })
  for (const { from, to } of edges) graph.setEdge(from, to)
  layout(graph)
  const placed = nodes.map((id) => [id, graph.node(id) as Place] as const)
  const width = Math.max(NODE.width, ...placed.map(([, { x }]) => x + NODE.width / 2))
  const height = Math.max(0, ...placed.map(([, { y }]) => y + NODE.height / 2))
  return {
    nodes: Object.fromEntries(
      placed.map(([id, { x, y }]) => [id, { x: x - NODE.width / 2 + PAD.x, y: y - NODE.height / 2 + PAD.top }]),
    ),
    width: width + 2 * PAD.x,
    height: height + PAD.top + PAD.bottom,
  }
}
