import type { Column, Columns } from '../../core/base/keep-shape.ts'
import { type Commit, type EngineRow, emptyCommit } from '../../core/graph/commit.ts'
import { NO_USAGE } from '../../core/graph/content.ts'
import type { EventRow } from '../../core/graph/event.ts'
import type { OutcomeRecord } from '../../core/graph/outcome.ts'
import type { Conversation, Edge, Id, Link, Node, Turn } from '../../core/graph/rows.ts'
import { CONVERSATION_COLUMNS, LINK_COLUMNS, NODE_COLUMNS, TURN_COLUMNS } from '../../core/graph/rows.ts'

/** Rows for tests of stores: complete, plain, new (version 1) unless said otherwise. */
export type RowPlace = Pick<Node, 'rootId' | 'conversationId' | 'laneId' | 'turnId'>

export function placeIn(rootId: Id): RowPlace {
  return { rootId, conversationId: rootId, laneId: rootId, turnId: `${rootId}-turn` }
}

export function commitOf(rootId: Id | null, parts: Partial<Commit>): Commit {
  return { ...emptyCommit('mutate', 1000, rootId), ...parts }
}

export function conversationRow(id: Id, fields: Partial<Conversation> = {}): Conversation {
  return { ...testRow(CONVERSATION_COLUMNS), id, rootId: id, ...fields }
}

export function turnRow(place: RowPlace, fields: Partial<Turn> = {}): Turn {
  const { turnId: id, ...lane } = place
  return { ...testRow(TURN_COLUMNS), id, ...lane, entryNodeId: `${id}-node`, ...fields }
}

export function nodeRow(place: RowPlace, id: Id, fields: Partial<Node> = {}): Node {
  return { ...testRow(NODE_COLUMNS), id, versionSet: id, ...place, ...fields }
}

export function edgeRow(place: RowPlace, from: Id, to: Id): Edge {
  return { rootId: place.rootId, conversationId: place.conversationId, from, to, type: 'sequence' }
}

export function linkRow(place: RowPlace, id: Id, fields: Partial<Link> = {}): Link {
  const { rootId, turnId: hostTurnId, conversationId } = place
  const ends = { hostTurnId, hostConversationId: conversationId, childConversationId: conversationId }
  return { ...testRow(LINK_COLUMNS), id, rootId, taskId: `${hostTurnId}-node`, ...ends, ...fields }
}

export function engineRow(id: Id, fields: Partial<EngineRow> = {}): EngineRow {
  return { id, version: 1, bootId: 'boot', pid: 1, processStart: '1', leaseUntil: 16_000, agents: null, ...fields }
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
  return { seq: 0, at: 1000, conversationId, runId: turnId, nodeId: null, path: ['editor'], parentId: null, body }
}

/** A root conversation with one running turn and one node that is running. */
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

/** A row with the value for tests in every column, else that of a new row. */
function testRow<Row extends object>(columns: Columns<Row>): Row {
  const entries = Object.entries<Column<unknown>>(columns)
  return Object.fromEntries(entries.map(([name, { usual, fresh = usual, test = fresh }]) => [name, test])) as Row
}
