import { DefinitionError } from '../../core/base/error.ts'
import { sha256 } from '../../core/base/hash.ts'
import { canonicalJson, type Json } from '../../core/base/json.ts'
import { isBeside, isEager } from '../../core/graph/kinds.ts'
import type { TreeReader } from '../../core/graph/reader.ts'
import type { Conversation, Id, LaneFacts, Link, Node, Turn } from '../../core/graph/rows.ts'
import type { LocalStore, Store } from '../../core/store/store.ts'

/**
 * Makes the keys of calls: the address of the node, plus the try if it is not the first, plus a number if one try makes
 * several calls. A node that runs again after its process was lost gets the same keys.
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
  readonly store: TreeReader
  /** Returns the name of a root. */
  nameOf(root: Conversation): string
  /** Cleans an item of a plan as a recording would. */
  clean(item: Json): Json
}

/** The store of a runtime that is recorded or played back: calls are named by rows, which must be there at once. */
export function storeHere({ store }: { readonly store: Store }, who: string): LocalStore {
  if ('conversation' in store) return store as LocalStore
  const message = `${who}: the store "${store.name}" is not in this process. Use memoryStore(), jsonStore() or sqliteStore().`
  throw new DefinitionError('definition', message)
}

/**
 * Returns the address of a node, equal in every run of the same agents: the names of agents from the root, each with
 * the place of the node that started the next. It contains no ids, no times, and no order of ends.
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

/** Names a child: a task may start several, or retry one. */
function childName(store: TreeReader, { id, taskId, hostTurnId, agentName }: Link): string {
  const siblings = store.linksOf(hostTurnId).filter((link) => link.taskId === taskId)
  return numbered(agentName, siblings.findIndex((link) => link.id === id) + 1)
}

/** Addresses a turn that no delegation started, by the root of its conversation, by its origin, or by its fork. */
function homeOf(parts: AddressParts, conversationId: Id): string {
  const { store } = parts
  const conversation = store.conversation(conversationId)
  if (conversation === undefined) return '?'
  if (conversation.lane?.from != null) return laneName(parts, conversation.lane.from, conversation)
  if (conversation.parentTaskId === null) return parts.nameOf(conversation)
  const task = store.node(conversation.parentTaskId)
  return `${task === undefined ? '?' : addressOf(parts, task)}/${conversation.agent.name}`
}

/** Names a lane by its fork: `who@1.3` at node 3 of turn 1; a second fork there gets a number. */
function laneName(
  parts: AddressParts,
  { laneId, nodeId }: NonNullable<LaneFacts['from']>,
  { lane }: Conversation,
): string {
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

/** Addresses items of a plan by content: an item finds its child whatever else the plan contains. */
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
