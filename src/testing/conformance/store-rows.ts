import { type Commit, emptyCommit } from '../../graph/commit.ts'
import { NO_USAGE } from '../../graph/content.ts'
import type { EventRow } from '../../graph/event.ts'
import type { OutcomeRecord } from '../../graph/outcome.ts'
import type { Conversation, Edge, EngineRow, Id, Link, Node, Turn } from '../../graph/rows.ts'

/** The place of a test row. Rows here are complete and plain, with version 1 unless stated otherwise. */
export type RowPlace = Pick<Node, 'rootId' | 'conversationId' | 'laneId' | 'turnId'>

export function placeIn(rootId: Id): RowPlace {
  return { rootId, conversationId: rootId, laneId: rootId, turnId: `${rootId}-turn` }
}

export function commitOf(rootId: Id | null, parts: Partial<Commit>): Commit {
  return { ...emptyCommit('mutate', 1000, rootId), ...parts }
}

export function conversationRow(id: Id, fields: Partial<Conversation> = {}): Conversation {
  return {
    id,
    version: 1,
    rootId: id,
    type: 'user',
    depth: 0,
    agent: { name: 'editor', hash: 'h1' },
    path: ['editor'],
    parentConversationId: null,
    parentTurnId: null,
    parentTaskId: null,
    owner: null,
    title: null,
    metadata: {},
    ceiling: [],
    groups: null,
    activeTurnId: null,
    places: null,
    background: [],
    turnCount: 1,
    lane: null,
    createdAt: 1000,
    ...fields,
  }
}

export function turnRow(place: RowPlace, fields: Partial<Turn> = {}): Turn {
  return {
    id: place.turnId,
    version: 1,
    rootId: place.rootId,
    conversationId: place.conversationId,
    laneId: place.laneId,
    ordinal: 0,
    state: 'running',
    input: 'hello',
    limits: { turns: 50, toolCalls: 1000, children: 100, concurrency: 20, depth: 5, wallMs: 3_600_000 },
    account: { modelCalls: 0, toolCalls: 0, children: 0, live: 0, nextRelease: 0, usage: NO_USAGE, uncertain: [] },
    deadline: null,
    paused: null,
    spend: null,
    tree: null,
    cancel: null,
    outcome: null,
    wokenBy: null,
    attributes: null,
    history: null,
    absent: null,
    nodeCount: 0,
    afterSeq: 0,
    entryNodeId: `${place.turnId}-node`,
    createdAt: 1000,
    startedAt: 1000,
    endedAt: null,
    ...fields,
  }
}

export function nodeRow(place: RowPlace, id: Id, fields: Partial<Node> = {}): Node {
  return {
    id,
    version: 1,
    ...place,
    ordinal: 0,
    kind: 'task',
    purpose: null,
    state: 'pending',
    input: { call: { id: 'call_1', name: 'search', input: { q: 'http' } } },
    output: {},
    preview: '',
    metadata: {},
    failure: null,
    versionSet: id,
    attempt: 1,
    retryOf: null,
    idempotencyKey: null,
    blockers: 0,
    wait: null,
    wakeAt: null,
    effect: 'pure',
    timeoutMs: null,
    engineId: null,
    epoch: 0,
    recoveries: 0,
    usage: NO_USAGE,
    marks: null,
    createdAt: 1000,
    startedAt: null,
    endedAt: null,
    ...fields,
  }
}

export function edgeRow(place: RowPlace, from: Id, to: Id): Edge {
  return { rootId: place.rootId, conversationId: place.conversationId, from, to, type: 'sequence' }
}

export function linkRow(place: RowPlace, id: Id, fields: Partial<Link> = {}): Link {
  return {
    id,
    version: 1,
    rootId: place.rootId,
    taskId: `${place.turnId}-node`,
    hostTurnId: place.turnId,
    hostConversationId: place.conversationId,
    childConversationId: place.conversationId,
    ordinal: 0,
    contract: 'typed',
    agentName: 'researcher',
    hostName: 'editor',
    toolName: 'research',
    depth: 1,
    mode: 'parked',
    wake: null,
    released: true,
    keyed: null,
    attempt: 1,
    retry: null,
    onParentClose: 'cancel',
    delegationContext: null,
    outcome: null,
    deliveredTo: null,
    ...fields,
  }
}

export function engineRow(id: Id, fields: Partial<EngineRow> = {}): EngineRow {
  return { id, version: 1, bootId: 'boot', pid: 1, processStart: '1', leaseUntil: 16_000, ...fields }
}

export function outcomeOf(runId: Id, conversationId: Id): OutcomeRecord {
  return {
    status: 'completed',
    runId,
    conversationId,
    answerNodeId: null,
    error: null,
    usage: NO_USAGE,
    modelCalls: 1,
    toolCalls: 0,
    children: 0,
    durationMs: 1,
    retryable: false,
    advice: null,
    uncertain: [],
    open: [],
    absent: [],
    delegations: [],
  }
}

export function warningEvent({ conversationId, turnId }: RowPlace, message: string): EventRow {
  const body = { type: 'warning', message } as const
  return { seq: 0, at: 1000, conversationId, turnId, nodeId: null, path: ['editor'], parentId: null, body }
}

/** Makes a root conversation with a running turn and a running node. */
export function treeCommit(rootId: Id, parts: Partial<Commit> = {}): Commit {
  const place = placeIn(rootId)
  return commitOf(rootId, {
    kind: 'say',
    conversations: [conversationRow(rootId)],
    turns: [turnRow(place)],
    nodes: [nodeRow(place, `${place.turnId}-node`, { state: 'running', engineId: 'engine-0', epoch: 1 })],
    ...parts,
  })
}

/** Makes the next version of a row. */
export function next<Row extends { readonly version: number }>(row: Row, fields: Partial<Row> = {}): Row {
  return { ...row, ...fields, version: row.version + 1 }
}
