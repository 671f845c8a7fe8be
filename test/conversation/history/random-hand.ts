import { type Mutation, planMutate } from '../../../src/core/rules/history/mutate.ts'
import { LIMITS } from './random-children.ts'
import { RandomRuns } from './random-runs.ts'
import { isOpen, type RefEdge, type RefLane, type RefNode, type RefTurn, refNode } from './reference.ts'
import { isHopeless, runningOf } from './reference-rules.ts'

/** Turns whose nodes and edges are put in by hand. */
export abstract class RandomHand extends RandomRuns {
  byHand(lane: RefLane): string {
    const open = runningOf(lane)
    if (open?.isByHand === true && this.chance.is(0.8)) return this.addTo(open)
    const nodes = this.newNodes()
    const edges = this.newEdges(nodes)
    const running = runningOf(lane)
    const expected = running !== undefined ? 'busy' : lane.isArchived ? 'archived' : this.joined(nodes, edges)
    const scope = { conversationId: lane.id, limits: LIMITS, ceiling: [] }
    const turnId = this.expect('mutate', expected, (draft) => planMutate(draft, scope, (m) => put(m, nodes, edges)))
    if (turnId === undefined) return `by hand in ${lane.id}: ${expected}`
    const turn = this.addTurn(lane, { id: turnId, state: 'running', nodes, isByHand: true })
    this.settle(turn)
    this.bind(turn)
    const drawn = edges.map(({ from, to, type }) => `${from}-${type}->${to}`).join(', ')
    return `by hand in ${lane.id}: ${turnId} (${nodes.map(({ kind, state }) => `${kind} ${state}`).join(', ')}; ${drawn})`
  }

  /** One more node into a turn that goes on, after some that are there. */
  private addTo(turn: RefTurn): string {
    const node = refNode('agent', { state: 'pending', edges: [], isByHand: true })
    const before = turn.nodes.filter(({ by }) => by === null && this.chance.is(0.4))
    const edges = before.map((from) => ({ from, type: this.chance.pick(['sequence', 'dependency'] as const) }))
    const expected = turn.isCancelled ? 'busy' : this.added(node, edges)
    const scope = { conversationId: turn.lane.id, runId: turn.id, limits: LIMITS, ceiling: [] }
    const id = this.expect('mutate', expected, (draft) =>
      planMutate(draft, scope, (mutation) => {
        const made = mutation.createNode({ kind: 'agent_message' }).id
        for (const { from, type } of edges) mutation.createEdge(from.id, made, type)
        return made
      }),
    )
    const drawn = edges.map(({ from, type }) => `${from.id} ${type}`).join(', ')
    if (id === undefined) return `by hand into ${turn.id} after ${drawn}: ${expected}`
    node.id = id
    turn.nodes.push(node)
    return `by hand into ${turn.id} after ${drawn}: ${id}`
  }

  /** A node that cannot run any more is left out, and then nothing that is open can hold it back. */
  private added(node: RefNode, edges: readonly RefEdge[]): string {
    for (const edge of edges) {
      if (!isOpen(node) && (isOpen(edge.from) || isHopeless(edge))) return 'wrong_state'
      node.edges?.push(edge)
      if (isHopeless(edge)) node.state = 'skipped'
    }
    return 'done'
  }

  /** The last is an agent's: it is the last word, or leads to it. */
  private newNodes(): RefNode[] {
    const count = 1 + this.chance.below(4)
    return Array.from({ length: count }, (_, at) => {
      const way = this.chance.pick(at === count - 1 ? ['calls', 'said'] : ['calls', 'calls', 'said', 'user'])
      if (way === 'calls') return refNode('agent', { state: 'pending', edges: [], isByHand: true })
      return refNode(way === 'user' ? 'user' : 'agent', { text: `h${++this.count}`, edges: [], isByHand: true })
    })
  }

  private newEdges(nodes: readonly RefNode[]): NewEdge[] {
    const pairs = nodes.flatMap((_, to) => nodes.slice(0, to).map((_, from) => ({ from, to })))
    const edges = pairs.filter(() => this.chance.is(0.5))
    const turned = edges.filter(() => this.chance.is(0.03)).map(({ from, to }) => ({ from: to, to: from }))
    return [...edges, ...turned].map((edge) => ({
      ...edge,
      type: this.chance.pick(['sequence', 'dependency'] as const),
    }))
  }

  /** What is said of the edges, one after another; the nodes have them afterwards. */
  private joined(nodes: readonly RefNode[], edges: readonly NewEdge[]): string {
    for (const { from, to, type } of edges) {
      const [source, target] = [nodes[from] as RefNode, nodes[to] as RefNode]
      if (reaches(nodes, target, source)) return 'cycle'
      if (isOpen(source) && !isOpen(target)) return 'wrong_state'
      target.edges?.push({ from: source, type })
    }
    return 'done'
  }
}

interface NewEdge {
  readonly from: number
  readonly to: number
  readonly type: 'sequence' | 'dependency'
}

function reaches(nodes: readonly RefNode[], from: RefNode, goal: RefNode): boolean {
  const next = nodes.filter(({ edges }) => edges?.some((edge) => edge.from === from))
  return from === goal || next.some((node) => reaches(nodes, node, goal))
}

function put(mutation: Mutation, nodes: readonly RefNode[], edges: readonly NewEdge[]): string {
  const ids = nodes.map(({ kind, state, text }) => {
    if (kind === 'user') return mutation.createNode({ kind: 'user_message', content: text }).id
    if (state === 'pending') return mutation.createNode({ kind: 'agent_message' }).id
    return mutation.createNode({ kind: 'agent_message', state: 'finished', content: text }).id
  })
  for (const { from, to, type } of edges) mutation.createEdge(ids[from] ?? '', ids[to] ?? '', type)
  return mutation.runId
}
