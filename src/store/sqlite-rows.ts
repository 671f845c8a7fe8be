import { parseOwnJson } from '../base/json.ts'
import { NO_USAGE, type Usage } from '../graph/content.ts'
import { changedConversation, changedLink, changedNode, changedTurn } from '../graph/copy.ts'
import type { Conversation, Edge, EdgeType, Link, Node, Turn } from '../graph/rows.ts'
import { isOpen } from '../graph/states.ts'
import type { SqlRow, SqlValue } from './sqlite-driver.ts'

/** The columns of `rows`, in the order they are written. */
export const COLUMNS = 'n, id, slot, version, home, parent, ordinal, queue, due, mark, data'
/** What a row is made of again. */
export const PARTS = 'rows.n, rows.id, rows.version, rows.home, rows.parent, rows.ordinal, rows.data'
/** Where they are in the values of a row. */
export const AT = { n: 0, id: 1, slot: 2, version: 3, home: 4, parent: 5, ordinal: 6, width: 11 } as const

/** Each adds the values of one row, with 0 for its number. */
export function pushConversation(values: SqlValue[], row: Conversation): void {
  values.push(0, row.id, 'c', row.version, row.rootId, null, null, null, null, null, packConversation(row))
}

export function pushTurn(values: SqlValue[], row: Turn): void {
  const { id, version, conversationId, laneId, ordinal, state } = row
  const isQueued = state === 'queued'
  const queue = isQueued ? `q${laneId}` : state === 'running' ? 't' : null
  const due = isQueued ? ordinal : state === 'running' ? row.deadline : null
  const stop = state === 'ended' ? null : (row.cancel?.at ?? null)
  values.push(0, id, 't', version, conversationId, laneId, ordinal, queue, due, stop, packTurn(row))
}

export function pushNode(values: SqlValue[], row: Node): void {
  const { id, version, conversationId, turnId, ordinal, state } = row
  const isReady = state === 'pending' && row.blockers === 0
  const wake = state === 'pending' ? row.wakeAt : null
  const queue = isReady ? 'r' : row.engineId !== null && isOpen(state) ? `e${row.engineId}` : null
  const due = isReady ? row.createdAt : null
  values.push(0, id, 'n', version, conversationId, turnId, ordinal, queue, due, wake, packNode(row))
}

export function pushLink(values: SqlValue[], row: Link): void {
  const { id, version, hostConversationId, hostTurnId, ordinal } = row
  values.push(0, id, 'l', version, hostConversationId, hostTurnId, ordinal, null, null, null, packLink(row))
}

/** The slot of a turn, node or link at its parent. */
export function memberSlot(slot: string, ordinal: number, n: number): string {
  return `${memberSlotsFrom(slot, ordinal)}${n.toString(36).padStart(8, '0')}`
}

/** Less than the slot of every member with at least this ordinal. */
export function memberSlotsFrom(slot: string, ordinal: number): string {
  return slot.toUpperCase() + Math.min(Math.max(0, ordinal), MAX_ORDINAL).toString(16).padStart(8, '0')
}

const MAX_ORDINAL = 0xffff_ffff

export function keySlot(kind: string, key: string): string {
  return `K${kind}\n${key}`
}

/** An edge has a key at both of its nodes. */
export function edgeSlots({ from, to, type }: Edge): readonly [atFrom: string, atTo: string] {
  return [`>${to}${type.charAt(0)}`, `<${from}${type.charAt(0)}`]
}

export function toConversation([, id, version, home, , , data]: SqlRow): Conversation {
  const packedRow = parsed<Conversation>(data)
  const row = changedConversation(CONVERSATION, packedRow, Number(version)) as Writable<Conversation>
  row.id = String(id)
  row.rootId = String(home)
  if (packedRow.path === undefined) row.path = [row.agent.name]
  return row
}

export function toTurn([, id, version, home, parent, ordinal, data]: SqlRow): Turn {
  const packedRow = parsed<Turn>(data)
  const row = changedTurn(TURN, packedRow, Number(version)) as Writable<Turn>
  row.id = String(id)
  row.conversationId = String(home)
  row.laneId = String(parent)
  row.ordinal = Number(ordinal)
  row.rootId = packedRow.rootId ?? row.conversationId
  return row
}

export function toNode([, id, version, home, parent, ordinal, data]: SqlRow): Node {
  const packedRow = parsed<Node>(data)
  const row = changedNode(NODE, packedRow, Number(version)) as Writable<Node>
  row.id = String(id)
  row.conversationId = String(home)
  row.turnId = String(parent)
  row.ordinal = Number(ordinal)
  row.rootId = packedRow.rootId ?? row.conversationId
  row.laneId = packedRow.laneId ?? row.conversationId
  row.versionSet = packedRow.versionSet ?? row.id
  return row
}

export function toLink([, id, version, home, parent, ordinal, data]: SqlRow): Link {
  const packedRow = parsed<Link>(data)
  const row = changedLink(LINK, packedRow, Number(version)) as Writable<Link>
  row.id = String(id)
  row.hostConversationId = String(home)
  row.hostTurnId = String(parent)
  row.ordinal = Number(ordinal)
  row.rootId = packedRow.rootId ?? row.hostConversationId
  return row
}

/** The other node and the type of an edge, by the slot it has at one of its nodes. */
export function edgeEnd(slot: string): { readonly other: string; readonly type: EdgeType } {
  return { other: slot.slice(1, -1), type: EDGE_TYPES[slot.slice(-1)] ?? 'sequence' }
}

const EDGE_TYPES: { readonly [letter: string]: EdgeType } = { s: 'sequence', d: 'dependency', b: 'branch' }

const NONE: readonly never[] = []
const EMPTY = {}

type Writable<Row> = { -readonly [Key in keyof Row]: Row[Key] }

function parsed<Row>(data: SqlValue | undefined): Partial<Row> {
  return parseOwnJson(String(data)) as Partial<Row>
}

/** Every pack leaves out what the columns say and, as undefined, what is as in the row of usual values below. */
function packConversation(row: Conversation): string {
  const { agent, path } = row
  return JSON.stringify({
    type: unless(row.type, 'user'),
    depth: unless(row.depth, 0),
    agent,
    path: path.length === 1 && path[0] === agent.name ? undefined : path,
    parentConversationId: unless(row.parentConversationId, null),
    parentTurnId: unless(row.parentTurnId, null),
    parentTaskId: unless(row.parentTaskId, null),
    owner: unless(row.owner, null),
    title: unless(row.title, null),
    metadata: unlessEmpty(row.metadata),
    ceiling: row.ceiling.length === 0 ? undefined : row.ceiling,
    groups: unless(row.groups, null),
    activeTurnId: unless(row.activeTurnId, null),
    turnCount: row.turnCount,
    createdAt: row.createdAt,
  })
}

function packTurn(row: Turn): string {
  return JSON.stringify({
    rootId: unless(row.rootId, row.conversationId),
    state: unless(row.state, 'running'),
    input: unless(row.input, null),
    limits: row.limits,
    account: row.account,
    deadline: unless(row.deadline, null),
    cancel: unless(row.cancel, null),
    outcome: unless(row.outcome, null),
    nodeCount: row.nodeCount,
    entryNodeId: row.entryNodeId,
    afterSeq: unless(row.afterSeq, 0),
    createdAt: row.createdAt,
    startedAt: unless(row.startedAt, null),
    endedAt: unless(row.endedAt, null),
  })
}

function packNode(row: Node): string {
  return JSON.stringify({
    rootId: unless(row.rootId, row.conversationId),
    laneId: unless(row.laneId, row.conversationId),
    kind: row.kind,
    purpose: unless(row.purpose, null),
    state: unless(row.state, 'finished'),
    input: unlessEmpty(row.input),
    output: unlessEmpty(row.output),
    preview: unless(row.preview, ''),
    metadata: unlessEmpty(row.metadata),
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
    usage: isNoUsage(row.usage) ? undefined : row.usage,
    createdAt: row.createdAt,
    startedAt: unless(row.startedAt, null),
    endedAt: unless(row.endedAt, null),
  })
}

function packLink(row: Link): string {
  return JSON.stringify({
    rootId: unless(row.rootId, row.hostConversationId),
    taskId: row.taskId,
    childConversationId: row.childConversationId,
    contract: unless(row.contract, 'typed'),
    agentName: row.agentName,
    hostName: row.hostName,
    toolName: row.toolName,
    depth: row.depth,
    mode: unless(row.mode, 'parked'),
    onParentClose: unless(row.onParentClose, 'cancel'),
    released: unless(row.released, true),
    delegationContext: unless(row.delegationContext, null),
    outcome: unless(row.outcome, null),
    deliveredTo: unless(row.deliveredTo, null),
  })
}

function unless<T>(value: T, usual: T): T | undefined {
  return value === usual ? undefined : value
}

function unlessEmpty<T extends object>(value: T): T | undefined {
  for (const _ in value) return value
  return undefined
}

function isNoUsage(usage: Usage): boolean {
  return usage === NO_USAGE || ZERO_FIELDS.every((field) => usage[field] === 0)
}

const ZERO_FIELDS = Object.keys(NO_USAGE) as (keyof Usage)[]

const CONVERSATION: Conversation = {
  id: '',
  version: 1,
  rootId: '',
  type: 'user',
  depth: 0,
  agent: { name: '', hash: '' },
  path: NONE,
  parentConversationId: null,
  parentTurnId: null,
  parentTaskId: null,
  owner: null,
  title: null,
  metadata: EMPTY,
  ceiling: NONE,
  groups: null,
  activeTurnId: null,
  turnCount: 0,
  createdAt: 0,
}

const TURN: Turn = {
  id: '',
  version: 1,
  rootId: '',
  conversationId: '',
  laneId: '',
  ordinal: 0,
  state: 'running',
  input: null,
  limits: { turns: 0, toolCalls: 0, children: 0, concurrency: 0, depth: 0, wallMs: 0 },
  account: { modelCalls: 0, toolCalls: 0, children: 0, live: 0, nextRelease: 0, usage: NO_USAGE, uncertain: NONE },
  deadline: null,
  cancel: null,
  outcome: null,
  nodeCount: 0,
  entryNodeId: '',
  afterSeq: 0,
  createdAt: 0,
  startedAt: null,
  endedAt: null,
}

const NODE: Node = {
  id: '',
  version: 1,
  rootId: '',
  conversationId: '',
  laneId: '',
  turnId: '',
  ordinal: 0,
  kind: '',
  purpose: null,
  state: 'finished',
  input: EMPTY,
  output: EMPTY,
  preview: '',
  metadata: EMPTY,
  failure: null,
  versionSet: '',
  attempt: 1,
  retryOf: null,
  idempotencyKey: null,
  blockers: 0,
  wait: null,
  wakeAt: null,
  effect: 'idempotent',
  timeoutMs: null,
  engineId: null,
  epoch: 0,
  recoveries: 0,
  usage: NO_USAGE,
  createdAt: 0,
  startedAt: null,
  endedAt: null,
}

const LINK: Link = {
  id: '',
  version: 1,
  rootId: '',
  taskId: '',
  hostTurnId: '',
  hostConversationId: '',
  childConversationId: '',
  ordinal: 0,
  contract: 'typed',
  agentName: '',
  hostName: '',
  toolName: '',
  depth: 1,
  mode: 'parked',
  onParentClose: 'cancel',
  released: true,
  delegationContext: null,
  outcome: null,
  deliveredTo: null,
}
