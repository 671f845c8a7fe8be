import { parseOwnJson } from '../base/json.ts'
import { NO_USAGE, type Usage } from '../graph/content.ts'
import { changedConversation, changedLink, changedNode, changedTurn } from '../graph/copy.ts'
import type { Conversation, Edge, EdgeType, Link, Node, Turn } from '../graph/rows.ts'
import { isOpen } from '../graph/states.ts'
import type { SqlRow, SqlValue } from './sqlite-driver.ts'

/** The columns of `rows`, in the order they are written. */
export const COLUMNS = 'id, slot, version, home, parent, ordinal, queue, due, mark, key, data'
/** What a row is made of again. */
export const PARTS = 'id, version, home, parent, ordinal, data'

/** Where a new root conversation gets the number of its tree. */
export const TREE_NUMBER = 5

export function conversationColumns(row: Conversation): SqlValue[] {
  const { id, version, rootId } = row
  const parent = id === rootId ? '' : null
  return [id, 'c', version, rootId, parent, null, null, null, null, null, packed(row, CONVERSATION)]
}

export function turnColumns(row: Turn): SqlValue[] {
  const { id, version, conversationId, laneId, ordinal, state } = row
  const isQueued = state === 'queued'
  const queue = isQueued ? `q${laneId}` : state === 'running' ? 't' : null
  const due = isQueued ? ordinal : state === 'running' ? row.deadline : null
  const stop = state === 'ended' ? null : (row.cancel?.at ?? null)
  return [id, 't', version, conversationId, laneId, ordinal, queue, due, stop, null, packed(row, TURN)]
}

export function nodeColumns(row: Node): SqlValue[] {
  const { id, version, conversationId, turnId, ordinal, state } = row
  const isReady = state === 'pending' && row.blockers === 0
  const wake = state === 'pending' ? row.wakeAt : null
  const key = row.idempotencyKey === null ? null : keyOf(row.kind, row.idempotencyKey)
  const due = isReady ? row.createdAt : null
  const queue = isReady ? 'r' : claimQueue(row)
  return [id, 'n', version, conversationId, turnId, ordinal, queue, due, wake, key, packed(row, NODE)]
}

export function linkColumns(row: Link): SqlValue[] {
  const { id, version, hostConversationId, hostTurnId, ordinal } = row
  return [id, 'l', version, hostConversationId, hostTurnId, ordinal, null, null, null, null, packed(row, LINK)]
}

/** An edge is kept at both of its nodes. */
export function edgeColumns({ from, to, type, conversationId }: Edge): [SqlValue[], SqlValue[]] {
  const end = (id: string, slot: string): SqlValue[] => [
    id,
    slot,
    1,
    conversationId,
    null,
    null,
    null,
    null,
    null,
    null,
    '',
  ]
  return [end(from, `>${to}${type.charAt(0)}`), end(to, `<${from}${type.charAt(0)}`)]
}

export function keyOf(kind: string, key: string): string {
  return `${kind}\n${key}`
}

export function toConversation([id, version, home, , , data]: SqlRow): Conversation {
  const packedRow = parsed<Conversation>(data)
  const row = changedConversation(CONVERSATION.usual, packedRow, Number(version)) as Writable<Conversation>
  row.id = String(id)
  row.rootId = String(home)
  if (packedRow.path === undefined) row.path = [row.agent.name]
  return row
}

export function toTurn([id, version, home, parent, ordinal, data]: SqlRow): Turn {
  const packedRow = parsed<Turn>(data)
  const row = changedTurn(TURN.usual, packedRow, Number(version)) as Writable<Turn>
  row.id = String(id)
  row.conversationId = String(home)
  row.laneId = String(parent)
  row.ordinal = Number(ordinal)
  row.rootId = packedRow.rootId ?? row.conversationId
  return row
}

export function toNode([id, version, home, parent, ordinal, data]: SqlRow): Node {
  const packedRow = parsed<Node>(data)
  const row = changedNode(NODE.usual, packedRow, Number(version)) as Writable<Node>
  row.id = String(id)
  row.conversationId = String(home)
  row.turnId = String(parent)
  row.ordinal = Number(ordinal)
  row.rootId = packedRow.rootId ?? row.conversationId
  row.laneId = packedRow.laneId ?? row.conversationId
  row.versionSet = packedRow.versionSet ?? row.id
  return row
}

export function toLink([id, version, home, parent, ordinal, data]: SqlRow): Link {
  const packedRow = parsed<Link>(data)
  const row = changedLink(LINK.usual, packedRow, Number(version)) as Writable<Link>
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

function claimQueue(row: Node): string | null {
  return row.engineId !== null && isOpen(row.state) ? `e${row.engineId}` : null
}

function parsed<Row>(data: SqlValue | undefined): Partial<Row> {
  return parseOwnJson(String(data)) as Partial<Row>
}

interface Packing<Row> {
  /** The fields that `data` may have. */
  readonly fields: readonly (keyof Row & string)[]
  /** A row in which every field has its usual value. */
  readonly usual: Row
  /** Has the field, as it usually has, the value of another one? */
  readonly follows: (row: Row, field: keyof Row) => boolean
}

function packed<Row>(row: Row, { fields, usual, follows }: Packing<Row>): string {
  const data: { [field: string]: unknown } = {}
  for (const field of fields) {
    const value = row[field]
    if (!isSame(value, usual[field]) && !follows(row, field)) data[field] = value
  }
  return JSON.stringify(data)
}

/** Usual values are plain, an empty list, EMPTY or NO_USAGE. */
function isSame(value: unknown, usual: unknown): boolean {
  if (value === usual) return true
  if (typeof usual !== 'object' || usual === null || typeof value !== 'object' || value === null) return false
  if (Array.isArray(usual)) return usual.length === 0 && Array.isArray(value) && value.length === 0
  if (usual === NO_USAGE) return isNoUsage(value as Usage)
  if (usual !== EMPTY || Array.isArray(value)) return false
  for (const _ in value) return false
  return true
}

function isNoUsage({ inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, ...rest }: Usage): boolean {
  const isZero = inputTokens === 0 && outputTokens === 0 && cacheReadTokens === 0 && cacheWriteTokens === 0
  return isZero && Object.keys(rest).length === 0
}

function packing<Row extends object>(usual: Row, columns: readonly (keyof Row)[], follows: Packing<Row>['follows']) {
  const fields = (Object.keys(usual) as (keyof Row & string)[]).filter((field) => !columns.includes(field))
  return { fields, usual, follows }
}

const CONVERSATION: Packing<Conversation> = packing<Conversation>(
  {
    id: '',
    version: 1,
    rootId: '',
    type: 'user',
    depth: 0,
    agent: { name: '', hash: '' },
    path: [''],
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
  },
  ['id', 'version', 'rootId'],
  (row, field) => field === 'path' && row.path.length === 1 && row.path[0] === row.agent.name,
)

const TURN: Packing<Turn> = packing<Turn>(
  {
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
    createdAt: 0,
    startedAt: null,
    endedAt: null,
  },
  ['id', 'version', 'conversationId', 'laneId', 'ordinal'],
  (row, field) => field === 'rootId' && row.rootId === row.conversationId,
)

const NODE: Packing<Node> = packing<Node>(
  {
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
  },
  ['id', 'version', 'conversationId', 'turnId', 'ordinal'],
  (row, field) =>
    field === 'rootId' || field === 'laneId'
      ? row[field] === row.conversationId
      : field === 'versionSet' && row.versionSet === row.id,
)

const LINK: Packing<Link> = packing<Link>(
  {
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
  },
  ['id', 'version', 'hostTurnId', 'hostConversationId', 'ordinal'],
  (row, field) => field === 'rootId' && row.rootId === row.hostConversationId,
)
