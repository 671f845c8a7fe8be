import type { Json } from '../base/json.ts'
import type { Content, ToolCall, Usage } from './content.ts'
import type { AbsentSource, OutcomeRecord } from './outcome.ts'

/**
 * The rows a store keeps: plain data, never changed in place. Every row but edges and bodies has a `version`, 1 when it
 * is new; a commit that puts version n is refused unless the stored version is n - 1.
 */
export type Id = string

export interface AgentRef {
  readonly name: string
  readonly hash: string
  /** The whole definition of an agent that was made of a file or by a call: no code of its own is needed to go on. */
  readonly inline?: Json
  /** Of one with `inline`: the agent whose code it builds on; empty for none. */
  readonly code?: string
}

/** Whose code a process must have to run nodes of this agent: a name, or empty for nobody's. */
export function codeOf(agent: AgentRef): string {
  return agent.code ?? agent.name
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
  /** The layers above it, and those of a child's own agent, frozen when it was made (I1). Opaque to the graph. */
  readonly ceiling: readonly Json[]
  readonly groups: { readonly [group: string]: boolean } | null
  /** The running turn of the lane; null when the lane is idle. */
  readonly activeTurnId: Id | null
  /** Delegations in the background that go on, or whose end nobody has been told of yet. */
  readonly background: readonly Id[]
  /** Its delegations that are limited by a key, over all its turns; null when there are none. */
  readonly places: readonly KeyPlaces[] | null
  readonly turnCount: number
  /** Where it was forked and what of it no longer counts; null for one that was only ever gone on with. */
  readonly lane: LaneFacts | null
  readonly createdAt: number
}

/**
 * A lane is a line of turns. A conversation begins with one, whose id is its own; a fork makes another, which is a row of
 * the same kind: its id is accepted wherever a conversation's is.
 */
export interface LaneFacts {
  /** The node it was forked at; null for a first lane. What it knows begins with that lane's turns up to `last`. */
  readonly from: (LanePlace & { readonly nodeId: Id }) | null
  /** The newest lane that was forked from this one; each names the one before it in `before`. */
  readonly newest: Id | null
  readonly before: Id | null
  /** Ordinals of turns that others have taken the place of, from and to, in order and apart. */
  readonly skips: readonly (readonly [from: number, to: number])[]
  /** The ordinal of the newest turn that holds a summary of what was before. */
  readonly fold: number | null
  /** No new turn begins in it. */
  readonly archivedAt: number | null
}

/** A lane up to one of its turns. */
export interface LanePlace {
  readonly laneId: Id
  /** The ordinal of the last turn; -1 for none of this lane's own. */
  readonly last: number
}

/** How many delegations that share a key may run at the same time. */
export interface KeyLimit {
  readonly key: string
  readonly limit: number
}

export interface KeyPlaces {
  readonly key: string
  /** Those that may run now. */
  readonly live: number
  /** Those that wait: first come, first served. */
  readonly waiting: readonly Id[]
}

export type TurnState = 'queued' | 'running' | 'ended'

export interface CancelRequest {
  readonly at: number
  /** `restarted`: another input took its place; what it was doing is not shown to the model any more. */
  readonly cause: 'cancelled' | 'timed_out' | 'parent' | 'restarted'
  readonly reason: string | null
}

/** What the run has spent and started. One ledger per run; children are added when they end (I7). */
export interface Account {
  readonly modelCalls: number
  readonly toolCalls: number
  readonly children: number
  /** Children that may run now; at most `limits.concurrency`. */
  readonly live: number
  /** The ordinal of the next delegation without a key to let run: first come, first served. */
  readonly nextRelease: number
  readonly usage: Usage
  /** Nodes that ended `uncertain`. */
  readonly uncertain: readonly Id[]
}

export interface TurnLimits {
  readonly turns: number
  readonly toolCalls: number
  readonly children: number
  readonly concurrency: number
  readonly depth: number
  readonly wallMs: number
}

/** Tokens and US dollars. */
export interface Money {
  readonly tokens: number
  readonly usd: number
}

/** Of a run and all below it. */
export interface Spend {
  /** Null for no limit. */
  readonly limit: { readonly tokens: number | null; readonly usd: number | null }
  readonly spent: Money
  /** Held back for calls that are being made. */
  readonly held: Money
}

/** The delegations of a run and of all below it. */
export interface TreePlaces {
  /** How many may run at the same time; null where only a run above has a limit. */
  readonly limit: number | null
  /** Those that may run now; not counted without a limit. */
  readonly live: number
  /** The runs whose next delegation waits for room here: first come, first served. */
  readonly waiting: readonly Id[]
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
  /** Its clock stands still while a person is awaited, here or below: how many are, and how much time was left. */
  readonly paused: { readonly asks: number; readonly leftMs: number | null } | null
  /** What it may spend and has; null when neither it nor a run above it has a limit of that kind. */
  readonly spend: Spend | null
  /** Null when neither it nor a run above it limits the delegations of its tree. */
  readonly tree: TreePlaces | null
  readonly cancel: CancelRequest | null
  readonly outcome: OutcomeRecord | null
  /** The run on whose budget it goes on: it tells of what has ended in the background. Null for one with an input of its own. */
  readonly wokenBy: Id | null
  /** What its caller said of the request it is for; null for what the run above it, or none, says. */
  readonly attributes: { readonly [name: string]: Json } | null
  /** What it comes after, where that is not just the turn before it in its lane; null for most. */
  readonly history: TurnHistory | null
  /** What gives tools and was not there for it; null for most. */
  readonly absent: readonly AbsentSource[] | null
  /** Nodes so far: the ordinal of the next one. */
  readonly nodeCount: number
  /** The node that starts when the turn does. */
  readonly entryNodeId: Id
  /** The tree's sequence when the turn was made, or less: all of its events come after it. */
  readonly afterSeq: number
  readonly createdAt: number
  readonly startedAt: number | null
  readonly endedAt: number | null
}

export interface TurnHistory {
  /** The ordinal of the turn before it in what its lane says; -1 for none. */
  readonly after: number
  /** The turn that it was made from and took the place of, or that it is a copy of. */
  readonly source: Id | null
  /** What else it comes after: other lanes, up to a turn. */
  readonly merges: readonly LanePlace[]
  readonly fold: Fold | null
}

/** A summary that stands in contexts for what was before. Transcripts do not know of it. */
export interface Fold {
  readonly summaryId: Id
  /** Of this turn it stands for the nodes up to this ordinal, without what people said; null: for all of it. */
  readonly upTo: number | null
  /** What comes before the summary: the turn of this ordinal; -1: what the lane was forked from; null: nothing. */
  readonly before: number | null
  /** The turn with the summary before this one that still counts. */
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

/** May it run again after its claim was lost? `effectful` may not: it ends `uncertain` (I4). */
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
  /** What people have said of it since; null for nearly all. */
  readonly marks: NodeMarks | null
  readonly createdAt: number
  readonly startedAt: number | null
  readonly endedAt: number | null
}

export interface NodeMarks {
  /** The version that took its place in its turn: it counts for nothing any more. */
  readonly replacedBy: Id | null
  /** Models are not shown it. */
  readonly excludedAt: number | null
  /** Neither models nor people are shown it. */
  readonly deletedAt: number | null
  /** It runs and was asked to stop. */
  readonly stop: { readonly at: number; readonly reason: string } | null
}

/** What the node was asked. Fields by kind; all are JSON. */
export interface NodeInput {
  /** user_message, developer_message, system_message; agent_message that briefs: what its words are told with */
  readonly content?: Content
  /** developer_message: what was said elsewhere, as a model reads it */
  readonly messages?: readonly Json[]
  /** agent_message: what is said to the model before this call, beside the context */
  readonly nudge?: string
  /** task */
  readonly call?: ToolCall
  /** task: this call starts a child */
  readonly delegates?: boolean
  /** kinds of users */
  readonly value?: Json
}

/** What it gave. Fields by kind; all are JSON. */
export interface NodeOutput {
  /** agent_message: what was said; task: what the model reads as the result */
  readonly content?: Content
  readonly calls?: readonly ToolCall[]
  readonly reasoning?: string
  /** task, and agent_message with an output schema: the value itself */
  readonly value?: Json
  /** A large text is kept once, by content; `content` then holds its beginning. */
  readonly bodyRef?: string
  readonly bytes?: number
  readonly isError?: boolean
  /** task of a delegation: what code can read of the result beside its words (the reserved set of a fold) */
  readonly metadata?: { readonly [key: string]: Json }
  /** task of a delegation: its child; the node's own metadata has the same */
  readonly subagent?: { readonly child_conversation_id: Id; readonly child_graph_id: Id }
  /** agent_message: what extensions have put beside the answer */
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
  /** How its end in the background is told: by a turn of the host's, or only by this row. Null: the host has no tools for it. */
  readonly wake: 'auto' | 'passive' | null
  readonly onParentClose: 'cancel' | 'abandon'
  /** May its turn run, as far as the limits of its run, its key and its tree go? */
  readonly released: boolean
  readonly keyed: KeyLimit | null
  /** Which try of the call it is, from 1. */
  readonly attempt: number
  /** How often it is tried again, and after how long the first time; null for never. */
  readonly retry: { readonly most: number; readonly delayMs: number } | null
  readonly delegationContext: Json
  readonly outcome: OutcomeRecord | null
  /** The node that has the outcome: written once. `undeliverable` when the run it was for had been cancelled. */
  readonly deliveredTo: Id | 'undeliverable' | null
}

export interface Body {
  readonly hash: string
  readonly text: string
}

/** A process that runs nodes. Its lease covers all of its claims. */
export interface EngineRow {
  readonly id: Id
  readonly version: number
  readonly bootId: string
  readonly pid: number
  readonly processStart: string
  readonly leaseUntil: number
}
