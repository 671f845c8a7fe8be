import type { Draft } from '../../graph/draft.ts'
import { changeLane, laneOf } from '../../graph/lane.ts'
import { nodeThatCounts, refused, turnOf } from '../../graph/refused.ts'
import type { Conversation, Id, Node, NodeMarks, Turn } from '../../graph/rows.ts'
import { stopBackground, stopRuns } from '../turn/cancel.ts'
import { NO_MARKS } from './retry-node.ts'

export type VisibilityChange = 'exclude' | 'include' | 'delete' | 'restore'

/**
 * Changes whether models (`exclude`, `include`) or models and people (`delete`, `restore`) see an ended node. Nothing is lost,
 * and running nodes are not disturbed: they have their context already.
 */
export function planVisibility(draft: Draft, nodeId: Id, conversationId: Id, change: VisibilityChange): void {
  const node = nodeThatCounts(draft, conversationId, nodeId)
  if (node.endedAt === null) {
    const message = `The node ${nodeId} is ${node.state}: it can be hidden when it has ended. Stop it first.`
    throw refused('wrong_state', message, { nodeId, state: node.state })
  }
  mark(draft, node, change)
}

/** Limits an ended turn to these nodes for models. People still see all of it. */
export function planCompact(draft: Draft, turnId: Id, conversationId: Id, keep: readonly Id[]): Id[] {
  const turn = turnOf(draft, conversationId, turnId)
  if (turn.state !== 'ended') {
    throw refused('busy', `The turn ${turnId} is ${turn.state}: it can be compacted when it has ended.`, {
      runId: turnId,
    })
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

function requireNodeOf(nodes: readonly Node[], turnId: Id, id: Id): void {
  if (nodes.some((node) => node.id === id)) return
  throw refused('not_related', `The node ${id} to keep is not one of the turn ${turnId}.`, {
    nodeId: id,
    runId: turnId,
  })
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

/** Archives a lane: no new turn begins in it. Open turns may finish, or are stopped. It stays readable. */
export function planArchive(draft: Draft, conversationId: Id, mode: 'finish' | 'cancel'): void {
  const lane = draft.conversation(conversationId)
  if (laneOf(lane).archivedAt === null) {
    changeLane(draft, lane, { archivedAt: draft.now })
    const turn = lastTurn(draft, lane)
    const detail = { lane: conversationId, mode }
    if (turn !== undefined) draft.event(turn, null, { type: 'graph-change', change: 'archive', detail })
  }
  if (mode === 'finish') return
  for (const { id } of openTurns(draft, conversationId)) {
    stopRuns(draft, id, ARCHIVED)
  }
  stopBackground(
    draft,
    lane.background.map((id) => draft.link(id)),
    ARCHIVED,
  )
}

const ARCHIVED = { cause: 'cancelled', reason: 'The lane was archived.' } as const

/** The last turn of the lane, or the one that it was forked at. */
export function lastTurn(draft: Draft, { id, lane }: Conversation): Turn | undefined {
  const [own] = draft.stored.turnsOf(id, { limit: 1 })
  if (own !== undefined || lane?.from == null) return own
  return draft.findTurn(draft.findNode(lane.from.nodeId)?.turnId ?? '')
}

/** The running turn and all queued ones, which are the last of the lane. */
function openTurns(draft: Draft, laneId: Id): Turn[] {
  return draft.stored.turnsOf(laneId, { limit: MOST_OPEN }).filter(({ state }) => state !== 'ended')
}

const MOST_OPEN = 10_000
