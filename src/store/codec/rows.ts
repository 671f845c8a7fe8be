import { StoreError } from '../../base/error.ts'
import { parseOwnJson } from '../../base/json.ts'
import { copyOfConversation, copyOfLink, copyOfNode, copyOfTurn, patched } from '../../graph/copy.ts'
import { isOpen } from '../../graph/kinds.ts'
import type { Conversation, EdgeType, Id, Link, Node, Turn } from '../../graph/rows.ts'
import {
  type AccountParts,
  childOf,
  isEmpty,
  isUsualMetadata,
  type LimitParts,
  metadataBeside,
  metadataWith,
  outputBeside,
  outputWith,
  type PackedOutcome,
  packAccount,
  packLimits,
  packOutcome,
  packTimes,
  packUsage,
  setTimes,
  type TimeParts,
  type Times,
  toAccount,
  toLimits,
  toOutcome,
  toUsage,
  type UsageParts,
  unless,
  usualMetadata,
} from './parts.ts'
import { CONVERSATION, LINK, NODE, TURN } from './row-defaults.ts'

/** The columns of `rows`, in the order they are written. */
export const COLUMNS = 'n, queue, due, mark, writer, size, data'
export const WIDTH = 7
export const WRITER = 4
export const SIZE = 5

/** The range of numbers for the rows of one turn. */
export const SPAN: number = 2 ** 20

/** The range of numbers for the commits of one tree in the log. */
export const COMMITS_PER_TREE: number = 2 ** 24

export function spanOf(n: number): number {
  return Math.floor(n / SPAN)
}

/** Each function adds the values of one row, with 0 for its number; writer and size are set when the commit is written. */
/** A value of one column, as SQLite stores it. */
export type SqlValue = null | number | string | Uint8Array

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

/** The queue that a node waits in: ready, asked or timed; else the engine that claimed it. */
function queueOf({ state, blockers, wakeAt, engineId }: Node): string | null {
  if (state === 'pending' && blockers === 0) return 'r'
  if (state === 'awaiting_approval') return 'a'
  if (state === 'waiting' && wakeAt !== null) return 'w'
  return engineId !== null && isOpen(state) ? `e${engineId}` : null
}

function dueIn(queue: string | null, { createdAt, wakeAt }: Node): number | null {
  if (queue === 'r') return createdAt
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

export type Packed =
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
  const row = patched(copyOfConversation(CONVERSATION, 1), packed)
  row.id = id
  row.rootId = packed.rootId ?? id
  if (packed.parentConversationId === undefined && row.parentTurnId !== null) row.parentConversationId = row.rootId
  if (packed.path === undefined) row.path = [row.agent.name]
  if (packed.metadata === undefined) row.metadata = usualMetadata(row)
  return row
}

export function toTurn({ turn: id, limits, account, outcome, times, ...packed }: { turn: Id } & PackedTurn): Turn {
  const row = patched(copyOfTurn(TURN, 1), packed)
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
  const row = patched(copyOfNode(NODE, 1), packed)
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
  const row = patched(copyOfLink(LINK, 1), packed)
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

/** Stands for the task of the delegation, which most often receives the child's end. */
const THE_TASK = ''

const EDGE_TYPES: ReadonlyMap<unknown, EdgeType> = new Map([
  ['s', 'sequence'],
  ['d', 'dependency'],
  ['b', 'branch'],
])

/** Undefined for a letter that no edge is written with. */
export function edgeType(letter: unknown): EdgeType | undefined {
  return EDGE_TYPES.get(letter)
}

/**
 * Writes a row as JSON. Every pack function omits the fields that the turn tells and, as undefined, those with the usual values
 * below.
 */
export function packConversation(row: Conversation): string {
  const { id, agent, path } = row
  return JSON.stringify({
    conversation: id,
    version: row.version,
    rootId: unless(row.rootId, id),
    type: unless(row.type, 'user'),
    depth: unless(row.depth, 0),
    agent,
    path: path.length === 1 && path[0] === agent.name ? undefined : path,
    parentConversationId: unless(row.parentConversationId, row.parentTurnId === null ? null : row.rootId),
    parentTurnId: unless(row.parentTurnId, null),
    parentTaskId: unless(row.parentTaskId, null),
    owner: unless(row.owner, null),
    title: unless(row.title, null),
    metadata: isUsualMetadata(row) ? undefined : row.metadata,
    ceiling: row.ceiling.length === 0 ? undefined : row.ceiling,
    groups: unless(row.groups, null),
    activeTurnId: unless(row.activeTurnId, null),
    places: unless(row.places, null),
    background: row.background.length === 0 ? undefined : row.background,
    turnCount: row.turnCount,
    lane: unless(row.lane, null),
    createdAt: row.createdAt,
  })
}

export function packTurn(row: Turn): string {
  const { id, conversationId, outcome } = row
  return JSON.stringify({
    turn: id,
    version: row.version,
    rootId: unless(row.rootId, conversationId),
    conversationId,
    laneId: unless(row.laneId, conversationId),
    ordinal: unless(row.ordinal, 0),
    state: unless(row.state, 'running'),
    input: unless(row.input, null),
    limits: packLimits(row.limits),
    account: packAccount(row.account),
    deadline: unless(row.deadline, null),
    paused: unless(row.paused, null),
    spend: unless(row.spend, null),
    tree: unless(row.tree, null),
    cancel: unless(row.cancel, null),
    outcome: outcome === null ? undefined : packOutcome(outcome, { runId: id, conversationId }),
    wokenBy: unless(row.wokenBy, null),
    attributes: unless(row.attributes, null),
    history: unless(row.history, null),
    absent: unless(row.absent, null),
    nodeCount: row.nodeCount,
    afterSeq: unless(row.afterSeq, 0),
    entryNodeId: row.entryNodeId,
    times: packTimes(row),
  })
}

export function packNode(row: Node): string {
  const child = childOf(row)
  return JSON.stringify({
    node: row.id,
    version: row.version,
    laneId: unless(row.laneId, row.conversationId),
    ordinal: unless(row.ordinal, 0),
    kind: row.kind,
    purpose: unless(row.purpose, null),
    state: unless(row.state, 'finished'),
    input: unlessEmpty(row.input),
    child,
    output: child === undefined ? unlessEmpty(row.output) : outputBeside(row.output, child),
    preview: unless(row.preview, usualPreview(row)),
    metadata: child === undefined ? unlessEmpty(row.metadata) : metadataBeside(row.metadata),
    failure: unless(row.failure, null),
    versionSet: unless(row.versionSet, row.id),
    attempt: unless(row.attempt, 1),
    retryOf: unless(row.retryOf, null),
    idempotencyKey: unless(row.idempotencyKey, null),
    blockers: unless(row.blockers, 0),
    wait: unless(row.wait, null),
    wakeAt: unless(row.wakeAt, null),
    effect: unless(row.effect, 'idempotent'),
    timeoutMs: unless(row.timeoutMs, null),
    engineId: unless(row.engineId, null),
    epoch: unless(row.epoch, 0),
    recoveries: unless(row.recoveries, 0),
    usage: packUsage(row.usage),
    marks: unless(row.marks, null),
    times: packTimes(row),
  })
}

export function packLink(row: Link): string {
  const { id, childConversationId, outcome } = row
  return JSON.stringify({
    link: id,
    version: row.version,
    taskId: row.taskId,
    childConversationId,
    ordinal: unless(row.ordinal, 0),
    contract: unless(row.contract, 'typed'),
    agentName: row.agentName,
    hostName: row.hostName,
    toolName: unless(row.toolName, row.agentName),
    depth: unless(row.depth, 1),
    mode: unless(row.mode, 'parked'),
    wake: unless(row.wake, null),
    onParentClose: unless(row.onParentClose, 'cancel'),
    released: unless(row.released, true),
    keyed: unless(row.keyed, null),
    attempt: unless(row.attempt, 1),
    retry: unless(row.retry, null),
    delegationContext: unless(row.delegationContext, null),
    outcome: outcome === null ? undefined : packOutcome(outcome, { runId: id, conversationId: childConversationId }),
    deliveredTo: row.deliveredTo === row.taskId ? THE_TASK : unless(row.deliveredTo, null),
  })
}

/** The text itself, where it is short enough to be its own preview. */
function usualPreview({ input, output }: Node): string {
  const content = output.content ?? input.content
  return typeof content === 'string' ? content : ''
}

function unlessEmpty<T extends object>(value: T): T | undefined {
  return isEmpty(value) ? undefined : value
}

/** Parses a packed row. Throws StoreError when the text is damaged. */
export function parseRow(data: SqlValue | undefined): Packed {
  try {
    return parseOwnJson(String(data)) as Packed
  } catch (cause) {
    const message = `A row of the store is not what was written: ${String(data).slice(0, 80)}`
    throw new StoreError('store', `${message} (legate audit --verify says which are.)`, { cause })
  }
}
