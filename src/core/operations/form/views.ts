// Rows as callers see them over HTTP: without what only the runtime needs.

import type { Conversation, Id, Node } from '../../graph/rows.ts'
import type { NodePage } from '../look/run-look.ts'
import type { Page } from './page.ts'

/** A node as lists show it. */
export interface NodeAnswer
  extends Pick<
    Node,
    | 'id'
    | 'rootId'
    | 'conversationId'
    | 'laneId'
    | 'ordinal'
    | 'kind'
    | 'purpose'
    | 'state'
    | 'input'
    | 'output'
    | 'preview'
    | 'failure'
    | 'versionSet'
    | 'attempt'
    | 'retryOf'
    | 'blockers'
    | 'wait'
    | 'wakeAt'
    | 'effect'
    | 'usage'
    | 'marks'
    | 'createdAt'
    | 'startedAt'
    | 'endedAt'
    | 'metadata'
  > {
  readonly runId: Id
}

/** A conversation or a lane as the API shows it. */
export interface ConversationAnswer
  extends Pick<
    Conversation,
    | 'id'
    | 'rootId'
    | 'path'
    | 'owner'
    | 'title'
    | 'depth'
    | 'turnCount'
    | 'createdAt'
    | 'parentConversationId'
    | 'groups'
  > {
  readonly agent: string
  readonly activeRunId: Id | null
  readonly parentRunId: Id | null
  readonly parentTaskId: Id | null
  readonly archivedAt: number | null
  readonly forkedAt: Id | null
}

/** A conversation as callers see it: without what only the runtime needs. */
export function conversationView(row: Conversation): ConversationAnswer {
  const { id, rootId, agent, path, owner, title, depth, turnCount, createdAt, activeTurnId } = row
  const { parentConversationId, parentTurnId, parentTaskId, lane, groups } = row
  return {
    id,
    rootId,
    agent: agent.name,
    path,
    owner,
    title,
    depth,
    turnCount,
    createdAt,
    activeRunId: activeTurnId,
    parentConversationId,
    parentRunId: parentTurnId,
    parentTaskId,
    archivedAt: lane?.archivedAt ?? null,
    forkedAt: lane?.from?.nodeId ?? null,
    groups,
  }
}

/** A node as callers see it. */
function nodeView(node: Node): NodeAnswer {
  const { id, rootId, conversationId, laneId, turnId, ordinal, kind, purpose, state, input, output, preview } = node
  const { failure, versionSet, attempt, retryOf, blockers, wait, wakeAt, effect, usage, marks } = node
  const { createdAt, startedAt, endedAt, metadata } = node
  return {
    ...{ id, rootId, conversationId, laneId, runId: turnId, ordinal, kind, purpose, state, input, output, preview },
    ...{ failure, versionSet, attempt, retryOf, blockers, wait, wakeAt, effect, usage, marks },
    ...{ createdAt, startedAt, endedAt, metadata },
  }
}

/** A page of nodes as callers see them. */
export function nodesView({ nodes, next }: NodePage): Page<'nodes', NodeAnswer> {
  return { nodes: nodes.map(nodeView), next }
}
