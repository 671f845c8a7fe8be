import type { Draft } from '../draft.ts'
import { nodeOf, refused, turnOf } from '../refused.ts'
import type { Id, Node, NodeMarks } from '../rows.ts'
import { NO_MARKS } from './retry-node.ts'

export type VisibilityChange = 'exclude' | 'include' | 'delete' | 'restore'

/**
 * What models (`exclude`, `include`) or models and people (`delete`, `restore`) are shown of a node that has ended. Nothing
 * is lost, and nothing that runs is disturbed: it has its context already.
 */
export function planVisibility(draft: Draft, nodeId: Id, { conversationId, change }: VisibilityRequest): void {
  const node = nodeOf(draft, conversationId, nodeId)
  if (node.endedAt === null) {
    const message = `The node ${nodeId} is ${node.state}: it can be hidden when it has ended. Stop it first.`
    throw refused('wrong_state', message, { nodeId, state: node.state })
  }
  mark(draft, node, change)
}

export interface VisibilityRequest {
  readonly conversationId: Id
  readonly change: VisibilityChange
}

/** Of a turn that is over, models are shown only these nodes. People see all of it, as before. */
export function planCompact(draft: Draft, turnId: Id, { conversationId, keep }: CompactRequest): Id[] {
  const turn = turnOf(draft, conversationId, turnId)
  if (turn.state !== 'ended') {
    throw refused('busy', `The turn ${turnId} is ${turn.state}: it can be compacted when it has ended.`, { turnId })
  }
  const nodes = draft.nodesOf(turnId).filter(({ marks }) => marks?.replacedBy == null)
  for (const id of keep) requireNodeOf(nodes, turnId, id)
  const hidden = nodes.filter(({ id, marks }) => !keep.includes(id) && marks?.excludedAt == null)
  for (const node of hidden) draft.changeNode(node, { marks: { ...NO_MARKS, ...node.marks, excludedAt: draft.now } })
  const ids = hidden.map(({ id }) => id)
  if (ids.length > 0)
    draft.event(turn, null, { type: 'graph-change', change: 'compact', detail: { turn: turnId, excluded: ids } })
  return ids
}

export interface CompactRequest {
  readonly conversationId: Id
  readonly keep: readonly Id[]
}

function requireNodeOf(nodes: readonly Node[], turnId: Id, id: Id): void {
  if (nodes.some((node) => node.id === id)) return
  throw refused('not_related', `The node ${id} to keep is not one of the turn ${turnId}.`, { nodeId: id, turnId })
}

function mark(draft: Draft, node: Node, change: VisibilityChange): void {
  const before = node.marks ?? NO_MARKS
  const marks = { ...before, ...PATCHES[change](before, draft.now) }
  if (marks.excludedAt === before.excludedAt && marks.deletedAt === before.deletedAt) return
  const isBare = Object.values(marks).every((value) => value === null)
  draft.changeNode(node, { marks: isBare ? null : marks })
  draft.event(draft.turn(node.turnId), node.id, { type: 'graph-change', change, detail: { node: node.id } })
}

type Patch = (marks: NodeMarks, now: number) => Partial<NodeMarks>

const PATCHES: Readonly<Record<VisibilityChange, Patch>> = {
  exclude: ({ excludedAt }, now) => ({ excludedAt: excludedAt ?? now }),
  include: () => ({ excludedAt: null }),
  delete: ({ deletedAt }, now) => ({ deletedAt: deletedAt ?? now }),
  restore: () => ({ deletedAt: null }),
}
