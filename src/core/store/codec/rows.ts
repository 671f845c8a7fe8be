// The stored form of rows: packed texts, and the columns by which scans find them.
//
// Owns:      which queue a row waits in, and how a packed text becomes a row again; `rows.made.ts` packs them.
// Called by: the stores that keep rows as text, and exports.
// Must stay true:
//   - A text has a hash in its commit: the same row gives the same text in every version.
//   - A field with its usual value is left out, and so is what the place of a row tells.

import { StoreError } from '../../base/error.ts'
import { parseOwnJson } from '../../base/json.ts'
import { patched } from '../../base/keep-shape.ts'
import { isOpen } from '../../graph/kinds.ts'
import {
  copyOfConversation,
  copyOfLink,
  copyOfNode,
  copyOfTurn,
  USUAL_CONVERSATION,
  USUAL_LINK,
  USUAL_TURN,
} from '../../graph/rows.made.ts'
import type { Conversation, EdgeType, Id, Link, Node, Turn } from '../../graph/rows.ts'
import {
  type AccountParts,
  type LimitParts,
  metadataWith,
  outputWith,
  type PackedOutcome,
  setTimes,
  THE_TASK,
  type TimeParts,
  type Times,
  toAccount,
  toLimits,
  toOutcome,
  toUsage,
  type UsageParts,
  usualMetadata,
  usualPreview,
} from './parts.ts'
import { packConversation, packLink, packNode, packTurn, USUAL_NODE } from './rows.made.ts'

/** The columns of `rows`, in the order they are written. */
export const COLUMNS = 'n, queue, due, mark, writer, size, data'
export const WIDTH = 7
const QUEUE = 1
export const WRITER = 4
export const SIZE = 5

/** The range of numbers for the rows of one turn. */
export const SPAN: number = 2 ** 20

/** The range of numbers for the commits of one tree in the log. */
export const COMMITS_PER_TREE: number = 2 ** 24

export function spanOf(n: number): number {
  return Math.floor(n / SPAN)
}

/** A value of one column, as SQLite stores it. */
export type SqlValue = null | number | string | Uint8Array

/** Each `push` adds the values of one row, with 0 for its number; writer and size are set when the commit is written. */
export function pushConversation(values: SqlValue[], row: Conversation): void {
  values.push(0, null, null, null, null, null, packConversation(row))
}

export function pushTurn(values: SqlValue[], row: Turn): void {
  const { laneId, ordinal, state } = row
  const isQueued = state === 'queued'
  const queue = isQueued ? `q${laneId}` : state === 'running' ? 't' : null
  const due = isQueued ? ordinal : state === 'running' ? row.deadline : null
  const stop = state === 'ended' ? null : (row.cancel?.at ?? null)
  values.push(0, queue, due, stop, null, null, packTurn(row))
}

export function pushNode(values: SqlValue[], row: Node): void {
  const queue = queueOf(row)
  const wake = row.state === 'pending' ? row.wakeAt : null
  values.push(0, queue, dueIn(queue, row), wake, null, null, packNode(row))
}

/** The queue of runnable nodes of trees without an owner. */
export const READY = 'r'

/** The queue of runnable nodes of an owner. */
export function readyQueue(owner: string | null): string {
  return owner === null ? READY : READY + owner
}

/** Puts runnable nodes into the queue of their owner. `values` are rows whose queues are those of a tree without an owner. */
export function ownQueues(values: SqlValue[], owner: string | null | undefined): void {
  if (owner == null) return
  const queue = readyQueue(owner)
  for (let at = QUEUE; at < values.length; at += WIDTH) if (values[at] === READY) values[at] = queue
}

/** The queue that a node waits in: ready, asked or timed; else the engine that claimed it. */
export function queueOf({ state, blockers, wakeAt, engineId }: Node): string | null {
  if (state === 'pending' && blockers === 0) return READY
  if (state === 'awaiting_approval') return 'a'
  if (state === 'waiting' && wakeAt !== null) return 'w'
  return engineId !== null && isOpen(state) ? `e${engineId}` : null
}

function dueIn(queue: string | null, { createdAt, wakeAt }: Node): number | null {
  if (queue === READY) return createdAt
  return queue === 'a' || queue === 'w' ? (wakeAt ?? 0) : null
}

export function pushLink(values: SqlValue[], row: Link): void {
  values.push(0, null, null, null, null, null, packLink(row))
}

/** Each end is a node's place in the span, or the id of a node elsewhere. */
export type EdgeEnds = readonly [from: number | Id, to: number | Id, letter: string]

export function pushEdges(values: SqlValue[], n: number, edges: readonly EdgeEnds[]): void {
  values.push(n, null, null, null, null, null, JSON.stringify({ edges }))
}

/** The slot of a turn in its lane. */
export function turnSlot(ordinal: number, n: number): string {
  return `${turnSlotsFrom(ordinal)}${spanOf(n).toString(36).padStart(8, '0')}`
}

/** A text less than the slot of every turn with at least this ordinal. */
export function turnSlotsFrom(ordinal: number): string {
  return `T${Math.min(Math.max(0, ordinal), MAX_ORDINAL).toString(16).padStart(8, '0')}`
}

const MAX_ORDINAL = 0xffff_ffff

export type PackedRow =
  | ({ readonly conversation: Id } & PackedConversation)
  | ({ readonly turn: Id } & PackedTurn)
  | ({ readonly node: Id } & PackedNode)
  | ({ readonly link: Id } & PackedLink)
  | { readonly edges: readonly EdgeEnds[] }

type PackedConversation = Partial<Conversation>
type PackedTurn = Partial<Omit<Turn, 'limits' | 'account' | 'outcome' | keyof Times>> & {
  readonly times?: TimeParts
  readonly limits: LimitParts
  readonly account: AccountParts
  readonly outcome?: PackedOutcome
}
type PackedNode = Partial<Omit<Node, 'usage' | keyof Times>> & {
  readonly times?: TimeParts
  readonly child?: Id
  readonly usage?: UsageParts
}
type PackedLink = Partial<Omit<Link, 'outcome'>> & { readonly outcome?: PackedOutcome }

export function toConversation({
  conversation: id,
  ...packed
}: { conversation: Id } & PackedConversation): Conversation {
  const row = patched(copyOfConversation(USUAL_CONVERSATION, 1), packed)
  row.id = id
  row.rootId = packed.rootId ?? id
  if (packed.parentConversationId === undefined && row.parentTurnId !== null) row.parentConversationId = row.rootId
  if (packed.path === undefined) row.path = [row.agent.name]
  if (packed.metadata === undefined) row.metadata = usualMetadata(row)
  return row
}

export function toTurn({ turn: id, limits, account, outcome, times, ...packed }: { turn: Id } & PackedTurn): Turn {
  const row = patched(copyOfTurn(USUAL_TURN, 1), packed)
  row.id = id
  row.laneId = packed.laneId ?? row.conversationId
  row.rootId = packed.rootId ?? row.conversationId
  row.limits = toLimits(limits)
  row.account = toAccount(account)
  setTimes(row, times)
  if (outcome !== undefined) row.outcome = toOutcome(outcome, { runId: id, conversationId: row.conversationId })
  return row
}

export function toNode({ node: id, usage, child, times, ...packed }: { node: Id } & PackedNode, turn: Turn): Node {
  const row = patched(copyOfNode(USUAL_NODE, 1), packed)
  row.id = id
  row.turnId = turn.id
  row.conversationId = turn.conversationId
  row.rootId = turn.rootId
  row.laneId = packed.laneId ?? turn.conversationId
  row.versionSet = packed.versionSet ?? id
  row.preview = packed.preview ?? usualPreview(row)
  setTimes(row, times)
  if (child !== undefined) {
    row.output = outputWith(row.output, child)
    row.metadata = metadataWith(row.metadata, child)
  }
  if (usage !== undefined) row.usage = toUsage(usage)
  return row
}

export function toLink({ link: id, outcome, ...packed }: { link: Id } & PackedLink, host: Turn): Link {
  const row = patched(copyOfLink(USUAL_LINK, 1), packed)
  row.id = id
  row.hostTurnId = host.id
  row.hostConversationId = host.conversationId
  row.rootId = host.rootId
  if (packed.toolName === undefined) row.toolName = row.agentName
  if (row.deliveredTo === THE_TASK) row.deliveredTo = row.taskId
  if (outcome !== undefined) {
    row.outcome = toOutcome(outcome, { runId: id, conversationId: row.childConversationId })
  }
  return row
}

const EDGE_TYPES: ReadonlyMap<unknown, EdgeType> = new Map([
  ['s', 'sequence'],
  ['d', 'dependency'],
  ['b', 'branch'],
])

/** Undefined for a letter that no edge is written with. */
export function edgeType(letter: unknown): EdgeType | undefined {
  return EDGE_TYPES.get(letter)
}

/** Parses a packed row. Throws StoreError when the text is damaged. */
export function parseRow(data: SqlValue | undefined): PackedRow {
  try {
    return parseOwnJson(String(data)) as PackedRow
  } catch (cause) {
    const message = `A row of the store is not what was written: ${String(data).slice(0, 80)}`
    throw new StoreError('store', `${message} (legate audit --verify says which are.)`, { cause })
  }
}
