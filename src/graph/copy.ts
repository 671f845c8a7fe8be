import { NO_USAGE } from './content.ts'
import type { Account, Conversation, Link, Node, Turn } from './rows.ts'

/** A row that only its maker has seen, and may still change. */
export type Own<Row> = { -readonly [Key in keyof Row]: Row[Key] }

/**
 * Copies a row in order to change it. The fields are written out for speed (base/collections): this is the hottest code of the
 * package.
 */
export function copyOfNode(row: Node, version: number): Own<Node> {
  return {
    id: row.id,
    version,
    rootId: row.rootId,
    conversationId: row.conversationId,
    laneId: row.laneId,
    turnId: row.turnId,
    ordinal: row.ordinal,
    kind: row.kind,
    purpose: row.purpose,
    state: row.state,
    input: row.input,
    output: row.output,
    preview: row.preview,
    metadata: row.metadata,
    failure: row.failure,
    versionSet: row.versionSet,
    attempt: row.attempt,
    retryOf: row.retryOf,
    idempotencyKey: row.idempotencyKey,
    blockers: row.blockers,
    wait: row.wait,
    wakeAt: row.wakeAt,
    effect: row.effect,
    timeoutMs: row.timeoutMs,
    engineId: row.engineId,
    epoch: row.epoch,
    recoveries: row.recoveries,
    usage: row.usage,
    marks: row.marks,
    createdAt: row.createdAt,
    startedAt: row.startedAt,
    endedAt: row.endedAt,
  }
}

export function copyOfTurn(row: Turn, version: number): Own<Turn> {
  return {
    id: row.id,
    version,
    rootId: row.rootId,
    conversationId: row.conversationId,
    laneId: row.laneId,
    ordinal: row.ordinal,
    state: row.state,
    input: row.input,
    limits: row.limits,
    account: row.account,
    deadline: row.deadline,
    paused: row.paused,
    spend: row.spend,
    tree: row.tree,
    cancel: row.cancel,
    outcome: row.outcome,
    wokenBy: row.wokenBy,
    attributes: row.attributes,
    history: row.history,
    absent: row.absent,
    nodeCount: row.nodeCount,
    entryNodeId: row.entryNodeId,
    afterSeq: row.afterSeq,
    createdAt: row.createdAt,
    startedAt: row.startedAt,
    endedAt: row.endedAt,
  }
}

export function copyOfConversation(row: Conversation, version: number): Own<Conversation> {
  return {
    id: row.id,
    version,
    rootId: row.rootId,
    type: row.type,
    depth: row.depth,
    agent: row.agent,
    path: row.path,
    parentConversationId: row.parentConversationId,
    parentTurnId: row.parentTurnId,
    parentTaskId: row.parentTaskId,
    owner: row.owner,
    title: row.title,
    metadata: row.metadata,
    ceiling: row.ceiling,
    groups: row.groups,
    activeTurnId: row.activeTurnId,
    places: row.places,
    background: row.background,
    turnCount: row.turnCount,
    lane: row.lane,
    createdAt: row.createdAt,
  }
}

export function copyOfLink(row: Link, version: number): Own<Link> {
  return {
    id: row.id,
    version,
    rootId: row.rootId,
    taskId: row.taskId,
    hostTurnId: row.hostTurnId,
    hostConversationId: row.hostConversationId,
    childConversationId: row.childConversationId,
    ordinal: row.ordinal,
    contract: row.contract,
    agentName: row.agentName,
    hostName: row.hostName,
    toolName: row.toolName,
    depth: row.depth,
    mode: row.mode,
    wake: row.wake,
    onParentClose: row.onParentClose,
    released: row.released,
    keyed: row.keyed,
    attempt: row.attempt,
    retry: row.retry,
    delegationContext: row.delegationContext,
    outcome: row.outcome,
    deliveredTo: row.deliveredTo,
  }
}

export function changedAccount(account: Account, patch: Partial<Account>): Account {
  const copy: Account = {
    modelCalls: account.modelCalls,
    toolCalls: account.toolCalls,
    children: account.children,
    live: account.live,
    nextRelease: account.nextRelease,
    usage: account.usage,
    uncertain: account.uncertain,
  }
  return patched(copy, patch)
}

/** Writes `patch` into a row that only its maker has seen. */
export function patched<T extends object>(copy: T, patch: Partial<T>): T {
  for (const key in patch) copy[key] = patch[key] as T[typeof key]
  return copy
}

/** A pending node with every field at its default, in the one order that all nodes have (base/collections). */
export const PENDING_NODE: Node = {
  id: '',
  version: 1,
  rootId: '',
  conversationId: '',
  laneId: '',
  turnId: '',
  ordinal: 0,
  kind: '',
  purpose: null,
  state: 'pending',
  input: {},
  output: {},
  preview: '',
  metadata: {},
  failure: null,
  versionSet: '',
  attempt: 1,
  retryOf: null,
  idempotencyKey: null,
  blockers: 0,
  wait: null,
  wakeAt: null,
  effect: 'effectful',
  timeoutMs: null,
  engineId: null,
  epoch: 0,
  recoveries: 0,
  usage: NO_USAGE,
  marks: null,
  createdAt: 0,
  startedAt: null,
  endedAt: null,
}
