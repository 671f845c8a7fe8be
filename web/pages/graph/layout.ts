// Where everything stands: nodes inside of a column from the top down, a column beside the task that began it, columns of
// one depth below each other. So the line to a child passes only the space between two depths.

import { Graph, layout } from '@dagrejs/dagre'
import { type Area, type ColumnShape, type Layout, NODE, type Point } from './places.ts'

const GAP = { rank: 34, node: 20, depth: 68, column: 24 }
const PAD = { x: 16, top: 52, bottom: 20 }
/** Lines side by side: how far apart, and how many until the places repeat. */
const LINES = { apart: 6, across: 6, below: 3 }

export function layoutColumns(shapes: readonly ColumnShape[]): Layout {
  const insides = shapes.map((shape) => layoutColumn(shape))
  const depths = depthsOf(shapes)
  const lefts = leftsOf(depths, insides)
  const placing = new Placing(lefts)
  shapes.forEach((shape, at) => {
    placing.add(shape, insides[at] ?? EMPTY, depths[at] ?? 0)
  })
  return placing.layout
}

interface Inside {
  readonly nodes: Readonly<Record<string, Point>>
  readonly width: number
  readonly height: number
}

const EMPTY: Inside = { nodes: {}, width: 0, height: 0 }

function layoutColumn({ nodes, edges }: ColumnShape): Inside {
  const graph = new Graph()
  graph.setGraph({ rankdir: 'TB', ranksep: GAP.rank, nodesep: GAP.node })
  graph.setDefaultEdgeLabel(() => ({}))
  for (const id of nodes) graph.setNode(id, { ...NODE })
  for (const { from, to } of edges) graph.setEdge(from, to)
  layout(graph)
  const placed = nodes.map((id) => [id, graph.node(id) as Point] as const)
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

/** How far each column is from a root. A host comes before its children. */
function depthsOf(shapes: readonly ColumnShape[]): readonly number[] {
  const depths: number[] = []
  const ofNode = new Map<string, number>()
  for (const { from, nodes } of shapes) {
    const depth = (ofNode.get(from ?? '') ?? -1) + 1
    depths.push(depth)
    for (const id of nodes) ofNode.set(id, depth)
  }
  return depths
}

/** Where the columns of each depth begin: after the widest of the depth before. */
function leftsOf(depths: readonly number[], insides: readonly Inside[]): readonly number[] {
  const widths: number[] = []
  depths.forEach((depth, at) => {
    widths[depth] = Math.max(widths[depth] ?? 0, insides[at]?.width ?? 0)
  })
  let left = 0
  return widths.map((width) => {
    const here = left
    left += width + GAP.depth
    return here
  })
}

/** A node in the whole graph, and whether nothing stands to the right of it in its row. */
interface Spot extends Point {
  readonly isLast: boolean
}

/** Places column after column. */
class Placing {
  private readonly columns: Record<string, Area> = {}
  private readonly nodes: Record<string, Point> = {}
  private readonly routes: Record<string, string> = {}
  private readonly spots = new Map<string, Spot>()
  private readonly lefts: readonly number[]
  /** By depth: below all columns so far, and how many lines lead there. */
  private readonly bottoms: number[] = []
  private readonly lines: number[] = []

  constructor(lefts: readonly number[]) {
    this.lefts = lefts
  }

  get layout(): Layout {
    const { columns, nodes, routes } = this
    return { columns, nodes, routes }
  }

  add({ id, nodes, from }: ColumnShape, inside: Inside, depth: number): void {
    const start = this.spots.get(from ?? '')
    const x = this.lefts[depth] ?? 0
    // A column begins at the height of the node that began it, or below the one before it.
    const y = Math.max(0, (start?.y ?? 0) - PAD.top, this.bottoms[depth] ?? 0)
    this.columns[id] = { x, y, width: inside.width, height: inside.height }
    this.bottoms[depth] = y + inside.height + GAP.column
    this.addNodes(inside, { x, y })
    const end = this.spots.get(nodes[0] ?? '')
    if (start !== undefined && end !== undefined) this.routes[id] = this.route(start, end, depth)
  }

  private addNodes({ nodes }: Inside, column: Point): void {
    const ends = new Map<number, number>()
    for (const { x, y } of Object.values(nodes)) ends.set(y, Math.max(x, ends.get(y) ?? 0))
    for (const [id, place] of Object.entries(nodes)) {
      this.nodes[id] = place
      this.spots.set(id, { x: column.x + place.x, y: column.y + place.y, isLast: place.x === ends.get(place.y) })
    }
  }

  /** From the right of a node, below those beside it, through the space before the next depth, to the child. */
  private route(start: Spot, end: Point, depth: number): string {
    const line = this.lines[depth] ?? 0
    this.lines[depth] = line + 1
    const channel = (this.lefts[depth] ?? 0) - GAP.depth + 20 + (line % LINES.across) * LINES.apart
    const right = start.x + NODE.width
    const under = start.y + NODE.height + 8 + (line % LINES.below) * LINES.apart
    const around = start.isLast ? '' : `H${right + GAP.node / 2} V${under} `
    return `M${right},${start.y + NODE.height / 2} ${around}H${channel} V${end.y + NODE.height / 2} H${end.x}`
  }
}
