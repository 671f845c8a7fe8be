import type { Edge, Id } from '../rows.ts'
import type { Check } from './check.ts'
import { finding, type Place } from './finding.ts'
import type { TreeRows } from './tree-rows.ts'

function placeOf({ from, to, rootId, conversationId }: Edge): Place {
  return { subject: 'edge', id: `${from} -> ${to}`, rootId, conversationId }
}

export const edgeEnds: Check = {
  types: ['dangling_edge', 'edge_across_conversations'],
  *find({ edgesTo, nodes }) {
    for (const edges of edgesTo.values()) {
      for (const edge of edges) {
        const [from, to] = [nodes.get(edge.from), nodes.get(edge.to)]
        if (from === undefined || to === undefined) {
          const gone = from === undefined ? edge.from : edge.to
          yield finding('dangling_edge', placeOf(edge), `The ${edge.type} edge to ${edge.to} has no node ${gone}.`)
        } else if (from.conversationId !== to.conversationId) {
          const message = `The ${edge.type} edge from ${edge.from} to ${edge.to} joins two conversations.`
          yield finding('edge_across_conversations', placeOf(edge), message)
        }
      }
    }
  },
}

/** Each circle once, by the first edge that closes it. */
export const cycles: Check = {
  types: ['cycle'],
  *find(tree) {
    const done = new Set<Id>()
    for (const id of tree.nodes.keys()) {
      const closing = done.has(id) ? undefined : closingEdge(tree, id, done)
      if (closing === undefined) continue
      const message = `The edges of the conversation run in a circle: ${closing.to} comes before itself.`
      yield finding('cycle', placeOf(closing), message)
    }
  },
}

/** Walks up without recursion: a lane may be as long as it likes. */
function closingEdge({ edgesTo }: TreeRows, start: Id, done: Set<Id>): Edge | undefined {
  const trail: { readonly id: Id; next: number }[] = [{ id: start, next: 0 }]
  const onTrail = new Set<Id>([start])
  let found: Edge | undefined
  for (let top = trail.at(-1); top !== undefined; top = trail.at(-1)) {
    const edge = edgesTo.get(top.id)?.[top.next++]
    if (edge === undefined) {
      trail.pop()
      onTrail.delete(top.id)
      done.add(top.id)
    } else if (onTrail.has(edge.from)) found ??= edge
    else if (!done.has(edge.from)) {
      trail.push({ id: edge.from, next: 0 })
      onTrail.add(edge.from)
    }
  }
  return found
}
