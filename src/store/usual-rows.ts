import { NO_USAGE } from '../graph/content.ts'
import { PENDING_NODE } from '../graph/pending-node.ts'
import type { Conversation, Link, Node, Turn } from '../graph/rows.ts'

const NONE: readonly never[] = []
const EMPTY = {}

/** What most rows have in each field: only what differs is written. */
export const CONVERSATION: Conversation = {
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
  places: null,
  background: NONE,
  turnCount: 0,
  lane: null,
  createdAt: 0,
}

export const TURN: Turn = {
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
  entryNodeId: '',
  afterSeq: 0,
  createdAt: 0,
  startedAt: null,
  endedAt: null,
}

export const NODE: Node = { ...PENDING_NODE, state: 'finished', effect: 'idempotent' }

export const LINK: Link = {
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
  wake: null,
  onParentClose: 'cancel',
  released: true,
  keyed: null,
  attempt: 1,
  retry: null,
  delegationContext: null,
  outcome: null,
  deliveredTo: null,
}
