import { sha256 } from '../../base/hash.ts'
import { canonicalJson, type Json } from '../../base/json.ts'
import { isBeside, isEager } from '../../graph/kinds.ts'
import type { Reader } from '../../graph/reader.ts'
import type { Conversation, Id, LaneFacts, Link, Node, Turn } from '../../graph/rows.ts'

/**
 * The keys of calls: the address of the node, with the try where it is not the first, and with a number where one try
 * makes several calls. A node that runs again after its process was lost has the same keys again.
 */
export class CallKeys {
  private readonly parts: AddressParts
  private readonly counts: Map<Id, { readonly epoch: number; calls: number }> = new Map()

  constructor(parts: AddressParts) {
    this.parts = parts
  }

  next(node: Node): string {
    const known = this.counts.get(node.id)
    const count = known?.epoch === node.epoch ? known : { epoch: node.epoch, calls: 0 }
    this.counts.set(node.id, count)
    count.calls++
    const tried = node.attempt > 1 ? ` try ${node.attempt}` : ''
    const called = count.calls > 1 ? ` call ${count.calls}` : ''
    return `${addressOf(this.parts, node)}${tried}${called}`
  }

  left(nodeId: Id): void {
    this.counts.delete(nodeId)
  }
}

export interface AddressParts {
  readonly store: Reader
  /** What a root is called. */
  nameOf(root: Conversation): string
  /** An item of a plan as a recording would have it. */
  clean(item: Json): Json
}

/**
 * Where a node stands, the same in every run of the same agents: the names of agents from the root, each with the place of
 * the node that started the next. Neither ids nor times are in it, nor who was first to end.
 */
export function addressOf(parts: AddressParts, node: Node): string {
  const turn = parts.store.turn(node.turnId)
  return turn === undefined ? '?' : `${turnAddress(parts, turn)}.${placeOf(parts, node)}`
}

function turnAddress(parts: AddressParts, turn: Turn): string {
  const { store } = parts
  const link = store.link(turn.id)
  const task = link === undefined ? undefined : store.node(link.taskId)
  if (link !== undefined && task !== undefined) return `${addressOf(parts, task)}/${childName(store, link)}`
  return `${homeOf(parts, turn.conversationId)}${turn.ordinal === 0 ? '' : `+${turn.ordinal}`}`
}

/** A task may start several children, or try one again. */
function childName(store: Reader, { id, taskId, hostTurnId, agentName }: Link): string {
  const siblings = store.linksOf(hostTurnId).filter((link) => link.taskId === taskId)
  return numbered(agentName, siblings.findIndex((link) => link.id === id) + 1)
}

/** A turn that no delegation asked for belongs to its conversation: by its root, by what made it, or by where it was forked. */
function homeOf(parts: AddressParts, conversationId: Id): string {
  const { store } = parts
  const conversation = store.conversation(conversationId)
  if (conversation === undefined) return '?'
  if (conversation.lane?.from != null) return laneName(parts, conversation.lane.from, conversation)
  if (conversation.parentTaskId === null) return parts.nameOf(conversation)
  const task = store.node(conversation.parentTaskId)
  return `${task === undefined ? '?' : addressOf(parts, task)}/${conversation.agent.name}`
}

/** Where it was forked, in the lane it comes from: `who@1.3` at the node 3 of the turn 1; the second one there has a number. */
function laneName(parts: AddressParts, { laneId, nodeId }: LaneStart, { lane }: Conversation): string {
  const { store } = parts
  let earlier = 0
  for (let id = lane?.before ?? null; id !== null; ) {
    const other: Conversation['lane'] = store.conversation(id)?.lane ?? null
    if (other?.from?.nodeId === nodeId) earlier++
    id = other?.before ?? null
  }
  const node = store.node(nodeId)
  const turn = node === undefined ? undefined : store.turn(node.turnId)
  const place = node === undefined ? '?' : placeOf(parts, node)
  return `${homeOf(parts, laneId)}@${numbered(`${turn?.ordinal ?? '?'}.${place}`, earlier + 1)}`
}

type LaneStart = NonNullable<LaneFacts['from']>

/** Items of a plan are known by what they are: the same item finds its child whatever else the plan holds. */
function placeOf(parts: AddressParts, node: Node): string {
  const nodes = parts.store.nodesOf(node.turnId)
  if (!isEager(node)) return String(node.ordinal - nodes.slice(0, node.ordinal).filter(isBeside).length)
  const own = itemName(parts, node)
  const equal = nodes.slice(0, node.ordinal).filter((other) => isEager(other) && itemName(parts, other) === own)
  return numbered(own, equal.length + 1)
}

function itemName({ clean }: AddressParts, { input }: Node): string {
  const item = canonicalJson(clean(input.call?.input ?? null))
  return `${input.call?.name ?? ''}:${sha256(item).slice(0, 8)}`
}

export function numbered(name: string, place: number): string {
  return place <= 1 ? name : `${name}~${place}`
}
