import { isOpen } from '../graph/kinds.ts'
import { isReplaced, isSkipped } from '../graph/lane.ts'
import type { TreeRows } from '../graph/reader.ts'
import type { Edge, Id, Node } from '../graph/rows.ts'
import { expansionIds } from '../graph/tasks.ts'
import { type FindingPlace, finding } from '../store/archive.ts'
import type { Check } from './check.ts'

export function placeOfNode({ id, rootId, conversationId }: Node): FindingPlace {
  return { subject: 'node', id, rootId, conversationId }
}

export const nodeTimes: Check = {
  types: ['wrong_end_time'],
  *find({ nodes }) {
    for (const node of nodes.values()) {
      if (isOpen(node.state) === (node.endedAt === null)) continue
      const said = node.endedAt === null ? 'has no time of its end' : `is said to have ended at ${node.endedAt}`
      yield finding('wrong_end_time', placeOfNode(node), `The ${node.kind} ${node.id} is ${node.state} and ${said}.`)
    }
  },
}

export const nodeKinds: Check = {
  types: ['unknown_kind', 'open_but_not_executable'],
  *find({ nodes }, { kinds }) {
    for (const node of nodes.values()) {
      const kind = kinds.get(node.kind)
      const place = placeOfNode(node)
      if (kind === undefined) {
        yield finding(
          'unknown_kind',
          place,
          `This process does not know the kind "${node.kind}" of the node ${node.id}.`,
        )
      } else if (!kind.executable && isOpen(node.state)) {
        const message = `The ${node.kind} ${node.id} is ${node.state}, but nothing can run a ${node.kind}.`
        yield finding('open_but_not_executable', place, message)
      }
    }
  },
}

export const claims: Check = {
  types: ['running_without_claim', 'leftover_claim', 'lost_claim'],
  *find({ nodes }, { isAlive }) {
    for (const node of nodes.values()) {
      const { state, engineId, kind, id } = node
      const place = placeOfNode(node)
      if (state === 'running' && engineId === null) {
        yield finding('running_without_claim', place, `The ${kind} ${id} is running, but no process has claimed it.`)
      } else if (state === 'running' && engineId !== null && !isAlive(engineId)) {
        yield finding('lost_claim', place, `The ${kind} ${id} is claimed by the engine ${engineId}, which is gone.`)
      } else if (state !== 'running' && engineId !== null) {
        const message = `The ${kind} ${id} is ${state}, but the engine ${engineId} still claims it.`
        yield finding('leftover_claim', place, message)
      }
    }
  },
}

export const blockers: Check = {
  types: ['wrong_blockers', 'never_runs'],
  *find(tree) {
    for (const node of tree.nodes.values()) {
      if (node.state === 'finished' && node.blockers !== 0) {
        const message = `The ${node.kind} ${node.id} finished with ${node.blockers} blockers.`
        yield finding('wrong_blockers', placeOfNode(node), message)
      }
      if (node.state !== 'pending' && node.state !== 'awaiting_approval') continue
      const right = unsatisfied(tree, node)
      if (right !== node.blockers) {
        const message = `The ${node.kind} ${node.id} counts ${node.blockers} blockers; ${right} edges hold it back.`
        yield finding('wrong_blockers', placeOfNode(node), message)
        continue
      }
      const failed = (tree.edgesTo.get(node.id) ?? []).find((edge) => isFailed(tree, edge))
      if (failed === undefined) continue
      const message = `The ${node.kind} ${node.id} needs ${failed.from}, which ended without a result: it can never run.`
      yield finding('never_runs', placeOfNode(node), message)
    }
  },
}

/** Counts the edges that still hold a node back, and one more while its turn is queued. */
export function unsatisfied(tree: Pick<TreeRows, 'turns' | 'nodes' | 'edgesTo'>, node: Node): number {
  const turn = tree.turns.get(node.turnId)
  const queued = turn?.state === 'queued' && turn.entryNodeId === node.id ? 1 : 0
  const edges = (tree.edgesTo.get(node.id) ?? []).filter(({ type, from }) => {
    const parent = tree.nodes.get(from)
    if (type === 'branch' || parent === undefined || isReplaced(parent)) return false
    if (parent.endedAt === null || isRequiredDenial(parent)) return true
    return type === 'dependency' && parent.state !== 'finished'
  })
  return edges.length + queued
}

function isFailed({ nodes }: TreeRows, { type, from }: Edge): boolean {
  const parent = nodes.get(from)
  if (type === 'branch' || parent === undefined || parent.endedAt === null || isReplaced(parent)) return false
  return isRequiredDenial(parent) || (type === 'dependency' && parent.state !== 'finished')
}

function isRequiredDenial({ state, metadata }: Node): boolean {
  const approval = metadata['approval'] as { readonly required?: unknown } | undefined
  return state === 'rejected' && approval?.required === true
}

export const openInEnded: Check = {
  types: ['open_in_ended_turn'],
  *find({ nodes, turns }) {
    for (const node of nodes.values()) {
      if (!isOpen(node.state) || turns.get(node.turnId)?.state !== 'ended') continue
      const message = `The ${node.kind} ${node.id} is ${node.state}, but its turn ${node.turnId} has ended.`
      yield finding('open_in_ended_turn', placeOfNode(node), message)
    }
  },
}

/** A79: a stored call has its task, and no result is without its call. */
export const callsWithTasks: Check = {
  types: ['missing_task'],
  *find({ nodes }) {
    for (const node of nodes.values()) {
      const calls = node.output.calls ?? []
      if (calls.length === 0) continue
      const ids = expansionIds(node.id, calls.length)
      for (const [at, call] of calls.entries()) {
        const task = nodes.get(ids[at] ?? '')
        // A person may have allowed the call with other arguments.
        const its = task?.kind === 'task' ? task.input.call : undefined
        if (its?.id === call.id && its.name === call.name) continue
        const message = `The ${node.kind} ${node.id}: its call ${at} (${call.name}) has no task.`
        yield finding('missing_task', placeOfNode(node), message)
      }
    }
  },
}

export const bodies: Check = {
  types: ['missing_body'],
  *find({ nodes, hasBody }) {
    for (const node of nodes.values()) {
      const { bodyRef } = node.output
      if (bodyRef === undefined || hasBody(bodyRef)) continue
      const message = `The ${node.kind} ${node.id} refers to the text ${bodyRef}, which is not stored.`
      yield finding('missing_body', placeOfNode(node), message)
    }
  },
}

export const versions: Check = {
  types: ['two_active_versions'],
  *find(tree) {
    const active = new Map<Id, Node>()
    for (const node of tree.nodes.values()) {
      if (!isActive(tree, node)) continue
      const other = active.get(node.versionSet)
      active.set(node.versionSet, node)
      if (other === undefined) continue
      const message = `The ${node.kind} ${node.id} and ${other.id} are both the active version of ${node.versionSet}.`
      yield finding('two_active_versions', placeOfNode(node), message)
    }
  },
}

/** True where neither the node nor its turn was replaced. */
function isActive({ conversations, turns }: TreeRows, node: Node): boolean {
  if (isReplaced(node)) return false
  const turn = turns.get(node.turnId)
  const lane = conversations.get(node.laneId)
  return turn === undefined || lane === undefined || !isSkipped(lane, turn.ordinal)
}

function placeOf({ from, to, rootId, conversationId }: Edge): FindingPlace {
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

/** Reports each circle once, by the first edge that closes it. */
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

/** Walks up without recursion: a lane may be of any length. */
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
