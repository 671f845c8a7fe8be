import { deriveIds } from '../../base/id.ts'
import { ancestorsOf } from '../../graph/context.ts'
import type { Draft } from '../../graph/draft.ts'
import { changeLane, laneOf, PLAIN_LANE } from '../../graph/lane.ts'
import { nodeThatCounts, refused, requireWord } from '../../graph/refused.ts'
import type { Conversation, Id, LaneFacts, Node, Turn } from '../../graph/rows.ts'
import { slotOf, taskIdsOf } from '../../graph/tasks.ts'
import { newConversation } from '../turn/say.ts'
import { type ChangeScope, callerOf, remakeTurn } from './remake-turn.ts'

export interface ForkRequest extends ChangeScope {
  /** Whether results of the turn's children are kept, or the children run again from the first of them on. */
  readonly children: 'reuse' | 'rerun'
  /** A repeated key gives the lane that it made before. */
  readonly key: string | null
  readonly title: string | null
}

export interface ForkResult {
  readonly laneId: Id
  /** The turn that continues from the node; null where the node was the last word of its turn. */
  readonly turnId: Id | null
}

/**
 * Makes a lane that knows everything up to a node and continues on its own; its origin stays unchanged. At the last word of a
 * turn it waits for an input; elsewhere it continues from the node at once, with the results of all calls that were made
 * together.
 */
export function planFork(draft: Draft, nodeId: Id, request: ForkRequest): ForkResult {
  const node = nodeThatCounts(draft, request.conversationId, nodeId)
  requireWord(node)
  requireForkable(node)
  const source = draft.conversation(node.conversationId)
  const laneId = request.key === null ? draft.freshId() : (deriveIds(nodeId, `fork/${request.key}`, 1)[0] ?? '')
  const known = draft.findConversation(laneId)
  if (known !== undefined) return { laneId, turnId: draft.turnAt(laneId, 0)?.id ?? null }
  const turn = draft.turn(node.turnId)
  const cut = cutAt(draft, node, request.children)
  const before = turn.history?.after ?? turn.ordinal - 1
  const lane = addLane(draft, source, {
    id: laneId,
    title: request.title,
    from: { laneId: source.id, nodeId, last: cut === null ? turn.ordinal : before },
  })
  if (cut === null) {
    draft.event(turn, nodeId, {
      type: 'graph-change',
      change: 'fork',
      detail: { node: nodeId, turn: turn.id, lane: laneId },
    })
    return { laneId, turnId: null }
  }
  const remade = remakeTurn(draft, lane, {
    change: 'fork',
    source: turn,
    about: node,
    after: -1,
    caller: request.caller,
    boundsUnder: request.boundsUnder,
    ...cut,
  })
  return { laneId, turnId: remade.turn.id }
}

function requireForkable({ id, endedAt, state, marks }: Node): void {
  if (endedAt === null) {
    throw refused('wrong_state', `The node ${id} is ${state}: fork at one that has ended, or wait for it.`, {
      nodeId: id,
      state,
    })
  }
  if (marks?.deletedAt == null) return
  throw refused('deleted', `The node ${id} was deleted: restore it first, or fork at another.`, { nodeId: id })
}

/** A lane takes its agent, its settings and its conversation's layers from its origin (I1). People may continue it. */
function addLane(
  draft: Draft,
  source: Conversation,
  {
    id,
    title,
    from,
  }: { readonly id: Id; readonly title: string | null; readonly from: NonNullable<LaneFacts['from']> },
): Conversation {
  const { newest } = laneOf(source)
  const { agent, depth, path, parentConversationId, parentTurnId, parentTaskId, owner, metadata, ceiling, groups } =
    source
  const lane = newConversation(
    {
      id,
      agent,
      depth,
      path,
      parentConversationId,
      parentTurnId,
      parentTaskId,
      owner,
      metadata,
      ceiling,
      groups,
      title: title ?? source.title,
      lane: { ...PLAIN_LANE, from, before: newest },
    },
    source.rootId,
    draft.now,
  )
  draft.addConversation(lane)
  changeLane(draft, source, { newest: id })
  return lane
}

/** The part of a turn that continues from a node; null where the node was the last word. */
function cutAt(draft: Draft, node: Node, children: ForkRequest['children']) {
  const turn = draft.turn(node.turnId)
  const nodes = draft.nodesOf(turn.id).filter(({ marks }) => marks?.replacedBy == null)
  const led = leadingTo(draft, nodes, node)
  const again = children === 'rerun' ? firstWithChildren(nodes, led) : undefined
  const tip = again ?? callerOf(led, node)
  if (tip === undefined && isLastWord(draft, node, turn)) return null
  const kept = tip === undefined ? led : upTo(nodes, leadingTo(draft, nodes, tip), tip)
  requireEnded(kept, node)
  const tasks = tip === undefined ? [node] : tasksOf(kept, tip)
  const redone = again === undefined ? [] : tasks.filter(({ input }) => input.delegates === true)
  return {
    kept: kept.filter((one) => !redone.includes(one)),
    again: redone,
    edited: null,
    next: { after: tasks.length === 0 ? [node] : tasks, version: null },
  }
}

function isLastWord(draft: Draft, { id, kind }: Node, turn: Turn): boolean {
  if (turn.state !== 'ended' || draft.kinds.get(kind)?.leaf !== true) return false
  return draft.edgesFrom(id).every(({ type }) => type === 'branch')
}

/** The first message whose calls started children. */
function firstWithChildren(nodes: readonly Node[], led: readonly Node[]): Node | undefined {
  return led.find((message) => tasksOf(nodes, message).some(({ input }) => input.delegates === true))
}

function tasksOf(nodes: readonly Node[], message: Node): Node[] {
  const ids = taskIdsOf(message)
  return nodes.filter((node) => ids.includes(slotOf(node)))
}

/** Everything that led to the message, the message, and its calls: a call and its result stay together. */
function upTo(nodes: readonly Node[], led: readonly Node[], message: Node): Node[] {
  return [...led, ...tasksOf(nodes, message)]
}

function leadingTo(draft: Draft, nodes: readonly Node[], node: Node): Node[] {
  const before = ancestorsOf({ edgesTo: (id) => draft.edgesTo(id), node: (id) => draft.findNode(id) }, node)
  return nodes.filter(({ id }) => id === node.id || before.has(id))
}

function requireEnded(kept: readonly Node[], node: Node): void {
  const open = kept.find(({ endedAt }) => endedAt === null)
  if (open === undefined) return
  const message = `${open.id}, called before or together with ${node.id}, is ${open.state}: wait for it, or fork at the message that called it.`
  throw refused('open_calls', message, { nodeId: node.id, by: open.id })
}
