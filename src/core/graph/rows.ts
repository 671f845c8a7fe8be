// The rows of the graph: conversation, turn, node, edge, link, body and engine, with the small records inside of them. Beside
// each row with a version stand its columns: `rows.made.ts` (copies, usual rows) and `store/codec/rows.made.ts` (the text of a
// row) are made from them as straight-line code, because loops and spreads are slower by half and more.
//
// Owns:      the types, and for each column its usual value and how it is written. Stores decide how rows are kept.
// Called by: everything. Rules write rows through a `Draft`, stores keep them, readers and checks of all rooms read them.
// Must stay true:
//   - Rows are plain JSON data, and nobody changes a row in place: a new version replaces it.
//   - Every row but edges and bodies has a `version`, 1 when it is new. A store refuses a commit that puts version n
//     unless it holds version n - 1.
//   - Everything a run needs to continue is in its rows, so any process can continue it after a crash (I3, I5).
//   - Columns stand in the order of the fields in the text of a row, which is hashed: a new column goes to the end of its list.
//
// To add a column: a line in the interface, a line in the columns below it, then `npx vitest run src/core/graph/rows.test.ts -u`.

import type { Json } from '../base/json.ts'
import type { Columns } from '../base/keep-shape.ts'
import { type Content, NO_USAGE, type ToolCall, type Usage } from './content.ts'
import {
  type Account,
  DEFAULT_LIMITS,
  EMPTY_ACCOUNT,
  type KeyLimit,
  type KeyPlaces,
  type Spending,
  type TreePlaces,
  type TurnLimits,
} from './limits.ts'
import type { AbsentSource, OutcomeRecord } from './outcome.ts'

export type Id = string

export interface AgentRef {
  readonly name: string
  readonly hash: string
  /** The whole definition of an agent that came from a file or a call. It needs no code of its own to continue. */
  readonly inline?: Json
  /** Beside `inline`: the agent whose code it builds on; empty for none. */
  readonly code?: string
}

export interface Conversation {
  readonly id: Id
  readonly version: number
  readonly rootId: Id
  readonly type: 'user' | 'sub_agent'
  readonly depth: number
  readonly agent: AgentRef
  /** Agent names from the root, root included. */
  readonly path: readonly string[]
  readonly parentConversationId: Id | null
  readonly parentTurnId: Id | null
  readonly parentTaskId: Id | null
  readonly owner: string | null
  readonly title: string | null
  readonly metadata: { readonly [key: string]: Json }
  /** Frozen layers that bind all its turns (I1): of a root its creator's, of a child its hosts' and its own. Opaque here. */
  readonly ceiling: readonly Json[]
  readonly groups: { readonly [group: string]: boolean } | null
  /** The running turn of the lane; null when the lane is idle. */
  readonly activeTurnId: Id | null
  /** Delegations in the background that are open, or whose end the host has not heard yet. */
  readonly background: readonly Id[]
  /** Its delegations that a key limits, over all its turns; null when there are none. */
  readonly places: readonly KeyPlaces[] | null
  readonly turnCount: number
  /** Where it was forked and which of its turns no longer count; null for a plain lane. */
  readonly lane: LaneFacts | null
  readonly createdAt: number
}

export const CONVERSATION_COLUMNS: Columns<Conversation> = {
  id: { usual: '', text: { as: 'conversation' } },
  version: { usual: 1, text: 'always' },
  rootId: { usual: '', text: { same: 'id' } },
  type: { usual: 'user', oneOf: ['user', 'sub_agent'] },
  depth: { usual: 0 },
  agent: { usual: { name: '', hash: '' }, test: { name: 'editor', hash: 'h1' }, text: 'always' },
  path: { usual: [], test: ['editor'], text: { by: 'packPath' } },
  parentConversationId: { usual: null, text: { by: 'packParent' } },
  parentTurnId: { usual: null },
  parentTaskId: { usual: null },
  owner: { usual: null },
  title: { usual: null },
  metadata: { usual: {}, text: { by: 'packMetadata' } },
  ceiling: { usual: [], text: 'empty' },
  groups: { usual: null },
  activeTurnId: { usual: null },
  places: { usual: null },
  background: { usual: [], text: 'empty' },
  turnCount: { usual: 0, test: 1, text: 'always' },
  lane: { usual: null },
  createdAt: { usual: 0, test: 1000, text: 'always' },
}

/** A line of turns: a conversation's first, or a fork of one, whose id is accepted wherever a conversation's is. */
export interface LaneFacts {
  /** The node it was forked at; null for a first lane. Its history begins with that lane's turns up to `last`. */
  readonly from: (LanePlace & { readonly nodeId: Id }) | null
  /** The newest lane that was forked from this one; each names its predecessor in `before`. */
  readonly newest: Id | null
  readonly before: Id | null
  /** Ordinals of replaced turns, as ranges from and to, in order and apart. */
  readonly skips: readonly (readonly [from: number, to: number])[]
  /** The ordinal of the newest turn that holds a summary of earlier turns. */
  readonly fold: number | null
  /** Set when the lane is archived: no new turn begins in it. */
  readonly archivedAt: number | null
}

/** A lane up to one of its turns. */
export interface LanePlace {
  readonly laneId: Id
  /** The ordinal of the last turn; -1 for none of this lane's own. */
  readonly last: number
}

export type TurnState = 'queued' | 'running' | 'ended'

export interface CancelRequest {
  readonly at: number
  /** `restarted`: another input took its place, and models no longer see its work. */
  readonly cause: 'cancelled' | 'timed_out' | 'parent' | 'restarted'
  readonly reason: string | null
}

export interface Turn {
  readonly id: Id
  readonly version: number
  readonly rootId: Id
  readonly conversationId: Id
  readonly laneId: Id
  /** Position in its lane, from 0. */
  readonly ordinal: number
  readonly state: TurnState
  readonly input: Json
  readonly limits: TurnLimits
  readonly account: Account
  /** Null also while `paused`. */
  readonly deadline: number | null
  /** Its clock stops while it waits for a person, here or below: how many questions are open, and how much time was left. */
  readonly paused: { readonly asks: number; readonly leftMs: number | null } | null
  /** The spending and its limit; null when neither it nor a run above it has such a limit. */
  readonly spend: Spending | null
  /** Null when neither it nor a run above it limits the delegations of its tree. */
  readonly tree: TreePlaces | null
  readonly cancel: CancelRequest | null
  readonly outcome: OutcomeRecord | null
  /**
   * The run whose budget it continues, because it reports an end in the background. Null for a run with an input of its own.
   */
  readonly wokenBy: Id | null
  /** Attributes that its caller gave to the request; null where those of the run above apply, or none. */
  readonly attributes: { readonly [name: string]: Json } | null
  /** The turns it follows, where that is not just the turn before it in its lane; null for most. */
  readonly history: TurnHistory | null
  /** Tool sources that could not be started for this run; null for most. */
  readonly absent: readonly AbsentSource[] | null
  /** The hash of the request that started it under a key of its caller; null for a run without a key. */
  readonly requestHash: string | null
  /** Nodes so far: the ordinal of the next one. */
  readonly nodeCount: number
  /** The node that starts when the turn does. */
  readonly entryNodeId: Id
  /** The tree's sequence when the turn was made, or less: all of its events come after it. */
  readonly afterSeq: number
  readonly createdAt: number
  readonly startedAt: number | null
  readonly endedAt: number | null
  /** Frozen layers of whoever asked for it: they bind it and all it starts, retries, forks or wakes, and no later turn (I1). */
  readonly ceiling: readonly Json[]
}

export const TURN_COLUMNS: Columns<Turn> = {
  id: { usual: '', text: { as: 'turn' } },
  version: { usual: 1, text: 'always' },
  rootId: { usual: '', text: { same: 'conversationId' } },
  conversationId: { usual: '', text: 'always' },
  laneId: { usual: '', text: { same: 'conversationId' } },
  ordinal: { usual: 0 },
  state: { usual: 'running', oneOf: ['queued', 'running', 'ended'] },
  input: { usual: null, test: 'hello' },
  limits: { usual: DEFAULT_LIMITS, text: { by: 'packLimits' } },
  account: { usual: EMPTY_ACCOUNT, text: { by: 'packAccount' } },
  deadline: { usual: null },
  paused: { usual: null },
  spend: { usual: null },
  tree: { usual: null },
  cancel: { usual: null },
  outcome: { usual: null, text: { by: 'packTurnOutcome' } },
  wokenBy: { usual: null },
  attributes: { usual: null },
  history: { usual: null },
  absent: { usual: null },
  nodeCount: { usual: 0, text: 'always' },
  afterSeq: { usual: 0 },
  entryNodeId: { usual: '', text: 'always' },
  createdAt: { usual: 0, test: 1000, text: { as: 'times', by: 'packTimes' } },
  startedAt: { usual: null, test: 1000, text: 'never' },
  endedAt: { usual: null, text: 'never' },
  ceiling: { usual: [], text: 'empty' },
  requestHash: { usual: null },
}

export interface TurnHistory {
  /** The ordinal of the turn before it in its lane's history; -1 for none. */
  readonly after: number
  /** The turn that it replaced or was copied from. */
  readonly source: Id | null
  /** Other lanes that it follows too, each up to a turn. */
  readonly merges: readonly LanePlace[]
  readonly fold: Fold | null
}

/** A summary that replaces earlier turns in contexts. Transcripts ignore it. */
export interface Fold {
  readonly summaryId: Id
  /** The summary covers the nodes of this turn up to this ordinal, without people's words; null: all of them. */
  readonly upTo: number | null
  /** The place before the summary: the turn of this ordinal; -1: the lane's origin; null: nothing. */
  readonly before: number | null
  /** The turn with the next older summary that still counts. */
  readonly previous: number | null
}

export type NodeState =
  | 'pending'
  | 'awaiting_approval'
  | 'running'
  | 'waiting'
  | 'finished'
  | 'errored'
  | 'rejected'
  | 'skipped'
  | 'stopped'
  | 'uncertain'

export type Purpose = 'answer' | 'plan' | 'repair' | 'wrap_up' | 'brief' | 'summarize'

/** Whether it may run again after its claim was lost. `effectful` may not: it ends `uncertain` (I4). */
export type Effect = 'pure' | 'idempotent' | 'effectful'

export interface Wait {
  readonly on: 'children' | 'approval' | 'question' | 'timer'
  readonly refs: readonly Id[]
  readonly join: 'all' | 'any' | 'settled' | number
  readonly until: number | null
}

export interface Failure {
  readonly code: string
  readonly message: string
}

export interface Node {
  readonly id: Id
  readonly version: number
  readonly rootId: Id
  readonly conversationId: Id
  readonly laneId: Id
  readonly turnId: Id
  /** Position in its turn, from 0. Order is this, never the id. */
  readonly ordinal: number
  readonly kind: string
  readonly purpose: Purpose | null
  readonly state: NodeState
  readonly input: NodeInput
  readonly output: NodeOutput
  readonly preview: string
  readonly metadata: { readonly [key: string]: Json }
  readonly failure: Failure | null
  readonly versionSet: Id
  readonly attempt: number
  readonly retryOf: Id | null
  readonly idempotencyKey: string | null
  /** Unsatisfied blocking edges, plus one while its turn is queued. Runnable = pending and 0 and `wakeAt` due. */
  readonly blockers: number
  readonly wait: Wait | null
  readonly wakeAt: number | null
  readonly effect: Effect
  /** How long one run of it may take; null = no limit of its own. */
  readonly timeoutMs: number | null
  readonly engineId: Id | null
  /** Grows with every claim. A write that carries an older one is refused. */
  readonly epoch: number
  /** How often its claim was lost. */
  readonly recoveries: number
  readonly usage: Usage
  /** Later marks by people; null for nearly all nodes. */
  readonly marks: NodeMarks | null
  readonly createdAt: number
  readonly startedAt: number | null
  readonly endedAt: number | null
}

export const NODE_COLUMNS: Columns<Node> = {
  id: { usual: '', text: { as: 'node' } },
  version: { usual: 1, text: 'always' },
  rootId: { usual: '', text: 'never' },
  conversationId: { usual: '', text: 'never' },
  laneId: { usual: '', text: { same: 'conversationId' } },
  turnId: { usual: '', text: 'never' },
  ordinal: { usual: 0 },
  kind: { usual: '', test: 'task', text: 'always' },
  purpose: { usual: null },
  state: {
    usual: 'finished',
    fresh: 'pending',
    oneOf: [
      ...(['pending', 'awaiting_approval', 'running', 'waiting'] as const),
      ...(['finished', 'errored', 'rejected', 'skipped', 'stopped', 'uncertain'] as const),
    ],
  },
  input: { usual: {}, test: { call: { id: 'call_1', name: 'search', input: { q: 'http' } } }, text: 'empty' },
  output: { usual: {}, text: { by: 'packOutput', first: ['child', 'childOf'] } },
  preview: { usual: '', text: { by: 'packPreview' } },
  metadata: { usual: {}, text: { by: 'packNodeMetadata' } },
  failure: { usual: null },
  versionSet: { usual: '', text: { same: 'id' } },
  attempt: { usual: 1 },
  retryOf: { usual: null },
  idempotencyKey: { usual: null },
  blockers: { usual: 0 },
  wait: { usual: null },
  wakeAt: { usual: null },
  effect: { usual: 'idempotent', fresh: 'effectful', test: 'pure', oneOf: ['pure', 'idempotent', 'effectful'] },
  timeoutMs: { usual: null },
  engineId: { usual: null },
  epoch: { usual: 0 },
  recoveries: { usual: 0 },
  usage: { usual: NO_USAGE, text: { by: 'packNodeUsage' } },
  marks: { usual: null },
  createdAt: { usual: 0, test: 1000, text: { as: 'times', by: 'packTimes' } },
  startedAt: { usual: null, text: 'never' },
  endedAt: { usual: null, text: 'never' },
}

/** The columns of a task that come from options of its tool. They hold after a crash too, where nobody has the tool's code. */
export const TOOL_OPTIONS = [
  // An option that you add needs a column of the same name, and a field of `Tool`.
  'effect',
  'timeoutMs',
] as const satisfies readonly (keyof Node)[]

export type KeptOptions = Pick<Node, (typeof TOOL_OPTIONS)[number]>

export interface NodeMarks {
  /** The version that replaced it in its turn: this one no longer counts. */
  readonly replacedBy: Id | null
  /** Set when models no longer see it. */
  readonly excludedAt: number | null
  /** Set when neither models nor people see it any more. */
  readonly deletedAt: number | null
  /** Set when it runs and was asked to stop. */
  readonly stop: { readonly at: number; readonly reason: string } | null
  /** Set when it is uncertain and a person has said what became of its effect. */
  readonly settled?: Settlement
}

/** A person's word about a call whose effect may have happened. */
export interface Settlement {
  /** `left`: nobody will find out. */
  readonly how: 'happened' | 'not_happened' | 'left'
  readonly by: string
  readonly at: number
}

/** The node's input. Fields by kind; all are JSON. */
export interface NodeInput {
  /** user_message, developer_message, system_message; agent_message that writes a briefing: its material */
  readonly content?: Content
  /** developer_message: messages from elsewhere, as a model reads them */
  readonly messages?: readonly Json[]
  /** agent_message: a notice to the model before this call, beside the context */
  readonly nudge?: string
  /** task: the call that it runs */
  readonly call?: ToolCall
  /** task: this call starts a child */
  readonly delegates?: boolean
  /** kinds of users: their value */
  readonly value?: Json
}

/** The node's result. Fields by kind; all are JSON. */
export interface NodeOutput {
  /** agent_message: its text; task: the result as the model reads it */
  readonly content?: Content
  /** agent_message: the calls that its model asks for */
  readonly calls?: readonly ToolCall[]
  /** agent_message: the reasoning of its model */
  readonly reasoning?: string
  /** task, and agent_message with an output schema: the value itself */
  readonly value?: Json
  /** The hash of a large text, which is kept once by content; `content` then holds its beginning. */
  readonly bodyRef?: string
  /** The size of that text in UTF-8 */
  readonly bytes?: number
  /** task: the result is an error */
  readonly isError?: boolean
  /** task of a delegation: data about the result for code, beside its text (the reserved set of a fold) */
  readonly metadata?: { readonly [key: string]: Json }
  /** task of a delegation: its child, as in the node's own metadata */
  readonly subagent?: {
    /** Its conversation */
    readonly child_conversation_id: Id
    /** Its graph: the same id */
    readonly child_graph_id: Id
  }
  /** agent_message: values that extensions added beside the answer */
  readonly extra?: { readonly [key: string]: Json }
  /** Calls the model made beyond the limit; they are not in `calls`. */
  readonly droppedCalls?: number
}

export type EdgeType = 'sequence' | 'dependency' | 'branch'

export interface Edge {
  readonly rootId: Id
  readonly conversationId: Id
  readonly from: Id
  readonly to: Id
  readonly type: EdgeType
}

/** One delegation: a turn of a child that a task started. Its id is the child turn's id. */
export interface Link {
  readonly id: Id
  readonly version: number
  readonly rootId: Id
  readonly taskId: Id
  readonly hostTurnId: Id
  readonly hostConversationId: Id
  readonly childConversationId: Id
  /** Position among the delegations of the host's run: first come, first served. */
  readonly ordinal: number
  readonly contract: 'typed' | 'message' | 'open' | 'background'
  readonly agentName: string
  readonly hostName: string
  readonly toolName: string
  readonly depth: number
  /** parked: the task waits as a row. called: code inside the running task awaits it. background: nobody need wait. */
  readonly mode: 'parked' | 'called' | 'background'
  /** How its end in the background reaches the host: by a turn, or only by this row. Null: the host has no tools for it. */
  readonly wake: 'auto' | 'passive' | null
  readonly onParentClose: 'cancel' | 'abandon'
  /** True where the limits of its run, its key and its tree let its turn run. */
  readonly released: boolean
  readonly keyed: KeyLimit | null
  /** The number of this try of the call, from 1. */
  readonly attempt: number
  /** How many further tries it has, and the delay before the first of them; null for none. */
  readonly retry: { readonly most: number; readonly delayMs: number } | null
  readonly delegationContext: Json
  readonly outcome: OutcomeRecord | null
  /** The node that received the outcome: written once. `undeliverable` when its run had been cancelled. */
  readonly deliveredTo: Id | 'undeliverable' | null
}

export const LINK_COLUMNS: Columns<Link> = {
  id: { usual: '', text: { as: 'link' } },
  version: { usual: 1, text: 'always' },
  rootId: { usual: '', text: 'never' },
  taskId: { usual: '', text: 'always' },
  hostTurnId: { usual: '', text: 'never' },
  hostConversationId: { usual: '', text: 'never' },
  childConversationId: { usual: '', text: 'always' },
  ordinal: { usual: 0 },
  contract: { usual: 'typed', oneOf: ['typed', 'message', 'open', 'background'] },
  agentName: { usual: '', test: 'researcher', text: 'always' },
  hostName: { usual: '', test: 'editor', text: 'always' },
  toolName: { usual: '', test: 'research', text: { same: 'agentName' } },
  depth: { usual: 1 },
  mode: { usual: 'parked', oneOf: ['parked', 'called', 'background'] },
  wake: { usual: null },
  onParentClose: { usual: 'cancel', oneOf: ['cancel', 'abandon'] },
  released: { usual: true },
  keyed: { usual: null },
  attempt: { usual: 1 },
  retry: { usual: null },
  delegationContext: { usual: null },
  outcome: { usual: null, text: { by: 'packLinkOutcome' } },
  deliveredTo: { usual: null, text: { by: 'packDelivery' } },
}

export interface Body {
  readonly hash: string
  readonly text: string
}
